"""Settings of the tasks. Imports no torch, so that recipes can be listed at once."""

import string
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from abacist.config_base import ConfigFamily, setting
from abacist.errors import ConfigurationError, nearest
from abacist.extensions import Registry

if TYPE_CHECKING:
    from abacist.tasks.arithmetic import Arithmetic
    from abacist.tasks.column_machine import ColumnMachine
    from abacist.tasks.column_task import ColumnTask
    from abacist.tasks.modular_addition import ModularAddition
    from abacist.tasks.own_task import OwnTask
    from abacist.tasks.sorting import Sorting
    from abacist.tasks.task import Task

Operation = Literal["+", "-", "*", "//", "%"]
Sampling = Literal["lengths", "nines", "values", "carry-chains", "propagate"]

LONGEST_OPERAND = 1_000_000
MOST_OPERANDS = 25
MOST_ASKED_OPERANDS = 1_000
"""Largest number of operands of a problem that a person types, where tasks take any number."""
LABELS = string.ascii_letters
"""Labels of numbers to be sorted, in this order: a to z, then A to Z."""
MOST_LABELS = len(LABELS)


@dataclass(frozen=True, kw_only=True)
class TaskConfig(ConfigFamily):
    """Base class of the configurations of tasks."""

    section: ClassVar = "task"

    def build(self) -> "Task":
        """Return the task that this configuration describes."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class ArithmeticConfig(TaskConfig):
    """Calculate with integers: one operation, or a mixture of several."""

    kind: ClassVar = "arithmetic"

    operations: tuple[Operation, ...] = ("+",)
    """Operations that problems ask for."""
    weights: tuple[float, ...] = ()
    """Relative frequency of each operation, in the same order; an empty list means equal frequencies."""
    min_operands: int = setting(2, low=2, high=MOST_OPERANDS)
    """Smallest number of operands in a problem; only sums can have more than 2."""
    max_operands: int = setting(2, low="min_operands", high=MOST_OPERANDS)
    """Largest number of operands in a problem; all numbers from the smallest on are equally likely."""
    min_digits: int = setting(1, low=1, high="max_digits")
    """Length of the shortest training operands, in digits."""
    max_digits: int = setting(10, low=1, high=LONGEST_OPERAND)
    """Length of the longest training operands, in digits."""
    sampling: Sampling = "lengths"
    """What is equally likely. `lengths`: every combination of lengths; `nines`: the same, and half of all problems are rich in the digit 9, which propagates carries; `propagate`: the same, and many columns add up to 9, scattered or in one stretch, which propagate a carry; `values`: every value; `carry-chains`: every length of the longest carry chain."""  # noqa: E501
    operand_digits: tuple[int, ...] = setting((), low=1, high=LONGEST_OPERAND, suggestion=10)
    """Fixed lengths of the operands in digits, such as 20,10; an empty list means random lengths."""
    carry_chains: tuple[float, ...] = ()
    """With sampling carry-chains: relative frequencies of longest chains of 0, 1, 2 … columns; an empty list means equal frequencies."""  # noqa: E501
    signed: bool = False
    """Draw each operand below 0 with probability one half, and accept negative operands such as `-12+34`."""

    def conflicts(self, path: str) -> Iterator[str]:
        typed = ",".join(self.operations)
        if not self.operations or len(set(self.operations)) < len(self.operations):
            yield (
                f"{path}.operations must name each operation once, got {typed!r}. "
                f"Try --{path}.operations +,-."
            )
        yield from _bad_weights(f"{path}.weights", self.weights, len(self.operations))
        yield from _bad_weights(f"{path}.carry_chains", self.carry_chains, None)
        if self.max_operands > 2 and self.operations != ("+",):
            yield (
                f"{path}.max_operands above 2 is for sums only, got {self.max_operands} with "
                f"{typed}. Try --{path}.max_operands 2."
            )
        yield from self._bad_operand_digits(path)
        two_addends = (self.operations, self.max_operands) == (("+",), 2)
        if self.sampling in ("carry-chains", "propagate") and not two_addends:
            yield (
                f"{path}.sampling {self.sampling} is for sums of 2 operands, got {typed} of up to "
                f"{self.max_operands}. Try --{path}.sampling lengths."
            )
        if self.signed and self.max_operands > 2:
            yield (
                f"{path}.signed is for problems of 2 operands, got {path}.max_operands "
                f"{self.max_operands}. Try --{path}.signed false."
            )
        if self.signed and self.sampling not in ("lengths", "nines"):
            yield (
                f"{path}.signed draws operands by lengths or nines, got {path}.sampling "
                f"{self.sampling}. Try --{path}.sampling lengths."
            )
        if self.carry_chains and self.sampling != "carry-chains":
            yield (
                f"{path}.carry_chains needs {path}.sampling carry-chains, got {self.sampling}. "
                f"Try --{path}.sampling carry-chains."
            )

    def _bad_operand_digits(self, path: str) -> Iterator[str]:
        if not self.operand_digits:
            return
        if not len(self.operand_digits) == self.min_operands == self.max_operands:
            yield (
                f"{path}.operand_digits must give one length for each of {self.max_operands} "
                f"operands, got {','.join(map(str, self.operand_digits))}. "
                f"Try --{path}.operand_digits {','.join(['10'] * self.max_operands)}."
            )
        if self.sampling == "values":
            yield (
                f"{path}.operand_digits fixes the lengths that {path}.sampling values would draw. "
                f"Try --{path}.sampling lengths."
            )

    @property
    def longest_operand(self) -> int:
        """Length of the longest operands that are drawn, in digits."""
        return max(self.operand_digits, default=self.max_digits)

    def build(self) -> "Arithmetic":
        from abacist.tasks.arithmetic import Arithmetic

        return Arithmetic(self)


def _bad_weights(name: str, weights: tuple[float, ...], count: int | None) -> Iterator[str]:
    """Yield what is wrong with relative frequencies, of which there must be `count` unless it is None."""
    typed = ",".join(f"{weight:g}" for weight in weights)
    if count and weights and len(weights) != count:
        yield (
            f"{name} must give one number for each of {count} operations, got {typed}. "
            f"Try --{name} {','.join(['1'] * count)}."
        )
    elif weights and not (all(0 <= w < float("inf") for w in weights) and sum(weights) > 0):
        yield (
            f"{name} must be numbers from 0 up, not all 0, got {typed}. "
            f"Try --{name} {','.join(['1'] * len(weights))}."
        )


@dataclass(frozen=True, kw_only=True)
class SortingConfig(TaskConfig):
    """Sort labelled numbers: `a:821,b:9` gives `ba`; equal numbers keep their order."""

    kind: ClassVar = "sorting"

    min_numbers: int = setting(2, low=1, high="max_numbers")
    """Smallest count of numbers in a problem."""
    max_numbers: int = setting(10, low=1, high=MOST_LABELS)
    """Largest count of numbers in a problem; all counts from the smallest on are equally likely."""
    min_digits: int = setting(1, low=1, high="max_digits")
    """Length of the shortest training numbers, in digits."""
    max_digits: int = setting(10, low=1, high=LONGEST_OPERAND)
    """Length of the longest training numbers, in digits; each problem first draws its own largest length, all equally likely."""  # noqa: E501
    sampling: Literal["uniform", "ties"] = "uniform"
    """Distribution of digits. `uniform`: all equally likely; `ties`: half of all problems contain only two different digits, so that many numbers are equal or nearly equal."""  # noqa: E501

    def build(self) -> "Sorting":
        from abacist.tasks.sorting import Sorting

        return Sorting(self)


@dataclass(frozen=True, kw_only=True)
class ModularAdditionConfig(TaskConfig):
    """Add two residues of a modulus, every pair equally likely: `95+30` modulo 113 is 12."""

    kind: ClassVar = "modular-addition"

    modulus: int = setting(113, low=2, high=100_000)
    """The modulus; 113 and 97 are the usual ones (arXiv 2301.05217, 2201.02177)."""

    def build(self) -> "ModularAddition":
        from abacist.tasks.modular_addition import ModularAddition

        return ModularAddition(self)


def check_notation(
    name: str, base: object, operands: object, symbol: object, *, most_operands: int, setting: str
) -> None:
    """Raise `ConfigurationError` unless operands of a base can be written with a symbol between them.

    Args:
        name: name of the task, with which the message begins.
        base: number of different digits.
        operands: number of operands.
        symbol: character between the operands.
        most_operands: largest allowed number of operands.
        setting: name of the setting that states the number of operands.
    """
    if not isinstance(base, int) or not 2 <= base <= 36:
        raise ConfigurationError(
            f"{name}: base must be a whole number from 2 to 36, got {base!r}. Try base=10."
        )
    if not isinstance(operands, int) or not 1 <= operands <= most_operands:
        raise ConfigurationError(
            f"{name}: {setting} must be a whole number from 1 to {most_operands}, got {operands!r}. "
            f"Try {setting}=2."
        )
    if not (
        isinstance(symbol, str)
        and len(symbol) == 1
        and symbol.isprintable()
        and not symbol.isalnum()
        and symbol not in " =;-.[]"
    ):
        raise ConfigurationError(
            f"{name}: symbol must be one character other than a letter, a digit, a space, "
            f"'=', ';', '-', '.', '[' and ']', got {symbol!r}. Try symbol=','."
        )


@dataclass(frozen=True, kw_only=True)
class OwnTaskConfig(TaskConfig):
    """Base class of the configurations of tasks whose operands are texts of digits or letters.

    A subclass has a `kind` and a method `answer`, which is all that a task of an extension needs.

    Raises `ConfigurationError` when a subclass is defined with a `base`, `num_operands` or `symbol` that
    cannot be written.
    """

    base: ClassVar[int] = 10
    """Number of different characters of an operand: digits, and from base 11 on the letters from a."""
    num_operands: ClassVar[int] = 2
    """Number of operands of every problem, at most 25."""
    symbol: ClassVar[str] = ","
    """Character between the operands: no letter, digit or space, and none of `=`, `;`, `-`, `.`, `[` and `]`."""
    is_numeric: ClassVar[bool] = True
    """Whether operands are numbers, which have no leading zeros."""

    min_digits: int = setting(1, low=1, high="max_digits")
    """Length of the shortest training operands, in digits."""
    max_digits: int = setting(6, low=1, high=LONGEST_OPERAND)
    """Length of the longest training operands, in digits."""

    def __init_subclass__(cls) -> None:
        check_notation(
            cls.__name__,
            cls.base,
            cls.num_operands,
            cls.symbol,
            most_operands=MOST_OPERANDS,
            setting="num_operands",
        )
        super().__init_subclass__()

    @property
    def name(self) -> str:
        """Name of the task in messages."""
        return self.kind

    def answer(self, *operands: str) -> str:
        """Return the exact answer to one problem, in the characters that operands consist of."""
        raise ConfigurationError(
            f"{type(self).__name__} needs a method answer, which returns the answer to one problem."
        )

    def build(self) -> "OwnTask":
        from abacist.tasks.own_task import OwnTask

        return OwnTask(self)


COLUMN_TASKS: "Registry[ColumnMachine]" = Registry("column task")
"""The column tasks that extensions have registered, by name."""


@dataclass(frozen=True, kw_only=True)
class ColumnTaskConfig(OwnTaskConfig):
    """A task that a finite-state machine carries out, which reads one column of digits after the other."""

    kind: ClassVar = "column"

    machine: str
    """Name of the machine, which an extension registers with `column_task`."""

    def conflicts(self, path: str) -> Iterator[str]:
        if self.machine not in COLUMN_TASKS:
            known = nearest(self.machine, COLUMN_TASKS) if COLUMN_TASKS else "none is registered."
            yield (
                f"unknown {path}.machine {self.machine!r}: {known} Type --extension with the file "
                "that registers it."
            )

    @property
    def name(self) -> str:
        return self.machine

    def build(self) -> "ColumnTask":
        from abacist.tasks.column_task import ColumnTask

        return ColumnTask(self)


TASKS: Registry[TaskConfig] = Registry(
    "task",
    {
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
    },
)
"""Named tasks for `--task NAME`."""
