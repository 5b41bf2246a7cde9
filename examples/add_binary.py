"""Addition in base 2: `101,11` gives `1000`."""

from abacist import column_task, in_base


@column_task("add-binary", base=2, answer=lambda a, b: in_base(a + b, 2))
def add_binary(carry, digits):
    """Adds binary numbers."""
    total = digits.sum(-1) + carry
    return total % 2, total // 2
