"""Plots as inline SVG, drawn with the colours of the page around them.

Every mark has a class and no colour of its own (heat maps excepted), so that one style sheet
serves light, dark and paper. Curves differ in marker and dashes, too.
"""

import math
from collections.abc import Mapping, Sequence

from abacist.reports.html_builder import Markup, element
from abacist.reports.html_builder import figure as html_figure
from abacist.reports.plots import (
    Axis,
    Bars,
    Curve,
    HeatMap,
    LineChart,
    Point,
    Points,
    percent_axis,
    viridis,
)

_WIDTH, _HEIGHT = 460, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 24.0, 26.0, 42.0
_MOST_POINTS = 500
"""Points of a curve that can be distinguished."""
_MOST_TICKS = 10
_LEGEND_ROW = 17.0
_SHORT_NAME = 24
"""Number of characters up to which two names of curves fit side by side."""
_MARKERS = (
    "M-3.2,0a3.2,3.2 0 1 0 6.4,0a3.2,3.2 0 1 0 -6.4,0z",
    "M-3,-3h6v6h-6z",
    "M0,-4l4,7h-8z",
    "M0,-4.4l4.4,4.4l-4.4,4.4l-4.4,-4.4z",
    "M0,4l4,-7h-8z",
)


def figure(plot: LineChart | HeatMap | Points | Bars, moving: bool = False) -> Markup:
    """A plot with its caption. `moving` animates the frames of `Points`."""
    return html_figure(moving_points(plot) if moving else draw(plot), plot.caption)  # type: ignore[arg-type]


def draw(plot: LineChart | HeatMap | Points | Bars) -> Markup:
    """A plot as one SVG element; its title is what a screen reader says."""
    if isinstance(plot, LineChart):
        return _line_chart(plot)
    if isinstance(plot, Bars):
        return _bars(plot)
    return _heat_map(plot) if isinstance(plot, HeatMap) else _panels(plot)


def _line_chart(chart: LineChart) -> Markup:
    across, up = chart.across, chart.up
    marks: list[Markup] = []
    if chart.shaded is not None:
        width = _x(across, chart.shaded) - _LEFT
        marks.append(_rectangle(_LEFT, _TOP, width, _HEIGHT - _TOP - _BOTTOM, "shaded"))
    marks += _axes(across, up)
    for number, curve in enumerate(chart.curves):
        marks += _curve(number % len(_MARKERS), _thinned(curve), across, up, chart.band)
    height: float = _HEIGHT
    if len(chart.curves) > 1 or chart.is_named:
        legend, rows = _legend([curve.name for curve in chart.curves])
        marks += legend
        height += _LEGEND_ROW * rows
    return _picture(chart.title, marks, _WIDTH, height)


def _heat_map(plot: HeatMap) -> Markup:
    """Coloured squares with a colour scale, or wide cells that hold their texts."""
    left, top = 62.0, 10.0
    width, height = 300.0 / len(plot.columns), 300.0 / len(plot.rows)
    if plot.texts is not None:
        width, height = 52.0, 20.0
    right, bottom = left + width * len(plot.columns), top + height * len(plot.rows)
    marks = [_rectangle(left, top, right - left, bottom - top, "empty")]
    for i, values in enumerate(plot.values):
        for j, value in enumerate(values):
            if value is not None:
                marks += _cell(
                    plot, i, j, value, (left + j * width, top + i * height), width, height
                )
    for i, name in _ticks(plot.rows):
        middle = top + (i + 0.5) * height
        marks.append(_text(left - 6, middle + 4, name, "tick", "end"))
    for j, name in _ticks(plot.columns):
        for line, word in enumerate(name.split() if plot.texts else [name]):
            middle = left + (j + 0.5) * width
            marks.append(_text(middle, bottom + 15 + 13 * line, word, "tick", "middle"))
    if plot.row_label:
        turned = f"rotate(-90 12 {(top + bottom) / 2:g})"
        marks.append(_text(12, (top + bottom) / 2, plot.row_label, "label", "middle", turned))
    if plot.texts is not None:
        marks.append(_text(left, bottom + 50, plot.column_label, "label"))
        return _picture(plot.title, marks, max(_WIDTH, right + 8), bottom + 58)
    marks.append(_text((left + right) / 2, bottom + 34, plot.column_label, "label", "middle"))
    marks += _colour_scale(right + 14, top, bottom - top)
    return _picture(plot.title, marks, right + 74, bottom + 42)


def _cell(
    plot: HeatMap, i: int, j: int, value: float, corner: Point, width: float, height: float
) -> list[Markup]:
    x, y = corner
    if plot.texts is None:
        hints = [element("title", plot.hints[i][j])] if plot.hints else []
        rectangle = element(
            "rect", *hints, x=x, y=y, width=width, height=height, class_="cell", fill=viridis(value)
        )
        return [rectangle]
    # At most half the colour, so that the text can be read.
    opacity = f"{value / 2:.3f}"
    rectangle = element(
        "rect", x=x, y=y, width=width, height=height, class_="share", fill_opacity=opacity
    )
    return [rectangle, _text(x + width / 2, y + 14, plot.texts[i][j], "value", "middle")]


