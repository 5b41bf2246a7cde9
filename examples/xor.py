"""Bitwise exclusive or: `110,11` gives `101`."""

from abacist import column_task, in_base


@column_task("xor", base=2, answer=lambda a, b: in_base(a ^ b, 2))
def xor(state, digits):
    """Writes the exclusive or of two binary numbers."""
    return digits.sum(-1) % 2, state
