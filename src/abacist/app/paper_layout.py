"""The layout of a line on paper: where each token stands, and a legend of the signs.

People write numbers with the units on the right, one number below the other. Formats write them in
the order in which a model reads them. Every token gets a row and a column of a grid, of which a
digit takes two columns, so that a carry and a product fit side by side above it:

    >>> paper_layout(trained_model.format, ids)[1]
    Position(row=1, column=7, width=2, kind='digit')
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.calculation import CalculationFormat
from abacist.formats.format import Format
from abacist.formats.plain import PlainFormat
from abacist.formats.roles import SIGN, Role
from abacist.formats.signed_addition import SignedAdditionFormat
from abacist.inspection.finding import Finding

_MARGIN = 2
"""Number of digits' widths on the left, for operators and the start token."""


@dataclass(frozen=True)
class Position(Finding):
    """Where one token stands on paper."""

    row: int
    """Row of the grid, starting at 1."""
    column: int
    """First column of the grid, starting at 1."""
    width: int = 2
    """Number of columns; a digit takes 2."""
    kind: str = "digit"
    """`digit`, `small` for carries and products, `mark` for signs, or `result` for the final digits."""
    place: int | None = None
    """Place of the digit as people count it, 1 for units; None if it has none."""


Layout = Callable[[list[Role]], list[Position]]


def paper_layout(format: Format, line: AnnotatedTokens) -> list[Position] | None:
    """Return the position of every token of one line, (1, T); None if the format has no such layout."""
    layout = _LAYOUTS.get(format.enumeration or "")
    if layout is None or not hasattr(format, "roles"):
        if isinstance(format, PlainFormat | SignedAdditionFormat):
            line = replace(line, place=format.columns(line))
        return _rows_of_numbers(line)
    roles: list[Role] = format.roles(line.ids[0].long())
    positions = layout(roles)
    cells = [(position.row, position.column) for position in positions]
    return positions if len(set(cells)) == len(cells) else None


def legend(format: Format, answer: str | None) -> list[tuple[str, str]]:
    """Return the signs of a format, each with its meaning in plain words."""
    signs = [("⟨ ⟩", "start and end of the line")]
    signs += _LEGENDS.get(format.enumeration or "", [])
    if isinstance(format, CalculationFormat) and format.signed:
        signs += _LEGENDS_OF_SIGNS.get(format.enumeration or "", [])
    if format.enumeration == "column-addition" and answer is not None and answer.startswith("-"):
        digits = len(answer) - 1
        signs.append(
            ("-", f"the answer is below 0: subtract the digits above from 1{'0' * min(digits, 60)}")
        )
    return signs


def _rows_of_numbers(line: AnnotatedTokens) -> list[Position] | None:
    """Numbers below each other, for formats whose tokens have a row and a place."""
    if line.row is None:
        return None
    places, rows = line.place[0].tolist(), line.row[0].tolist()
    if all(row < 1 for row in rows):
        return None
    highest = max(max(places), 1)
    positions = []
    for number, (place, own_row) in enumerate(zip(places, rows, strict=True)):
        row = own_row if own_row >= 1 else next((r for r in rows[number:] if r >= 1), None)
        if row is None:
            return None
        margin = 0 if number == 0 else 1
        is_digit = place >= 1
        column = _column(place, highest) if is_digit else 2 * margin + 1
        kind = "digit" if is_digit else "mark"
        positions.append(Position(row, column, kind=kind, place=place if is_digit else None))
    cells = {(position.row, position.column) for position in positions}
    return positions if len(cells) == len(positions) else None


def _column(place: int, highest: int) -> int:
    """Return the grid column of a digit: the highest place is on the left, after the margin."""
    return 2 * (_MARGIN + highest - place) + 1


def _long_multiplication(roles: list[Role]) -> list[Position]:
    """A row for each digit of the multiplier: running totals, with carries and products above them."""
    num_rows = max((role.row for role in roles if role.part == "multiplier"), default=1)
    num_columns = max((role.column for role in roles if role.part == "multiplicand"), default=1)
    highest = num_rows + num_columns
    positions = []
    for role in roles:
        place = role.column + role.row - 1
        lower = 2 * role.row + 2
        if role.part == "multiplicand":
            positions.append(Position(1, _column(role.column, highest), place=role.column))
        elif role.part == "multiplier":
            positions.append(Position(2, _column(role.row, highest), place=role.row))
        elif role.part == "carry":
            positions.append(Position(lower - 1, _column(place, highest), 1, "small", place))
        elif role.part == "product":
            positions.append(Position(lower - 1, _column(place, highest) + 1, 1, "small", place))
        elif role.part == "digit":
            is_result = role.column == 1 or role.row == num_rows
            kind = "result" if is_result else "digit"
            positions.append(Position(lower, _column(place, highest), kind=kind, place=place))
        elif role.part == SIGN:
            # The sign of the product stands before its highest digit.
            row = role.row or 2 * num_rows + 2
            positions.append(Position(row, _column(highest + 1, highest), kind="mark"))
        else:
            after_units = _column(0, highest)
            row, column = {
                "<start>": (1, 1),
                "=": (2, after_units),
                "<end>": (2 * num_rows + 2, after_units),
            }.get(role.part, (2, 1))
            positions.append(Position(row, column, kind="mark"))
    return positions


