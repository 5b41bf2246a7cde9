"""Twice a number: `57` gives `114`."""

from abacist import column_task


@column_task("doubling", operands=1, answer=lambda n: str(2 * n))
def doubling(carry, digits):
    """Doubles a number."""
    total = 2 * digits[:, 0] + carry
    return total % 10, total // 10