def _colour_scale(x: float, top: float, height: float) -> list[Markup]:
    """The colours of 0 to 100 %."""
    step = height / 10
    marks = [
        element(
            "rect", x=x, y=top + (9 - i) * step, width=12, height=step, class_="cell",
            fill=viridis(1 if i == 9 else i / 9),
        )
        for i in range(10)
    ]  # fmt: skip
    for share in (0, 50, 100):
        y = top + height * (1 - share / 100)
        marks.append(_text(x + 17, min(max(y + 4, top + 9), top + height), f"{share}%", "tick"))
    return marks


def _bars(plot: Bars) -> Markup:
    """Horizontal bars of shares from 0 to 100 %, each group below its name."""
    thickness, name_height, gap = 11.0, 18.0, 8.0
    series = list(plot.series.items())
    axis = percent_axis(plot.label)
    marks: list[Markup] = []
    top = _TOP
    for row, name in enumerate(plot.names):
        marks.append(_text(_LEFT, top + 12, name, "label"))
        for number, (key, values) in enumerate(series):
            y = top + name_height + number * thickness
            width = max(0.5, _x(axis, values[row]) - _LEFT)
            kind = f"mark c{number % len(_MARKERS)}"
            marks.append(_rectangle(_LEFT, y, width, thickness - 2, kind))
            if key in plot.intervals:
                low, high = (_x(axis, bound) for bound in plot.intervals[key][row])
                line = f"M{low:.1f},{y + thickness / 2 - 1:.1f}H{high:.1f}"
                marks.append(element("path", d=line, class_="interval"))
        top += name_height + len(series) * thickness + gap
    for value, text in axis.ticks:
        marks.append(_text(_x(axis, value), top + 10, text, "tick", "middle"))
    places, rows = _legend_places([key for key, _ in series], top + 20)
    for number, ((key, _), (left, y)) in enumerate(zip(series, places, strict=True)):
        marks.append(_rectangle(left, y, 12, 9, f"mark c{number % len(_MARKERS)}"))
        marks.append(_text(left + 18, y + 9, key, "legend"))
    return _picture(plot.title, marks, _WIDTH, top + 20 + _LEGEND_ROW * rows)


