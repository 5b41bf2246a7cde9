"""Long division with every subtraction written out.

Operands are written in the usual order. After `=` come rows of one width, one digit wider than the
divisor and least significant digit first, each with a sign and a count.

>>> format.text(problem)  # 7//3
'<start>7//3=70:040+110+289-2<end>'

    70:0     what is left of the digits brought down so far: 07, with the divisor subtracted 0 times
    40+1     after subtracting the divisor once: 04
    10+2     after subtracting it twice: 01
    89-2     once too often: 98 is the ten's complement of -2, so the quotient's digit is 2

Then the next digit of the dividend is brought down. It is put before the last row that was not below 0,
which stands two rows above. A digit of a row follows from its column and the previous column, of the row
above and of the divisor. A sign follows from the borrow of the row's last column, and a count from the
count above. Nothing has to be guessed or looked up far away, so a small window suffices for any length.

The quotient's digits, from the top, are the counts after `-`. For `%` the rows are followed by the
remainder, which is as wide as the divisor.

Coordinates: a digit of a row has the place of its column; sign and count stand in every column. `row`
counts the rows, and `step` counts the digits brought down. The divisor stands in every row and step. A
digit of the dividend stands where it is brought down: the leading digits in the columns of step 1, and
the k-th digit after them in column 1 of step k + 1.
"""

import numpy as np
import torch
from torch import Tensor

from abacist.arrays import Integers
from abacist.formats.annotated import ANCHOR, EVERYWHERE, AnnotatedTokens, Field
from abacist.formats.calculation import CalculationFormat, asks, is_digit, number_text
from abacist.formats.config import Layout, LongDivisionFormatConfig
from abacist.formats.continuation import Continuation, RowsByDivisor, TokenCoordinates
from abacist.formats.division_steps import DivisionSteps, count_steps, write_by_divisor_length
from abacist.formats.pieces import Piece, select
from abacist.tasks.config import ArithmeticConfig, TaskConfig
from abacist.tasks.problems import Answer, Problems

_EXTRA = 3
"""A row is wider than the divisor by one digit, the sign and the count."""


