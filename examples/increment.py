"""An odometer that has as many wheels as the number has digits: `129` gives `130`, and `99` gives `0`."""

from abacist import column_task


@column_task(
    "increment",
    operands=1,
    left_over="nothing",
    answer=lambda n: str((n + 1) % 10 ** len(str(n))),
)
def increment(done, digits):
    """Increments a number, modulo a power of 10. State 0: a 1 is carried."""
    total = digits[:, 0] + (1 - done)
    return total % 10, 1 - total // 10
