"""Where a calculation stands in a line: its operands and the result that is written.

A certificate enumerates the contexts of a model's receptive fields. To do so it must know which digit
of which number each token holds, and by which rule the digits of the result follow from those of the
operands. A *layout* says this for a task and a format. A *calculation* is one calculation in one
line, described by the lengths of its numbers.

A line of the plain format holds one calculation. A line of running sums holds one addition after the
other, each from the previous sum and one operand. What holds for one such addition, wherever it
stands in its line, holds for sums of any number of operands.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from abacist.certificates.receptive_fields import STRANGER, SYMBOL, NotProvable
from abacist.formats import plain
from abacist.formats.annotated import ANCHOR, EVERYWHERE, AnnotatedTokens
from abacist.formats.column_trace_digits import STATE_DIGIT, ColumnTraceDigitsFormat
from abacist.formats.columns import DIGIT, OPERAND, STATE, ColumnsFormat
from abacist.formats.config import PlainFormatConfig
from abacist.formats.format import Format
from abacist.formats.plain import PlainFormat
from abacist.formats.running_sums import RunningSumsFormat
from abacist.models.config import ModelConfig
from abacist.models.receptive_field import receptive_field_over
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.column_rule import ColumnRule
from abacist.tasks.column_task import ColumnAnswer
from abacist.tasks.problems import OWN, Numbers, Problems, Shapes
from abacist.tasks.task import Task

RESULT = -2
"""The role of the digits of the result."""
ENTERED = -4
"""The role of a written state; its column is the one that is entered in it."""
OPENING, CLOSING = -5, -6
"""The roles of the brackets around a state that is written as digits."""
FIRST_STATE_DIGIT = -7
"""The role of the first digit of a written state; those of the others are the numbers below it."""


@dataclass(frozen=True)
class Calculation:
    """One calculation in one line. Its digits do not matter, only the lengths of its numbers."""

    line: AnnotatedTokens
    """The line, (1, T)."""
    numbers: list[int]
    """For each token the number it is a digit of: operand 0, 1 …, or one of the roles above."""
    columns: list[int]
    """For each token its column in that number; 0 for the symbol before the first column of the result."""
    lengths: tuple[int, ...]
    """Number of digits of each operand."""
    terminator: int
    """The token after the result."""
    left_over: Callable[[Tensor], Tensor] | None = None
    """Returns the token that stands for a state left over; None if that is written as digits or not at all."""
    written: tuple[int, ...] = (RESULT,)
    """The roles of the tokens that are written for each column, in order."""
    state_tokens: Callable[[Tensor], list[Tensor]] | None = None
    """Returns the tokens that stand for a state after the digit of the result; None if it is not written."""
    zeros_between: int = 0
    """Number of operands 0 that the problem has after the first operand of the calculation."""
    ones_after: int = 0
    """Number of operands 1 at the end of the problem."""
    remedy: ClassVar[str] = "--model.positions place-row-relative --model.num_layers 1"

    @property
    def queries(self) -> list[int]:
        """Positions after which a token of the result, or its terminator, has to be written."""
        columns = self.line.ids.shape[1]
        return [
            token
            for token in range(columns)
            if self.numbers[token] in self.written
            or (self.numbers[token] == SYMBOL and self.columns[token] == ANCHOR)
        ]

    def operands(self, numbers: list[str]) -> list[str]:
        """Return the operands of a problem whose line contains the calculation with these numbers."""
        first, *others = numbers
        return [first, *["0"] * self.zeros_between, *others, *["1"] * self.ones_after]


class CalculationLayout(Protocol):
    """What a certificate must know about a task in a format."""

    rule: ColumnRule
    claim: str
    """What a model does that is right in every context."""
    ahead: int
    """Number of columns after a token's own that its right next token depends on."""

    def counts(self) -> range:
        """Return how many operands one calculation can have."""

    def calculations(self, longest: int, result: int) -> Iterator[Calculation]:
        """Yield every calculation whose operands have up to `longest` digits, in every kind of position.

        The result extends `result` columns above the longest operand, if it can be that long.
        """

    def long_calculations(self) -> Iterable[Calculation]:
        """Yield a few calculations of long numbers, to compare with what short ones show."""


