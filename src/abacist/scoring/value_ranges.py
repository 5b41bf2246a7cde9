"""Values grouped into ranges, so that a table of them stays short."""

_MOST_SINGLE_VALUES = 24


def value_ranges(largest: int) -> list[tuple[int, int]]:
    """Return ranges (low, high), both inclusive, that cover 0 … `largest`.

    Up to 24, each value is its own range. Beyond, ranges grow: 9–16, 17–32 and so on.

    >>> value_ranges(40)[8:]
    [(8, 8), (9, 16), (17, 32), (33, 40)]
    """
    if largest <= _MOST_SINGLE_VALUES:
        return [(value, value) for value in range(largest + 1)]
    ranges, low = [(value, value) for value in range(9)], 9
    while low <= largest:
        high = min(2 * (low - 1), largest)
        ranges.append((low, high))
        low = high + 1
    return ranges


def range_text(low: int, high: int) -> str:
    """Return how tables name a range: `8` or `9–16`."""
    return f"{low}" if low == high else f"{low}–{high}"
