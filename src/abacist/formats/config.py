"""Settings of the formats. Imports no torch."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from abacist.config_base import ConfigFamily, setting
from abacist.errors import ConfigurationError
from abacist.extensions import Registry
from abacist.tasks.config import (
    ArithmeticConfig,
    ColumnTaskConfig,
    ModularAdditionConfig,
    OwnTaskConfig,
    SortingConfig,
    TaskConfig,
)

if TYPE_CHECKING:
    from abacist.formats.format import Format

Layout = Literal["constant", "shape", "similar", "free"]
"""Which lines have the same coordinates, up to the end of the shorter line.

`constant`: all lines. `shape`: lines whose problems have one shape. `similar`: no two in particular,
but lines of one shape have similar lengths. `free`: no two in particular.
"""
Order = Literal["reversed", "usual"]
Padding = Literal["none", "longest", "fixed"]


@dataclass(frozen=True, kw_only=True)
class FormatConfig(ConfigFamily):
    """Base class of the configurations of formats, which state the tasks that they can write."""

    section: ClassVar = "format"
    coordinates: ClassVar[tuple[str, ...]]
    """Coordinates that the format gives its tokens."""
    task_class: ClassVar[type[TaskConfig]] = ArithmeticConfig
    """Class of the tasks that the format can write."""
    operations: ClassVar[tuple[str, ...]] = ("+", "-", "*", "//", "%")
    """Operations of arithmetic that the format can write."""
    most_operands: ClassVar[int | None] = 2
    """Largest number of operands that the format can write in arithmetic; None means any number."""
    writes: ClassVar[str] = "calculations with two operands"
    """Description of the tasks that the format can write, for error messages."""
    signed_operations: ClassVar[tuple[str, ...]] = ()
    """Operations that the format can write of operands of either sign."""

    def obstacle(self, task: TaskConfig) -> str | None:
        """Return why this format cannot write a task, or None if it can."""
        writable = isinstance(task, self.task_class)
        if isinstance(task, ArithmeticConfig):
            few = self.most_operands is None or task.max_operands <= self.most_operands
            writable = writable and few and set(task.operations) <= set(self.operations)
        return None if writable else f"it writes {self.writes}"

    def build(self, task: TaskConfig) -> "Format":
        """Return the format that this configuration describes, for a task.

        Raises:
            ConfigurationError: it cannot write the task; the message names the formats that can.
        """
        check_writes(self, task)
        format = self.construct(task)
        if not hasattr(format, "write"):
            raise ConfigurationError(
                f"the method construct of {type(self).__name__} must return a format, got "
                f"{type(format).__name__}. Try return TextFormat(self, task)."
            )
        return format

    def construct(self, task: TaskConfig) -> "Format":
        """Return the format for a task that it can write."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class PlainFormatConfig(FormatConfig):
    """Operands, `=`, answer: `<start>21+43=64<end>` for 12+34=46, or with another order, padding or spacing."""

    kind: ClassVar = "plain"
    coordinates: ClassVar = ("index", "row", "place")

    start_token: bool = True
    """Begin with a token that stands in every column, so that windowed attention always sees it."""
    end: Literal["token", "space", "none"] = "token"
    """What ends a line: a token of its own, a space, or nothing, which requires lines of one length."""
    padding_token: bool = False
    """Pad lines with a token of its own, as many libraries do, instead of repeating what ends them."""
    unused_tokens: tuple[str, ...] = ()
    """Symbols that the vocabulary has besides those of its lines, as in a model made for more operations."""
    operand_order: Order = "reversed"
    """Order of the operands' digits: least significant first (reversed), or as usual."""
    answer_order: Order = "reversed"
    """Order of the answer's digits."""
    operand_padding: Padding = "none"
    """Leading zeros of operands: none, up to the longest of the problem, or up to the longest of the task."""
    answer_padding: Padding = "none"
    """Leading zeros of the answer: none, up to the largest width possible for the problem, or for the task."""
    negative: Literal["sign-first", "sign-last", "complement"] = "sign-first"
    """How an answer below 0 is written: `-22`, `22-`, or as the ten's complement `78-` with the same number of digits."""  # noqa: E501
    spaces: Literal["none", "around", "thousands", "random"] = "none"
    """Spaces in the prompt: none, `12 + 34 =`, `1 234 + 5 678=`, or in each gap with probability one half."""

    def conflicts(self, path: str) -> Iterator[str]:
        if self.end == "none" and (self.operand_padding, self.answer_padding) != ("fixed", "fixed"):
            yield (
                f"{path}.end none needs lines of one length, got "
                f"{path}.operand_padding {self.operand_padding} and {path}.answer_padding "
                f"{self.answer_padding}. Try --{path}.end token."
            )
        if self.end == "none" and self.spaces == "random":
            yield (
                f"{path}.end none needs lines of one length, got {path}.spaces random. "
                f"Try --{path}.end token."
            )
        if self.negative == "complement" and self.answer_padding == "none":
            yield (
                f"{path}.negative complement needs a fixed number of digits, got "
                f"{path}.answer_padding none. Try --{path}.answer_padding longest."
            )

    def obstacle(self, task: TaskConfig) -> str | None:
        if not isinstance(task, ArithmeticConfig | ModularAdditionConfig):
            return "it writes calculations"
        varies = isinstance(task, ArithmeticConfig) and (
            "-" in task.operations or task.min_operands < task.max_operands
        )
        if varies and self.end == "none":
            return "without an end token it writes lines of one length only"
        return None

    def construct(self, task: TaskConfig) -> "Format":
        from abacist.formats.plain import PlainFormat

        return PlainFormat(self, task)


