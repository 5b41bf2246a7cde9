"""All problems of a finite space, by number, without storing any.

>>> space = Arithmetic(ArithmeticConfig(max_digits=3)).space()
>>> len(space)
1000000
>>> space.problems(torch.tensor([123_045]))          # 123+45

The numbers run through the operations, within one through the first operand, within that through
the next, as the loops of a notebook would.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.tasks import digits
from abacist.tasks.problems import OPERATIONS, Problems, Shapes

_LARGEST = 1 << 62


@dataclass(frozen=True)
class Space:
    """Every combination of operands within ranges, for every operation."""

    operations: tuple[str, ...]
    ranges: tuple[tuple[tuple[int, int], ...], ...]
    """For every operation and operand: smallest value, and one more than the largest."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Problems of every operation."""
        return tuple(math.prod(end - first for first, end in ranges) for ranges in self.ranges)

    def __len__(self) -> int:
        return sum(self.sizes)

    @property
    def is_countable(self) -> bool:
        """Whether the numbers fit into 63 bits."""
        return sum(self.sizes) < _LARGEST

    def problems(self, numbers: Tensor) -> Problems:
        """The problems of the given numbers, int64 (B,) of 0 … len - 1."""
        sizes = torch.tensor(self.sizes, device=numbers.device)
        ends = sizes.cumsum(0)
        which = torch.searchsorted(ends, numbers, right=True)
        left = numbers - (ends - sizes)[which]
        first = torch.tensor(self.ranges, device=numbers.device)[which]
        operands = []
        for position in reversed(range(first.shape[1])):
            begin, end = first[:, position].unbind(dim=1)
            count = end - begin
            higher = torch.div(left, count, rounding_mode="floor")
            operands.append(begin + left - higher * count)
            left = higher
        values = torch.stack(operands[::-1], dim=1)
        width = max(len(str(end - 1)) for ranges in self.ranges for _, end in ranges)
        digits_BNW = digits.of_values(values, width)
        codes = [OPERATIONS.index(operation) for operation in self.operations]
        operation = torch.tensor(codes, dtype=torch.uint8, device=numbers.device)[which]
        return Problems(digits_BNW, Shapes(digits.significant(digits_BNW), operation))