def find_layout(task: Task, format: Format, model: ModelConfig) -> CalculationLayout:
    """Return the layout of a task in a format for such a model. Raises `NotProvable` if there is none."""
    if isinstance(format, ColumnsFormat):
        return _Columns(format)
    rule = task.column_rule() if isinstance(task, Arithmetic) else None
    if rule is None or not isinstance(task, Arithmetic):
        raise NotProvable(
            "so far there are certificates for sums and differences, for products in the format "
            "long-multiplication, for divisions in the format non-restoring-division, and for "
            f"sorting in the format insertion-sort; this model {task.claim}."
        )
    if isinstance(format, RunningSumsFormat):
        extent = receptive_field_over(model, "row")
        if extent is None or extent[0] > 2 or extent[1] > 0:
            raise NotProvable(
                "in running sums a token must see no more than the two rows above its own, but "
                "through all its layers this model sees more. "
                "Train with --model.positions place-row-relative --model.num_layers 1."
            )
        return _RunningSums(format, rule)
    if not isinstance(format, PlainFormat):
        raise NotProvable(_OTHER_FORMAT)
    if task.operations == ("-",) and not any(s.coordinate == "row" for s in model.positions):
        raise NotProvable(
            "this model knows the place of a digit but not its row, so it cannot tell the two "
            "operands of a difference apart. Train with --model.positions place-row-relative."
        )
    start = format.config.start_token
    if rule.left_over == "digits" and format.config == PlainFormatConfig(start_token=start):
        return PlainLayout(task, format, rule)
    complement = PlainFormatConfig(
        start_token=start, negative="complement", answer_padding="longest"
    )
    if rule.left_over == "sign" and format.config == complement:
        return PlainLayout(task, format, rule)
    raise NotProvable(_OTHER_FORMAT if rule.left_over == "digits" else _OTHER_SIGN)


_OTHER_FORMAT = (
    "so far there are certificates for sums in the formats reversed and running-sums only. "
    "Train with --format reversed."
)
_OTHER_SIGN = (
    "there are certificates for differences in the complement format only: in other formats the "
    "first digit depends on which operand is larger, and so on digits arbitrarily far away. "
    "Train with --format complement."
)


@dataclass
class PlainLayout:
    """Lines that hold one calculation: all operands, and the answer."""

    task: Arithmetic
    format: PlainFormat
    rule: ColumnRule
    claim: str = field(init=False)
    ahead: int = 1

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
        return self.calculation_in(self.format.write(problems, answer))

    def calculation_in(self, line: AnnotatedTokens) -> Calculation:
        """Return the calculation that one line, (1, T), writes."""
        numbers, columns = [], []
        for role, target in zip(
            self.format.roles(line.ids[0]), line.target[0].tolist(), strict=True
        ):
            number = RESULT if target else role.row - 1 if role.part == plain.OPERAND else SYMBOL
            numbers.append(number)
            # Of all symbols, the result begins after `=` only.
            begins = number != SYMBOL or role.part == "="
            columns.append(role.column if begins else EVERYWHERE)
        assert self.format.end_id is not None
        # Nothing follows the end token.
        numbers[-1] = STRANGER
        lengths = tuple(numbers.count(operand) for operand in range(max(numbers) + 1))
        left_over = None
        if self.rule.left_over == "sign":
            sign = self.format.sign_id
            assert sign is not None

            def left_over(state_n: Tensor) -> Tensor:
                return torch.full_like(state_n, sign)

        return Calculation(line, numbers, columns, lengths, self.format.end_id, left_over)


@dataclass
class _RunningSums:
    """Lines that hold one addition after the other, each of the previous sum and one operand."""

    format: RunningSumsFormat
    rule: ColumnRule
    ahead: int = 1
    claim: str = "adds any two or more non-negative integers, however many, of every length."

    def counts(self) -> range:
        return range(2, 3)

    def calculations(self, longest: int, result: int) -> Iterator[Calculation]:
        # The first addition follows `=`; the second follows `;` below a row that follows `=`; all
        # others follow `;` below a row that follows `;`.
        for number, ones_after in product((1, 2, 3), (0, 1)):
            for lengths in product(range(1, longest + 1), repeat=2):
                yield self._calculation(number, lengths, max(lengths) + result, ones_after)

    def long_calculations(self) -> Iterable[Calculation]:
        for number, ones_after in ((1, 0), (4, 6), (9, 0), (9, 1)):
            for lengths in ((60, 60), (60, 35), (12, 57), (9, 4)):
                yield self._calculation(number, lengths, max(lengths) + 1, ones_after)

    def _calculation(
        self, number: int, lengths: tuple[int, ...], result: int, ones_after: int
    ) -> Calculation:
        """Return the addition of that number, starting at 1, whose result ends the line."""
        format = self.format
        before, added = lengths
        operands = [before] + [1] * (number - 1) + [added] + [1] * ones_after
        sums = [before] * (number - 1) + [result]
        start = [] if format.start_id is None else [format.start_id]
        ids = [*start, *_joined(operands, format.operator_id), format.equals_id]
        ids += [*_joined(sums, format.separator_id), format.end_id]
        line = format.annotate(torch.tensor([ids]))
        assert line.row is not None
        own = 2 * number + 1
        numbers, columns = [], []
        for row, place in zip(line.row[0].tolist(), line.place[0].tolist(), strict=True):
            role = {own - 2: 0, own - 1: 1, own: RESULT}.get(row, STRANGER)
            if row == EVERYWHERE or (role != STRANGER and place in (ANCHOR, EVERYWHERE)):
                role = SYMBOL
            numbers.append(role)
            # The symbol before the row above is not the one after which this result begins.
            columns.append(place if place > 0 or row == own else EVERYWHERE)
        numbers[-1] = STRANGER
        terminator = format.separator_id if ones_after else format.end_id
        return Calculation(
            line,
            numbers,
            columns,
            lengths,
            terminator,
            zeros_between=number - 1,
            ones_after=ones_after,
        )


