"""Settings of the tasks. Imports no torch, so that recipes can be listed at once."""

import string
from dataclasses import dataclass
from typing import ClassVar, Literal

from abacist.errors import ConfigurationError, check_between

Operation = Literal["+", "-", "*", "//", "%"]
Sampling = Literal["lengths", "nines", "values", "carry-chains", "propagate"]

LONGEST_OPERAND = 1_000_000
MOST_OPERANDS = 25
LABELS = string.ascii_letters
"""Names of numbers to be sorted, in this order: a to z, then A to Z."""
MOST_LABELS = len(LABELS)


def _check_weights(name: str, weights: tuple[float, ...], count: int | None) -> None:
    shown = ",".join(f"{weight:g}" for weight in weights)
    if count is not None and weights and len(weights) != count:
        raise ConfigurationError(
            f"{name} must give one number for each of {count} operations, got {shown}. "
            f"Try --{name} {','.join(['1'] * count)}."
        )
    if weights and not (all(0 <= w < float("inf") for w in weights) and sum(weights) > 0):
        raise ConfigurationError(
            f"{name} must be numbers from 0 up, not all 0, got {shown}. "
            f"Try --{name} {','.join(['1'] * len(weights))}."
        )


@dataclass(frozen=True, kw_only=True)
class ArithmeticConfig:
    """Calculate with non-negative integers: one operation, or several mixed."""

    kind: ClassVar = "arithmetic"

    operations: tuple[Operation, ...] = ("+",)
    """Which operations are asked."""
    weights: tuple[float, ...] = ()
    """How often each is asked, in the same order and any unit; nothing means equally often."""
    min_operands: int = 2
    """Fewest numbers in a problem; more than 2 for sums only."""
    max_operands: int = 2
    """Most numbers in a problem; every count up to it is equally likely."""
    min_digits: int = 1
    """Shortest operand while training, in digits."""
    max_digits: int = 10
    """Longest operand while training, in digits."""
    sampling: Sampling = "lengths"
    """What is equally likely: every combination of lengths (`nines`: and half of all problems are rich in the digit 9, which carries far; `propagate`: and many columns add up to 9, which pass a carry on), every value, or every longest chain of carries."""  # noqa: E501
    operand_digits: tuple[int, ...] = ()
    """Fixed lengths of the operands, such as 20,10, in place of drawn ones."""
    carry_chains: tuple[float, ...] = ()
    """With sampling carry-chains: how often the longest spans 0, 1, 2 … columns; nothing means equally often."""

    def __post_init__(self) -> None:
        if not self.operations or len(set(self.operations)) < len(self.operations):
            raise ConfigurationError(
                f"task.operations must name each operation once, got {','.join(self.operations)!r}. "
                "Try --task.operations +,-."
            )
        _check_weights("task.weights", self.weights, len(self.operations))
        check_between("task.min_operands", self.min_operands, 2, MOST_OPERANDS, 2)
        check_between(
            "task.max_operands",
            self.max_operands,
            self.min_operands,
            MOST_OPERANDS,
            self.min_operands,
        )
        if self.max_operands > 2 and self.operations != ("+",):
            raise ConfigurationError(
                f"task.max_operands above 2 is for sums only, got {self.max_operands} with "
                f"{','.join(self.operations)}. Try --task.max_operands 2."
            )
        check_between("task.max_digits", self.max_digits, 1, LONGEST_OPERAND, 10)
        check_between("task.min_digits", self.min_digits, 1, self.max_digits, 1)
        self._check_operand_digits()
        two_addends = (self.operations, self.max_operands) == (("+",), 2)
        if self.sampling in ("carry-chains", "propagate") and not two_addends:
            raise ConfigurationError(
                f"task.sampling {self.sampling} is for sums of 2 operands, got "
                f"{','.join(self.operations)} of up to {self.max_operands}. "
                "Try --task.sampling lengths."
            )
        if self.carry_chains and self.sampling != "carry-chains":
            raise ConfigurationError(
                f"task.carry_chains needs another way of drawing, got {self.sampling}. "
                "Try --task.sampling carry-chains."
            )
        _check_weights("task.carry_chains", self.carry_chains, None)

    def _check_operand_digits(self) -> None:
        example = ",".join(["10"] * self.max_operands)
        for digits in self.operand_digits:
            check_between("task.operand_digits", digits, 1, LONGEST_OPERAND, example)
        if self.operand_digits and not (
            len(self.operand_digits) == self.min_operands == self.max_operands
        ):
            raise ConfigurationError(
                f"task.operand_digits must give one length for each of {self.max_operands} "
                f"operands, got {','.join(map(str, self.operand_digits))}. "
                f"Try --task.operand_digits {example}."
            )
        if self.operand_digits and self.sampling == "values":
            raise ConfigurationError(
                "task.operand_digits fixes the lengths that task.sampling values would draw. "
                "Try --task.sampling lengths."
            )

    @property
    def longest_operand(self) -> int:
        """Digits of the longest operand that is drawn."""
        return max(self.operand_digits, default=self.max_digits)


@dataclass(frozen=True, kw_only=True)
class SortingConfig:
    """Sort labelled numbers: `a:821,b:9` gives `ba`; equal numbers keep their order."""

    kind: ClassVar = "sorting"

    min_numbers: int = 2
    """Fewest numbers in a problem."""
    max_numbers: int = 10
    """Most numbers in a problem; every count is equally likely."""
    min_digits: int = 1
    """Shortest number while training, in digits."""
    max_digits: int = 10
    """Longest number while training; a problem's own limit is drawn first, each equally likely."""
    sampling: Literal["uniform", "ties"] = "uniform"
    """Any digits, or (`ties`) in half of all problems only two different ones: many numbers are equal, or nearly."""

    def __post_init__(self) -> None:
        check_between("task.max_numbers", self.max_numbers, 1, MOST_LABELS, 10)
        check_between(
            "task.min_numbers", self.min_numbers, 1, self.max_numbers, min(2, self.max_numbers)
        )
        check_between("task.max_digits", self.max_digits, 1, LONGEST_OPERAND, 10)
        check_between("task.min_digits", self.min_digits, 1, self.max_digits, 1)


@dataclass(frozen=True, kw_only=True)
class ModularAdditionConfig:
    """Add two residues of a modulus, every pair equally likely: `95+30` modulo 113 is 12."""

    kind: ClassVar = "modular-addition"

    modulus: int = 113
    """What sums are taken modulo of; 113 and 97 are the usual ones (arXiv 2301.05217, 2201.02177)."""

    def __post_init__(self) -> None:
        check_between("task.modulus", self.modulus, 2, 100_000, 113)


TaskConfig = ArithmeticConfig | SortingConfig | ModularAdditionConfig

TASKS: dict[str, TaskConfig] = {
    "add": ArithmeticConfig(),
    "add-many": ArithmeticConfig(max_operands=10),
    "subtract": ArithmeticConfig(operations=("-",)),
    "multiply": ArithmeticConfig(operations=("*",), max_digits=7),
    "divide": ArithmeticConfig(operations=("//",)),
    "modulo": ArithmeticConfig(operations=("%",)),
    "five-operations": ArithmeticConfig(
        operations=("+", "-", "*", "//", "%"),
        weights=(0.05, 0.10, 0.20, 0.30, 0.35),
        max_digits=3,
        sampling="values",
    ),
    "sort": SortingConfig(),
    "add-modulo": ModularAdditionConfig(),
}
"""Tasks that `--task NAME` stands for."""
