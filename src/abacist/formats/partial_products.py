"""Multiplication by running sums: `23*45` is `32*54=511,301<end>`.

All numbers are least significant digit first. Behind `=` stands a row for each digit of the second
operand: what the rows before have left over, plus the first operand times that digit. A row's
first digit is final, a digit of the product; the others are what is left over for the next row:

    511      23 × 5 = 115: the product ends in 5, 11 is left
    301      23 × 4 + 11 = 103: there are no more digits, so the product is 1035

Rows are one digit wider than the first operand. A digit of a row needs the first operand's digit
in its column and the one before, the same of the row above, shifted by a column, and one digit of
the second operand; which carry comes in follows from the digit before.

Coordinates: a row's digits have their column as place, and their row; the first operand stands in
every row, the digits of the second in every column of the row they make. `=` and the commas are
column 0 of the row behind them.
"""

import torch
from torch import Tensor

from abacist.formats.annotated import EVERYWHERE, NO_PLACE, AnnotatedTokens, Field
from abacist.formats.calculation import CalculationFormat
from abacist.formats.config import Layout, PartialProductsFormatConfig
from abacist.formats.lines import Piece, join, once_per_pattern
from abacist.tasks import digits
from abacist.tasks.config import ArithmeticConfig, TaskConfig
from abacist.tasks.problems import Answer, Problems
from abacist.vocabulary import DIGITS, Vocabulary


class PartialProductsFormat(CalculationFormat):
    """Writes, annotates and reads multiplications."""

    layout: Layout = "shape"

    def __init__(self, config: PartialProductsFormatConfig, task: TaskConfig) -> None:
        assert isinstance(task, ArithmeticConfig)
        self.config = config
        start = ("<start>",) if config.start_token else ()
        vocabulary = Vocabulary((*DIGITS, "*", "=", ",", "<end>", *start))
        super().__init__(vocabulary, task.operations, config.start_token)
        self.operator_id, self.comma_id = vocabulary.id("*"), vocabulary.id(",")

    def annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        """Place, row, field and target of every token, from the ids alone.

        What stands behind `=` is annotated from the prompt and the tokens before it.
        """
        return once_per_pattern(ids_BT, self._annotate)

    def read(self, ids_BT: Tensor) -> list[str | None]:
        """The answers of whole lines in the usual notation; None where one is malformed.

        Strict: as many rows as the second operand has digits, each one digit wider than the first
        operand, commas between them and an end token. Only the digits of the product are read.
        """
        return [self._read(row) for row in ids_BT.tolist()]

    def target_lengths(self, problems: Problems) -> Tensor:
        """int64 (B,): tokens behind `=`."""
        first, second = problems.lengths_BN[:, 0], problems.lengths_BN[:, 1]
        return (first + 2) * second

    def _target_piece(self, problems: Problems, answer: Answer) -> Piece:
        """All rows and the commas between them."""
        a, b = problems.operand(0).digits_BW, problems.operand(1).digits_BW
        first, second = problems.lengths_BN[:, 0], problems.lengths_BN[:, 1]
        batch, width = a.shape[0], int(first.max()) if len(first) else 0
        num_rows = int(second.max()) if len(second) else 0
        # Columns of the first operand, one above it for what is left over, one for the comma.
        rows = torch.full(
            (batch, num_rows, width + 2), self.comma_id, dtype=torch.uint8, device=a.device
        )
        multiplicand = torch.nn.functional.pad(a[:, :width], (0, 1)).int()
        left = torch.zeros(batch, width + 1, dtype=torch.int32, device=a.device)
        for row in range(num_rows):
            sums, _ = digits.propagate_carries(left + multiplicand * b[:, row : row + 1])
            rows[:, row, :-1] = sums
            left = torch.nn.functional.pad(sums[:, 1:], (0, 1)).int()
        widths = (first + 2) * second - 1
        if bool((first == width).all()):
            return Piece(rows.flatten(1), widths)
        # Narrower rows: the comma follows their own last digit, and the next row follows it.
        parts = [Piece(rows[:, row, :-1], (first + 1) * (row < second)) for row in range(num_rows)]
        comma = rows[:, 0, -1:]
        commas = [Piece(comma, (row + 1 < second).long()) for row in range(num_rows)]
        pieces = [piece for pair in zip(parts, commas, strict=True) for piece in pair]
        return Piece(join(pieces, self.end_id), widths)

    def _annotate(self, ids: Tensor) -> AnnotatedTokens:
        parts = self._parts(ids)
        index, is_operator = parts.index, parts.is_operator
        operator_at, equals_at = parts.operator_at, parts.equals_at
        begin = 0 if self.start_id is None else 1
        width = (operator_at - begin + 2).clamp(min=2)
        num_rows = equals_at - operator_at - 1
        behind = (index - equals_at).clamp(min=0)
        work_row = torch.div(behind, width, rounding_mode="floor")
        second = index > operator_at
        place = torch.where(second, EVERYWHERE, index - begin + 1)
        row = torch.where(second, index - operator_at, EVERYWHERE)
        field = torch.where(second, Field.OPERAND + 1, int(Field.OPERAND)).to(torch.uint8)
        place.masked_fill_(is_operator, NO_PLACE)
        row.masked_fill_(is_operator, NO_PLACE)
        field.masked_fill_(is_operator, int(Field.OPERATOR))
        # `=` and the commas are column 0 of the row behind them.
        working = parts.is_equals | parts.answering
        place = torch.where(working, behind - work_row * width, place)
        row = torch.where(working, work_row + 1, row)
        final = (place == 1) | (row >= num_rows)
        work_field = torch.where(final & (place > 0), int(Field.ANSWER), int(Field.SCRATCH))
        field = torch.where(working, work_field.to(torch.uint8), field)
        field.masked_fill_(parts.is_equals, int(Field.EQUALS))
        # The end token stands where another comma would.
        parts.mark_ends(field, place, row)
        return AnnotatedTokens(ids, place.int(), field, parts.target, row=row.int())

    def _read(self, ids: list[int]) -> str | None:
        if self.equals_id not in ids or self.operator_id not in ids:
            return None
        begin = 0 if self.start_id is None else 1
        operator_at, equals_at = ids.index(self.operator_id), ids.index(self.equals_id)
        width, num_rows = operator_at - begin + 1, equals_at - operator_at - 1
        tokens = ids[equals_at + 1 :]
        if self.end_id not in tokens or num_rows < 1:
            return None
        tokens = tokens[: tokens.index(self.end_id)]
        rows = [tokens[i : i + width] for i in range(0, len(tokens), width + 1)]
        commas = tokens[width :: width + 1]
        if [self.comma_id] * (num_rows - 1) != commas or len(rows) != num_rows:
            return None
        if any(len(row) != width or any(token >= 10 for token in row) for row in rows):
            return None
        product = [row[0] for row in rows[:-1]] + rows[-1]
        return self.vocabulary.text(reversed(product)).lstrip("0") or "0"
