"""A task told column by column: what a certificate needs to know of it.

Addition read from the units column upwards is a small machine: it is in a state (the carry),
reads one column (the operands' digits there), writes one digit of the answer and goes to the
next state. Whoever can state a task so gets a certificate for every format that keeps the
digits of a column near each other.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from torch import Tensor


class ColumnStep(Protocol):
    """One column of a calculation, n cases at once."""

    def __call__(self, state_n: Tensor, digits_nN: Tensor) -> tuple[Tensor, Tensor]:
        """(state, operand digits; 0 where an operand has ended) -> (answer digit, next state)."""


@dataclass(frozen=True)
class ColumnRule:
    """A task as a machine that reads columns from the least significant one upwards.

    The answer has a digit in every column in which an operand has one. State 0 is the initial one:
    nothing is carried.
    """

    step: ColumnStep
    """For any number of operands."""
    left_over: Literal["digits", "sign"] = "digits"
    """What a state other than 0 is worth above all operands: further digits until it is 0, or one sign."""
