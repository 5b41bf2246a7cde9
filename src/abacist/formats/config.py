"""Settings of the formats. Imports no torch."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from abacist.errors import ConfigurationError, check_between
from abacist.tasks.config import ArithmeticConfig, ModularAdditionConfig, SortingConfig, TaskConfig

Layout = Literal["constant", "shape", "similar", "free"]
"""Which lines have their tokens in the same places, as far as the shorter of them goes.

All of them, those of one shape, or none in particular; `similar` are none in particular either, but
those of one shape are about as long.
"""
Order = Literal["reversed", "usual"]
Padding = Literal["none", "longest", "fixed"]


@dataclass(frozen=True, kw_only=True)
class PlainFormatConfig:
    """Operands, `=`, answer: `<start>21+43=64<end>` for 12+34=46, or any other order, padding, spacing."""

    kind: ClassVar = "plain"
    coordinates: ClassVar = ("index", "row", "place")

    start_token: bool = True
    """Write a first token that stands in every column, so that windowed attention can see it."""
    end: Literal["token", "space", "none"] = "token"
    """What a line ends with: a token of its own, a space, or nothing, for which all lines must have one length."""
    padding_token: bool = False
    """Pad lines with a token of its own, as many libraries do; otherwise with what they end with."""
    operand_order: Order = "reversed"
    """Order of the operands' digits: least significant first (reversed), or as usual."""
    answer_order: Order = "reversed"
    """Order of the answer's digits."""
    operand_padding: Padding = "none"
    """Zeros before operands: none, to the longest of the problem, or to the longest of the task."""
    answer_padding: Padding = "none"
    """Zeros before the answer: none, to the widest possible for the problem, or for the task."""
    negative: Literal["sign-first", "sign-last", "complement"] = "sign-first"
    """How an answer below 0 is written: `-22`, `22-`, or as the ten's complement `78-` of so many digits."""
    spaces: Literal["none", "around", "thousands", "random"] = "none"
    """Spaces in the prompt: none, `12 + 34 =`, `1 234 + 5 678=`, or each gap with one half chance."""

    def __post_init__(self) -> None:
        if self.end == "none" and (self.operand_padding, self.answer_padding) != ("fixed", "fixed"):
            raise ConfigurationError(
                "format.end none needs lines of one length, got "
                f"format.operand_padding {self.operand_padding} and format.answer_padding "
                f"{self.answer_padding}. Try --format.end token."
            )
        if self.end == "none" and self.spaces == "random":
            raise ConfigurationError(
                "format.end none needs lines of one length, got format.spaces random. "
                "Try --format.end token."
            )
        if self.negative == "complement" and self.answer_padding == "none":
            raise ConfigurationError(
                "format.negative complement needs a fixed number of digits, got "
                "format.answer_padding none. Try --format.answer_padding longest."
            )

    def obstacle(self, task: TaskConfig) -> str | None:
        """Why this format cannot write a task; None if it can."""
        if isinstance(task, SortingConfig):
            return "it writes calculations"
        varies = isinstance(task, ArithmeticConfig) and (
            "-" in task.operations or task.min_operands < task.max_operands
        )
        if varies and self.end == "none":
            return "without an end token it writes lines of one length only"
        return None


@dataclass(frozen=True, kw_only=True)
class CarryTraceFormatConfig:
    """Lines of one length, `123*  45=+501302501500000000`: behind each answer digit the carry out of its column."""

    kind: ClassVar = "carry-trace"
    coordinates: ClassVar = ("index", "place")

    operand_width: int = 3
    """Characters for each operand; 3 makes lines of 28 characters."""

    def __post_init__(self) -> None:
        # Beyond 9 digits a carry no longer fits its two characters.
        check_between("format.operand_width", self.operand_width, 1, 9, 3)

    def obstacle(self, task: TaskConfig) -> str | None:
        """Why this format cannot write a task; None if it can."""
        if not isinstance(task, ArithmeticConfig) or task.max_operands > 2:
            return "it writes calculations with two operands"
        if task.longest_operand > self.operand_width:
            return f"it writes operands of at most {self.operand_width} digits"
        return None