@dataclass(frozen=True, kw_only=True)
class CarryTraceFormatConfig(FormatConfig):
    """Lines of one length, with the carry of its column after each answer digit: `123*  45=+501302501500000000`."""

    kind: ClassVar = "carry-trace"
    coordinates: ClassVar = ("index", "place")

    # Beyond 9 digits a carry no longer fits into its two characters.
    operand_width: int = setting(3, low=1, high=9)
    """Number of characters for each operand; 3 makes lines of 28 characters."""

    def obstacle(self, task: TaskConfig) -> str | None:
        if isinstance(task, ArithmeticConfig) and task.longest_operand > self.operand_width:
            return f"it writes operands of at most {self.operand_width} digits"
        return super().obstacle(task)

    def construct(self, task: TaskConfig) -> "Format":
        from abacist.formats.carry_trace import CarryTraceFormat

        return CarryTraceFormat(self, task)


@dataclass(frozen=True, kw_only=True)
class _WorkedOutFormatConfig(FormatConfig):
    """Base class of formats that write scratch work in columns."""

    start_token: bool = True
    """Begin with a token that stands in every column, row and step, so that windowed attention always sees it."""


@dataclass(frozen=True, kw_only=True)
class RunningSumsFormatConfig(_WorkedOutFormatConfig):
    """Sums of many numbers as one addition after the other: `<start>21+43+65=64;201<end>`."""

    kind: ClassVar = "running-sums"
    coordinates: ClassVar = ("index", "row", "place")
    operations: ClassVar = ("+",)
    most_operands: ClassVar = None
    writes: ClassVar = "+ only"

    def construct(self, task: TaskConfig) -> "Format":
        from abacist.formats.running_sums import RunningSumsFormat

        return RunningSumsFormat(self, task)


@dataclass(frozen=True, kw_only=True)
class LongDivisionFormatConfig(_WorkedOutFormatConfig):
    """Long division with every subtraction written out, so that each token depends on a few near ones."""

    kind: ClassVar = "long-division"
    coordinates: ClassVar = ("index", "step", "row", "place")
    operations: ClassVar = ("//", "%")
    writes: ClassVar = "// and % only"

    def construct(self, task: TaskConfig) -> "Format":
        from abacist.formats.long_division import LongDivisionFormat

        return LongDivisionFormat(self, task)


@dataclass(frozen=True, kw_only=True)
class NonRestoringDivisionFormatConfig(_WorkedOutFormatConfig):
    """Division that never returns to an earlier row, so that each token depends on a few near ones."""

    kind: ClassVar = "non-restoring-division"
    coordinates: ClassVar = ("index", "step", "row", "place")
    operations: ClassVar = ("//", "%")
    writes: ClassVar = "// and % only"

    def construct(self, task: TaskConfig) -> "Format":
        from abacist.formats.non_restoring_division import NonRestoringDivisionFormat

        return NonRestoringDivisionFormat(self, task)


