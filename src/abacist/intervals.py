"""Proportions with their sample sizes and confidence intervals."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Proportion:
    """A proportion of `successes` in a sample of size `n`."""

    successes: int
    n: int

    @property
    def value(self) -> float | None:
        """The proportion, 0…1, or None if the sample is empty."""
        return self.successes / self.n if self.n else None

    @property
    def errors(self) -> int:
        """Number of failures in the sample."""
        return self.n - self.successes

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % Wilson score interval (Wilson 1927), or None if the sample is empty.

        Unlike ± two standard errors, it is accurate near 0 and 1, where most results lie.
        """
        if not self.n:
            return None
        z = 1.959963984540054
        p, n = self.successes / self.n, self.n
        centre = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        low = 0.0 if self.successes == 0 else centre - half
        high = 1.0 if self.successes == n else centre + half
        return low, high

    def __add__(self, other: "Proportion") -> "Proportion":
        return Proportion(self.successes + other.successes, self.n + other.n)

    def __str__(self) -> str:
        if self.value is None or self.interval is None:
            return "no problems"
        low, high = self.interval
        interval = f"{percent(low).removesuffix('%')}–{percent(high)}"
        return f"{percent(self.value)} (95% interval {interval}, n = {self.n:,})"

    def to_json(self) -> dict[str, object]:
        """Return `{"value": …, "successes": …, "n": …, "interval": [low, high]}`."""
        return {
            "value": self.value,
            "successes": self.successes,
            "n": self.n,
            "interval": list(self.interval) if self.interval else None,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "Proportion":
        """Return the proportion that `to_json` turned into `data`.

        Raises `ValueError` for counts that are impossible.
        """
        proportion = Proportion(int(data["successes"]), int(data["n"]))
        if not 0 <= proportion.successes <= proportion.n:
            raise ValueError(f"{proportion.successes} of {proportion.n} is impossible")
        return proportion


def median_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return an interval that holds the median of the distribution with a probability of at least 95 %.

    Its ends are two of the values (order statistics), so it holds for every distribution, however
    skewed; None for fewer than six values, from which there is no such interval.
    """
    n = len(values)
    outside, below = 0.0, 0
    for k in range(n // 2):
        # The probability that the median lies beyond the k + 1 smallest or largest values.
        outside += 2 * math.comb(n, k) / 2**n
        if outside > 0.05:
            break
        below = k + 1
    if below == 0:
        return None
    ordered = sorted(values)
    return ordered[below - 1], ordered[n - below]


@dataclass(frozen=True)
class Difference:
    """The difference of two proportions."""

    value: float
    """First proportion minus second, −1…1."""
    interval: tuple[float, float]
    """Lower and upper end of the 95 % interval."""

    def to_json(self) -> dict[str, object]:
        """Return `{"value": …, "interval": [low, high]}`."""
        return {"value": self.value, "interval": list(self.interval)}


def difference(first: Proportion, second: Proportion) -> Difference | None:
    """Return `first - second` of independent samples, or None if one is empty.

    The interval is Newcombe's hybrid score interval (Newcombe 1998, Statistics in Medicine 17:873,
    method 10). It combines the two Wilson intervals, so it is accurate near 0 and 1 as well.
    """
    if first.value is None or second.value is None:
        return None
    assert first.interval is not None
    assert second.interval is not None
    (low1, high1), (low2, high2) = first.interval, second.interval
    value = first.value - second.value
    below = math.hypot(first.value - low1, high2 - second.value)
    above = math.hypot(high1 - first.value, second.value - low2)
    return Difference(value, (max(-1.0, value - below), min(1.0, value + above)))


def mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean of proportions by Student's distribution.

    None for fewer than 2 values, which say nothing about how they vary.
    """
    if len(values) < 2:
        return None
    mean = statistics.mean(values)
    half = _student_quantile(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return max(0.0, mean - half), min(1.0, mean + half)


def difference_of_means(first: Sequence[float], second: Sequence[float]) -> Difference | None:
    """Return the difference of the means of two samples of proportions; None if one has fewer than 2.

    The interval is Welch's (Welch 1947), which does not assume equal variances.
    """
    if min(len(first), len(second)) < 2:
        return None
    value = statistics.mean(first) - statistics.mean(second)
    squares = [statistics.variance(sample) / len(sample) for sample in (first, second)]
    if not sum(squares):
        return Difference(value, (value, value))
    freedom = sum(squares) ** 2 / sum(
        square**2 / (len(sample) - 1)
        for square, sample in zip(squares, (first, second), strict=True)
    )
    half = _student_quantile(freedom) * math.sqrt(sum(squares))
    return Difference(value, (max(-1.0, value - half), min(1.0, value + half)))


def _student_quantile(freedom: float) -> float:
    """Return the 97.5 % quantile of Student's distribution, by bisection of its integrated density."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))
    scale /= math.sqrt(freedom * math.pi)

    def share_below(bound: float) -> float:
        # With x = sqrt(freedom) tan(angle), the density becomes a power of the cosine.
        top, steps = math.atan(bound / math.sqrt(freedom)), 200
        weights = [1, *[4, 2] * (steps // 2 - 1), 4, 1]
        cosines = (math.pow(math.cos(top * i / steps), freedom - 1) for i in range(steps + 1))
        simpson = sum(w * c for w, c in zip(weights, cosines, strict=True)) * top / steps / 3
        return 0.5 + scale * math.sqrt(freedom) * simpson

    low, high = 1.9, 13.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if share_below(middle) < 0.975 else (low, middle)
    return high


def percent(fraction: float) -> str:
    """Return a fraction as a percentage with two decimals, never rounded up to 100 or down to 0."""
    rounded = f"{100 * fraction:.2f}"
    if fraction < 1 and rounded == "100.00":
        return "99.99%"
    if fraction > 0 and rounded == "0.00":
        return "0.01%"
    return rounded.removesuffix(".00") + "%"
