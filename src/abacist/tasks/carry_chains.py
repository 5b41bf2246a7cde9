"""Sums whose longest chain of carries has a chosen length.

Random digits almost never carry far: a chain of k columns comes about once in 2^k sums, so that
a model can be wrong on all long chains and hardly lose a point. Here the length is chosen first.
One stretch of columns is made to carry from its first to its last; all other columns are drawn
freely, as long as no longer stretch comes about.
"""

from functools import cache
from itertools import product

import torch
from torch import Tensor

_FREE = 2
"""Neither a carry out of the column nor none is demanded."""


def draw(lengths_B2: Tensor, chain_B: Tensor, generator: torch.Generator) -> Tensor:
    """Digits uint8 (B, 2, W) of sums with exactly these longest chains, 0 … the longer length.

    A chain counts the columns in a row that receive a carry: 99+1 has one of 2. Sums of one
    length and chain are not all equally likely.
    """
    shorter, longer = lengths_B2.amin(dim=1), lengths_B2.amax(dim=1)
    if bool((chain_B > longer).any()):
        raise ValueError("a chain of carries cannot be longer than the longer operand")
    batch, width = len(lengths_B2), int(longer.max()) if len(longer) else 1
    # The stretch begins where both operands have a digit, and ends at the last column at most.
    choices = torch.minimum(shorter - 1, longer - chain_B) + 1
    begin = (torch.rand(batch, generator=generator, dtype=torch.float64) * choices).long()
    begin = torch.where(chain_B > 0, begin, -width)
    pairs, counts = _tables()
    fortune = torch.rand(width, batch, generator=generator, dtype=torch.float64)
    digits = torch.zeros(batch, 2, width, dtype=torch.uint8)
    carry = torch.zeros(batch, dtype=torch.int64)
    run = torch.zeros_like(carry)
    for column in range(width):
        run = (run + 1) * carry
        inside = (column >= begin) & (column < begin + chain_B)
        # Before the stretch nothing may carry into it, behind it nothing may carry on.
        stops = (run >= chain_B) | (column == begin - 1)
        wanted = torch.where(inside, 1, torch.where(stops, 0, _FREE))
        has = (column < lengths_B2).long()
        leads = ((column == lengths_B2 - 1) & (lengths_B2 > 1)).long()
        case = has[:, 0]
        for bit in (has[:, 1], leads[:, 0], leads[:, 1], carry):
            case = 2 * case + bit
        case = 3 * case + wanted
        row = (fortune[column] * counts[case]).long()
        drawn = pairs[case, row]
        digits[:, :, column] = drawn
        carry = (drawn.sum(dim=1) + carry >= 10).long()
    return digits


@cache
def _tables() -> tuple[Tensor, Tensor]:
    """All pairs of digits that may stand in a column, uint8 (96, 100, 2), and how many they are.

    By: first operand has a digit here, second has, first leads, second leads, carry in, and
    carry out wanted (0, 1 or free).
    """
    pairs = torch.zeros(96, 100, 2, dtype=torch.uint8)
    counts = torch.zeros(96, dtype=torch.int64)
    for case, (has_a, has_b, leads_a, leads_b, carry, wanted) in enumerate(
        product((0, 1), (0, 1), (0, 1), (0, 1), (0, 1), (0, 1, _FREE))
    ):
        allowed = [
            (a, b)
            for a in (range(leads_a, 10) if has_a else (0,))
            for b in (range(leads_b, 10) if has_b else (0,))
            if wanted in (_FREE, int(a + b + carry >= 10))
        ]
        counts[case] = len(allowed)
        if allowed:
            pairs[case, : len(allowed)] = torch.tensor(allowed, dtype=torch.uint8)
    return pairs, counts
