"""Long multiplication, cell by cell: `23*45` is `32*54=⁰[15]5¹[10]1¹1⁰[12]3¹[8]0¹1<end>`.

All numbers are least significant digit first. Behind `=` stands a row for each digit of the second
operand, and in it a cell for each digit of the first. A cell is worked as on paper: the carry that
comes in, the product of the two digits, and what is written down,

    ⁰[15]5      0 + 3 × 5 = 15: write 5, carry 1
    ¹[10]1      1 + 2 × 5 = 11: write 1, carry 1
    ¹1          the last carry is written down as it is: 23 × 5 = 115

    ⁰[12]3      0 + 3 × 4 + 1 = 13, the 1 being the row above without its first digit, 11
    ¹[8]0       1 + 2 × 4 + 1 = 10
    ¹1          so 23 × 4 + 11 = 103

A row's first digit is final, a digit of the product, and so are all digits of the last row: 1035.

Each token follows from at most four others: a product from two digits, a written digit from its
product, the carry, and the digit above; a carry from the product, the carry and the digit that was
written (which tells what stood above). Coordinates bring just these together in one layer of windows
(0, 1) over places and (-1, 0) over rows, which is what makes a proof for all lengths a short list:

* Cell i of row j stands at place 2i and row 2j: its carry and its product.
* The digit it writes is used by cell i - 1 of the row below, so it stands between the two, at place
  2i - 1 and row 2j + 1.
* Digit i of the first operand stands at place 2i, in every row; digit j of the second in every
  place, at row 2j - 1, seen by row j and by the last digit of row j - 1, which must know whether
  there is another row.
"""

import torch
from torch import Tensor

from abacist.formats.annotated import ANCHOR, EVERYWHERE, NO_PLACE, AnnotatedTokens, Field
from abacist.formats.calculation import CalculationFormat
from abacist.formats.config import Layout, LongMultiplicationFormatConfig
from abacist.formats.lines import Piece, once_per_pattern
from abacist.formats.roles import Role, decode
from abacist.tasks import digits
from abacist.tasks.config import ArithmeticConfig, TaskConfig
from abacist.tasks.problems import Answer, Problems
from abacist.vocabulary import DIGITS, Vocabulary

MULTIPLICAND, MULTIPLIER = "multiplicand", "multiplier"
CARRY, PRODUCT, DIGIT = "carry", "product", "digit"
"""The parts of a calculation, as `roles` names them."""

CARRIES = tuple("⁰¹²³⁴⁵⁶⁷⁸⁹")
PRODUCTS = tuple(sorted({a * b for a in range(10) for b in range(10)}))
"""What two digits can have as their product: 37 numbers."""

_CELL = 3
"""Tokens of a cell: carry, product, digit."""


