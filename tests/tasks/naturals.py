"""Natural numbers that are hard to calculate with, for the tests of this directory."""

from collections.abc import Callable

from hypothesis import strategies as st

OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
}
"""Python functions for each operation."""
DIVISIONS = ("//", "%")


@st.composite
def naturals(draw: st.DrawFn, longest: int = 1_000) -> int:
    """Integers with all lengths equally likely and many digits 0, 4, 5 or 9, which carry far."""
    length = draw(st.integers(1, min(12, longest)) | st.integers(1, longest))
    alphabet = draw(st.sampled_from(["0123456789", "09", "045", "89", "9"]))
    return int(draw(st.text(alphabet, min_size=length, max_size=length)))


@st.composite
def complementary_naturals(draw: st.DrawFn) -> tuple[int, int]:
    """Pairs of numbers most of whose columns add up to 9, which gives the longest carry chains."""
    a = draw(naturals(longest=200))
    width = len(str(a))
    b = 10**width - 1 - a
    changed = draw(st.lists(st.integers(0, width - 1), max_size=3))
    for column in changed:
        b = max(0, b + draw(st.sampled_from([-1, 1])) * 10**column)
    return a, b


@st.composite
def near_naturals(draw: st.DrawFn) -> tuple[int, int]:
    """Pairs of numbers that differ little or not at all, which gives the longest borrow chains."""
    a = draw(naturals(longest=300))
    return a, max(0, a + draw(st.integers(-2, 2)) * 10 ** draw(st.integers(0, len(str(a)))))


@st.composite
def divisions(draw: st.DrawFn, longest: int = 900) -> list[tuple[int, int]]:
    """A batch of dividends and divisors from 1 up: several short ones, or a long one.

    A division of 1,000 by 500 digits takes seconds, so of long numbers one of the two, or their
    quotient, is short. Quotients have long runs of 0 and 9.
    """
    long = naturals(longest=longest)
    if draw(st.booleans()):
        pair = st.tuples(naturals(longest=30), naturals(longest=30).map(lambda b: b + 1))
        return draw(st.lists(pair, min_size=1, max_size=4))
    if draw(st.booleans()):
        return [(draw(long), 1 + draw(naturals(longest=4)))]
    divisor = 1 + draw(long)
    remainder = draw(st.sampled_from([0, min(1, divisor - 1), divisor - 1]))
    return [(divisor * draw(st.integers(0, 100)) + remainder, divisor)]
