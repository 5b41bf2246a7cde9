"""Long multiplication, written one product at a time so that a small window suffices.

`23*45` becomes `32*54=` followed by one row per digit of the multiplier. Each row holds one cell per
digit of the multiplicand: the incoming carry, the product of the two digits, and the digit of the
running total. All numbers are written least significant digit first.

>>> format.text(problem)  # 23*45
'<start>32*54=⁰[15]5¹[10]1¹1⁰[12]3¹[8]0¹1<end>'

    ⁰[15]5      0 + 3 × 5 = 15: write 5, carry 1
    ¹[10]1      1 + 2 × 5 = 11: write 1, carry 1
    ¹1          the last carry is written as a digit: 23 × 5 = 115

    ⁰[12]3      0 + 3 × 4 + 1 = 13, where the last 1 comes from 11, the row above without its first digit
    ¹[8]0       1 + 2 × 4 + 1 = 10
    ¹1          so 23 × 4 + 11 = 103

The first digit of each row is a digit of the product, and so are all digits of the last row: 1035.

Each token follows from at most four others. A product follows from two digits. A written digit follows
from its product, the carry and the digit above. A carry follows from the product, the previous carry
and the digit just written, which implies the digit above. The coordinates bring just these tokens
together in one layer with windows (0, 1) over places and (-1, 0) over rows, which keeps the list of
neighbourhoods for a proof short:

* The carry and the product of the cell in column i and row j have place 2i and row 2j.
* The digit that the cell writes is used by the cell in column i - 1 of the next row. It stands between
  the two, at place 2i - 1 and row 2j + 1.
* Digit i of the multiplicand has place 2i and stands in every row.
* Digit j of the multiplier has row 2j - 1 and stands in every place. It is seen by row j, and by the
  last digit of row j - 1, after which the model must know whether there is another row.

With a spacing of 3 instead of 2, cells are 3 places and 3 rows apart and digits still stand one place
and one row beside their cell: at place 3i - 1 and row 3j + 1, and the multiplier's digits at row 3j - 2.
Windows (0, 2) and (-2, 0) then show exactly the same tokens. The calculator needs that, since divisions
need windows of this size.

If operands are signed, their signs follow their digits, and the sign of the product is written first:
`32⁻*54⁺=⁻⁰[15]5…`. It is `⁻` if the operands have different signs, also where one of them is 0, and is
then read as 0. The signs of operands have place 0 and row 0, where `=` stands and no cell sees them. The
product's sign has neither place nor row, and what follows it is the first carry, 0.
"""

import torch
from torch import Tensor

from abacist.formats.annotated import ANCHOR, EVERYWHERE, NO_PLACE, AnnotatedTokens, Field
from abacist.formats.calculation import CalculationFormat, is_digit
from abacist.formats.config import Layout, LongMultiplicationFormatConfig
from abacist.formats.continuation import Continuation, PlannedContinuation
from abacist.formats.multiplication_cells import (
    CELL,
    PRODUCT_TOKENS,
    CellIndex,
    product_tokens,
    read_cells,
    write_cells,
)
from abacist.formats.pieces import Piece
from abacist.formats.roles import SIGN, START, Role, decode
from abacist.formats.shared_notation import SharedNotation
from abacist.tasks.config import TaskConfig
from abacist.tasks.problems import Answer, Problems

MULTIPLICAND, MULTIPLIER = "multiplicand", "multiplier"
CARRY, PRODUCT, DIGIT = "carry", "product", "digit"
"""Parts of a calculation, as `roles` names them."""

CARRIES = tuple("⁰¹²³⁴⁵⁶⁷⁸⁹")