@dataclass(frozen=True, kw_only=True)
class PartialProductsFormatConfig(_WorkedOutFormatConfig):
    """Multiplication by running sums, one row for each digit of the second operand."""

    kind: ClassVar = "partial-products"
    coordinates: ClassVar = ("index", "row", "place")
    operations: ClassVar = ("*",)
    writes: ClassVar = "* only"

    def construct(self, task: TaskConfig) -> "Format":
        from abacist.formats.partial_products import PartialProductsFormat

        return PartialProductsFormat(self, task)


@dataclass(frozen=True, kw_only=True)
class LongMultiplicationFormatConfig(_WorkedOutFormatConfig):
    """Long multiplication cell by cell, so that each token depends on at most four near ones."""

    kind: ClassVar = "long-multiplication"
    coordinates: ClassVar = ("index", "row", "place")
    operations: ClassVar = ("*",)
    writes: ClassVar = "* only"

    def construct(self, task: TaskConfig) -> "Format":
        from abacist.formats.long_multiplication import LongMultiplicationFormat

        return LongMultiplicationFormat(self, task)


@dataclass(frozen=True, kw_only=True)
class WorkedFormatConfig(_WorkedOutFormatConfig):
    """Any of five operations with its scratch work, so that each token depends on a few near ones."""

    kind: ClassVar = "worked"
    coordinates: ClassVar = ("index", "step", "row", "place")

    def construct(self, task: TaskConfig) -> "Format":
        from abacist.formats.worked import WorkedFormat

        return WorkedFormat(self, task)


@dataclass(frozen=True, kw_only=True)
class CalculatorFormatConfig(FormatConfig):
    """Any of five operations, each in the notation that a certificate exists for, in one vocabulary."""

    kind: ClassVar = "calculator"
    coordinates: ClassVar = ("index", "step", "row", "place")
    signed_operations: ClassVar = ("+", "-", "*", "//", "%")

    def construct(self, task: TaskConfig) -> "Format":
        from abacist.formats.calculator import CalculatorFormat

        return CalculatorFormat(self, task)


@dataclass(frozen=True, kw_only=True)
class LabelsFormatConfig(FormatConfig):
    """Labelled numbers, then their labels in sorted order: `a:821,b:9=ba<end>`."""

    kind: ClassVar = "labels"
    coordinates: ClassVar = ("index", "row", "place")
    task_class: ClassVar = SortingConfig
    writes: ClassVar = "labelled numbers to sort"

    start_token: bool = False
    """Begin with a token that stands in every column and row."""
    order: Order = "usual"
    """Order of the numbers' digits: least significant first (reversed), or as usual."""
    padding: Padding = "none"
    """Leading zeros of numbers: none, up to the longest of the problem, or up to the longest of the task."""

    def construct(self, task: TaskConfig) -> "Format":
        from abacist.formats.labels import LabelsFormat

        return LabelsFormat(self, task)


@dataclass(frozen=True, kw_only=True)
class InsertionSortFormatConfig(_WorkedOutFormatConfig):
    """Insertion sort, one number after the other, so that each token depends on at most two."""

    kind: ClassVar = "insertion-sort"
    coordinates: ClassVar = ("index", "step", "row", "place")
    task_class: ClassVar = SortingConfig
    writes: ClassVar = "labelled numbers to sort"

    def construct(self, task: TaskConfig) -> "Format":
        from abacist.formats.insertion_sort import InsertionSortFormat

        return InsertionSortFormat(self, task)


@dataclass(frozen=True, kw_only=True)
class ParallelFormatConfig(FormatConfig):
    """Notation of encoders, which write all answer tokens at once, at slots after `=` or over the prompt."""

    kind: ClassVar = "parallel"
    coordinates: ClassVar = ("index", "place")

    mirrored: bool = False
    """Reverse the prompt as a whole, `=54+321` for 123+45, and write the answer over it from the left."""
    operand_padding: Literal["none", "longest"] = "none"
    """Leading zeros of operands: none, or up to the longest of the problem."""

    def conflicts(self, path: str) -> Iterator[str]:
        if self.mirrored and self.operand_padding != "none":
            yield (
                f"{path}.mirrored writes operands without leading zeros, got {path}.operand_padding "
                f"{self.operand_padding}. Try --{path}.operand_padding none."
            )

    def obstacle(self, task: TaskConfig) -> str | None:
        obstacle = super().obstacle(task)
        if obstacle is None and isinstance(task, ArithmeticConfig) and "-" in task.operations:
            return "it has no room for a sign"
        return obstacle

    def construct(self, task: TaskConfig) -> "Format":
        from abacist.formats.parallel import ParallelFormat

        return ParallelFormat(self, task)


