"""Sums whose longest carry chain has a given length.

Uniformly random digits almost never carry far: a chain of k columns occurs about once in 2^k sums,
so a model can be wrong on all long chains and hardly lose a point. This module fixes the length
first. One stretch of columns carries from its first column to its last; the digits of all other
columns are drawn at random, without creating a longer chain.
"""

from functools import cache
from itertools import product

import torch
from torch import Tensor

_FREE = 2
"""Code for a column that may or may not carry."""


def draw(lengths_B2: Tensor, chain_B: Tensor, generator: torch.Generator) -> Tensor:
    """Draw digits, uint8 (B, 2, W), of sums whose longest carry chains have exactly these lengths.

    The length of a chain is the number of adjacent columns that receive a carry: 99+1 has a chain
    of 2. Sums with the same lengths and chain are not all equally likely.

    Args:
        lengths_B2: lengths of both operands, int64.
        chain_B: lengths of the chains, int64, from 0 to the length of the longer operand.
        generator: source of randomness.
    """
    shorter, longer = lengths_B2.amin(dim=1), lengths_B2.amax(dim=1)
    if bool((chain_B > longer).any()):
        raise ValueError("a carry chain cannot be longer than the longer operand")
    batch, width = len(lengths_B2), int(longer.max()) if len(longer) else 1
    # The stretch begins where both operands have a digit, and ends within the longer operand.
    choices = torch.minimum(shorter - 1, longer - chain_B) + 1
    begin = (torch.rand(batch, generator=generator, dtype=torch.float64) * choices).long()
    begin = torch.where(chain_B > 0, begin, -width)
    pairs, counts = _tables()
    random = torch.rand(width, batch, generator=generator, dtype=torch.float64)
    digits = torch.zeros(batch, 2, width, dtype=torch.uint8)
    carry = torch.zeros(batch, dtype=torch.int64)
    run = torch.zeros_like(carry)
    for column in range(width):
        run = (run + 1) * carry
        inside = (column >= begin) & (column < begin + chain_B)
        # The column before the stretch must not carry into it, and the stretch must end in time.
        stops = (run >= chain_B) | (column == begin - 1)
        carry_out = torch.where(inside, 1, torch.where(stops, 0, _FREE))
        has = (column < lengths_B2).long()
        leads = ((column == lengths_B2 - 1) & (lengths_B2 > 1)).long()
        case = has[:, 0]
        for bit in (has[:, 1], leads[:, 0], leads[:, 1], carry):
            case = 2 * case + bit
        case = 3 * case + carry_out
        row = (random[column] * counts[case]).long()
        pair = pairs[case, row]
        digits[:, :, column] = pair
        carry = (pair.sum(dim=1) + carry >= 10).long()
    return digits


@cache
def _tables() -> tuple[Tensor, Tensor]:
    """Return the pairs of digits allowed in a column, uint8 (96, 100, 2), and their numbers, int64 (96,).

    The 96 cases combine: whether the first operand has a digit in the column, whether the second
    has, whether the first begins there, whether the second does, the carry in, and the required
    carry out (0, 1 or free).
    """
    pairs = torch.zeros(96, 100, 2, dtype=torch.uint8)
    counts = torch.zeros(96, dtype=torch.int64)
    for case, (has_a, has_b, leads_a, leads_b, carry, carry_out) in enumerate(
        product((0, 1), (0, 1), (0, 1), (0, 1), (0, 1), (0, 1, _FREE))
    ):
        allowed = [
            (a, b)
            for a in (range(leads_a, 10) if has_a else (0,))
            for b in (range(leads_b, 10) if has_b else (0,))
            if carry_out in (_FREE, int(a + b + carry >= 10))
        ]
        counts[case] = len(allowed)
        if allowed:
            pairs[case, : len(allowed)] = torch.tensor(allowed, dtype=torch.uint8)
    return pairs, counts
