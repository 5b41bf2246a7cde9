"""Proportions that carry their sample size and interval."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Proportion:
    """`successes` out of `n`."""

    successes: int
    n: int

    @property
    def value(self) -> float | None:
        """0…1, or None of an empty sample."""
        return self.successes / self.n if self.n else None

    @property
    def errors(self) -> int:
        return self.n - self.successes

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % Wilson score interval (Wilson 1927), or None of an empty sample.

        Unlike ± two standard errors it is right at 0 and at 1, where these models live.
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
        return f"{percent(self.value)} (95% {percent(low)}–{percent(high)}, n = {self.n:,})"

    def to_json(self) -> dict[str, object]:
        """`{"value": …, "successes": …, "n": …, "interval": [low, high]}`"""
        return {
            "value": self.value,
            "successes": self.successes,
            "n": self.n,
            "interval": list(self.interval) if self.interval else None,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "Proportion":
        """The inverse of `to_json`."""
        return Proportion(int(data["successes"]), int(data["n"]))


@dataclass(frozen=True)
class Difference:
    """How much larger one proportion is than another, −1…1."""

    value: float
    interval: tuple[float, float]
    """95 %."""

    def to_json(self) -> dict[str, object]:
        """`{"value": …, "interval": [low, high]}`"""
        return {"value": self.value, "interval": list(self.interval)}


def difference(first: Proportion, second: Proportion) -> Difference | None:
    """`first - second` of independent samples; None where one is empty.

    Newcombe's hybrid score interval (Newcombe 1998, Statistics in Medicine 17:873, method 10), made
    of the two Wilson intervals, so that it is right near 0 and 1 as well.
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


def percent(fraction: float) -> str:
    """Two digits behind the point, but never rounded up to 100 or down to 0."""
    rounded = f"{100 * fraction:.2f}"
    if fraction < 1 and rounded == "100.00":
        return "99.99%"
    if fraction > 0 and rounded == "0.00":
        return "0.01%"
    return rounded.removesuffix(".00") + "%"
