"""Gray code, in which neighbouring numbers differ in one bit: `111` gives `100`."""

from abacist import column_task


@column_task(
    "gray-code",
    base=2,
    operands=1,
    direction="most-significant-first",
    left_over="nothing",
    answer=lambda n: f"{n ^ n >> 1:b}",
)
def gray_code(previous, digits):
    """Writes the Gray code of a binary number. The state is the bit before."""
    bit = digits[:, 0]
    return (bit + previous) % 2, bit
