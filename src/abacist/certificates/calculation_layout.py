"""Where a calculation stands in a line: the numbers given to it and the one it writes.

A certificate lists what can stand in a model's reach. For that it must know of each token which
digit of which number it holds, and by which rule the digits that are written follow from those
given. A *sheet* tells this of a task and a format; a *calculation* is the place of one in a line, of
which only the lengths of the numbers matter.

The sums and differences of the plain format are one calculation a line. A line of running sums is
one addition after the other; each is a calculation of its own, from the sum before and one operand,
so what holds for one of them, wherever in a line it stands, holds for a sum of any count.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import ClassVar, Protocol

import torch

from abacist.certificates.receptive_fields import STRANGER, SYMBOL, NotProvable
from abacist.formats.annotated import ANCHOR, EVERYWHERE, AnnotatedTokens, Field
from abacist.formats.config import PlainFormatConfig
from abacist.formats.format import Format
from abacist.formats.plain import PlainFormat
from abacist.formats.running_sums import RunningSumsFormat
from abacist.models.config import ModelConfig
from abacist.models.receptive_field import receptive_field_over
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.column_rule import ColumnRule
from abacist.tasks.problems import Numbers, Problems, Shapes
from abacist.tasks.task import Task

RESULT = -2
"""The number that is written."""


@dataclass(frozen=True)
class Calculation:
    """One calculation in one line, whose digits do not matter."""

    line: AnnotatedTokens
    """(1, T)"""
    numbers: list[int]
    """Of every token which number it is a digit of: 0, 1, … of those given, or RESULT, SYMBOL, STRANGER."""
    columns: list[int]
    """Of every token its column in that number; 0 for the symbol before the first column of the result."""
    lengths: tuple[int, ...]
    """Digits of each given number."""
    terminator: int
    """The token behind the result."""
    sign: int | None = None
    """The token that a state left over is written as; None where it is written as digits."""
    zeros_between: int = 0
    """The line is of a problem with so many operands 0 behind the first given number …"""
    ones_behind: int = 0
    """… and so many operands 1 at the end."""
    remedy: ClassVar[str] = "--model.positions place-row-relative --model.num_layers 1"

    @property
    def queries(self) -> list[int]:
        """The tokens behind which something of the result, or its terminator, has to be written."""
        columns = self.line.ids.shape[1]
        return [
            token
            for token in range(columns)
            if self.numbers[token] == RESULT
            or (self.numbers[token] == SYMBOL and self.columns[token] == ANCHOR)
        ]

    def operands(self, given: list[str]) -> list[str]:
        """The operands of a problem in whose line these numbers are given."""
        first, *others = given
        return [first, *["0"] * self.zeros_between, *others, *["1"] * self.ones_behind]


class CalculationLayout(Protocol):
    """What a certificate must know of a task in a format."""

    rule: ColumnRule
    claim: str
    """What a model that is right in every reach does."""

    def counts(self) -> range:
        """How many numbers can be given to one calculation."""

    def calculations(self, longest: int, result: int) -> Iterator[Calculation]:
        """Every calculation whose given numbers have up to `longest` digits, in every kind of place.

        The result goes on for `result` columns above the longest of them, where it can go on at all.
        """

    def long_calculations(self) -> Iterable[Calculation]:
        """A few calculations of long numbers, to compare with what short ones show."""


def find_layout(task: Task, format: Format, model: ModelConfig) -> CalculationLayout:
    """The sheet of a task in a format, for such a model; raises `NotProvable` where there is none."""
    rule = task.column_rule() if isinstance(task, Arithmetic) else None
    if rule is None or not isinstance(task, Arithmetic):
        raise NotProvable(
            "a certificate is there for sums and differences, for products in the format "
            "long-multiplication, for divisions in the format non-restoring-division, and for "
            "sorting in the format insertion-sort, so far; "
            f"this model {task.claim}."
        )
    if isinstance(format, RunningSumsFormat):
        reach = receptive_field_over(model, "row")
        if reach is None or reach[0] > 2 or reach[1] > 0:
            raise NotProvable(
                "in running sums a token must see no more than the two rows above its own, and "
                "through all layers this model sees more. "
                "Train with --model.positions place-row-relative --model.num_layers 1."
            )
        return _RunningSums(format, rule)
    if not isinstance(format, PlainFormat):
        raise NotProvable(_OTHER_FORMAT)
    if task.operations == ("-",) and not any(s.coordinate == "row" for s in model.positions):
        raise NotProvable(
            "this model is told the place of a digit and not its row, so that it cannot tell a "
            "number from the one that is subtracted. "
            "Train with --model.positions place-row-relative."
        )
    start = format.config.start_token
    if rule.left_over == "digits" and format.config == PlainFormatConfig(start_token=start):
        return _Plain(task, format, rule)
    complement = PlainFormatConfig(
        start_token=start, negative="complement", answer_padding="longest"
    )
    if rule.left_over == "sign" and format.config == complement:
        return _Plain(task, format, rule)
    raise NotProvable(_OTHER_FORMAT if rule.left_over == "digits" else _OTHER_SIGN)


_OTHER_FORMAT = (
    "a certificate is there for sums in the formats reversed and running-sums so far. "
    "Train with --format reversed."
)
_OTHER_SIGN = (
    "a certificate is there for differences in the complement format only: otherwise the first digit "
    "written depends on which number is larger, and so on digits arbitrarily far away. "
    "Train with --format complement."
)


@dataclass
class _Plain:
    """One calculation a line: all operands, and the answer."""

    task: Arithmetic
    format: PlainFormat
    rule: ColumnRule
    claim: str = field(init=False)

    def __post_init__(self) -> None:
        self.claim = f"{self.task.claim} of every length."

    def counts(self) -> range:
        return range(self.task.config.min_operands, self.task.config.max_operands + 1)

    def calculations(self, longest: int, result: int) -> Iterator[Calculation]:
        for count in self.counts():
            for lengths in product(range(1, longest + 1), repeat=count):
                yield self._calculation(lengths, max(lengths) + result)

    def long_calculations(self) -> Iterable[Calculation]:
        for count in self.counts():
            for lengths in ((60, 60), (60, 35), (12, 57), (9, 4)):
                repeated = (lengths * count)[:count]
                yield self._calculation(repeated, max(lengths) + 1)

    def _calculation(self, lengths: tuple[int, ...], result: int) -> Calculation:
        operands = torch.ones(1, len(lengths), max(*lengths, result), dtype=torch.uint8)
        operation = self.task.operations[0]
        problems = Problems(operands, Shapes.of(torch.tensor([lengths]), operation))
        negative = torch.tensor([True]) if self.rule.left_over == "sign" else None
        answer = Numbers(operands[:, 0], torch.tensor([result]), negative)
        line = self.format.write(problems, answer)
        numbers, columns = [], []
        for token_field, place, target in zip(
            line.field[0].tolist(), line.place[0].tolist(), line.target[0].tolist(), strict=True
        ):
            operand = token_field - Field.OPERAND
            numbers.append(RESULT if target else operand if operand >= 0 else SYMBOL)
            columns.append(place)
        assert self.format.end_id is not None
        # Nothing follows the end token.
        numbers[-1] = STRANGER
        sign = None if negative is None else self.format.sign_id
        return Calculation(line, numbers, columns, lengths, self.format.end_id, sign)


@dataclass
class _RunningSums:
    """One addition after the other: the sum before and one operand, for each row."""

    format: RunningSumsFormat
    rule: ColumnRule
    claim: str = "adds any two or more non-negative integers, however many, of every length."

    def counts(self) -> range:
        return range(2, 3)

    def calculations(self, longest: int, result: int) -> Iterator[Calculation]:
        # The first addition stands behind `=`, the second behind `;` but below a row that stands
        # behind `=`, and all others behind `;` and below such rows.
        for number, ones_behind in product((1, 2, 3), (0, 1)):
            for lengths in product(range(1, longest + 1), repeat=2):
                yield self._calculation(number, lengths, max(lengths) + result, ones_behind)

    def long_calculations(self) -> Iterable[Calculation]:
        for number, ones_behind in ((1, 0), (4, 6), (9, 0), (9, 1)):
            for lengths in ((60, 60), (60, 35), (12, 57), (9, 4)):
                yield self._calculation(number, lengths, max(lengths) + 1, ones_behind)

    def _calculation(
        self, number: int, lengths: tuple[int, ...], result: int, ones_behind: int
    ) -> Calculation:
        """The addition of that number, counted from 1, whose result is the last thing in the line."""
        format = self.format
        before, added = lengths
        operands = [before] + [1] * (number - 1) + [added] + [1] * ones_behind
        sums = [before] * (number - 1) + [result]
        start = [] if format.start_id is None else [format.start_id]
        ids = [*start, *_joined(operands, format.operator_id), format.equals_id]
        ids += [*_joined(sums, format.separator_id), format.end_id]
        line = format.annotate(torch.tensor([ids]))
        assert line.row is not None
        own = 2 * number + 1
        numbers, columns = [], []
        for row, place in zip(line.row[0].tolist(), line.place[0].tolist(), strict=True):
            here = {own - 2: 0, own - 1: 1, own: RESULT}.get(row, STRANGER)
            if row == EVERYWHERE or (here != STRANGER and place in (ANCHOR, EVERYWHERE)):
                here = SYMBOL
            numbers.append(here)
            # The symbol before the row above is not where this result begins.
            columns.append(place if place > 0 or row == own else EVERYWHERE)
        numbers[-1] = STRANGER
        terminator = format.separator_id if ones_behind else format.end_id
        return Calculation(
            line,
            numbers,
            columns,
            lengths,
            terminator,
            zeros_between=number - 1,
            ones_behind=ones_behind,
        )


def _joined(lengths: list[int], symbol: int) -> list[int]:
    """Numbers of so many ones, with a symbol between them."""
    ids: list[int] = []
    for length in lengths:
        ids += [*([symbol] if ids else []), *[1] * length]
    return ids