def _non_restoring_division(roles: list[Role]) -> list[Position]:
    """The problem, and below it a row for each subtraction or addition of the divisor."""
    num_steps = max((role.step for role in roles if role.part == "dividend"), default=1)
    leading = max((role.column for role in roles if role.part == "dividend"), default=0)
    widest = max((role.column for role in roles if role.part == "digit"), default=1)
    divisor_digits = max((role.column for role in roles if role.part == "divisor"), default=1)
    highest = num_steps + max(leading, widest - 1)
    left = 2
    positions = []
    last_row = max((role.row for role in roles), default=0) + 1
    for role in roles:
        if role.part == "dividend":
            place = num_steps + role.column if role.step == 0 else num_steps - role.step + 1
            positions.append(Position(1, _column(place, highest) + left, place=place))
        elif role.part == "divisor":
            positions.append(Position(1, _column(role.column - divisor_digits - 2, highest) + left))
        elif role.part == "operator":
            positions.append(Position(1, _column(0, highest) + left, kind="mark"))
        elif role.part == "=":
            positions.append(Position(1, _column(-divisor_digits - 3, highest) + left, kind="mark"))
        elif role.part == SIGN:
            # Before the dividend, before the divisor, and after `=`.
            place = {1: highest + 1, 2: -1}.get(role.row, -divisor_digits - 4)
            positions.append(Position(1, _column(place, highest) + left, kind="mark"))
        elif role.part == "action":
            positions.append(Position(role.row + 1, 1, 3, "mark"))
        elif role.part == "colon":
            positions.append(Position(role.row + 1, 4, 2, "mark"))
        elif role.part == "digit":
            place = num_steps - role.step + role.column
            positions.append(Position(role.row + 1, _column(place, highest) + left, place=place))
        elif role.part == "<end>":
            positions.append(Position(last_row, _column(highest, highest) + left, kind="mark"))
        else:
            positions.append(Position(1, 1, kind="mark"))
    return positions


def _insertion_sort(roles: list[Role]) -> list[Position]:
    """A row for each number, and below them a row for each number that is inserted."""
    equals = next((i for i, role in enumerate(roles) if role.part == "="), len(roles))
    prompt, work = roles[:equals], roles[equals:]
    width = max((role.column for role in prompt if role.part == "digit"), default=1)
    num_numbers = max((role.row for role in prompt), default=1)
    positions = []
    for role in prompt:
        if role.part == "digit":
            positions.append(
                Position(role.row, 2 * (3 + width - role.column) + 1, place=role.column)
            )
        elif role.part == "<start>":
            positions.append(Position(1, 1, kind="mark"))
        else:
            column = {"label": 3, ":": 5}.get(role.part)
            # The comma before a number ends the row of the previous one.
            row, kind = (role.row, "digit") if role.part == "label" else (role.row, "mark")
            if column is None:
                row, column = role.row - 1, 2 * (3 + width) + 1
            positions.append(Position(row, column, kind=kind))
    row, column = num_numbers, 2 * (3 + width) + 1
    for role in work:
        positions.append(
            Position(row, column, kind="digit" if role.part in ("digit", "label") else "mark")
        )
        column += 2
        if role.part in ("=", ","):
            row, column = row + 1, 3
    return positions


_LAYOUTS: dict[str, Layout] = {
    "long-multiplication": _long_multiplication,
    "non-restoring-division": _non_restoring_division,
    "insertion-sort": _insertion_sort,
}
_LEGENDS_OF_SIGNS: dict[str, list[tuple[str, str]]] = {
    "signed-addition": [
        ("⁺", "the number is not below 0"),
        ("⁻", "the number is below 0: nines without end stand before its digits"),
    ],
    "long-multiplication": [("⁺ ⁻", "the number is not below 0, or below 0 unless it is 0")],
    "non-restoring-division": [
        ("⁻ before the dividend", "it is below 0 and written as a complement, as the quotient is"),
        ("⁺ ⁻ after =", "the sign of the remainder, which is that of the divisor"),
    ],
}
_LEGENDS: dict[str, list[tuple[str, str]]] = {
    "long-multiplication": [
        ("small ¹", "carry that comes in"),
        ("small 15", "product of the two digits"),
        ("below them", "digit of the running total"),
        ("underlined", "digit of the answer"),
    ],
    "non-restoring-division": [
        ("-3", "subtract the divisor, which went in 3 times before"),
        ("+7", "add it back: the remainder is below 0, and is written as a complement"),
        ("'", "borrows from the next column, or carries into it"),
    ],
    "insertion-sort": [
        ("a b …", "labels of the numbers"),
        (">", "the number in the list is larger: the new one goes before it"),
        ("<", "the number in the list is smaller and stays"),
        ("~", "equal so far: compare the next digit"),
    ],
}


def shortened_sign(text: str) -> str:
    """Return the text of a token on paper: a product without its brackets."""
    return text[1:-1] if text.startswith("[") and text.endswith("]") else text
