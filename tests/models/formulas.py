"""Published formulas of position encodings, computed one number at a time in plain Python."""

import math
from fractions import Fraction


def sinusoid(position: int, width: int, base: float = 10_000.0) -> list[float]:
    """Vaswani et al., arXiv 1706.03762 §3.5: PE(p, 2i) = sin(p / base^(2i/d)), PE(p, 2i+1) = cos."""
    vector = []
    for number in range(width):
        angle = position / base ** (2 * (number // 2) / width)
        vector.append(math.sin(angle) if number % 2 == 0 else math.cos(angle))
    return vector


def rotated(vector: list[float], position: int, base: float = 10_000.0) -> list[float]:
    """Su et al., arXiv 2104.09864 §3.4.2, with number i paired with number i + K/2."""
    half = len(vector) // 2
    turned = list(vector)
    for i in range(half):
        angle = position * base ** (-2 * i / len(vector))
        turned[i] = vector[i] * math.cos(angle) - vector[i + half] * math.sin(angle)
        turned[i + half] = vector[i] * math.sin(angle) + vector[i + half] * math.cos(angle)
    return turned


def alibi_slopes(num_heads: int) -> list[float]:
    """`get_slopes` of the code published with arXiv 2108.12409."""
    if math.log2(num_heads).is_integer():
        start = 2 ** (-(2 ** -(math.log2(num_heads) - 3)))
        return [start * start**i for i in range(num_heads)]
    closest = 2 ** math.floor(math.log2(num_heads))
    return alibi_slopes(closest) + alibi_slopes(2 * closest)[0::2][: num_heads - closest]


def t5_bucket(difference: int, bidirectional: bool, num_buckets: int, max_distance: int) -> int:
    """`_relative_position_bucket` of T5 (arXiv 1910.10683 §2.1); `difference` is key minus query.

    T5 rounds log(d / exact) / log(max / exact) · n down; this function does it with exact fractions.
    """
    bucket = 0
    if bidirectional:
        num_buckets //= 2
        if difference > 0:
            bucket += num_buckets
        distance = abs(difference)
    else:
        distance = max(-difference, 0)
    exact = num_buckets // 2
    if distance < exact:
        return bucket + distance
    growing = num_buckets - exact
    rank = 0
    while rank + 1 < growing and Fraction(distance, exact) ** growing >= (
        Fraction(max_distance, exact) ** (rank + 1)
    ):
        rank += 1
    return bucket + exact + rank


def fire_input(distance: int, query: int, c: float, threshold: float) -> float:
    """Li et al., arXiv 2310.04418 §3.2: ψ(i - j) / ψ(max(L, i)), ψ(x) = log(c·x + 1)."""
    return math.log(c * distance + 1) / math.log(c * max(threshold, query) + 1)


def fire(
    distance: int,
    query: int,
    c: float,
    threshold: float,
    hidden: tuple[list[float], list[float]],
    output: tuple[list[list[float]], list[float]],
) -> list[float]:
    """One bias per head: an MLP of one hidden layer over `fire_input`; maps are (weights, biases)."""
    x = fire_input(distance, query, c, threshold)
    bent = [max(0.0, weight * x + bias) for weight, bias in zip(*hidden, strict=True)]
    return [
        sum(weight * number for weight, number in zip(weights, bent, strict=True)) + bias
        for weights, bias in zip(*output, strict=True)
    ]


def clipped(difference: int, low: int, high: int) -> int:
    """The row of a table with one number for every difference from `low` to `high`."""
    return min(max(difference, low), high) - low