class LongMultiplicationFormat(CalculationFormat):
    """Writes, annotates and reads multiplications."""

    layout: Layout = "shape"
    enumeration = "long-multiplication"

    def __init__(
        self,
        config: LongMultiplicationFormatConfig,
        task: TaskConfig,
        shared: SharedNotation | None = None,
    ) -> None:
        self.config = config
        work = (*CARRIES, *PRODUCT_TOKENS)
        super().__init__(task, config.start_token, ("*", "="), work, shared)
        self._spacing = 2 if shared is None else shared.spacing
        self.first_carry = self.vocabulary.id(CARRIES[0])
        self.first_product = self.vocabulary.id(PRODUCT_TOKENS[0])
        self.product_ids = product_tokens(self.first_product)
        # Carries and products come last in the vocabulary: where they stand follows from the prompt.
        self.alike_from = self.first_carry

    def roles(self, ids_T: Tensor) -> list[Role]:
        """Return the role of each token of one whole line.

        A digit of the multiplicand has a column, and a digit of the multiplier has the row that it
        makes. CARRY, PRODUCT and DIGIT have both; if the multiplicand has N digits, column N + 1 holds
        the last carry of a row and its digit. Symbols have neither.
        """

        spacing = self._spacing

        def role(token: int, field: int, place: int, row: int) -> Role:
            if field == Field.START:
                return Role(START)
            if self.signed and token in (self.plus_id, self.minus_id):
                return Role(SIGN, row=field - Field.OPERAND + 1 if field >= Field.OPERAND else 0)
            if field == Field.OPERAND:
                return Role(MULTIPLICAND, column=place // spacing)
            if field == Field.OPERAND + 1:
                return Role(MULTIPLIER, row=row // spacing + 1)
            if not is_digit(token) and token < self.first_carry:
                return Role(self.vocabulary.tokens[token])
            part = CARRY if token < self.first_product else PRODUCT
            part = DIGIT if is_digit(token) else part
            return Role(part, column=(place + 1) // spacing, row=row // spacing)

        return decode(self.annotate(ids_T.unsqueeze(0)), role)

    def continuation(self, prompt: AnnotatedTokens, max_new_tokens: int) -> Continuation:
        """Return the coordinates of new tokens, which follow from the prompt alone."""
        # The digit of a cell stands one row below the carry and the product that follow it.
        return PlannedContinuation(self.annotate, prompt, max_new_tokens, {"row": 1})

    def target_lengths(self, problems: Problems) -> Tensor:
        """Return the number of tokens after `=`, int64 (B,)."""
        first, second = problems.lengths_BN[:, 0], problems.lengths_BN[:, 1]
        return (CELL * first + 2) * second + 1 + self.signed

    def _target_piece(self, problems: Problems, answer: Answer) -> Piece:
        cells = write_cells(problems, self.first_carry, self.first_product)
        if not self.signed:
            return cells
        sign_B1 = self.signs(problems.is_negative_BN[:, 0] != problems.is_negative_BN[:, 1])
        return Piece(torch.cat([sign_B1, cells.ids_BW], dim=1), cells.widths() + 1)

    def _annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        parts = self._parts(ids_BT)
        index, after_equals = parts.index, parts.after_equals
        operator_index, equals_index = parts.operator_index, parts.equals_index
        # The prompt.
        is_second = index > operator_index
        spacing = self._spacing
        place = torch.where(is_second, EVERYWHERE, spacing * (index - parts.begin + 1))
        row = torch.where(is_second, spacing * (index - operator_index - 1) + 1, EVERYWHERE)
        field = torch.where(is_second, Field.OPERAND + 1, int(Field.OPERAND)).to(torch.uint8)
        for tensor in (place, row):
            tensor.masked_fill_(parts.is_sign, ANCHOR)
        for tensor, value in ((place, NO_PLACE), (row, NO_PLACE), (field, Field.OPERATOR)):
            tensor.masked_fill_(parts.is_operator, int(value))
        for tensor, value in ((place, ANCHOR), (row, ANCHOR), (field, Field.EQUALS)):
            tensor.masked_fill_(parts.is_equals, int(value))
        # The cells. The end token stands where the first carry of another row would.
        before = equals_index + parts.num_signs
        cells = CellIndex.of((index - before - 1).clamp(min=0), *parts.lengths)
        shift = cells.is_digit.int()
        place = torch.where(after_equals, spacing * cells.column - shift, place)
        row = torch.where(after_equals, spacing * cells.row + shift, row)
        work_field = torch.where(cells.is_answer, int(Field.ANSWER), int(Field.SCRATCH))
        field = torch.where(after_equals, work_field.to(torch.uint8), field)
        is_sign = after_equals & (index <= before)
        for tensor, value in ((place, NO_PLACE), (row, NO_PLACE), (field, Field.ANSWER)):
            tensor.masked_fill_(is_sign, int(value))
        step = None if self.shared is None else torch.ones_like(ids_BT)
        parts.mark_ends(field, place, row, *([] if step is None else [step]))
        return AnnotatedTokens(
            ids_BT.int(), place.int(), field, parts.target, row=row.int(), step=step
        )

    def _read_work(self, operation: str, lengths: list[int], tokens: list[int]) -> str | None:
        is_negative = False
        if self.signed:
            if not tokens or tokens[0] not in (self.plus_id, self.minus_id):
                return None
            is_negative, tokens = tokens[0] == self.minus_id, tokens[1:]
        text = read_cells(tokens, lengths, self.first_carry, self.first_product)
        return f"-{text}" if is_negative and text not in (None, "0") else text