def _panels(plot: Points) -> Markup:
    """Small squares, one for each moment, with points joined in their order, all at one scale."""
    columns, side, gap = min(4, len(plot.frames)), 105.0, 8.0
    scale = _scale(plot.frames, side / 2 - 9)
    marks: list[Markup] = []
    for number, (name, points) in enumerate(plot.frames.items()):
        left = gap + (number % columns) * (side + gap)
        top = 16 + (number // columns) * (side + 24)
        marks.append(_rectangle(left, top, side, side, "frame"))
        marks.append(_text(left, top - 4, name, "tick"))
        places = [(left + side / 2 + scale * x, top + side / 2 - scale * y) for x, y in points]
        marks.append(element("path", d=_path(places), class_="thread"))
        marks += [
            _text(x, y + 3.5, label, f"point c{i % 2}", "middle")
            for i, ((x, y), label) in enumerate(zip(places, plot.names, strict=True))
        ]
    rows = math.ceil(len(plot.frames) / columns)
    width = gap + columns * (side + gap)
    return _picture(plot.title, marks, max(width, 230.0), rows * (side + 24) + 2)


def moving_points(plot: Points) -> Markup:
    """Points that move from moment to moment, each along its path.

    Only the style sheet moves them, so that nothing moves on paper or for readers who prefer
    reduced motion: there they stand where they end. A page holds at most one such picture.
    """
    side, top, edge = 340.0, 22.0, 16.0
    scale = _scale(plot.frames, side / 2 - edge)
    tracks = [
        [(side / 2 + scale * x, top + side / 2 - scale * y) for x, y in track]
        for track in zip(*plot.frames.values(), strict=True)
    ]
    marks = [_rectangle(0.5, top, side - 1, side, "frame")]
    marks += [element("path", d=_path(track), class_="track") for track in tracks]
    rules = []
    for number, (track, name) in enumerate(zip(tracks, plot.names, strict=True)):
        end = f"translate({track[-1][0]:.1f} {track[-1][1]:.1f})"
        kind = f"moves p{number} point c{number % 2}"
        marks.append(_text(0, 3.5, name, kind, "middle", end))
        rules.append(f".p{number}{{animation-name:p{number}}}@keyframes p{number}{{")
        rules += [
            f"{_moment(frame, len(track))}%{{transform:translate({x:.1f}px,{y:.1f}px)}}"
            for frame, (x, y) in enumerate(track)
        ]
        rules.append(f"100%{{transform:translate({track[-1][0]:.1f}px,{track[-1][1]:.1f}px)}}}}")
    for number, name in enumerate(plot.frames):
        is_last = number == len(plot.frames) - 1
        marks.append(_text(0, 14, name, f"moves when f{number} tick" + " last" * is_last))
        # Shown from half a frame before its moment to half a frame after it.
        begin = _moment(max(0, number - 0.5), len(plot.frames))
        stop = 100.0 if is_last else _moment(number + 0.5, len(plot.frames))
        rules.append(
            f".f{number}{{animation-name:f{number};animation-timing-function:step-end}}"
            f"@keyframes f{number}{{0%{{opacity:{int(number == 0)}}}{begin}%{{opacity:1}}"
            + f"{stop}%{{opacity:0}}}}" * (not is_last)
            + "100%{opacity:1}}" * is_last
        )
    style = element("style", Markup("".join(rules)))
    title = f"{plot.title}, moving"
    return _picture(title, [style, *marks], side, top + side + 2)


def _moment(frame: float, count: int) -> float:
    """The time of a frame in percent of one cycle; nothing moves in the last fifth of it."""
    return round(80 * frame / max(1, count - 1), 2)


def _scale(frames: Mapping[str, Sequence[Point]], half_side: float) -> float:
    """Factor at which the farthest coordinate lies `half_side` from the centre."""
    farthest = max((abs(v) for points in frames.values() for p in points for v in p), default=0.0)
    return half_side / (farthest or 1.0)


def _picture(title: str, marks: Sequence[Markup], width: float, height: float) -> Markup:
    """An SVG element of that size, so that letters are equally large in all pictures of a page."""
    return element(
        "svg",
        *marks,
        viewBox=f"0 0 {width:g} {height:g}",
        width=f"{width:g}",
        role="img",
        aria_label=title,
    )


def _axes(across: Axis, up: Axis) -> list[Markup]:
    """Both axes with their ticks and labels."""
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
        upper = [(x, high) for (x, _), (_, high) in zip(places, bounds, strict=True)]
        lower = [(x, low) for (x, _), (low, _) in zip(places, bounds, strict=True)]
        marks.append(element("path", d=_path(upper + lower[::-1]) + "z", class_=f"band c{number}"))
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


def _legend(names: Sequence[str]) -> tuple[list[Markup], int]:
    """The names of the curves below the chart, where they cover nothing, and their number of rows."""
    places, rows = _legend_places(names, _HEIGHT + 8)
    marks = []
    for number, (name, (left, y)) in enumerate(zip(names, places, strict=True)):
        kind = number % len(_MARKERS)
        marks.append(element("path", d=f"M{left:g},{y:g}h22", class_=f"curve c{kind}"))
        marks.append(_marker(kind, left + 11, y))
        marks.append(_text(left + 28, y + 4, name, "legend"))
    return marks, rows


def _legend_places(names: Sequence[str], top: float) -> tuple[list[tuple[float, float]], int]:
    """Left edge and height of every name of a legend, two in a row if they are short, and the rows."""
    columns = 2 if max(map(len, names)) <= _SHORT_NAME else 1
    width = (_WIDTH - _LEFT - _RIGHT) / 2
    places = [
        (_LEFT + (number % columns) * width, top + _LEGEND_ROW * (number // columns))
        for number in range(len(names))
    ]
    return places, math.ceil(len(names) / columns)


def _ticks(names: Sequence[str]) -> list[tuple[int, str]]:
    """Evenly spaced names that fit beside or below a heat map."""
    stride = math.ceil(len(names) / _MOST_TICKS) if len(names) > 2 * _MOST_TICKS else 1
    return [(i, name) for i, name in enumerate(names) if i % stride == 0]


def _x(axis: Axis, value: float) -> float:
    return _LEFT + axis.fraction(value) * (_WIDTH - _LEFT - _RIGHT)


def _y(axis: Axis, value: float) -> float:
    return _HEIGHT - _BOTTOM - axis.fraction(value) * (_HEIGHT - _TOP - _BOTTOM)


def _path(places: Sequence[Point]) -> str:
    return "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _marker(number: int, x: float, y: float) -> Markup:
    turn = f"translate({x:.1f} {y:.1f})"
    return element("path", d=_MARKERS[number], transform=turn, class_=f"mark c{number}")


def _text(
    x: float,
    y: float,
    text: str,
    kind: str,
    anchor: str | None = None,
    transform: str | None = None,
) -> Markup:
    return element("text", text, x=x, y=y, class_=kind, text_anchor=anchor, transform=transform)


def _rectangle(x: float, y: float, width: float, height: float, kind: str) -> Markup:
    return element("rect", x=x, y=y, width=width, height=height, class_=kind)


def _thinned(curve: Curve) -> Curve:
    """The curve with at most `_MOST_POINTS` points, its ends among them."""
    count = len(curve.x)
    if count <= _MOST_POINTS:
        return curve
    picks = [round(i * (count - 1) / (_MOST_POINTS - 1)) for i in range(_MOST_POINTS)]
    return Curve(
        curve.name,
        [curve.x[i] for i in picks],
        [curve.y[i] for i in picks],
        [curve.intervals[i] for i in picks] if curve.intervals else (),
    )
