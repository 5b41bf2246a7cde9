"""Exact arithmetic on digit tensors of any length, least significant digit first.

Numbers are tensors (B, W). Calculations go from column to column, as on paper, for all problems at
once: there is no loop over problems, and a column of thousands of problems is one fast operation on
bytes. Columns are made contiguous first, so the tensors inside this module are (W, B).
"""

from dataclasses import dataclass

import torch
from torch import Tensor


def add(a_BW: Tensor, b_BW: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sums of two digit tensors of equal shape, and the carry into every column.

    Both are uint8 (B, W + 1); `carries[:, w]` is the carry into column w.
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
    """Return `(a - b) mod 10**W`, uint8 (B, W), and whether a < b, bool (B,)."""
    if a_BW.shape != b_BW.shape:
        raise ValueError(f"shapes differ: {tuple(a_BW.shape)} and {tuple(b_BW.shape)}")
    differences, borrow = _subtract(a_BW.t().contiguous(), b_BW.t().contiguous())
    return differences.t(), borrow


def less_one_where(is_less_B: Tensor, a_BW: Tensor) -> Tensor:
    """Return `a - 1` where `is_less_B` and `a` elsewhere, modulo 10**W, uint8 (B, W)."""
    one_BW = torch.zeros_like(a_BW)
    one_BW[:, 0] = is_less_B
    return subtract_modulo(a_BW, one_BW)[0]


def tens_complement(a_BW: Tensor, negative_B: Tensor) -> tuple[Tensor, Tensor]:
    """Return numbers with those below 0 in ten's complement, uint8 (B, W), and their widths, int64 (B,).

    A number -a has the digits of 10^W - a, and a number from 0 up is kept. The width is the smallest w
    for which the number lies in -10^w … 10^w - 1, and at least 1; the digits after it are 9 or 0.
    """
    # Each digit of -a is the nine's complement of that of a - 1.
    mirrored_BW = less_one_where(negative_B, a_BW)
    negative_B1 = negative_B.unsqueeze(1)
    return torch.where(negative_B1, 9 - mirrored_BW, mirrored_BW), significant(mirrored_BW)


def subtract(a_BW: Tensor, b_BW: Tensor) -> tuple[Tensor, Tensor]:
    """Return `|a - b|`, uint8 (B, W), and whether a < b, bool (B,)."""
    difference, negative = subtract_modulo(a_BW, b_BW)
    if not negative.any():
        return difference, negative
    opposite, _ = subtract_modulo(b_BW, a_BW)
    return torch.where(negative.unsqueeze(1), opposite, difference), negative


def column_totals(a_BW: Tensor, b_BW: Tensor) -> Tensor:
    """Return the sum of the digit products that belong to each column of a product, int32.

    The factors may differ in width; the result is as wide as both together. It is exact for numbers
    of up to 26 million digits; the totals of longer ones overflow.
    """
    a, b = (digits.t().to(torch.int32).contiguous() for digits in (a_BW, b_BW))
    if len(a) < len(b):
        a, b = b, a
    totals = a.new_zeros(len(a) + len(b), a.shape[1])
    for column in range(len(b)):
        totals[column : column + len(a)].addcmul_(a, b[column])
    return totals.t()


def propagate_carries(totals_BW: Tensor) -> tuple[Tensor, Tensor]:
    """Turn column totals, int32 (B, W), into digits, uint8, and the carry out of every column, int32."""
    totals = totals_BW.t().contiguous()
    digits = torch.empty(totals.shape, dtype=torch.uint8, device=totals.device)
    carries = torch.empty_like(totals)
    carry = torch.zeros_like(totals[0])
    for column in range(len(totals)):
        total = totals[column].add_(carry)
        carry = torch.div(total, 10, rounding_mode="floor", out=carries[column])
        digits[column] = total - 10 * carry
    return digits.t(), carries.t()


def multiply(a_BW: Tensor, b_BW: Tensor) -> Tensor:
    """Return the products, uint8, as wide as both factors together."""
    return propagate_carries(column_totals(a_BW, b_BW))[0]


@dataclass(frozen=True)
class LongDivision:
    """All intermediate results of a long division, from the dividend's highest column down.

    The first of S steps brings down as many digits as the shortest divisor in the batch has, and
    each further step brings down one digit.
    """

    brought_down_SBW: Tensor
    """The remainder of each step after its digit has been brought down, uint8, one wider than the divisor."""
    quotient_SB: Tensor
    """Digits of the quotient, most significant first, uint8."""
    multiples: Tensor
    """0, 1, … 10 times the divisor, uint8 (11, B, W), one wider than the divisor."""
    remainder_BW: Tensor
    """The final remainder, uint8, as wide as the divisor."""


def divide(a_BW: Tensor, b_BW: Tensor) -> LongDivision:
    """Divide a by b, digit by digit; they may differ in width. Results of division by zero mean nothing."""
    a, b = a_BW.t().contiguous(), b_BW.t().contiguous()
    width, batch = b.shape
    # A number with fewer digits than the shortest divisor is smaller than it.
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
        factor = quotient[step].long().expand(1, width + 1, batch)
        left, _ = _subtract(brought_down[step], products.gather(0, factor)[0])
    return LongDivision(
        brought_down.transpose(1, 2), quotient, products.transpose(1, 2), left[:width].t()
    )


def _multiples(b_WB: Tensor) -> Tensor:
    """Return 0, 1, … 10 times every number, uint8 (11, W + 1, B)."""
    width, batch = b_WB.shape
    products = b_WB.new_zeros(11, width + 1, batch)
    products[1, :width] = b_WB
    for known in (1, 2, 4, 8):
        # From 1, … n times the number follow n + 1, … 2n times the number at once.
        new = products[known + 1 : 2 * known + 1]
        carry = torch.zeros(len(new), batch, dtype=torch.uint8, device=b_WB.device)
        for column in range(width + 1):
            total = products[1 : len(new) + 1, column] + products[known, column] + carry
            torch.ge(total, 10, out=carry)
            torch.sub(total, carry, alpha=10, out=new[:, column])
    return products


# Comparisons write to bytes, which is ten times as fast as writing to bool.


def _borrow(a_WB: Tensor, b_NWB: Tensor) -> Tensor:
    """Return whether a < b, 0 or 1, for N numbers b per number a, uint8 (N, B)."""
    borrow = b_NWB.new_zeros(b_NWB.shape[0], b_NWB.shape[2])
    for column in range(len(a_WB)):
        torch.lt(a_WB[column], b_NWB[:, column] + borrow, out=borrow)
    return borrow


def _subtract(a_WB: Tensor, b_WB: Tensor) -> tuple[Tensor, Tensor]:
    """Return `(a - b) mod 10**W`, uint8 (W, B), and whether a < b, bool (B,)."""
    differences = torch.empty_like(a_WB)
    borrow = torch.zeros_like(a_WB[0])
    for column in range(len(a_WB)):
        # Borrow ten in advance, so that bytes stay above 0, and give it back where it is not needed.
        lent = a_WB[column] + 10 - b_WB[column] - borrow
        torch.lt(lent, 10, out=borrow)
        torch.add(lent - 10, borrow, alpha=10, out=differences[column])
    return differences, borrow.view(torch.bool)


def significant(digits: Tensor) -> Tensor:
    """Return the number of digits without leading zeros of numbers (…, W), int64 (…); 1 for 0."""
    # Columns first and contiguous make every step one fast operation on bytes.
    present = digits.movedim(-1, 0).contiguous().clamp(max=1)
    small = torch.uint8 if len(present) < 256 else torch.int32
    columns = torch.arange(1, len(present) + 1, dtype=small, device=digits.device)
    columns = columns.view(-1, *[1] * (present.dim() - 1))
    return (columns * present).amax(dim=0).clamp(min=1).long()


def longest_chain(carries_BW: Tensor) -> Tensor:
    """Return the largest number of adjacent columns that receive a carry, int64 (B,)."""
    run = longest = torch.zeros(len(carries_BW), dtype=torch.int32, device=carries_BW.device)
    for carry in carries_BW.t().contiguous():
        run = (run + 1) * carry
        longest = torch.maximum(longest, run)
    return longest.long()


def draw(
    lengths: Tensor,
    width: int,
    generator: torch.Generator,
    nonzero: Tensor | None = None,
    base: int = 10,
) -> Tensor:
    """Draw uniform digits of numbers with given lengths, uint8 of shape lengths.shape + (width,).

    Args:
        lengths: numbers of digits, int64 of any shape; digits after the length are 0.
        width: number of columns.
        generator: source of randomness.
        nonzero: which numbers must not be 0, bool like `lengths`; None means that all may be 0. Only
            numbers of one digit can be 0, because longer ones do not begin with 0.
        base: one more than the largest digit.
    """
    shape = (*lengths.shape, width)
    device = lengths.device
    digits = torch.randint(0, base, shape, dtype=torch.uint8, generator=generator, device=device)
    leading = torch.randint(
        1, base, (*lengths.shape, 1), dtype=torch.uint8, generator=generator, device=device
    )
    if not lengths.numel():
        return digits
    leads_with_nonzero = lengths > 1 if nonzero is None else (lengths > 1) | nonzero
    last = (lengths - 1).clamp(min=0).unsqueeze(-1)
    leading = torch.where(leads_with_nonzero.unsqueeze(-1), leading, digits.gather(-1, last))
    digits.scatter_(-1, last, leading)
    if not bool((lengths == width).all()):
        columns = torch.arange(width, dtype=torch.int32, device=device)
        digits *= columns < lengths.int().unsqueeze(-1)
    return digits


def of_values(values: Tensor, width: int) -> Tensor:
    """Return the digits of non-negative int64 numbers, uint8 of shape values.shape + (width,)."""
    columns = []
    for _ in range(width):
        higher = torch.div(values, 10, rounding_mode="floor")
        columns.append((values - 10 * higher).to(torch.uint8))
        values = higher
    return torch.stack(columns, dim=-1)
