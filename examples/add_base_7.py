"""Addition in base 7: `16,1` gives `20`."""

from abacist import column_task, in_base


@column_task("add-base-7", base=7, answer=lambda a, b: in_base(a + b, 7))
def add_base_7(carry, digits):
    """Adds numbers in base 7."""
    total = digits.sum(-1) + carry
    return total % 7, total // 7
