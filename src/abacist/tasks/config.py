"""Settings of the tasks. Imports no torch, so that recipes can be listed at once."""

from dataclasses import dataclass

from abacist.errors import check_between

LONGEST_OPERAND = 1_000_000


@dataclass(frozen=True, kw_only=True)
class AdditionConfig:
    """Add non-negative integers of independent lengths, all combinations of lengths equally likely."""

    num_operands: int = 2
    """Numbers to add in each problem."""
    min_digits: int = 1
    """Shortest operand while training, in digits."""
    max_digits: int = 10
    """Longest operand while training, in digits."""

    def __post_init__(self) -> None:
        check_between("task.num_operands", self.num_operands, 2, 25, 2)
        check_between("task.max_digits", self.max_digits, 1, LONGEST_OPERAND, 10)
        check_between("task.min_digits", self.min_digits, 1, self.max_digits, 1)