@dataclass(frozen=True, kw_only=True)
class RunningSumsFormatConfig:
    """Sums of many numbers by one addition after the other: `<start>21+43+65=64;201<end>`."""

    kind: ClassVar = "running-sums"
    coordinates: ClassVar = ("index", "row", "place")

    start_token: bool = True
    """Write a first token that stands in every column and row."""

    def obstacle(self, task: TaskConfig) -> str | None:
        """Why this format cannot write a task; None if it can."""
        adds = isinstance(task, ArithmeticConfig) and task.operations == ("+",)
        return None if adds else "it writes + only"


@dataclass(frozen=True, kw_only=True)
class LongDivisionFormatConfig:
    """Long division with every subtraction written out, so that each token follows from a few near ones."""

    kind: ClassVar = "long-division"
    coordinates: ClassVar = ("index", "step", "row", "place")

    start_token: bool = True
    """Write a first token that stands in every column, row and step."""

    def obstacle(self, task: TaskConfig) -> str | None:
        """Why this format cannot write a task; None if it can."""
        divides = isinstance(task, ArithmeticConfig) and set(task.operations) <= {"//", "%"}
        return None if divides else "it writes // and % only"


@dataclass(frozen=True, kw_only=True)
class NonRestoringDivisionFormatConfig:
    """Division that never goes back to an earlier row, so that each token follows from a few near ones."""

    kind: ClassVar = "non-restoring-division"
    coordinates: ClassVar = ("index", "step", "row", "place")

    start_token: bool = True
    """Write a first token that stands in every column, row and step."""

    def obstacle(self, task: TaskConfig) -> str | None:
        """Why this format cannot write a task; None if it can."""
        divides = isinstance(task, ArithmeticConfig) and set(task.operations) <= {"//", "%"}
        return None if divides else "it writes // and % only"


@dataclass(frozen=True, kw_only=True)
class PartialProductsFormatConfig:
    """Multiplication by running sums, one row for each digit of the second operand."""

    kind: ClassVar = "partial-products"
    coordinates: ClassVar = ("index", "row", "place")

    start_token: bool = True
    """Write a first token that stands in every column and row."""

    def obstacle(self, task: TaskConfig) -> str | None:
        """Why this format cannot write a task; None if it can."""
        multiplies = isinstance(task, ArithmeticConfig) and task.operations == ("*",)
        return None if multiplies else "it writes * only"


@dataclass(frozen=True, kw_only=True)
class LongMultiplicationFormatConfig:
    """Long multiplication cell by cell, so that each token follows from at most four near ones."""

    kind: ClassVar = "long-multiplication"
    coordinates: ClassVar = ("index", "row", "place")

    start_token: bool = True
    """Write a first token that stands in every column and row."""

    def obstacle(self, task: TaskConfig) -> str | None:
        """Why this format cannot write a task; None if it can."""
        multiplies = isinstance(task, ArithmeticConfig) and task.operations == ("*",)
        return None if multiplies else "it writes * only"


@dataclass(frozen=True, kw_only=True)
class WorkedFormatConfig:
    """Any of five operations, each worked on paper, so that each token follows from a few near ones."""

    kind: ClassVar = "worked"
    coordinates: ClassVar = ("index", "step", "row", "place")

    start_token: bool = True
    """Write a first token that stands in every column, row and step."""

    def obstacle(self, task: TaskConfig) -> str | None:
        """Why this format cannot write a task; None if it can."""
        if not isinstance(task, ArithmeticConfig) or task.max_operands > 2:
            return "it writes calculations with two operands"
        return None


@dataclass(frozen=True, kw_only=True)
class LabelsFormatConfig:
    """Labelled numbers and their labels in order: `a:821,b:9=ba<end>`."""

    kind: ClassVar = "labels"
    coordinates: ClassVar = ("index", "row", "place")

    start_token: bool = False
    """Write a first token that stands in every column and row."""
    order: Order = "usual"
    """Order of the numbers' digits: least significant first (reversed), or as usual."""
    padding: Padding = "none"
    """Zeros before the numbers: none, to the longest of the problem, or to the longest of the task."""

    def obstacle(self, task: TaskConfig) -> str | None:
        """Why this format cannot write a task; None if it can."""
        return None if isinstance(task, SortingConfig) else "it writes labelled numbers to sort"


