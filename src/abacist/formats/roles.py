"""The role of each token in the calculation that its line writes down.

A certificate reasons about calculations: which digit of which number does a token hold, and which row
of the work does it belong to? Formats that a certificate exists for answer this for every token of a
line. In `32*54=…`, the long multiplication of 23 × 45:

    token    <start>   3             2             *   5            4            =   ⁰       [15]      5
    part     <start>   multiplicand  multiplicand  *   multiplier   multiplier   =   carry   product   digit
    column   0         1             2             0   0            0            0   1       1         1
    row      0         0             0             0   1            2            0   1       1         1
"""

from collections.abc import Callable
from typing import NamedTuple

from abacist.formats.annotated import AnnotatedTokens

START = "<start>"
"""The part of the token that begins a line, whatever that token is called."""


SIGN = "sign"
"""The part of the sign of an operand, whose row is the operand's number, and of the answer, in row 0."""


class Role(NamedTuple):
    """The part of a calculation that a token belongs to, and where in that part it stands."""

    part: str
    """A name from the format's module, such as "multiplicand"; for a symbol, the symbol itself: "="."""
    column: int = 0
    """The token's column in its number, 1 for units; 0 where it belongs to no column or to all of them."""
    row: int = 0
    """The row of the work, starting at 1; 0 where the token belongs to no row or to all of them."""
    step: int = 0
    """The step that the row is part of, starting at 1; 0 where a format has no steps."""


def decode(line: AnnotatedTokens, role: Callable[[int, int, int, int], Role]) -> list[Role]:
    """Return the role of each token of one line, (1, T), from its id, field, place and row."""
    assert line.row is not None
    columns = (tensor[0].tolist() for tensor in (line.ids, line.field, line.place, line.row))
    return [role(*token) for token in zip(*columns, strict=True)]
