"""Addition in base 16: `ff,1` gives `100`."""

from abacist import column_task, in_base


@column_task("add-base-16", base=16, answer=lambda a, b: in_base(a + b, 16))
def add_base_16(carry, digits):
    """Adds hexadecimal numbers."""
    total = digits.sum(-1) + carry
    return total % 16, total // 16