class LongMultiplicationFormat(CalculationFormat):
    """Writes, annotates and reads multiplications."""

    layout: Layout = "shape"
    enumeration = "long-multiplication"

    def __init__(self, config: LongMultiplicationFormatConfig, task: TaskConfig) -> None:
        assert isinstance(task, ArithmeticConfig)
        self.config = config
        start = ("<start>",) if config.start_token else ()
        # Carries and products come last, so that all of them can be made alike by one comparison.
        products = tuple(f"[{product}]" for product in PRODUCTS)
        vocabulary = Vocabulary((*DIGITS, "*", "=", "<end>", *start, *CARRIES, *products))
        super().__init__(vocabulary, task.operations, config.start_token)
        self.operator_id = vocabulary.id("*")
        self.first_carry = self.vocabulary.id(CARRIES[0])
        self.first_product = self.vocabulary.id(products[0])
        self.product_ids = torch.zeros(PRODUCTS[-1] + 1, dtype=torch.uint8)
        for rank, product in enumerate(PRODUCTS):
            self.product_ids[product] = self.first_product + rank

    def annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        """Place, row, field and target of every token, from the ids alone.

        What stands behind `=` is annotated from the prompt and the tokens before it.
        """
        lines = once_per_pattern(ids_BT.clamp(max=self.first_carry), self._annotate)
        return AnnotatedTokens(ids_BT.int(), lines.place, lines.field, lines.target, lines.row)

    def read(self, ids_BT: Tensor) -> list[str | None]:
        """The answers of whole lines in the usual notation; None where one is malformed.

        Strict: as many rows as the second operand has digits, as many cells in each as the first
        has, carries, products and digits in their places, and an end token. Only the digits of the
        product are read.
        """
        return [self._read(row) for row in ids_BT.tolist()]

    def roles(self, ids_T: Tensor) -> list[Role]:
        """Return the role of each token of one whole line.

        A digit of the multiplicand has a column and a digit of the multiplier the row that it makes.
        CARRY, PRODUCT and DIGIT have both; column N + 1 of a multiplicand of N digits holds the last
        carry of a row and its digit. Symbols have neither.
        """

        def role(token: int, field: int, place: int, row: int) -> Role:
            if field == Field.OPERAND:
                return Role(MULTIPLICAND, column=place // 2)
            if field == Field.OPERAND + 1:
                return Role(MULTIPLIER, row=(row + 1) // 2)
            if token < len(DIGITS) or token >= self.first_carry:
                part = CARRY if token < self.first_product else PRODUCT
                part = DIGIT if token < len(DIGITS) else part
                return Role(part, column=(place + 1) // 2, row=row // 2)
            return Role(self.vocabulary.tokens[token])

        return decode(self.annotate(ids_T.unsqueeze(0)), role)

    def target_lengths(self, problems: Problems) -> Tensor:
        """int64 (B,): tokens behind `=`."""
        first, second = problems.lengths_BN[:, 0], problems.lengths_BN[:, 1]
        return (_CELL * first + 2) * second + 1

    def _target_piece(self, problems: Problems, answer: Answer) -> Piece:
        """All rows, one after the other."""
        a, b = problems.operand(0).digits_BW, problems.operand(1).digits_BW
        first, second = problems.lengths_BN[:, 0], problems.lengths_BN[:, 1]
        batch, width = a.shape[0], int(first.max()) if len(first) else 0
        num_rows = int(second.max()) if len(second) else 0
        cells = torch.zeros(batch, num_rows, width + 1, _CELL, dtype=torch.uint8, device=a.device)
        multiplicand = torch.nn.functional.pad(a[:, :width], (0, 1)).int()
        product_ids = self.product_ids.to(a.device)
        left = torch.zeros(batch, width + 1, dtype=torch.int32, device=a.device)
        for row in range(num_rows):
            products = multiplicand * b[:, row : row + 1]
            sums, carries = digits.propagate_carries(left + products)
            cells[:, row, 1:, 0] = carries[:, :-1]
            cells[:, row, :, 1] = product_ids[products.long()]
            cells[:, row, :, 2] = sums
            left = torch.nn.functional.pad(sums[:, 1:], (0, 1)).int()
        cells[..., 0] += self.first_carry
        # A row's last cell has no product; its digit follows the carry.
        row_width = (_CELL * first + 2).unsqueeze(1)
        widths = row_width.squeeze(1) * second
        behind = torch.arange(int(widths.max()) if batch else 0, device=a.device)
        rows, within = behind // row_width, behind % row_width
        within = torch.where(within == row_width - 1, within + 1, within)
        flat = rows * (width + 1) * _CELL + within
        flat = flat.clamp(max=max(0, num_rows * (width + 1) * _CELL - 1))
        return Piece(cells.flatten(1).gather(1, flat), widths)

    def _annotate(self, ids: Tensor) -> AnnotatedTokens:
        parts = self._parts(ids)
        index, answering = parts.index, parts.answering
        operator_at, equals_at = parts.operator_at, parts.equals_at
        begin = 0 if self.start_id is None else 1
        num_cells = (operator_at - begin).clamp(min=0)
        num_rows = equals_at - operator_at - 1
        # The prompt.
        second = index > operator_at
        place = torch.where(second, EVERYWHERE, 2 * (index - begin + 1))
        row = torch.where(second, 2 * (index - operator_at) - 1, EVERYWHERE)
        field = torch.where(second, Field.OPERAND + 1, int(Field.OPERAND)).to(torch.uint8)
        for tensor, value in ((place, NO_PLACE), (row, NO_PLACE), (field, Field.OPERATOR)):
            tensor.masked_fill_(parts.is_operator, int(value))
        for tensor, value in ((place, ANCHOR), (row, ANCHOR), (field, Field.EQUALS)):
            tensor.masked_fill_(parts.is_equals, int(value))
        # The cells.
        row_width = _CELL * num_cells + 2
        behind = (index - equals_at - 1).clamp(min=0)
        work_row = torch.div(behind, row_width, rounding_mode="floor")
        within = behind - work_row * row_width
        work_row = work_row + 1
        cell = torch.div(within, _CELL, rounding_mode="floor") + 1
        is_digit = (within % _CELL == 2) | (within == row_width - 1)
        place = torch.where(answering, 2 * cell - is_digit.int(), place)
        row = torch.where(answering, 2 * work_row + is_digit.int(), row)
        final = is_digit & ((cell == 1) | (work_row >= num_rows))
        work_field = torch.where(final, int(Field.ANSWER), int(Field.SCRATCH)).to(torch.uint8)
        field = torch.where(answering, work_field, field)
        # The end token stands where the first carry of another row would.
        parts.mark_ends(field, place, row)
        return AnnotatedTokens(ids.int(), place.int(), field, parts.target, row=row.int())

    def _read(self, ids: list[int]) -> str | None:
        if self.equals_id not in ids or self.operator_id not in ids:
            return None
        begin = 0 if self.start_id is None else 1
        operator_at, equals_at = ids.index(self.operator_id), ids.index(self.equals_id)
        num_cells, num_rows = operator_at - begin, equals_at - operator_at - 1
        tokens = ids[equals_at + 1 :]
        if self.end_id not in tokens or num_rows < 1:
            return None
        tokens = tokens[: tokens.index(self.end_id)]
        width = _CELL * num_cells + 2
        if len(tokens) != width * num_rows:
            return None
        rows = []
        for begin in range(0, len(tokens), width):
            row = tokens[begin : begin + width]
            kinds = "".join(map(self._kind, row))
            if kinds != "cpd" * num_cells + "cd":
                return None
            rows.append([token for token in row if token < len(DIGITS)])
        product = [row[0] for row in rows[:-1]] + rows[-1]
        return self.vocabulary.text(reversed(product)).lstrip("0") or "0"

    def _kind(self, token: int) -> str:
        """`d` a digit, `c` a carry, `p` a product, `?` anything else."""
        if token < self.first_carry:
            return "d" if token < len(DIGITS) else "?"
        return "c" if token < self.first_product else "p"
