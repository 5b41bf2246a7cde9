"""The sum of three numbers: `12,34,56` gives `102`."""

from abacist import column_task


@column_task("sum-of-three", operands=3, answer=lambda a, b, c: str(a + b + c))
def sum_of_three(carry, digits):
    """Adds three numbers."""
    total = digits.sum(-1) + carry
    return total % 10, total // 10
