"""Comparison of two numbers: `12,34` gives `0;2`, because the second one is larger."""

import torch

from abacist import column_task


@column_task(
    "comparison",
    direction="most-significant-first",
    left_over="state",
    answer=lambda a, b: "0;1" if a > b else "0;2" if a < b else "0",
)
def comparison(larger, digits):
    """Says which of two numbers is larger: state 1 the first, 2 the second, 0 neither."""
    a, b = digits.unbind(-1)
    larger = torch.where(larger == 0, (a > b) + 2 * (b > a), larger)
    return 0 * larger, larger
