"""Pictures as plain data: described once, drawn as SVG, by matplotlib or on a terminal.

`svg.draw` draws them for pages, `matplotlib_figures.draw` into files, and `terminal.Shown` with
characters or as a table. Proportions are fractions 0…1; an axis says whether they are percentages.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from abacist.reports.tables import Table

Point = Sequence[float]

_VIRIDIS = ("440154", "482878", "3e4a89", "31688e", "26828e", "1f9e89", "35b779", "6ece58", "b5de2b", "fde725")  # fmt: skip  # noqa: E501


@dataclass(frozen=True)
class Axis:
    """One direction of a chart."""

    label: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    logarithmic: bool = False
    percent: bool = False
    """Whether values are fractions to be read as percentages."""

    def fraction(self, value: float) -> float:
        """Position of a value on the axis, 0 at the low end and 1 at the high end."""
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return min(1.0, max(0.0, (value - low) / (high - low)))


@dataclass(frozen=True)
class Curve:
    """Points from left to right, each with an interval if these are known."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    intervals: Sequence[tuple[float, float]] = field(default=())


@dataclass(frozen=True)
class LineChart:
    """Curves over numbers, or over the names of the ticks."""

    title: str
    curves: Sequence[Curve]
    across: Axis
    up: Axis
    caption: str = ""
    band: bool = False
    """Whether intervals are drawn as a band instead of bars."""
    shaded: float | None = None
    """The chart is shaded from its left end up to this value."""
    shaded_name: str = ""
    """What the shaded part is, for the legend of a file; pages have a caption."""
    is_named: bool = False
    """Whether the legend names a single curve as well."""
    mark: tuple[float, str] | None = None
    """A value of x that is marked, and its name."""


@dataclass(frozen=True)
class HeatMap:
    """A value for every pair of a row and a column; the first row is drawn on top."""

    title: str
    values: Sequence[Sequence[float | None]]
    """None where there is no value."""
    rows: Sequence[str]
    columns: Sequence[str]
    row_label: str = ""
    column_label: str = ""
    value_label: str = ""
    caption: str = ""
    texts: Sequence[Sequence[str]] | None = None
    """Text of every cell."""
    hints: Sequence[Sequence[str]] | None = None
    """Explanation of every cell, shown when it is pointed at."""
    wrong: Sequence[Sequence[bool]] | None = None
    """Cells whose text is a wrong answer."""
    columns_in_table: Sequence[int] | None = None
    """Indices of the columns that a table shows; None for all of them."""
    low: float = 0.0
    high: float = 1.0
    colours: Literal["viridis", "Blues", "RdBu"] = "viridis"
    """The colour scale of matplotlib. `RdBu` is for values around 0."""


@dataclass(frozen=True)
class Bars:
    """Horizontal bars: for every name, one bar for each series."""

    title: str
    names: Sequence[str]
    series: Mapping[str, Sequence[float]]
    label: str
    intervals: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
    reference: tuple[float, str] | None = None
    """A value that is marked, and its name."""
    percent: bool = False
    upright: bool = False
    """Whether the bars stand side by side, as in a histogram."""
    name_label: str = ""
    """What the names of upright bars are."""
    largest: float | None = None
    """Value at the end of the axis; None for that of the longest bar."""
    caption: str = ""


@dataclass(frozen=True)
class Points:
    """Named points in two or three dimensions, at one moment or several."""

    title: str
    names: Sequence[str]
    frames: Mapping[str, Sequence[Point]]
    """The points of every moment, by its name."""
    axes: Sequence[str] = ("component 1", "component 2")
    is_ordered: bool = True
    """Whether the points have an order, in which they are joined."""
    caption: str = ""


Plot = LineChart | HeatMap | Bars | Points
View = str | Table | Plot
"""What can be shown: a sentence, a table or a plot."""


def percent_axis(label: str) -> Axis:
    """An axis for proportions from 0 to 100 %."""
    ticks = [(quarter / 4, f"{25 * quarter}%") for quarter in range(5)]
    return Axis(label, 0.0, 1.0, ticks, percent=True)


def linear_axis(label: str, last: float, first: float = 0.0) -> Axis:
    """An axis from `first` (0 or 1) to `last`, such as training steps."""
    last = max(first + 1.0, last)
    return Axis(label, first, last, [tick for tick in even_ticks(last) if tick[0] >= first])


def logarithmic_axis(label: str, values: Sequence[float], room: float = 1.0) -> Axis:
    """An axis around positive values, extended by the factor `room` at both ends.

    It has a tick at every power of ten, and more of them if these are few.
    """
    low, high = min(values) / room, max(values) * room
    if high / low < 1.5:
        low, high = low / 1.5, high * 1.5
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    stride = max(1, len(decades) // 6)
    ticks = [10.0**decade for decade in decades if decade % stride == 0]
    if len(decades) <= 3:
        factors = (1, 2, 5) if high / low > 8 else (1, 1.5, 2, 3, 4, 5, 7)
        ticks = [factor * 10.0**decade for decade in decades for factor in factors]
    inside = [(tick, _power(tick)) for tick in ticks if low * 0.999 <= tick <= high * 1.001]
    return Axis(label, low, high, inside, logarithmic=True)


def named_axis(label: str, names: Sequence[str]) -> Axis:
    """An axis over names, numbered from 0."""
    stride = max(1, math.ceil(len(names) / 12))
    ticks = [(float(i), name) for i, name in enumerate(names) if i % stride == 0]
    return Axis(label, -0.5, len(names) - 0.5, ticks)


def even_ticks(last: float) -> list[tuple[float, str]]:
    """Four to eight round numbers from 0 to at most `last`."""
    power = 10.0 ** math.floor(math.log10(last))
    stride = next(f * power for f in (0.1, 0.2, 0.5, 1.0, 2.0) if last / (f * power) <= 6)
    stride = max(1.0, stride)
    return [(i * stride, f"{i * stride:,.0f}") for i in range(int(last / stride) + 1)]


def short(value: float) -> str:
    """A positive number with three digits as people write it: 0.0123, 2.83, 5.81·10⁻⁷."""
    return f"{value:.3g}" if 0.001 <= value < 1000 else _scientific(value, 2)


def _power(value: float) -> str:
    """A round number as people write it: 0.01, 10,000, 2·10⁻⁵."""
    return f"{value:,.10g}" if 0.001 <= value < 1e7 else _scientific(value, 0)


def _scientific(value: float, decimals: int) -> str:
    factor, _, exponent = f"{value:.{decimals}e}".partition("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{raised}" if factor == "1" else f"{factor}·10{raised}"


def viridis(fraction: float | None) -> str | None:
    """A colour of the viridis scale; the last one means 1 exactly. None for None."""
    if fraction is None:
        return None
    if fraction == 1:
        return f"#{_VIRIDIS[-1]}"
    return f"#{_VIRIDIS[min(len(_VIRIDIS) - 2, int(fraction * (len(_VIRIDIS) - 1)))]}"