@dataclass(frozen=True, kw_only=True)
class ResiduesFormatConfig(FormatConfig):
    """One token for each residue of modular addition, as in the papers on grokking: `a b = c`."""

    kind: ClassVar = "residues"
    coordinates: ClassVar = ("index",)
    task_class: ClassVar = ModularAdditionConfig
    writes: ClassVar = "sums modulo a number"

    def construct(self, task: TaskConfig) -> "Format":
        from abacist.formats.residues import ResiduesFormat

        return ResiduesFormat(self, task)


@dataclass(frozen=True, kw_only=True)
class TextFormatConfig(FormatConfig):
    """Operands, `=`, answer, as a person would type them: `<start>12,18=6<end>`."""

    kind: ClassVar = "text"
    coordinates: ClassVar = ("index", "row", "place")
    task_class: ClassVar = OwnTaskConfig
    writes: ClassVar = "tasks that extensions define"

    def construct(self, task: TaskConfig) -> "Format":
        from abacist.formats.text import TextFormat

        return TextFormat(self, task)


@dataclass(frozen=True, kw_only=True)
class ColumnsFormatConfig(FormatConfig):
    """Column tasks, digits in the order in which they are read: `<start>21,43=64<end>`."""

    kind: ClassVar = "columns"
    coordinates: ClassVar = ("index", "row", "place")
    task_class: ClassVar = ColumnTaskConfig
    writes: ClassVar = "column tasks"

    states: bool = False
    """Write the state of the machine after every digit."""

    def construct(self, task: TaskConfig) -> "Format":
        from abacist.formats.columns import ColumnsFormat

        return ColumnsFormat(self, task)


@dataclass(frozen=True, kw_only=True)
class ColumnTraceDigitsFormatConfig(FormatConfig):
    """Column tasks with the digits of the state after every digit: `<start>21,43=6[0₁]4[0₁]<end>`."""

    kind: ClassVar = "column-trace-digits"
    coordinates: ClassVar = ("index", "row", "place", "step")
    task_class: ClassVar = ColumnTaskConfig
    writes: ClassVar = "column tasks"
    states: ClassVar = True

    def construct(self, task: TaskConfig) -> "Format":
        from abacist.formats.column_trace_digits import ColumnTraceDigitsFormat

        return ColumnTraceDigitsFormat(self, task)


FORMATS: Registry[FormatConfig] = Registry(
    "format",
    {
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
        "calculator": CalculatorFormatConfig(),
        "labels": LabelsFormatConfig(),
        "insertion-sort": InsertionSortFormatConfig(),
        "parallel": ParallelFormatConfig(),
        "mirrored": ParallelFormatConfig(mirrored=True),
        "residues": ResiduesFormatConfig(),
        "text": TextFormatConfig(),
        "columns": ColumnsFormatConfig(),
        "column-trace": ColumnsFormatConfig(states=True),
        "column-trace-digits": ColumnTraceDigitsFormatConfig(),
    },
)
"""Named formats for `--format NAME`."""


def _obstacle(format: FormatConfig, task: TaskConfig) -> str | None:
    """Return why a format cannot write a task, or None if it can, with the signs of its operands."""
    if isinstance(task, ArithmeticConfig) and task.signed:
        lacking = [o for o in task.operations if o not in format.signed_operations]
        if lacking:
            return f"it writes {' '.join(lacking)} of operands from 0 up only"
    return format.obstacle(task)


def check_writes(format: FormatConfig, task: TaskConfig) -> None:
    """Raise `ConfigurationError` if a format cannot write a task, naming the formats that can."""
    obstacle = _obstacle(format, task)
    if obstacle is None:
        return
    able = [name for name, other in FORMATS.items() if _obstacle(other, task) is None]
    also = f" (or {', '.join(able[1:])})" if able[1:] else ""
    advice = (
        f"Try --format {able[0]}{also}." if able else "No format can; an extension may add one."
    )
    if not able and isinstance(task, ArithmeticConfig) and task.signed:
        advice = "Try --task.signed false."
    raise ConfigurationError(
        f"the {format.kind} format cannot write this {task.kind} task: {obstacle}. {advice}"
    )
