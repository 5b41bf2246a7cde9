"""Five operations in one notation, each worked on paper so that every token follows from near ones.

Operands are written in the usual order, everything after `=` least significant digit first.

>>> format.text(problem)  # 97+8
'<start>97+8=501<end>'
>>> format.text(problem)  # 45-123
'<start>45-123=229-<end>'
>>> format.text(problem)  # 23*45
'<start>23*45=⁰[15]5¹[10]1¹1⁰[12]3¹[8]0¹1<end>'
>>> format.text(problem)  # 97//8
'<start>97//8=90¹.10².39-1:71¹.90².10³.39-2<end>'
>>> format.text(problem)  # 97%8
'<start>97%8=90¹.10².39-1:71¹.90².10³.39-2;1<end>'

**Sums and differences** are written column by column; the digit just written shows the carry. Differences
are written modulo a power of ten, with the sign last: 922 and a minus stand for -78.

**Products** are written as in the format long-multiplication: a row for each digit of the second operand,
and in it a cell for each digit of the first.

**Divisions** subtract the divisor as often as possible. `90` are the leading digits of the dividend, as
many as the divisor has, and a zero. `¹.10` is what remains after subtracting the divisor once, and
`².39` after subtracting it twice, which is below 0, as its last digit 9 shows. So `-1` is the quotient's
digit. `:71` is the remainder 1 with the next digit of the dividend brought down. The quotient consists
of the digits after the minuses; for `%` the last remainder is written once more, after `;`.

Coordinates: in windows (0, 1) over places, (-2, 1) over rows and (-1, 0) over steps, a token sees all
that the next token follows from.

* Digits, and the cells of a product, have the place of their column. `=`, `.`, `:` and `;` have place 0,
  before the first column. Counts, minuses and digits of the quotient stand in every place.
* Rows count what is written under each other. The answer of a sum or difference stands under the first
  operand, and the remainder of a division under what was left before. So each of them sees the row
  above, and the number that is added or subtracted, which stands in every row. The first operand of a
  product stands in every row too; the digits of its second operand stand in the row that they make, in
  every place.
* Steps count the digits of the dividend brought down. Its leading digits have step 1, and each further
  digit has a step of its own and stands in every place. All other tokens of the prompt stand in every
  step.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from abacist.arrays import Flags, Integers
from abacist.formats.annotated import ANCHOR, EVERYWHERE, AnnotatedTokens, Field
from abacist.formats.calculation import CalculationFormat, asks, is_digit, number_text
from abacist.formats.config import Layout, WorkedFormatConfig
from abacist.formats.continuation import (
    Continuation,
    PlannedContinuation,
    TokenCoordinates,
)
from abacist.formats.division_steps import DivisionSteps, count_steps, write_by_divisor_length
from abacist.formats.multiplication_cells import (
    CELL,
    PRODUCT_TOKENS,
    CellIndex,
    read_cells,
    write_cells,
)
from abacist.formats.pieces import Piece, merge, select
from abacist.formats.plain import negative_of_complement
from abacist.tasks import digits
from abacist.tasks.config import ArithmeticConfig, TaskConfig
from abacist.tasks.problems import Answer, Numbers, Problems

SMALL = ("⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹", "¹⁰")
"""Carries, and counts of subtractions."""

_MOST_SUBTRACTIONS = 10
"""After ten subtractions of the divisor, what is left is below 0."""


class WorkedFormat(CalculationFormat):
    """Writes, annotates and reads calculations of two numbers, with the work of each operation."""

    layout: Layout = "free"
    usual_order = True

    def __init__(self, config: WorkedFormatConfig, task: TaskConfig) -> None:
        assert isinstance(task, ArithmeticConfig)
        self.config = config
        symbols = dict.fromkeys((*task.operations, "-", "=", ".", ":", ";"))
        super().__init__(task, config.start_token, symbols, (*SMALL, *PRODUCT_TOKENS))
        self._minus, self._point = self.vocabulary.id("-"), self.vocabulary.id(".")
        self._colon, self._semicolon = self.vocabulary.id(":"), self.vocabulary.id(";")
        self._first_small = self.vocabulary.id(SMALL[0])
        self._first_product = self.vocabulary.id(PRODUCT_TOKENS[0])
        # Counts, carries and products come last in the vocabulary, and all are annotated alike.
        self.alike_from = self._first_small

    def continuation(self, prompt: AnnotatedTokens, max_new_tokens: int) -> Continuation:
        """Return the coordinates of new tokens."""
        symbols = (self._minus, self._first_small)
        begin_number = (self._point, self._colon, self._semicolon)
        is_operator = prompt.field == Field.OPERATOR
        operator = prompt.ids.masked_fill(~is_operator, 0).amax(dim=1).numpy()
        divides = np.isin(operator, [self.token_of.get(name, -1) for name in ("//", "%")])
        return _WorkContinuation(
            self.annotate, prompt, max_new_tokens, divides, symbols, begin_number
        )

    def target_lengths(self, problems: Problems) -> Tensor:
        """Return the largest possible number of tokens after `=`, int64 (B,)."""
        first, second = problems.lengths_BN[:, 0], problems.lengths_BN[:, 1]
        lengths = torch.maximum(first, second) + 2
        lengths = torch.where(asks(problems, "*"), (CELL * first + 2) * second + 1, lengths)
        # Every digit of a quotient may be 9.
        tokens_per_step = second + 4 + _MOST_SUBTRACTIONS * (second + 3)
        divides = asks(problems, "//") | asks(problems, "%")
        return torch.where(divides, count_steps(problems) * tokens_per_step + second + 2, lengths)

    # Writing -------------------------------------------------------------------------------

    def _target_piece(self, problems: Problems, answer: Answer) -> Piece:
        assert isinstance(answer, Numbers)
        parts = []
        for operation in self.token_of:
            lines = asks(problems, operation).nonzero().squeeze(1)
            if not len(lines):
                continue
            part = problems[lines]
            if operation == "+":
                piece = Piece(answer.digits_BW[lines], answer.lengths_B[lines])
            elif operation == "-":
                piece = self._difference(part)
            elif operation == "*":
                piece = write_cells(part, self._first_small, self._first_product)
            else:
                piece = write_by_divisor_length(part, self._division)
            parts.append((lines, piece))
        return merge(parts, len(problems), problems.digits_BNW.device)

    def _difference(self, problems: Problems) -> Piece:
        """Return digits modulo a power of ten, and a minus after differences below 0."""
        first, second = (problems.operand(position).digits_BW for position in range(2))
        written, is_below = digits.subtract_modulo(first, second)
        longest = problems.lengths_BN.amax(dim=1)
        written = torch.nn.functional.pad(written, (0, 1))
        # Where there is no minus, this column is beyond the width.
        written.scatter_(1, longest.unsqueeze(1), self._minus)
        return Piece(written, longest + is_below)

    def _division(self, problems: Problems, divisor_length: int) -> Piece:
        """Return all steps, and the remainder for `%`; for divisors of one length."""
        division = DivisionSteps.of(problems, divisor_length)
        batch, steps, width = division.brought_down.shape
        quotient = division.quotient_BS
        count = torch.arange(1, _MOST_SUBTRACTIONS + 1, dtype=torch.uint8, device=quotient.device)

        def symbol(token: int) -> Tensor:
            return torch.full_like(quotient, token).unsqueeze(2)

        # One step: `:`, what is brought down, rows of count, `.` and digits, `-` and the quotient.
        rows = quotient.new_full((batch, steps, _MOST_SUBTRACTIONS, width + 2), self._point)
        rows[..., 0] = count + self._first_small
        rows[..., 2:] = division.differences[:, :, 1:]
        step = [
            symbol(self._colon),
            division.brought_down,
            rows.flatten(2),
            symbol(self._minus),
            quotient.unsqueeze(2),
        ]
        ids = torch.cat(step, dim=2)
        number = division.number_BS.unsqueeze(2)
        is_written = (number >= 0).expand(ids.shape).clone()
        is_written[:, :, :1] = number > 0
        is_subtracted = (count <= (quotient + 1).unsqueeze(2)).repeat_interleave(width + 2, dim=2)
        is_written[:, :, 1 + width : -2] &= is_subtracted
        semicolon = torch.full_like(quotient[:, :1], self._semicolon)
        remainder = torch.cat([semicolon, division.remainder_BW], dim=1)
        asks_remainder = asks(problems, "%").unsqueeze(1).expand(remainder.shape)
        return select(
            torch.cat([ids.flatten(1), remainder], dim=1),
            torch.cat([is_written.flatten(1), asks_remainder], dim=1),
        )

    # Annotating ----------------------------------------------------------------------------

    def _annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        parts = self._parts(ids_BT)
        index, after_equals = parts.index, parts.after_equals
        is_operator, is_equals = parts.is_operator, parts.is_equals
        operator_index, equals_index = parts.operator_index, parts.equals_index
        operator = ids_BT.gather(1, operator_index.long())
        multiplies = operator == self.token_of.get("*", -1)
        asks_remainder = operator == self.token_of.get("%", -1)
        divides = asks_remainder | (operator == self.token_of.get("//", -1))
        first, second = parts.lengths
        is_second = index > operator_index
        everywhere = torch.full_like(ids_BT, EVERYWHERE)

        # The prompt.
        place = torch.where(is_second, equals_index, operator_index) - index
        place.masked_fill_(multiplies & is_second, EVERYWHERE)
        # A sum stands under its first operand; the number added to a row stands in every row.
        row = torch.where(multiplies | divides | is_second, everywhere, 1)
        row = torch.where(multiplies & is_second, equals_index - index, row)
        leading = torch.minimum(first, second)
        from_top = index - parts.begin
        is_brought_down = divides & ~is_second & (from_top >= leading)
        place = torch.where(divides & ~is_second, place - first + leading, place)
        place.masked_fill_(is_brought_down, EVERYWHERE)
        step = torch.where(divides & ~is_second, 1, everywhere)
        step = torch.where(is_brought_down, from_top - leading + 2, step)
        field = torch.where(is_second, Field.OPERAND + 1, int(Field.OPERAND)).to(torch.uint8)
        for coordinate in (place, row, step):
            coordinate.masked_fill_(is_operator, EVERYWHERE)
        place.masked_fill_(is_equals, ANCHOR)
        row = torch.where(is_equals, torch.where(multiplies | divides, 1, 2), row)
        step = torch.where(is_equals & divides, 1, step)
        field.masked_fill_(is_operator, int(Field.OPERATOR))
        field.masked_fill_(is_equals, int(Field.EQUALS))

        # The answer of a sum or difference.
        place = torch.where(after_equals, index - equals_index, place)
        row = torch.where(after_equals, 2, row)
        field.masked_fill_(after_equals, int(Field.ANSWER))
        # Cells.
        is_cell = after_equals & multiplies
        cells = CellIndex.of((index - equals_index - 1).clamp(min=0), first, second)
        place = torch.where(is_cell, cells.column, place)
        row = torch.where(is_cell, cells.row, row)
        field.masked_fill_(is_cell & ~cells.is_answer, int(Field.SCRATCH))
        # Divisions.
        is_work = after_equals & divides
        is_minus = is_work & (ids_BT == self._minus)
        is_count = is_work & (ids_BT >= self._first_small)
        is_semicolon = is_work & (ids_BT == self._semicolon)
        is_mark = is_work & ((ids_BT == self._point) | (ids_BT == self._colon))
        is_quotient = is_work & torch.nn.functional.pad(is_minus[:, :-1], (1, 0))
        begins_number = is_mark | is_semicolon | is_equals
        begin = torch.where(begins_number, index, -1).cummax(dim=1).values
        place = torch.where(is_work, index - begin, place)
        place.masked_fill_(is_minus | is_count | is_quotient, EVERYWHERE)
        rows = (is_minus | is_count).cumsum(dim=1, dtype=torch.int32) + 1
        row = torch.where(is_work, rows, row)
        step = torch.where(is_work, is_minus.cumsum(dim=1, dtype=torch.int32) + 1, step)
        after_semicolon = is_semicolon.cumsum(dim=1, dtype=torch.int32) > is_semicolon
        is_answer = torch.where(asks_remainder, after_semicolon, is_quotient)
        field.masked_fill_(is_work & ~is_answer, int(Field.SCRATCH))

        parts.mark_ends(field, place, row, step)
        return AnnotatedTokens(
            ids_BT.int(), place.int(), field, parts.target, row.int(), step.int()
        )

    # Reading -------------------------------------------------------------------------------

    def _read_work(self, operation: str, lengths: list[int], tokens: list[int]) -> str | None:
        if operation == "+":
            is_number = bool(tokens) and all(map(is_digit, tokens))
            return number_text(tokens) if is_number and _is_unpadded(tokens) else None
        if operation == "-":
            return self._read_difference(tokens, max(lengths))
        if operation == "*":
            return read_cells(tokens, lengths, self._first_small, self._first_product)
        return self._read_division(tokens, lengths, operation == "%")

    def _read_difference(self, tokens: list[int], width: int) -> str | None:
        is_below = tokens[width:] == [self._minus]
        tokens = tokens[:-1] if is_below else tokens
        if len(tokens) != width or not all(map(is_digit, tokens)):
            return None
        text = number_text(tokens)
        if not is_below:
            return text
        return None if text == "0" else negative_of_complement(text, width)

    def _read_division(
        self, tokens: list[int], lengths: list[int], asks_remainder: bool
    ) -> str | None:
        dividend_length, divisor_length = lengths[:2]
        quotient: list[int] = []
        for step in range(max(1, dividend_length - divisor_length + 1)):
            if step:
                if tokens[:1] != [self._colon]:
                    return None
                tokens = tokens[1:]
            row, tokens = tokens[: divisor_length + 1], tokens[divisor_length + 1 :]
            count = 0
            while len(row) == divisor_length + 1 and all(map(is_digit, row)):
                count += 1
                marks = [self._first_small + count, self._point]
                if count > _MOST_SUBTRACTIONS or tokens[:2] != marks:
                    break
                row, tokens = tokens[2 : divisor_length + 3], tokens[divisor_length + 3 :]
            if tokens[:1] != [self._minus] or not 2 <= count <= _MOST_SUBTRACTIONS + 1:
                return None
            if len(row) != divisor_length + 1 or tokens[1:2] != [count - 2]:
                return None
            quotient.append(count - 2)
            tokens = tokens[2:]
        if not asks_remainder:
            return None if tokens else number_text(quotient[::-1])
        remainder = tokens[1:]
        if tokens[:1] != [self._semicolon] or len(remainder) != divisor_length:
            return None
        return number_text(remainder) if all(map(is_digit, remainder)) else None


class _WorkContinuation(PlannedContinuation):
    """Counts rows, steps and columns of divisions; all other work follows from the prompt."""

    def __init__(
        self,
        annotate: Callable[[Tensor], AnnotatedTokens],
        prompt: AnnotatedTokens,
        max_new_tokens: int,
        divides: Flags,
        symbols: tuple[int, int],
        begin_number: tuple[int, ...],
    ) -> None:
        """Begin after `=`.

        Args:
            annotate: annotates whole lines.
            prompt: the prompts.
            max_new_tokens: largest number of new tokens.
            divides: which lines are divisions, (B,).
            symbols: the ids of the minus and of the first count; all counts come last.
            begin_number: the ids of the symbols after which a number begins.
        """
        super().__init__(annotate, prompt, max_new_tokens, {"row": 0, "step": 0})
        self._divides, self._begin_number = divides, begin_number
        self._minus, self._first_small = symbols
        batch = len(prompt.ids)
        self._column, self._after_minus = np.zeros(batch, np.int64), np.zeros(batch, bool)
        self._row, self._step = np.ones(batch, np.int64), np.ones(batch, np.int64)

    def append(self, ids_B: Integers) -> TokenCoordinates:
        """Return the coordinates of the next token of every line."""
        planned = super().append(ids_B)
        if not self._divides.any():
            return planned
        is_minus, is_count = ids_B == self._minus, ids_B >= self._first_small
        begins_number = np.isin(ids_B, self._begin_number)
        self._column = np.where(begins_number, ANCHOR, self._column + 1)
        place = np.where(is_minus | is_count | self._after_minus, EVERYWHERE, self._column)
        self._row = self._row + (is_minus | is_count)
        self._step = self._step + is_minus
        self._after_minus = is_minus
        assert planned.row is not None
        assert planned.step is not None
        return TokenCoordinates(
            np.where(self._divides, place, planned.place),
            np.where(self._divides, self._row, planned.row),
            np.where(self._divides, self._step, planned.step),
        )


def _is_unpadded(tokens: list[int]) -> bool:
    """Whether a number, least significant digit first, has no leading zero."""
    return len(tokens) == 1 or tokens[-1] != 0
