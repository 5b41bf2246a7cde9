"""Cells of a long multiplication, the notation that `long-multiplication` and `worked` share.

Each digit of the multiplier makes a row, and in it each digit of the multiplicand makes a cell: the
carry that comes in, the product of the two digits, and the digit that is written down. A row ends in
its last carry, written as a digit. So 23 × 45 has the rows

    ⁰[15]5¹[10]1¹1      3 × 5 = 15: write 5, carry 1;  1 + 2 × 5 = 11: write 1, carry 1;  write 1
    ⁰[12]3¹[8]0¹1       likewise with 4, adding 11, which is the row above without its first digit

The first digits of all rows and then the rest of the last row are the product: 1035.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.formats.calculation import is_digit, number_text
from abacist.formats.pieces import Piece, select
from abacist.tasks import digits
from abacist.tasks.problems import Problems

PRODUCTS = tuple(sorted({a * b for a in range(10) for b in range(10)}))
"""The 37 numbers that are a product of two digits."""
PRODUCT_TOKENS = tuple(f"[{product}]" for product in PRODUCTS)
CELL = 3
"""Tokens of a cell: carry, product, digit."""


@dataclass(frozen=True)
class CellIndex:
    """Which cell each token after `=` belongs to, (B, T) each; meaningless for other tokens."""

    row: Tensor
    """int32, starting at 1."""
    column: Tensor
    """int32, starting at 1; one more than the multiplicand has digits for a row's last carry."""
    is_digit: Tensor
    """bool: whether the token is the digit that its cell writes down, not its carry or product."""
    is_answer: Tensor
    """bool: whether that digit is one of the product's."""

    @staticmethod
    def of(after_BT: Tensor, num_columns_B1: Tensor, num_rows_B1: Tensor) -> "CellIndex":
        """Find the cells.

        Args:
            after_BT: int32, the number of tokens between `=` and each token.
            num_columns_B1: int32, digits of the multiplicand.
            num_rows_B1: int32, digits of the multiplier.
        """
        row_width = CELL * num_columns_B1 + 2
        rows_before = torch.div(after_BT, row_width, rounding_mode="floor")
        within = after_BT - rows_before * row_width
        row = rows_before + 1
        column = torch.div(within, CELL, rounding_mode="floor") + 1
        is_digit = (within % CELL == CELL - 1) | (within == row_width - 1)
        is_answer = is_digit & ((column == 1) | (row >= num_rows_B1))
        return CellIndex(row, column, is_digit, is_answer)


def rows_of_products(problems: Problems) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Multiply digit by digit, and yield for each digit of the longest multiplier one row.

    A row is the products of that digit, int32 (B, W + 1), the digits of the row, uint8, and the
    carry out of every column, int32. W is the length of the longest multiplicand.
    """
    lengths_BN = problems.lengths_BN
    width, num_rows = (int(lengths_BN[:, i].max()) if len(problems) else 0 for i in range(2))
    multiplicand_BW, multiplier_BW = (problems.operand(i).digits_BW for i in range(2))
    multiplicand_BX = torch.nn.functional.pad(multiplicand_BW[:, :width], (0, 1)).int()
    above_BX = torch.zeros_like(multiplicand_BX)
    for row in range(num_rows):
        products_BX = multiplicand_BX * multiplier_BW[:, row : row + 1]
        sums_BX, carries_BX = digits.propagate_carries(above_BX + products_BX)
        yield products_BX, sums_BX, carries_BX
        above_BX = torch.nn.functional.pad(sums_BX[:, 1:], (0, 1)).int()


def write_cells(problems: Problems, first_carry: int, first_product: int) -> Piece:
    """Return the cells of all rows of each problem.

    `first_carry` and `first_product` are the ids of the first of ten carries and of PRODUCT_TOKENS.
    """
    first_B, second_B = problems.lengths_BN[:, 0], problems.lengths_BN[:, 1]
    device = first_B.device
    token_of = product_tokens(first_product).to(device)
    rows = []
    for products_BX, sums_BX, carries_BX in rows_of_products(problems):
        carries_in_BX = torch.nn.functional.pad(carries_BX[:, :-1], (1, 0)) + first_carry
        cells = (carries_in_BX.to(torch.uint8), token_of[products_BX.long()], sums_BX)
        rows.append(torch.stack(cells, dim=2))
    ids = torch.stack(rows, dim=1) if rows else problems.digits_BNW.new_zeros(0, 0, 0, CELL)
    column = torch.arange(ids.shape[2], device=device).view(1, 1, -1, 1)
    row = torch.arange(ids.shape[1], device=device).view(1, -1, 1, 1)
    first, second = first_B.view(-1, 1, 1, 1), second_B.view(-1, 1, 1, 1)
    is_written = ((column <= first) & (row < second)).expand(ids.shape).clone()
    # The last cell of a row has no product.
    is_written[..., 1:2] &= column < first
    return select(ids, is_written)


def product_tokens(first_product: int) -> Tensor:
    """Return the token id of every product, uint8 (82,); 0 for numbers that are no product."""
    ids = torch.zeros(PRODUCTS[-1] + 1, dtype=torch.uint8)
    ids[list(PRODUCTS)] = torch.arange(len(PRODUCTS), dtype=torch.uint8) + first_product
    return ids


def read_cells(
    tokens: list[int], lengths: list[int], first_carry: int, first_product: int
) -> str | None:
    """Return the product that the cells of one line write down, or None if they are malformed."""
    num_columns, num_rows = lengths[:2]
    width = CELL * num_columns + 2
    if len(tokens) != width * num_rows:
        return None

    def kind(token: int) -> str:
        if token < first_carry:
            return "d" if is_digit(token) else "?"
        return "c" if token < first_product else "p"

    rows = [tokens[i : i + width] for i in range(0, len(tokens), width)]
    if any("".join(map(kind, row)) != "cpd" * num_columns + "cd" for row in rows):
        return None
    written = [list(filter(is_digit, row)) for row in rows]
    return number_text([row[0] for row in written[:-1]] + written[-1])
