"""Multiplication by running totals, one row per digit of the multiplier.

All numbers are written least significant digit first. Each row after `=` is the first operand times
one digit of the second, plus the row above without its first digit.

>>> format.text(problem)  # 23*45
'<start>32*54=511,301<end>'

    511      23 × 5 = 115: the product ends in 5, and 11 is left over
    301      23 × 4 + 11 = 103: there are no more digits, so the product is 1035

A row is one digit wider than the first operand. Its first digit is a digit of the product; the others
are left over for the next row. A digit of a row follows from its column and the previous column, of
the first operand and of the row above shifted by one column, and from one digit of the second operand.
The digit just written shows which carry comes in.

Coordinates: a digit of a row has the place of its column, and its row. The first operand stands in
every row. A digit of the second operand stands in every column of the row that it makes. `=` and the
commas have place 0 of the row after them.
"""

import torch
from torch import Tensor

from abacist.formats.annotated import EVERYWHERE, NO_PLACE, AnnotatedTokens, Field
from abacist.formats.calculation import CalculationFormat, is_digit, number_text
from abacist.formats.config import Layout, PartialProductsFormatConfig
from abacist.formats.continuation import Continuation, PlannedContinuation
from abacist.formats.multiplication_cells import rows_of_products
from abacist.formats.pieces import Piece, select
from abacist.tasks.config import TaskConfig
from abacist.tasks.problems import Answer, Problems


class PartialProductsFormat(CalculationFormat):
    """Writes, annotates and reads multiplications."""

    layout: Layout = "shape"

    def __init__(self, config: PartialProductsFormatConfig, task: TaskConfig) -> None:
        self.config = config
        super().__init__(task, config.start_token, ("*", "=", ","))
        self.comma_id = self.vocabulary.id(",")

    def continuation(self, prompt: AnnotatedTokens, max_new_tokens: int) -> Continuation:
        """Return the coordinates of new tokens, which follow from the prompt alone."""
        return PlannedContinuation(self.annotate, prompt, max_new_tokens, {"row": 0})

    def target_lengths(self, problems: Problems) -> Tensor:
        """Return the number of tokens after `=`, int64 (B,)."""
        first, second = problems.lengths_BN[:, 0], problems.lengths_BN[:, 1]
        return (first + 2) * second

    def _target_piece(self, problems: Problems, answer: Answer) -> Piece:
        rows = [sums_BX for _, sums_BX, _ in rows_of_products(problems)]
        sums = torch.stack(rows, dim=1) if rows else problems.digits_BNW.new_zeros(0, 0, 0)
        ids = torch.nn.functional.pad(sums, (0, 1), value=self.comma_id)
        column = torch.arange(ids.shape[2], device=ids.device)
        row = torch.arange(ids.shape[1], device=ids.device).unsqueeze(1)
        first, second = (problems.lengths_BN[:, i].view(-1, 1, 1) for i in range(2))
        # Rows are as wide as the longest first operand of the batch; the last column is a comma.
        is_comma = column == ids.shape[2] - 1
        is_written = ((column <= first) & ~is_comma & (row < second)) | (
            is_comma & (row + 1 < second)
        )
        return select(ids, is_written)

    def _annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        parts = self._parts(ids_BT)
        index, is_operator = parts.index, parts.is_operator
        operator_index = parts.operator_index
        first_length, num_rows = parts.lengths
        # The prompt.
        is_second = index > operator_index
        place = torch.where(is_second, EVERYWHERE, index - parts.begin + 1)
        row = torch.where(is_second, index - operator_index, EVERYWHERE)
        field = torch.where(is_second, Field.OPERAND + 1, int(Field.OPERAND)).to(torch.uint8)
        place.masked_fill_(is_operator, NO_PLACE)
        row.masked_fill_(is_operator, NO_PLACE)
        field.masked_fill_(is_operator, int(Field.OPERATOR))
        # The rows, each with the symbol before it. The end token stands where another comma would.
        width = first_length + 2
        since_equals = (index - parts.equals_index).clamp(min=0)
        rows_before = torch.div(since_equals, width, rounding_mode="floor")
        in_rows = parts.is_equals | parts.after_equals
        place = torch.where(in_rows, since_equals - rows_before * width, place)
        row = torch.where(in_rows, rows_before + 1, row)
        is_answer = ((place == 1) | (row >= num_rows)) & (place > 0)
        work_field = torch.where(is_answer, int(Field.ANSWER), int(Field.SCRATCH))
        field = torch.where(in_rows, work_field.to(torch.uint8), field)
        field.masked_fill_(parts.is_equals, int(Field.EQUALS))
        parts.mark_ends(field, place, row)
        return AnnotatedTokens(ids_BT, place.int(), field, parts.target, row=row.int())

    def _read_work(self, operation: str, lengths: list[int], tokens: list[int]) -> str | None:
        width, num_rows = lengths[0] + 1, lengths[1]
        rows = [tokens[i : i + width] for i in range(0, len(tokens), width + 1)]
        commas = tokens[width :: width + 1]
        if len(rows) != num_rows or commas != [self.comma_id] * (num_rows - 1):
            return None
        if any(len(row) != width or not all(map(is_digit, row)) for row in rows):
            return None
        return number_text([row[0] for row in rows[:-1]] + rows[-1])
