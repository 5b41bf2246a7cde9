"""The larger of two numbers: `12,34` gives `34`."""

import torch

from abacist import column_task


@column_task(
    "maximum",
    direction="most-significant-first",
    left_over="nothing",
    answer=lambda a, b: str(max(a, b)),
)
def maximum(larger, digits):
    """Writes the larger of two numbers. State 1 or 2: the first or the second is larger."""
    a, b = digits.unbind(-1)
    larger = torch.where(larger == 0, (a > b) + 2 * (b > a), larger)
    return torch.where(larger == 2, b, a), larger
