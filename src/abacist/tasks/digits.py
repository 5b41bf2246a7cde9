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
    """The course of a long division, from the dividend's top column down: S = V steps."""

    brought_down_SBX: Tensor
    """uint8 (S, B, W + 1): what is left after each step's digit has been brought down."""
    quotient_SB: Tensor
    """uint8: how often the divisor goes into it, the quotient's digits from the top."""
    remainder_BW: Tensor
    """uint8: what is left at the end."""


def divide(a_BV: Tensor, b_BW: Tensor) -> LongDivision:
    """Floor division of a by b, digit by digit. Division by zero gives nonsense, no error."""
    a, b = a_BV.t().contiguous(), b_BW.t().contiguous()
    width, batch = b.shape
    products = multiples(b_BW, 10).transpose(1, 2).contiguous()
    left = b.new_zeros(width + 1, batch)
    brought_down = b.new_empty(len(a), width + 1, batch)
    quotient = b.new_empty(len(a), batch)
    for step, column in enumerate(reversed(range(len(a)))):
        brought_down[step, 0] = a[column]
        brought_down[step, 1:] = left[:-1]
        fits = ~_borrow(brought_down[step], products[1:])
        torch.sum(fits, dim=0, dtype=torch.uint8, out=quotient[step])
        chosen = quotient[step].long().expand(1, width + 1, batch)
        left, _ = _subtract(brought_down[step], products.gather(0, chosen)[0])
    return LongDivision(brought_down.transpose(1, 2), quotient, left[:width].t())


def multiples(b_BW: Tensor, count: int) -> Tensor:
    """0, 1, … count - 1 times every number: uint8 (count, B, W + 1); count is at most 11."""
    factors = torch.arange(count, dtype=torch.int32, device=b_BW.device)
    totals = torch.nn.functional.pad(b_BW, (0, 1)).int() * factors[:, None, None]
    return settle(totals.flatten(0, 1))[0].reshape(totals.shape)


def _borrow(a_WB: Tensor, b_KWB: Tensor) -> Tensor:
    """Whether a < b, for K numbers b beside every a: bool (K, B)."""
    a, b = a_WB.view(torch.int8), b_KWB.view(torch.int8)
    borrow = torch.zeros(b.shape[0], b.shape[2], dtype=torch.bool, device=b.device)
    for column in range(len(a)):
        borrow = a[column] < b[:, column] + borrow
    return borrow


def _subtract(a_WB: Tensor, b_WB: Tensor) -> tuple[Tensor, Tensor]:
    """`(a - b) mod 10**W`, and whether a < b: uint8 (W, B) and bool (B,)."""
    a, b = a_WB.view(torch.int8), b_WB.view(torch.int8)
    differences = torch.empty_like(a)
    borrow = torch.zeros(a.shape[1], dtype=torch.bool, device=a.device)
    for column in range(len(a)):
        difference = a[column] - b[column] - borrow.to(torch.int8)
        borrow = difference < 0
        torch.add(difference, borrow, alpha=10, out=differences[column])
    return differences.view(torch.uint8), borrow


def significant(digits: Tensor) -> Tensor:
    """int64 of shape (...): how many digits numbers (..., W) have without leading zeros; 1 for 0."""
    columns = torch.arange(1, digits.shape[-1] + 1, dtype=torch.int32, device=digits.device)
    return (columns * (digits > 0)).amax(dim=-1).clamp(min=1).long()


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
    may_not_be_zero = lengths > 1 if nonzero is None else (lengths > 1) | nonzero
    columns = torch.arange(width, device=device)
    last = (lengths - 1).unsqueeze(-1)
    digits = torch.where((columns == last) & may_not_be_zero.unsqueeze(-1), leading, digits)
    return digits * (columns <= last)


def of_values(values: Tensor, width: int) -> Tensor:
    """Digits of non-negative int64 numbers: uint8 of shape values.shape + (width,)."""
    columns = []
    for _ in range(width):
        higher = torch.div(values, 10, rounding_mode="floor")
        columns.append((values - 10 * higher).to(torch.uint8))
        values = higher
    return torch.stack(columns, dim=-1)