class _Columns:
    """Lines of a column task."""

    def __init__(self, format: ColumnsFormat) -> None:
        self.format, self.rule = format, format.rule
        self.claim = f"{format.machine.name} is right for operands of every length."
        self.ahead = 0 if format.writes_states else 1
        self.written: tuple[int, ...] = (RESULT, ENTERED) if format.writes_states else (RESULT,)
        if isinstance(format, ColumnTraceDigitsFormat):
            digits = (FIRST_STATE_DIGIT - number for number in range(len(format.places_of_state)))
            self.written = (RESULT, OPENING, *digits, CLOSING)

    def counts(self) -> range:
        return range(self.format.machine.num_operands, self.format.machine.num_operands + 1)

    def calculations(self, longest: int, result: int) -> Iterator[Calculation]:
        for lengths in self._lengths(longest):
            extends = self.rule.left_over == "digits" and self.format.machine.most_extra_columns > 0
            yield self._calculation(lengths, max(lengths) + (result if extends else 0))

    def long_calculations(self) -> Iterable[Calculation]:
        lengths = [(60, 35, 12, 57), (12, 57, 60, 35), (9, 4, 9, 2)]
        for some in lengths:
            cut = some[: self.format.machine.num_operands]
            if self.rule.most_significant_first:
                cut = (max(cut),) * len(cut)
            yield self._calculation(cut, max(cut))

    def _lengths(self, longest: int) -> Iterator[tuple[int, ...]]:
        count = self.format.machine.num_operands
        if not self.rule.most_significant_first:
            yield from product(range(1, longest + 1), repeat=count)
            return
        for length in range(1, longest + 1):
            yield (length,) * count

    def _calculation(self, lengths: tuple[int, ...], result: int) -> Calculation:
        """Return a calculation whose result has this many digits."""
        operands = torch.ones(1, len(lengths), max(lengths), dtype=torch.uint8)
        problems = Problems(operands, Shapes.of(torch.tensor([lengths]), OWN))
        written = torch.ones(1, result, dtype=torch.uint8)
        states = torch.zeros(1, result, dtype=torch.int64)
        format = self.format
        if not format.writes_states and self.rule.left_over in ("sign", "state"):
            states[0, -1] = 1
        answer = ColumnAnswer(written, states, torch.tensor([result]), self.rule)
        line = format.write(problems, answer)
        parts = {DIGIT: RESULT, STATE: ENTERED, "[": OPENING, "]": CLOSING}
        roles = format.roles(line.ids[0])
        numbers = [
            role.row - 1
            if role.part == OPERAND
            else FIRST_STATE_DIGIT - (role.row - 1)
            if role.part == STATE_DIGIT
            else parts.get(role.part, SYMBOL)
            for role in roles
        ]
        # Nothing follows the end token.
        numbers[-1] = STRANGER
        is_token = not format.writes_states and self.rule.left_over != "digits"
        return Calculation(
            line,
            numbers,
            # Of all symbols, the result begins after `=` only.
            [
                EVERYWHERE if number == SYMBOL and role.part != "=" else role.column
                for number, role in zip(numbers, roles, strict=True)
            ],
            lengths,
            format.end_id,
            format.left_over_token if is_token else None,
            written=self.written,
            state_tokens=format.state_tokens if format.writes_states else None,
        )


def _joined(lengths: list[int], symbol: int) -> list[int]:
    """Return numbers made of ones, of these lengths, with a symbol between them."""
    ids: list[int] = []
    for length in lengths:
        ids += [*([symbol] if ids else []), *[1] * length]
    return ids
