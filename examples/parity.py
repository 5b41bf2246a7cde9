"""Running parity: each digit says whether the number of ones up to it is odd, from the right."""

from abacist import column_task


def parities(n: int) -> str:
    """Return the running parities in plain Python."""
    columns = range(n.bit_length())
    return f"{sum((n % 2 ** (i + 1)).bit_count() % 2 << i for i in columns):b}"


@column_task("parity", base=2, operands=1, left_over="nothing", answer=parities)
def parity(odd, digits):
    """Writes the parity of the ones read so far."""
    odd = (odd + digits[:, 0]) % 2
    return odd, odd
