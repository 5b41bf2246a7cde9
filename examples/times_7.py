"""Seven times a number: `58` gives `406`."""

from abacist import column_task


@column_task("times-7", operands=1, answer=lambda n: str(7 * n))
def times_7(carry, digits):
    """Multiplies a number by 7."""
    total = 7 * digits[:, 0] + carry
    return total % 10, total // 10
