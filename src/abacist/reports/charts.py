"""Small charts as inline SVG, drawn with the colours of the page around them.

Every mark has a class and no colour of its own (the heat map excepted), so that one style sheet
serves light, dark and paper. Series differ in marker and dashes too.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from abacist.reports.html_builder import Markup, element

_WIDTH, _HEIGHT = 460, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 24.0, 26.0, 42.0
_MOST_POINTS = 500
"""Of a curve; more cannot be told apart."""
_MOST_CELLS = 48
"""Of a heat map, along each side; finer ones are summed in blocks."""
_VIRIDIS = ("440154", "482878", "3e4a89", "31688e", "26828e", "1f9e89", "35b779", "6ece58", "b5de2b", "fde725")  # fmt: skip  # noqa: E501
_MARKERS = (
    "M-3.2,0a3.2,3.2 0 1 0 6.4,0a3.2,3.2 0 1 0 -6.4,0z",
    "M-3,-3h6v6h-6z",
    "M0,-4l4,7h-8z",
    "M0,-4.4l4.4,4.4l-4.4,4.4l-4.4,-4.4z",
    "M0,4l4,-7h-8z",
)


@dataclass(frozen=True)
class Axis:
    """One direction of a chart."""

    label: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    logarithmic: bool = False

    def share(self, value: float) -> float:
        """Where a value lies, 0 at the low end and 1 at the high end."""
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return min(1.0, max(0.0, (value - low) / (high - low)))


@dataclass(frozen=True)
class Curve:
    """Points from left to right, where known each with an interval."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    intervals: Sequence[tuple[float, float]] = field(default=())


def percent_axis(label: str) -> Axis:
    """All shares, as percentages."""
    return Axis(label, 0.0, 1.0, [(share / 4, f"{25 * share}%") for share in range(5)])


def steps_axis(last: float) -> Axis:
    """Training steps from 0 on."""
    return Axis("step", 0.0, max(1.0, last), _even_ticks(max(1.0, last)))


