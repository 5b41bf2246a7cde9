"""Exact arithmetic on digit tensors of any length, least significant digit first.

Numbers are held as (B, W). Calculations go from column to column with all problems at once, as a
person does on paper: there is no loop over problems, and a column of thousands of problems is one
fast operation on bytes. Columns are made contiguous first, so inside this module tensors are
(W, B).
"""

from dataclasses import dataclass

import torch
from torch import Tensor


def add(a_BW: Tensor, b_BW: Tensor) -> tuple[Tensor, Tensor]:
    """Sums of two digit tensors of equal shape, and the carry into every column.

    Returns `(sums, carries)`, uint8 of shape (B, W + 1); `carries[:, p]` is the carry into column p.
    """
    if a_BW.shape != b_BW.shape:
        raise ValueError(f"shapes differ: {tuple(a_BW.shape)} and {tuple(b_BW.shape)}")
    totals = (a_BW + b_BW).t().contiguous()
    width, batch = totals.shape
    carries = totals.new_zeros(width + 1, batch)
    sums = torch.empty_like(carries)
    for column in range(width):
        total = totals[column].add_(carries[column])
        torch.ge(total, 10, out=carries[column + 1])
        torch.sub(total, carries[column + 1], alpha=10, out=sums[column])
    sums[width] = carries[width]
    return sums.t(), carries.t()


def subtract_modulo(a_BW: Tensor, b_BW: Tensor) -> tuple[Tensor, Tensor]:
    """`(a - b) mod 10**W`, and whether a < b: uint8 (B, W) and bool (B,)."""
    if a_BW.shape != b_BW.shape:
        raise ValueError(f"shapes differ: {tuple(a_BW.shape)} and {tuple(b_BW.shape)}")
    differences, borrow = _subtract(a_BW.t().contiguous(), b_BW.t().contiguous())
    return differences.t(), borrow


def subtract(a_BW: Tensor, b_BW: Tensor) -> tuple[Tensor, Tensor]:
    """`|a - b|`, and whether a < b: uint8 (B, W) and bool (B,)."""
    difference, negative = subtract_modulo(a_BW, b_BW)
    if not negative.any():
        return difference, negative
    opposite, _ = subtract_modulo(b_BW, a_BW)
    return torch.where(negative.unsqueeze(1), opposite, difference), negative


def column_totals(a_BV: Tensor, b_BW: Tensor) -> Tensor:
    """Sums of the digit products that fall into each column of a product: int32 (B, V + W).

    Exact for numbers of up to 26 million digits; beyond, a total does not fit.
    """
    a, b = (digits.t().to(torch.int32).contiguous() for digits in (a_BV, b_BW))
    if len(a) < len(b):
        a, b = b, a
    totals = a.new_zeros(len(a) + len(b), a.shape[1])
    for column in range(len(b)):
        totals[column : column + len(a)].addcmul_(a, b[column])
    return totals.t()


def settle(totals_BW: Tensor) -> tuple[Tensor, Tensor]:
    """Carry column totals upwards: digits, uint8 (B, W), and the carry out of every column, int32."""
    totals = totals_BW.t().contiguous()
    digits = torch.empty(totals.shape, dtype=torch.uint8, device=totals.device)
    carries = torch.empty_like(totals)
    carry = torch.zeros_like(totals[0])
    for column in range(len(totals)):
        total = totals[column].add_(carry)
        carry = torch.div(total, 10, rounding_mode="floor", out=carries[column])
        digits[column] = total - 10 * carry
    return digits.t(), carries.t()


def multiply(a_BV: Tensor, b_BW: Tensor) -> Tensor:
    """Products: uint8 (B, V + W)."""
    return settle(column_totals(a_BV, b_BW))[0]


@dataclass(frozen=True)
class LongDivision:
    """The course of a long division, from the dividend's top columns down.

    The first step brings down as many digits as the shortest divisor has, each further one the
    next digit: S steps.
    """

    brought_down_SBX: Tensor
    """uint8 (S, B, W + 1): what is left after each step's digit has been brought down."""
    quotient_SB: Tensor
    """uint8: how often the divisor goes into it, the quotient's digits from the top."""
    multiples_KBX: Tensor
    """uint8 (11, B, W + 1): 0, 1, … 10 times the divisor."""
    remainder_BW: Tensor
    """uint8: what is left at the end."""


def divide(a_BV: Tensor, b_BW: Tensor) -> LongDivision:
    """Floor division of a by b, digit by digit. Division by zero gives nonsense, no error."""
    a, b = a_BV.t().contiguous(), b_BW.t().contiguous()
    width, batch = b.shape
    # Fewer digits than the shortest divisor has it cannot go into.
    shortest = int(significant(b_BW).min()) if batch else 1
    skipped = min(shortest, len(a)) - 1
    steps = len(a) - skipped
    products = _multiples(b)
    left = b.new_zeros(width + 1, batch)
    left[:skipped] = a[len(a) - skipped :]
    brought_down = b.new_empty(steps, width + 1, batch)
    quotient = b.new_empty(steps, batch)
    for step in range(steps):
        brought_down[step, 0] = a[steps - 1 - step]
        brought_down[step, 1:] = left[:-1]
        too_large = _borrow(brought_down[step], products[1:10])
        torch.sub(9, too_large.sum(dim=0, dtype=torch.uint8), out=quotient[step])
        chosen = quotient[step].long().expand(1, width + 1, batch)
        left, _ = _subtract(brought_down[step], products.gather(0, chosen)[0])
    return LongDivision(
        brought_down.transpose(1, 2), quotient, products.transpose(1, 2), left[:width].t()
    )