@dataclass(frozen=True, kw_only=True)
class InsertionSortFormatConfig:
    """Sorting by insertion, one number after the other, so that each token follows from at most two."""

    kind: ClassVar = "insertion-sort"
    coordinates: ClassVar = ("index", "step", "row", "place")

    start_token: bool = True
    """Write a first token that stands in every column, row and step."""

    def obstacle(self, task: TaskConfig) -> str | None:
        """Why this format cannot write a task; None if it can."""
        return None if isinstance(task, SortingConfig) else "it writes labelled numbers to sort"


@dataclass(frozen=True, kw_only=True)
class ParallelFormatConfig:
    """For encoders, which write all answer tokens at once, at slots behind `=` or where the prompt stands."""

    kind: ClassVar = "parallel"
    coordinates: ClassVar = ("index", "place")

    mirrored: bool = False
    """Reverse the prompt as a whole, `=54+321` for 123+45, and write the answer over it from the left."""

    def obstacle(self, task: TaskConfig) -> str | None:
        """Why this format cannot write a task; None if it can."""
        if not isinstance(task, ArithmeticConfig) or task.max_operands > 2:
            return "it writes calculations with two operands"
        return "it has no room for a sign" if "-" in task.operations else None


@dataclass(frozen=True, kw_only=True)
class ResiduesFormatConfig:
    """One token for each residue of modular addition, as in the papers on grokking: `a b = c`."""

    kind: ClassVar = "residues"
    coordinates: ClassVar = ("index",)

    def obstacle(self, task: TaskConfig) -> str | None:
        """Why this format cannot write a task; None if it can."""
        modular = isinstance(task, ModularAdditionConfig)
        return None if modular else "it writes sums modulo a number"


FormatConfig = (
    PlainFormatConfig
    | CarryTraceFormatConfig
    | RunningSumsFormatConfig
    | LongDivisionFormatConfig
    | NonRestoringDivisionFormatConfig
    | PartialProductsFormatConfig
    | LongMultiplicationFormatConfig
    | WorkedFormatConfig
    | LabelsFormatConfig
    | InsertionSortFormatConfig
    | ParallelFormatConfig
    | ResiduesFormatConfig
)

FORMATS: dict[str, FormatConfig] = {
    "reversed": PlainFormatConfig(),
    "usual": PlainFormatConfig(operand_order="usual", answer_order="usual"),
    "complement": PlainFormatConfig(negative="complement", answer_padding="longest"),
    "zero-padded": PlainFormatConfig(
        start_token=False,
        operand_order="usual",
        operand_padding="fixed",
        answer_padding="fixed",
    ),
    "coupled": PlainFormatConfig(
        start_token=False,
        operand_order="usual",
        operand_padding="longest",
        answer_padding="longest",
    ),
    "spaced": PlainFormatConfig(
        start_token=False, operand_order="usual", answer_order="usual", spaces="around"
    ),
    "random-spaces": PlainFormatConfig(
        start_token=False, operand_order="usual", answer_order="usual", spaces="random"
    ),
    "carry-trace": CarryTraceFormatConfig(),
    "running-sums": RunningSumsFormatConfig(),
    "long-division": LongDivisionFormatConfig(),
    "non-restoring-division": NonRestoringDivisionFormatConfig(),
    "partial-products": PartialProductsFormatConfig(),
    "long-multiplication": LongMultiplicationFormatConfig(),
    "worked": WorkedFormatConfig(),
    "labels": LabelsFormatConfig(),
    "insertion-sort": InsertionSortFormatConfig(),
    "parallel": ParallelFormatConfig(),
    "mirrored": ParallelFormatConfig(mirrored=True),
    "residues": ResiduesFormatConfig(),
}
"""Formats that `--format NAME` stands for."""


def check_writes(format: FormatConfig, task: TaskConfig) -> None:
    """Raise `ConfigurationError`, naming the formats that can, where a format cannot write a task."""
    obstacle = format.obstacle(task)
    if obstacle is None:
        return
    first, *others = [name for name, other in FORMATS.items() if other.obstacle(task) is None]
    also = f" (or {', '.join(others)})" if others else ""
    raise ConfigurationError(
        f"the {format.kind} format cannot write this {task.kind} task: {obstacle}. "
        f"Try --format {first}{also}."
    )
