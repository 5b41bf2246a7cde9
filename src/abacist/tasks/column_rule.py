"""Tasks as finite-state machines over columns, which is the form that certificates need.

Addition, read from the units column upwards, is a small machine: it has a state (the carry), reads
one column (the operands' digits), writes one digit of the answer and goes to the next state. A
task in this form can be certified in every format that keeps the digits of a column close together.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from torch import Tensor

LeftOver = Literal["digits", "sign", "state", "nothing"]


class ColumnStep(Protocol):
    """One column of a calculation, for n cases at once."""

    def __call__(self, state_n: Tensor, digits_nN: Tensor) -> tuple[Tensor, Tensor]:
        """Return the answer's digit and the next state, int64 (n,) each.

        Args:
            state_n: current states, int64.
            digits_nN: digits of the operands in the column, int64; 0 after an operand's end.
        """


@dataclass(frozen=True)
class ColumnRule:
    """A task as a machine that reads one column after the other.

    The answer has a digit in every column in which an operand has one. The initial state is 0:
    nothing is carried.
    """

    step: ColumnStep
    """One step of the machine, for any number of operands."""
    left_over: LeftOver = "digits"
    """What a final state other than 0 adds to the answer: further digits until the state is 0, one sign, the state, or nothing."""  # noqa: E501
    base: int = 10
    """Base of the numbers."""
    most_significant_first: bool = False
    """Whether the machine begins with the most significant column; shorter operands then have zeros before them."""
