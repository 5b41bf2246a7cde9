"""Parallel coordinates: an axis for each setting and result of a sweep, and a line for each group."""

from collections.abc import Sequence
from dataclasses import dataclass

from abacist.intervals import percent
from abacist.reports.html_builder import Markup, element, figure
from abacist.reports.sweep_views import headline, setting_text, shown_groups
from abacist.reports.tables import number
from abacist.sweeps.results import GroupResults, Results, varying_settings

_HEIGHT, _TOP, _BOTTOM = 300.0, 34.0, 26.0
_BETWEEN = 130.0
_EDGE = 66.0
_MOST_LINES = 500
_MOST_TICKS = 8


@dataclass(frozen=True)
class _Axis:
    """One axis: its name, the height 0…1 of every group, and ticks."""

    name: str
    heights: Sequence[float]
    ticks: Sequence[tuple[float, str]]


def picture(results: Results) -> Markup | None:
    """The picture as a figure; None if the groups differ in nothing or there are fewer than two."""
    groups = shown_groups(results)[:_MOST_LINES]
    names = list(varying_settings(results.plan))
    if len(groups) < 2 or not names:
        return None
    axes = [_axis(name, [setting_text(group, name) for group in groups]) for name in names]
    steps = [group.distribution.median(lambda o: o.steps_to_target) for group in groups]
    known = [step for step in steps if step is not None]
    if known:
        # Groups that never reached the target stand above those that needed the most steps.
        axes.append(
            _axis("steps to target", [number(s, ",.0f") if s is not None else "–" for s in steps])
        )
    shares = [row.median if (row := headline(group)) is not None else 0.0 for group in groups]
    quarters = [(quarter / 4, f"{25 * quarter}%") for quarter in range(5)]
    axes.append(_Axis("right", shares, quarters))
    width = 2 * _EDGE + _BETWEEN * (len(axes) - 1)
    marks = [mark for n, axis in enumerate(axes) for mark in _drawn(axis, _x(n))]
    marks += [_line(axes, i, group, share) for i, (group, share) in enumerate(zip(groups, shares))]  # noqa: B905
    svg = element(
        "svg",
        *marks,
        viewBox=f"0 0 {width:g} {_HEIGHT:g}",
        role="img",
        aria_label=f"Settings and results of {len(groups):,} groups as parallel coordinates",
    )
    caption = (
        "Every line is a group of trials; the darker it is, the more answers are right "
        "(median over seeds)."
    )
    if len(shown_groups(results)) > len(groups):
        caption += f" The first {len(groups)} of {len(shown_groups(results)):,} groups."
    return figure(svg, caption)


def _axis(name: str, texts: Sequence[str]) -> _Axis:
    """An axis with a place for every different value, in order of size where these are numbers."""
    values = sorted(set(texts), key=_sort_key)
    heights = {value: i / max(1, len(values) - 1) for i, value in enumerate(values)}
    stride = -(-len(values) // _MOST_TICKS)
    ticks = [(heights[value], value) for value in values[::stride]]
    return _Axis(name.rpartition(".")[2], [heights[text] for text in texts], ticks)


def _sort_key(text: str) -> tuple[int, float, str]:
    """Numbers by size, then words, then what has no value."""
    try:
        return 0, float(text.replace(",", "")), ""
    except ValueError:
        return 2 if text == "–" else 1, 0.0, text


def _drawn(axis: _Axis, x: float) -> list[Markup]:
    marks = [
        element("path", d=f"M{x:g},{_TOP:g}V{_HEIGHT - _BOTTOM:g}", class_="axis"),
        element("text", axis.name, x=x, y=_TOP - 16, class_="label", text_anchor="middle"),
    ]
    for height, text in axis.ticks:
        y = _y(height)
        marks.append(element("path", d=f"M{x - 3:g},{y:.1f}h6", class_="axis"))
        marks.append(element("text", text[:12], x=x + 6, y=y + 4, class_="tick"))
    return marks


def _line(axes: Sequence[_Axis], number: int, group: GroupResults, share: float) -> Markup:
    points = "L".join(f"{_x(n):g},{_y(axis.heights[number]):.1f}" for n, axis in enumerate(axes))
    hint = element("title", f"{group.group.name}: {percent(share)}")
    return element(
        "path", hint, d=f"M{points}", class_="curve c0", stroke_opacity=f"{0.2 + 0.8 * share:.2f}"
    )


def _x(number: int) -> float:
    return _EDGE + _BETWEEN * number


def _y(height: float) -> float:
    return _HEIGHT - _BOTTOM - height * (_HEIGHT - _TOP - _BOTTOM)
