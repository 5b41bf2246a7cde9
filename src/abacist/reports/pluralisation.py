"""How figures and remarks are put into words, on a terminal and in a report."""

from collections.abc import Mapping
from typing import Any

from abacist.intervals import percent

_LONGEST_SHOWN = 60


def remarks(details: Mapping[str, Any]) -> list[str]:
    """What a section of a scorecard has to say besides its rows."""
    found = []
    if details.get("average") is not None:
        found.append(f"Average of all cells, each counting alike: {percent(details['average'])}")
    if "perplexity" in details:
        told = ", ".join(
            f"{name} {'beyond 1e308' if value is None else format(value, '.6g')}"
            for name, value in details["perplexity"].items()
        )
        found.append(f"Perplexity of the right answer: {told}")
    if details.get("train_minus_test"):
        gap = details["train_minus_test"]
        low, high = gap["interval"]
        found.append(
            f"Training minus test: {points(gap['value'])} percentage points "
            f"(95% {points(low)} to {points(high)})"
        )
    if "problem" in details:
        found.append(
            f"Least confident: {cut(str(details['problem']))}, "
            f"margin {details['smallest_margin']:.4g} logits"
        )
    return found


def points(fraction: float) -> str:
    """A difference of proportions in percentage points, with its sign."""
    return f"{100 * fraction:+.2f}"


def cut(word: str) -> str:
    """A very long number without its middle."""
    if len(word) <= _LONGEST_SHOWN:
        return word
    return f"{word[:24]}…{word[-24:]} ({len(word):,} digits)"