def logarithmic_axis(label: str, values: Sequence[float], room: float = 1.0) -> Axis:
    """An axis around positive values, with a tick at every power of ten, or more where that is few.

    It ends the factor `room` beyond the values.
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


def lines(
    title: str,
    curves: Sequence[Curve],
    across: Axis,
    up: Axis,
    band: bool = False,
    shaded: float | None = None,
) -> Markup:
    """Curves with markers and error bars, or with bands; shaded from the left end up to a value."""
    marks: list[Markup] = []
    if shaded is not None:
        right = _x(across, shaded)
        marks.append(_rectangle(_LEFT, _TOP, right - _LEFT, _HEIGHT - _TOP - _BOTTOM, "shaded"))
    marks += _frame(across, up)
    for number, curve in enumerate(curves):
        marks += _curve(number % len(_MARKERS), _thinned(curve), across, up, band)
    if len(curves) > 1:
        heights = [up.share(y) for curve in curves for y in curve.y]
        marks += _legend([curve.name for curve in curves], heights)
    return _picture(title, marks, _WIDTH, _HEIGHT)


def over_names(
    title: str, names: Sequence[str], curves: Sequence[Curve], up: Axis, label: str
) -> Markup:
    """Curves over names in place of numbers; x counts the names from 0."""
    stride = max(1, math.ceil(len(names) / 12))
    ticks = [(float(i), name) for i, name in enumerate(names) if i % stride == 0]
    return lines(title, curves, Axis(label, -0.5, len(names) - 0.5, ticks), up)


def heat_map(
    title: str,
    right: Sequence[Sequence[int]],
    count: Sequence[Sequence[int]],
    labels: tuple[str, str],
) -> Markup:
    """Shares of squares, the first index upwards; squares that were not scored stay empty."""
    size = len(count)
    block = math.ceil(size / _MOST_CELLS)
    cells = math.ceil(size / block)
    side, left, top = 300.0, 46.0, 10.0
    step = side / cells
    marks: list[Markup] = [_rectangle(left, top, side, side, "empty")]
    for row in range(cells):
        for column in range(cells):
            good, asked = (
                sum(
                    sum(line[column * block : (column + 1) * block])
                    for line in counts[row * block : (row + 1) * block]
                )
                for counts in (right, count)
            )
            if not asked:
                continue
            first, second = (_range(i, block, size) for i in (row, column))
            told = element("title", f"{first} and {second} digits: {good:,} of {asked:,}")
            marks.append(
                element(
                    "rect",
                    told,
                    x=left + column * step,
                    y=top + side - (row + 1) * step,
                    width=step,
                    height=step,
                    class_="cell",
                    fill=colour_of(good / asked),
                )
            )
    marks += _heat_map_frame(size, left, top, side, labels)
    return _picture(title, marks, 420, 352)


def scatters(
    title: str, panels: Mapping[str, Sequence[tuple[float, float]]], names: Sequence[str]
) -> Markup:
    """Small squares with named points, all at one scale, joined in their order."""
    reach = max((abs(v) for points in panels.values() for p in points for v in p), default=0.0)
    columns, side, gap = min(4, len(panels)), 105.0, 8.0
    rows = math.ceil(len(panels) / columns)
    marks: list[Markup] = []
    for number, (name, points) in enumerate(panels.items()):
        left = gap + (number % columns) * (side + gap)
        top = 16 + (number // columns) * (side + 24)
        marks.append(_rectangle(left, top, side, side, "frame"))
        marks.append(_text(left, top - 4, name, "tick"))
        scale = (side / 2 - 9) / (reach or 1.0)
        places = [(left + side / 2 + scale * x, top + side / 2 - scale * y) for x, y in points]
        marks.append(element("path", d=_path(places), class_="thread"))
        marks += [
            _text(x, y + 3.5, label, f"point c{0 if i % 2 == 0 else 1}", "middle")
            for i, ((x, y), label) in enumerate(zip(places, names, strict=True))
        ]
    width = gap + columns * (side + gap)
    return _picture(title, marks, max(width, 230.0), rows * (side + 24) + 2)


def shares(
    title: str,
    values: Sequence[Sequence[float]],
    rows: Sequence[str],
    columns: Sequence[str],
    label: str,
) -> Markup:
    """Shares 0 … 1 between names, each written into a square that is the darker the larger it is."""
    wide, high, left, top = 52.0, 20.0, 62.0, 8.0
    marks: list[Markup] = []
    for number, (name, line) in enumerate(zip(rows, values, strict=True)):
        y = top + number * high
        marks.append(_text(left - 7, y + 14, name, "tick", "end"))
        for column, value in enumerate(line):
            x = left + column * wide
            marks.append(
                element(
                    "rect", x=x, y=y, width=wide, height=high, class_="share",
                    # Half the colour at most, so that what is written on it can be read.
                    fill_opacity=f"{value / 2:.3f}",
                )
            )  # fmt: skip
            if value >= 0.005:
                marks.append(_text(x + wide / 2, y + 14, f"{100 * value:.0f}%", "value", "middle"))
    below = top + len(rows) * high
    for column, name in enumerate(columns):
        middle = left + (column + 0.5) * wide
        for line_number, word in enumerate(name.split()):
            marks.append(_text(middle, below + 15 + 13 * line_number, word, "tick", "middle"))
    width = max(float(_WIDTH), left + len(columns) * wide + 8)
    marks.append(_text(left, below + 50, label, "label"))
    return _picture(title, marks, width, below + 58)


def moving(
    title: str, frames: Mapping[str, Sequence[tuple[float, float]]], names: Sequence[str]
) -> Markup:
    """Named points that go from frame to frame, each leaving its path behind.

    Only the style sheet moves them, so that nothing moves on paper or for those who asked for less
    motion: there they stand where they end. A page holds at most one such picture.
    """
    side, top, edge = 340.0, 22.0, 16.0
    reach = max((abs(v) for points in frames.values() for p in points for v in p), default=0.0)
    scale = (side / 2 - edge) / (reach or 1.0)
    tracks = [
        [(side / 2 + scale * x, top + side / 2 - scale * y) for x, y in track]
        for track in zip(*frames.values(), strict=True)
    ]
    marks = [_rectangle(0.5, top, side - 1, side, "frame")]
    marks += [element("path", d=_path(track), class_="track") for track in tracks]
    rules = []
    for number, (track, name) in enumerate(zip(tracks, names, strict=True)):
        kind = f"moves p{number} point c{0 if number % 2 == 0 else 1}"
        marks.append(
            element(
                "text", name, x=0, y=3.5, class_=kind, text_anchor="middle",
                transform=f"translate({track[-1][0]:.1f} {track[-1][1]:.1f})",
            )
        )  # fmt: skip
        rules.append(f".p{number}{{animation-name:p{number}}}@keyframes p{number}{{")
        rules += [
            f"{_when(frame, len(track))}%{{transform:translate({x:.1f}px,{y:.1f}px)}}"
            for frame, (x, y) in enumerate(track)
        ]
        rules.append(f"100%{{transform:translate({track[-1][0]:.1f}px,{track[-1][1]:.1f}px)}}}}")
    for number, name in enumerate(frames):
        is_last = number == len(frames) - 1
        kind = f"moves when f{number} tick" + " last" * is_last
        marks.append(_text(0, 14, name, kind))
        # Shown from half-way before its time to half-way behind it.
        begin = _when(max(0, number - 0.5), len(frames))
        end = 100.0 if is_last else _when(number + 0.5, len(frames))
        rules.append(
            f".f{number}{{animation-name:f{number};animation-timing-function:step-end}}"
            f"@keyframes f{number}{{0%{{opacity:{int(number == 0)}}}{begin}%{{opacity:1}}"
            + f"{end}%{{opacity:0}}}}" * (not is_last)
            + "100%{opacity:1}}" * is_last
        )
    style = element("style", Markup("".join(rules)))
    return _picture(title, [style, *marks], side, top + side + 2)


def _when(frame: float, count: int) -> float:
    """When a frame is reached, in percent of a round, of which the last fifth stands still."""
    return round(80 * frame / max(1, count - 1), 2)


def _picture(title: str, marks: Sequence[Markup], width: float, height: float) -> Markup:
    return element(
        "svg",
        *marks,
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_label=title,
    )


def _frame(across: Axis, up: Axis) -> list[Markup]:
    """Both axes with their ticks and names."""
    bottom, end = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    marks = []
    for value, text in up.ticks:
        y = _y(up, value)
        marks.append(element("path", d=f"M{_LEFT:g},{y:.1f}H{end:g}", class_="grid"))
        marks.append(_text(_LEFT - 6, y + 4, text, "tick", "end"))
    for value, text in across.ticks:
        x = _x(across, value)
        marks.append(element("path", d=f"M{x:.1f},{bottom:g}v4", class_="axis"))
        marks.append(_text(x, bottom + 17, text, "tick", "middle"))
    marks.append(element("path", d=f"M{_LEFT:g},{bottom:g}H{end:g}", class_="axis"))
    marks.append(_text((_LEFT + end) / 2, _HEIGHT - 7, across.label, "label", "middle"))
    marks.append(_text(4, 14, up.label, "label"))
    return marks


def _curve(number: int, curve: Curve, across: Axis, up: Axis, band: bool) -> list[Markup]:
    places = [(_x(across, x), _y(up, y)) for x, y in zip(curve.x, curve.y, strict=True)]
    bounds = [(_y(up, low), _y(up, high)) for low, high in curve.intervals]
    marks = []
    if bounds and band:
        there = [(x, high) for (x, _), (_, high) in zip(places, bounds, strict=True)]
        back = [(x, low) for (x, _), (low, _) in zip(places, bounds, strict=True)]
        marks.append(element("path", d=_path(there + back[::-1]) + "z", class_=f"band c{number}"))
    elif bounds:
        marks += [
            element(
                "path",
                d=f"M{x:.1f},{low:.1f}V{high:.1f}M{x - 3:.1f},{low:.1f}h6M{x - 3:.1f},{high:.1f}h6",
                class_=f"interval c{number}",
            )
            for (x, _), (low, high) in zip(places, bounds, strict=True)
        ]
    marks.append(element("path", d=_path(places), class_=f"curve c{number}"))
    if len(places) <= 40:
        marks += [_marker(number, x, y) for x, y in places]
    return marks


def _legend(names: Sequence[str], heights: Sequence[float]) -> list[Markup]:
    """On the left, in the third of the chart where the fewest points are, preferably the lowest."""
    marks = []
    height, room = 16.0, _HEIGHT - _TOP - _BOTTOM
    crowds = [sum(third <= 3 * share < third + 1 for share in heights) for third in (0, 1, 2)]
    crowds[2] += sum(share == 1 for share in heights)
    middle = _TOP + room * (5 - 2 * crowds.index(min(crowds))) / 6
    first = middle - height * (len(names) - 1) / 2
    for number, name in enumerate(names):
        y = first + height * number
        kind = number % len(_MARKERS)
        marks.append(element("path", d=f"M{_LEFT + 8:g},{y:g}h22", class_=f"curve c{kind}"))
        marks.append(_marker(kind, _LEFT + 19, y))
        marks.append(_text(_LEFT + 36, y + 4, name, "legend"))
    return marks


def _heat_map_frame(
    size: int, left: float, top: float, side: float, labels: tuple[str, str]
) -> list[Markup]:
    marks = []
    for value, text in _even_ticks(size):
        if not value:
            continue
        middle = (value - 0.5) / size * side
        marks.append(_text(left + middle, top + side + 15, text, "tick", "middle"))
        marks.append(_text(left - 6, top + side - middle + 4, text, "tick", "end"))
    marks.append(_text(left + side / 2, top + side + 34, labels[1], "label", "middle"))
    turned = f"rotate(-90 12 {top + side / 2:g})"
    marks.append(
        element(
            "text", labels[0], x=12, y=top + side / 2, class_="label", text_anchor="middle",
            transform=turned,
        )
    )  # fmt: skip
    legend, height = left + side + 14, side / len(_VIRIDIS)
    for number, colour in enumerate(_VIRIDIS):
        y = top + side - (number + 1) * height
        marks.append(
            element(
                "rect", x=legend, y=y, width=12, height=height, class_="cell", fill=f"#{colour}"
            )
        )
    for share in (0, 50, 100):
        y = top + side * (1 - share / 100)
        marks.append(_text(legend + 17, min(max(y + 4, top + 9), top + side), f"{share}%", "tick"))
    return marks


def _x(axis: Axis, value: float) -> float:
    return _LEFT + axis.share(value) * (_WIDTH - _LEFT - _RIGHT)


def _y(axis: Axis, value: float) -> float:
    return _HEIGHT - _BOTTOM - axis.share(value) * (_HEIGHT - _TOP - _BOTTOM)


def _path(places: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _marker(number: int, x: float, y: float) -> Markup:
    return element(
        "path",
        d=_MARKERS[number],
        transform=f"translate({x:.1f} {y:.1f})",
        class_=f"mark c{number}",
    )


def _text(x: float, y: float, text: str, kind: str, anchor: str | None = None) -> Markup:
    return element("text", text, x=x, y=y, class_=kind, text_anchor=anchor)


def _rectangle(x: float, y: float, width: float, height: float, kind: str) -> Markup:
    return element("rect", x=x, y=y, width=width, height=height, class_=kind)


def _thinned(curve: Curve) -> Curve:
    """The curve with at most so many points, its ends among them."""
    count = len(curve.x)
    if count <= _MOST_POINTS:
        return curve
    kept = [round(i * (count - 1) / (_MOST_POINTS - 1)) for i in range(_MOST_POINTS)]
    return Curve(
        curve.name,
        [curve.x[i] for i in kept],
        [curve.y[i] for i in kept],
        [curve.intervals[i] for i in kept] if curve.intervals else (),
    )


def _even_ticks(last: float) -> list[tuple[float, str]]:
    """Four to eight round numbers from 0 to at most `last`."""
    power = 10.0 ** math.floor(math.log10(last))
    stride = next(f * power for f in (0.1, 0.2, 0.5, 1.0, 2.0) if last / (f * power) <= 6)
    stride = max(1.0, stride)
    return [(i * stride, f"{i * stride:,.0f}") for i in range(int(last / stride) + 1)]


def _power(value: float) -> str:
    """A tick as people write it: 0.01, 10,000, 2·10⁻⁵."""
    if 0.001 <= value < 1e7:
        return f"{value:,.10g}"
    factor, _, exponent = f"{value:.0e}".partition("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{raised}" if factor == "1" else f"{factor}·10{raised}"


def _range(number: int, block: int, size: int) -> str:
    low, high = number * block + 1, min((number + 1) * block, size)
    return f"{low}" if low == high else f"{low}–{high}"


def colour_of(share: float) -> str:
    """Of the viridis scale; the last colour is kept for no error at all."""
    if share == 1:
        return f"#{_VIRIDIS[-1]}"
    return f"#{_VIRIDIS[min(len(_VIRIDIS) - 2, int(share * (len(_VIRIDIS) - 1)))]}"
