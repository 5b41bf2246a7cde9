"""Division of a binary number by 487, a machine of 487 states: `1111101001` (1001) gives `10;27`."""

from abacist import column_task, in_base


@column_task(
    "divide-binary-by-487",
    base=2,
    operands=1,
    direction="most-significant-first",
    left_over="state",
    answer=lambda n: f"{in_base(n // 487, 2)};{n % 487}".removesuffix(";0"),
)
def divide_binary_by_487(remainder, digits):
    """Divides a binary number by 487; the final state is the remainder."""
    value = 2 * remainder + digits[:, 0]
    return value // 487, value % 487
