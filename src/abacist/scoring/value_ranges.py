"""Values put into groups, so that a table of them stays short."""

_FINE = 24


def groups(largest: int) -> list[tuple[int, int]]:
    """0 … largest as ranges: each value its own where they are few, else 9–16, 17–32 and so on.

    >>> groups(40)[8:]
    [(8, 8), (9, 16), (17, 32), (33, 40)]
    """
    if largest <= _FINE:
        return [(value, value) for value in range(largest + 1)]
    found, low = [(value, value) for value in range(9)], 9
    while low <= largest:
        high = min(2 * (low - 1), largest)
        found.append((low, high))
        low = high + 1
    return found


def shown(low: int, high: int) -> str:
    """A group as tables name it: `8` or `9–16`."""
    return f"{low}" if low == high else f"{low}–{high}"