class LongDivisionFormat(CalculationFormat):
    """Writes, annotates and reads divisions."""

    layout: Layout = "free"
    usual_order = True

    def __init__(self, config: LongDivisionFormatConfig, task: TaskConfig) -> None:
        assert isinstance(task, ArithmeticConfig)
        self.config = config
        super().__init__(task, config.start_token, (*task.operations, "=", ":", "+", "-"))
        self.remainder_id = self.token_of.get("%")
        self.brought_down_id = self.vocabulary.id(":")
        self.fits_id, self.below_id = self.brought_down_id + 1, self.brought_down_id + 2

    def target_lengths(self, problems: Problems) -> Tensor:
        """Return the largest possible number of tokens after `=`, int64 (B,)."""
        # If a digit of the quotient is 9, its step has eleven rows.
        rows = 11 * count_steps(problems)
        return rows * (problems.lengths_BN[:, 1] + _EXTRA) + problems.lengths_BN[:, 1] + 1

    # Writing -------------------------------------------------------------------------------

    def _target_piece(self, problems: Problems, answer: Answer) -> Piece:
        return write_by_divisor_length(problems, self._rows)

    def _rows(self, problems: Problems, divisor_length: int) -> Piece:
        """Return the rows of all steps, and the remainder for `%`; for divisors of one length."""
        steps = DivisionSteps.of(problems, divisor_length)
        count = torch.arange(11, dtype=torch.uint8, device=problems.lengths_BN.device)
        quotient = steps.quotient_BS.unsqueeze(2)
        is_below = (count > quotient).to(torch.uint8)
        # The three signs follow each other in the vocabulary.
        sign = self.brought_down_id + count.clamp(max=1) + is_below
        marks = torch.stack([sign, count - is_below], dim=3)
        rows = torch.cat([steps.differences, marks], dim=3)
        is_written = (count <= quotient + 1) & (steps.number_BS >= 0).unsqueeze(2)
        is_written = is_written.unsqueeze(3).expand(rows.shape)
        asks_remainder = asks(problems, "%").unsqueeze(1).expand(steps.remainder_BW.shape)
        return select(
            torch.cat([rows.flatten(1), steps.remainder_BW], dim=1),
            torch.cat([is_written.flatten(1), asks_remainder], dim=1),
        )

    # Annotating ----------------------------------------------------------------------------

    def annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        """Return place, row, step, field and target of every token, from the ids alone.

        The annotation of a token after `=` depends on the prompt and on the tokens before it.
        """
        return self._annotate(ids_BT)

    def continuation(self, prompt: AnnotatedTokens, max_new_tokens: int) -> Continuation:
        """Return the coordinates of new tokens."""
        return _RowsContinuation(prompt, self.below_id)

    def _annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        # Lines whose operands have the same lengths have their rows in the same columns of the batch,
        # and are annotated together.
        shapes, shape_of_line = self._shapes(ids_BT)
        if len(shapes) < 2:
            return self._annotate_shape(ids_BT, *(shapes or [(0, 0)])[0])
        batch, length = ids_BT.shape
        tensors: dict[str, Tensor] = {}
        for number, shape in enumerate(shapes):
            lines = (shape_of_line == number).nonzero().squeeze(1)
            part = self._annotate_shape(ids_BT[lines], *shape)
            for name in ("ids", "place", "field", "target", "row", "step"):
                tensor = getattr(part, name)
                tensors.setdefault(name, tensor.new_empty(batch, length))[lines] = tensor
        return AnnotatedTokens(**tensors)

    def _shapes(self, ids_BT: Tensor) -> tuple[list[tuple[int, int]], Tensor]:
        """Return the pairs of lengths of dividend and divisor, and the index of each line's pair."""
        begin = 0 if self.start_id is None else 1
        is_operator = torch.zeros_like(ids_BT, dtype=torch.bool)
        for operator in self.operator_ids:
            is_operator |= ids_BT == operator
        operator_index = is_operator.to(torch.uint8).argmax(dim=1)
        equals_index = (ids_BT == self.equals_id).to(torch.uint8).argmax(dim=1)
        code = operator_index * ids_BT.shape[1] + equals_index
        codes, shape_of_line = torch.unique(code, return_inverse=True)
        pairs = (divmod(value, ids_BT.shape[1]) for value in codes.tolist())
        shapes = [(operator - begin, equals - operator - 1) for operator, equals in pairs]
        return shapes, shape_of_line

    def _annotate_shape(
        self, ids_BT: Tensor, dividend_length: int, divisor_length: int
    ) -> AnnotatedTokens:
        """Annotate lines whose operands have these lengths; malformed lines cause no error."""
        dividend_length, divisor_length = max(0, dividend_length), max(0, divisor_length)
        batch, length = ids_BT.shape
        device = ids_BT.device
        prompt = self._annotate_prompt(dividend_length, divisor_length)[:, :length].to(device)
        head = prompt.shape[1]
        width = divisor_length + _EXTRA
        num_rows = max(0, -(-(length - head) // width))
        num_steps = max(1, dividend_length - divisor_length + 1)

        # The rows as a matrix: the signs up to a row show how many steps end before it.
        total = head + num_rows * width
        padded = torch.nn.functional.pad(ids_BT, (0, total - length), value=self.end_id)
        signs = padded[:, head:].view(batch, num_rows, width)[:, :, divisor_length + 1]
        ends_step = signs == self.below_id
        steps_before = ends_step.cumsum(dim=1, dtype=torch.int32) - ends_step.int()
        # The answer is the count after `-` for `//`. After all steps, it is the remainder and the
        # end token.
        is_remainder = torch.zeros(batch, 1, dtype=torch.bool, device=device)
        if self.remainder_id is not None:
            operator_index = min(max(0, head - divisor_length - 2), length - 1)
            is_remainder = ids_BT[:, operator_index, None] == self.remainder_id
        field = torch.full((batch, num_rows, width), int(Field.SCRATCH), device=device)
        field[:, :, -1].masked_fill_(ends_step & ~is_remainder, int(Field.ANSWER))
        field.masked_fill_((steps_before >= num_steps).unsqueeze(2), int(Field.ANSWER))

        columns = [*range(1, divisor_length + 2), EVERYWHERE, EVERYWHERE]
        place = torch.tensor(columns, device=device).expand(1, num_rows, width)
        row = torch.arange(1, num_rows + 1, device=device).view(1, -1, 1).expand(1, -1, width)
        step = (steps_before + 1).unsqueeze(2).expand(-1, -1, width)
        place, row, step, field = (
            torch.cat([start.expand(len(work), -1).to(dtype), work.flatten(1).to(dtype)], dim=1)[
                :, :length
            ].expand(batch, -1)
            for start, work, dtype in zip(
                prompt.unbind(),
                (place, row, step, field),
                (torch.int32, torch.int32, torch.int32, torch.uint8),
                strict=True,
            )
        )
        is_end = ids_BT == self.end_id
        is_padding = is_end.cumsum(dim=1, dtype=torch.int32) > is_end
        target = ~is_padding
        target[:, :head] = False
        field = field.masked_fill(is_padding, int(Field.PADDING))
        return AnnotatedTokens(ids_BT.int(), place, field, target, row, step)

    def _annotate_prompt(self, dividend_length: int, divisor_length: int) -> Tensor:
        """Return place, row, step and field of the tokens up to `=`, int64 (4, T)."""
        leading = min(dividend_length, divisor_length)
        first, second = int(Field.OPERAND), int(Field.OPERAND) + 1
        num_brought_down = dividend_length - leading
        tokens = [
            *((column, EVERYWHERE, 1, first) for column in range(leading, 0, -1)),
            *((1, EVERYWHERE, step, first) for step in range(2, num_brought_down + 2)),
            (EVERYWHERE, EVERYWHERE, EVERYWHERE, int(Field.OPERATOR)),
            *((column, EVERYWHERE, EVERYWHERE, second) for column in range(divisor_length, 0, -1)),
            (ANCHOR, ANCHOR, ANCHOR, int(Field.EQUALS)),
        ]
        if self.start_id is not None:
            tokens.insert(0, (EVERYWHERE, EVERYWHERE, EVERYWHERE, int(Field.START)))
        return torch.tensor(tokens).t()

    # Reading -------------------------------------------------------------------------------

    def _read_work(self, operation: str, lengths: list[int], tokens: list[int]) -> str | None:
        dividend_length, divisor_length = lengths[:2]
        num_steps = max(1, dividend_length - divisor_length + 1)
        width = divisor_length + _EXTRA
        quotient: list[int] = []
        begins_step, count = True, 0
        while len(quotient) < num_steps:
            row, tokens = tokens[:width], tokens[width:]
            if len(row) < width or not all(map(is_digit, (*row[:-2], row[-1]))):
                return None
            sign = row[-2]
            signs = (self.brought_down_id,) if begins_step else (self.fits_id, self.below_id)
            count = 0 if begins_step else count + (sign == self.fits_id)
            if sign not in signs or row[-1] != count:
                return None
            begins_step = sign == self.below_id
            if begins_step:
                quotient.append(count)
        if operation != "%":
            return None if tokens else number_text(quotient[::-1])
        if len(tokens) != divisor_length or not all(map(is_digit, tokens)):
            return None
        return number_text(tokens)


class _RowsContinuation(RowsByDivisor):
    """Counts the tokens of a row, the rows, and the steps, each of which ends in a row below 0."""

    extra = _EXTRA

    def __init__(self, prompt: AnnotatedTokens, below_id: int) -> None:
        super().__init__(prompt)
        self.falls = {"row": 0, "step": 0}
        self._below_id = below_id
        self._step, self._is_below = np.ones_like(self.row), np.zeros_like(self.row)

    def append(self, ids_B: Integers) -> TokenCoordinates:
        """Return the coordinates of the next token of every line."""
        self.advance()
        # The sign of a row ends a step for the rows after it.
        begins_row = self.within == 0
        self._step = self._step + (begins_row & (self._is_below > 0))
        is_sign = self.within == self.divisor_length + 1
        self._is_below = np.where(is_sign, ids_B == self._below_id, self._is_below)
        is_digit = self.within <= self.divisor_length
        return TokenCoordinates(
            np.where(is_digit, self.within + 1, EVERYWHERE), self.row, self._step
        )
