"""Exact arithmetic on digit tensors, least significant digit first.

No Python loop over problems or columns: carries are found by looking back to the nearest
column that decides them.
"""

import torch
from torch import Tensor


def add(a_BW: Tensor, b_BW: Tensor) -> tuple[Tensor, Tensor]:
    """Sums of two digit tensors of equal shape, and the carry into every column.

    Returns `(sums, carries)`, uint8 of shape (B, W + 1); `carries[:, p]` is the carry into column p.

    A column total of 10 or more makes a carry, 8 or less stops one, and 9 passes on whatever
    comes from below. So the carry out of a column is decided by the nearest column at or below
    it whose total is not 9 — a running maximum over column numbers finds that column.
    """
    if a_BW.shape != b_BW.shape:
        raise ValueError(f"shapes differ: {tuple(a_BW.shape)} and {tuple(b_BW.shape)}")
    batch, width = a_BW.shape
    totals = a_BW + b_BW
    columns = torch.arange(width, dtype=torch.int32, device=a_BW.device)
    deciding = torch.where(totals != 9, columns, -1).cummax(dim=1).values
    decided = totals.gather(1, deciding.clamp(min=0).long()) >= 10
    carries = totals.new_zeros(batch, width + 1)
    carries[:, 1:] = decided & (deciding >= 0)
    sums = torch.nn.functional.pad(totals, (0, 1)) + carries
    return torch.where(sums >= 10, sums - 10, sums), carries


def longest_chain(carries_BW: Tensor) -> Tensor:
    """int64 (B,): the longest run of adjacent columns with a carry into each."""
    columns = torch.arange(carries_BW.shape[1], device=carries_BW.device)
    last_without = torch.where(carries_BW == 0, columns, -1).cummax(dim=1).values
    return (columns - last_without).amax(dim=1)


def draw(lengths: Tensor, width: int, generator: torch.Generator) -> Tensor:
    """Uniform digits for numbers of the given lengths: uint8 of shape lengths.shape + (width,).

    The leading digit is not 0 unless the number has one digit only; beyond the length all is 0.
    """
    shape = (*lengths.shape, width)
    device = lengths.device
    digits = torch.randint(0, 10, shape, dtype=torch.uint8, generator=generator, device=device)
    leading = torch.randint(
        1, 10, (*lengths.shape, 1), dtype=torch.uint8, generator=generator, device=device
    )
    columns = torch.arange(width, device=device)
    last = (lengths - 1).unsqueeze(-1)
    digits = torch.where((columns == last) & (last > 0), leading, digits)
    return digits * (columns <= last)
