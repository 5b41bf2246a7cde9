"""A thermometer of carries: from the first column that carries on, every digit is 1. `19,1` gives `11`."""

from abacist import column_task


def thermometer(a: int, b: int) -> str:
    """Return the thermometer of a + b in plain Python."""
    width = max(len(str(a)), len(str(b)))
    carries = [a % 10**i + b % 10**i >= 10**i for i in range(1, width + 1)]
    return str(int("".join(str(int(any(carries[: i + 1]))) for i in range(width))[::-1]))


@column_task("carry-thermometer", left_over="nothing", answer=thermometer)
def carry_thermometer(state, digits):
    """Writes 1 from the first carry on. State 1: a carry; state 2: a carry before, but none now."""
    carry = (digits.sum(-1) + (state == 1)) // 10
    following = carry + 2 * (1 - carry) * (state > 0)
    return (following > 0).long(), following
