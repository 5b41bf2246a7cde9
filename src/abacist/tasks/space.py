"""All problems of a finite space, by index, without storing any.

>>> space = Arithmetic(ArithmeticConfig(max_digits=3)).space()
>>> len(space)
1000000
>>> space.problems(torch.tensor([123_045]))          # 123+45

The last operand varies fastest, then the one before it; the operation varies slowest.
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
    """All combinations of operands within ranges, for every operation."""

    operations: tuple[str, ...]
    ranges: tuple[tuple[tuple[int, int], ...], ...]
    """Smallest magnitude, and one more than the largest, of each operation's operands."""
    signed: bool = False
    """Whether each magnitude but 0 occurs with both signs."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of problems of every operation."""
        return tuple(
            math.prod(end - first + self._num_negative(first, end) for first, end in ranges)
            for ranges in self.ranges
        )

    def _num_negative(self, first: int, end: int) -> int:
        """Return the number of values below 0 of an operand with these magnitudes."""
        return end - max(1, first) if self.signed else 0

    def __len__(self) -> int:
        return sum(self.sizes)

    @property
    def is_countable(self) -> bool:
        """Whether all indices fit into 62 bits."""
        return sum(self.sizes) < _LARGEST

    def problems(self, index_B: Tensor) -> Problems:
        """Return the problems with these indices, int64 (B,) from 0 to len - 1."""
        sizes = torch.tensor(self.sizes, device=index_B.device)
        ends = sizes.cumsum(0)
        kind = torch.searchsorted(ends, index_B, right=True)
        rest = index_B - (ends - sizes)[kind]
        limits = [
            [(first - self._num_negative(first, end), end) for first, end in ranges]
            for ranges in self.ranges
        ]
        smallest = torch.tensor(self.ranges, device=index_B.device)[kind, :, 0]
        ranges = torch.tensor(limits, device=index_B.device)[kind]
        operands = []
        for position in reversed(range(ranges.shape[1])):
            begin, end = ranges[:, position].unbind(dim=1)
            count = end - begin
            higher = torch.div(rest, count, rounding_mode="floor")
            operands.append(begin + rest - higher * count)
            rest = higher
        values = torch.stack(operands[::-1], dim=1)
        negative = values < smallest
        # Below the smallest magnitude m, the indices go on as if -m stood directly before m.
        values = torch.where(negative, smallest - values + (smallest - 1).clamp(min=0), values)
        width = max(len(str(end - 1)) for operands in self.ranges for _, end in operands)
        digits_BNW = digits.of_values(values, width)
        codes = [OPERATIONS.index(operation) for operation in self.operations]
        operation = torch.tensor(codes, dtype=torch.uint8, device=index_B.device)[kind]
        problems = Problems(digits_BNW, Shapes(digits.significant(digits_BNW), operation))
        return problems.with_signs(negative) if self.signed else problems
