"""The first number plus twice the second: `12,34` gives `80`."""

from abacist import column_task


@column_task("a-plus-2b", answer=lambda a, b: str(a + 2 * b))
def a_plus_2b(carry, digits):
    """Adds a number and twice another."""
    total = digits[:, 0] + 2 * digits[:, 1] + carry
    return total % 10, total // 10
