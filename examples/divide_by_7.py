"""Division by 7 with remainder: `130` gives `18;4`."""

from abacist import column_task


@column_task(
    "divide-by-7",
    operands=1,
    direction="most-significant-first",
    left_over="state",
    answer=lambda n: f"{n // 7};{n % 7}".removesuffix(";0"),
)
def divide_by_7(remainder, digits):
    """Divides a number by 7; the final state is the remainder."""
    value = 10 * remainder + digits[:, 0]
    return value // 7, value % 7