def _multiples(b_WB: Tensor) -> Tensor:
    """0, 1, … 10 times every number: uint8 (11, W + 1, B)."""
    width, batch = b_WB.shape
    products = b_WB.new_zeros(11, width + 1, batch)
    products[1, :width] = b_WB
    for known in (1, 2, 4, 8):
        # From 1 … k times the number to k + 1 … 2k times, all at once.
        new = products[known + 1 : 2 * known + 1]
        carry = torch.zeros(len(new), batch, dtype=torch.uint8, device=b_WB.device)
        for column in range(width + 1):
            total = products[1 : len(new) + 1, column] + products[known, column] + carry
            torch.ge(total, 10, out=carry)
            torch.sub(total, carry, alpha=10, out=new[:, column])
    return products


# Comparisons below are written to bytes: that is ten times as fast as to truth values.


def _borrow(a_WB: Tensor, b_KWB: Tensor) -> Tensor:
    """Whether a < b, 0 or 1, for K numbers b beside every a: uint8 (K, B)."""
    borrow = b_KWB.new_zeros(b_KWB.shape[0], b_KWB.shape[2])
    for column in range(len(a_WB)):
        torch.lt(a_WB[column], b_KWB[:, column] + borrow, out=borrow)
    return borrow


def _subtract(a_WB: Tensor, b_WB: Tensor) -> tuple[Tensor, Tensor]:
    """`(a - b) mod 10**W`, and whether a < b: uint8 (W, B) and bool (B,)."""
    differences = torch.empty_like(a_WB)
    borrow = torch.zeros_like(a_WB[0])
    for column in range(len(a_WB)):
        # Ten is lent in advance, so that bytes do not fall below 0, and taken back where not needed.
        lent = a_WB[column] + 10 - b_WB[column] - borrow
        torch.lt(lent, 10, out=borrow)
        torch.add(lent - 10, borrow, alpha=10, out=differences[column])
    return differences, borrow.view(torch.bool)


def significant(digits: Tensor) -> Tensor:
    """int64 of shape (...): how many digits numbers (..., W) have without leading zeros; 1 for 0."""
    # Columns first and contiguous: then every step is one fast operation on bytes.
    present = digits.movedim(-1, 0).contiguous().clamp(max=1)
    small = torch.uint8 if len(present) < 256 else torch.int32
    columns = torch.arange(1, len(present) + 1, dtype=small, device=digits.device)
    columns = columns.view(-1, *[1] * (present.dim() - 1))
    return (columns * present).amax(dim=0).clamp(min=1).long()


def longest_chain(carries_BW: Tensor) -> Tensor:
    """int64 (B,): the longest run of adjacent columns with a carry into each."""
    run = longest = torch.zeros(len(carries_BW), dtype=torch.int32, device=carries_BW.device)
    for carry in carries_BW.t().contiguous():
        run = (run + 1) * carry
        longest = torch.maximum(longest, run)
    return longest.long()


def draw(
    lengths: Tensor, width: int, generator: torch.Generator, nonzero: Tensor | None = None
) -> Tensor:
    """Uniform digits for numbers of the given lengths: uint8 of shape lengths.shape + (width,).

    The leading digit is not 0 unless the number has one digit only, and not even then where
    `nonzero` (bool, shaped like lengths) says so; beyond the length all is 0.
    """
    shape = (*lengths.shape, width)
    device = lengths.device
    digits = torch.randint(0, 10, shape, dtype=torch.uint8, generator=generator, device=device)
    leading = torch.randint(
        1, 10, (*lengths.shape, 1), dtype=torch.uint8, generator=generator, device=device
    )
    if not lengths.numel():
        return digits
    may_not_be_zero = lengths > 1 if nonzero is None else (lengths > 1) | nonzero
    last = (lengths - 1).clamp(min=0).unsqueeze(-1)
    leading = torch.where(may_not_be_zero.unsqueeze(-1), leading, digits.gather(-1, last))
    digits.scatter_(-1, last, leading)
    if not bool((lengths == width).all()):
        columns = torch.arange(width, dtype=torch.int32, device=device)
        digits *= columns < lengths.int().unsqueeze(-1)
    return digits


def of_values(values: Tensor, width: int) -> Tensor:
    """Digits of non-negative int64 numbers: uint8 of shape values.shape + (width,)."""
    columns = []
    for _ in range(width):
        higher = torch.div(values, 10, rounding_mode="floor")
        columns.append((values - 10 * higher).to(torch.uint8))
        values = higher
    return torch.stack(columns, dim=-1)
