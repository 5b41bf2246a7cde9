"""The race between the model and plain Python as two bars."""

import math

from abacist.app.race import Race
from abacist.reports.html_builder import Markup, element

_SHORTEST_SECONDS = 1e-8
"""Left end of the bars, which are logarithmic so that the bar of Python is visible."""


def race_card(race: Race, speaks_of_parts: bool = False) -> Markup:
    """The winner, by which factor it won, and whether the model was right.

    With `speaks_of_parts`, the card says that all parts of the model were on.
    """
    factor = race.times_as_fast
    winner = (
        f"Python wins: it is {_rounded(factor)} times as fast."
        if factor >= 1
        else f"The model wins: it is {_rounded(1 / factor)} times as fast."
    )
    right = "right" if race.model_correct else "wrong"
    whole = ", with all parts on," if speaks_of_parts else ""
    longest = max(race.model_seconds, 1.0)
    return element(
        "div",
        element(
            "p",
            element("strong", winner),
            f" The model's answer{whole} is {right}, Python's is right.",
        ),
        element(
            "dl",
            *_bar("The model", race.model_seconds, longest),
            *_bar("Plain Python", race.python_seconds, longest),
            class_="race",
            style=f"--decades:{math.log10(longest / _SHORTEST_SECONDS):.3f}",
        ),
        element(
            "p",
            "Bars show time, so the shorter one wins. The scale is logarithmic: from one mark to the next, "
            "the time is ten times as long. Times are medians from the digits of the problem to those of "
            "the answer.",
            class_="muted",
        ),
        role="status",
    )


def _bar(name: str, seconds: float, longest: float) -> list[Markup]:
    low, high = math.log(_SHORTEST_SECONDS), math.log(longest)
    share = min(1.0, max(0.02, (math.log(max(seconds, _SHORTEST_SECONDS)) - low) / (high - low)))
    return [
        element("dt", f"{name}: {_time(seconds)}"),
        element("dd", element("span", style=f"--long:{share:.3f}", class_="bar")),
    ]


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _rounded(factor: float) -> str:
    """Two significant digits, as times vary from run to run."""
    if factor < 10:
        return f"{factor:.1f}"
    step = 10 ** (math.floor(math.log10(factor)) - 1)
    return f"{round(factor / step) * step:,}"
