"""Which charts are drawn of which records; None where there is nothing to draw."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from abacist.intervals import Proportion, percent
from abacist.reports import charts
from abacist.reports.charts import Curve
from abacist.reports.html_builder import Markup, figure
from abacist.reports.run_records import Attended, Grid, Measured, ScoredRow, ScoredSection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST_PANELS = 8
_MOST_FRAMES = 24
MOST_HEADS = 64
"""So many are drawn, the first ones."""
ATTENDED = 0.005
"""Attention below it is left out where all heads have no more."""


def loss(metrics: Mapping[str, Sequence[Measured]]) -> Markup | None:
    """Loss by step, a curve for each run."""
    curves = [
        Curve(name, [line.step for line in kept], [line.loss or 0.0 for line in kept])
        for name, lines in metrics.items()
        if (kept := [line for line in lines if line.loss is not None and line.loss > 0])
    ]
    if not curves:
        return None
    up = charts.logarithmic_axis("loss, nats a token", [y for curve in curves for y in curve.y])
    told = _told(curves, lambda curve: f"from {curve.y[0]:.3g} to {curve.y[-1]:.3g}")
    picture = charts.lines(f"Loss by training step. {told}", curves, _steps(curves), up)
    return figure(picture, f"Loss while training, on a logarithmic scale ({told}).")


def validation(metrics: Mapping[str, Sequence[Measured]]) -> Markup | None:
    """Exact match on validation problems by step, a curve for each run."""
    curves = [
        _proportions(name, [(line.step, line.exact_match) for line in lines])
        for name, lines in metrics.items()
        if lines
    ]
    if not curves:
        return None
    told = _told(
        curves,
        lambda curve: (
            f"{percent(curve.y[0])} at step {curve.x[0]:,.0f}, {percent(curve.y[-1])} at step "
            f"{curve.x[-1]:,.0f}"
        ),
    )
    n = next(lines[0].exact_match.n for lines in metrics.values() if lines)
    picture = charts.lines(
        f"Exact match on validation problems by training step. {told}",
        curves,
        _steps(curves),
        charts.percent_axis("exact match"),
        band=True,
    )
    return figure(
        picture, f"Exact match on {n:,} validation problems, with 95 % Wilson band ({told})."
    )


def by_length(series: Mapping[str, Sequence[ScoredRow]], trained_digits: int) -> Markup | None:
    """Exact match by digits of the longer operand."""
    curves = [
        _proportions(name, points)
        for name, rows in series.items()
        if (points := [(row.digits, row.proportion) for row in rows if row.proportion])
    ]
    digits = [x for curve in curves for x in curve.x]
    if len(set(digits)) < 2:
        return None
    across = charts.logarithmic_axis("digits of the longer operand", digits, room=1.15)
    told = _told(curves, lambda curve: _lowest(curve, _digits(curve.x[_at_lowest(curve)])))
    picture = charts.lines(
        f"Exact match by number of digits. {told}",
        curves,
        across,
        charts.percent_axis("exact match"),
        shaded=min(trained_digits * 1.12, across.high),
    )
    return figure(
        picture,
        f"Exact match on test problems by length, with 95 % Wilson intervals ({told}). Shaded: "
        f"training lengths, up to {trained_digits:,} digits.",
    )


def length_series(section: ScoredSection) -> dict[str, list[ScoredRow]]:
    """The curves of one run: operands of equal lengths, and one operand shorter."""
    rows = [row for row in section.rows if row.kind != "probe" and row.proportion]
    return {
        "equal lengths": [row for row in rows if row.name.endswith(("digit", "digits"))],
        "one operand shorter": [row for row in rows if row.name.endswith("unequal")],
    }


def trained_digits(section: ScoredSection) -> int:
    """The longest training operand that was scored."""
    return max((row.digits for row in section.rows if row.kind == "trained"), default=1)


def by_carry_chain(section: ScoredSection) -> Markup | None:
    """Exact match by the longest chain of carries: as problems fall, and drawn by it."""
    kinds = {
        "as in training": "longest carry chain",
        "drawn by carry chain": "drawn by carry chain",
    }
    series = {
        name: {
            row.name.partition(": ")[2]: row.proportion for row in section.rows if row.kind == kind
        }
        for name, kind in kinds.items()
    }
    return _over_values(
        series, "longest carry chain, columns", "Exact match by longest chain of carries"
    )


def by_place(section: ScoredSection) -> Markup | None:
    """Token accuracy by place."""
    start = "tokens at place "
    places = {
        row.name.removeprefix(start): row.proportion
        for row in section.rows
        if row.kind == "tokens" and row.name.startswith(start)
    }
    return _over_values(
        {"answer tokens": places}, "place, 1 for units", "Accuracy of single answer tokens by place"
    )


def length_grid(grid: Grid) -> Markup:
    """The heat map, and its worst squares in words."""
    asked = [
        (good / count, i, j, good, count)
        for i, (rights, counts) in enumerate(zip(grid.right, grid.count, strict=True), start=1)
        for j, (good, count) in enumerate(zip(rights, counts, strict=True), start=1)
        if count
    ]
    worst = [
        f"{i} and {j} digits ({good:,} of {count:,} right)"
        for share, i, j, good, count in sorted(asked)[:3]
        if share < 1
    ]
    told = f"Lowest: {', '.join(worst)}." if worst else "No square has an error."
    picture = charts.heat_map(
        f"Exact match for every pair of operand lengths up to {len(grid.count)} digits. {told}",
        grid.right,
        grid.count,
        ("digits of the first operand", "digits of the second operand"),
    )
    return figure(picture, f"Exact match on test problems for every pair of lengths. {told}")


def embeddings(tables: "Mapping[int, NDArray[np.float64]]") -> list[Markup]:
    """The symbols' vectors while training: moving from step to step, and at a few steps side by side.

    They are seen along the two directions that the last ones spread most.
    """
    import numpy as np

    last = list(tables.values())[-1]
    tables = {step: table for step, table in tables.items() if table.shape == last.shape}
    if len(tables) < 2 or min(last.shape) < 2:
        return []
    centred = last - last.mean(axis=0)
    _, spread, directions = np.linalg.svd(centred, full_matrices=False)
    shown = float((spread[:2] ** 2).sum() / max(float((spread**2).sum()), 1e-30))

    def seen(count: int) -> dict[str, list[tuple[float, float]]]:
        """At so many steps at most, evenly chosen, the first and the last among them."""
        steps, found = list(tables), {}
        count = min(count, len(steps))
        for step in (steps[round(i * (len(steps) - 1) / (count - 1))] for i in range(count)):
            points = (tables[step] - tables[step].mean(axis=0)) @ directions[:2].T
            found[f"step {step:,}"] = [(float(x), float(y)) for x, y in points]
        return found

    symbols = [str(number) for number in range(len(last))]
    named = f"Embeddings of {symbols[0]} to {symbols[-1]}"
    panels, frames = seen(_MOST_PANELS), seen(_MOST_FRAMES)
    steps = ", ".join(name.removeprefix("step ") for name in panels)
    first, *_, final = frames
    alone = charts.moving(f"{named}, moving from {first} to {final}", frames, symbols)
    beside = charts.scatters(f"{named} at steps {steps}", panels, symbols)
    return [
        figure(
            alone,
            f"{named}: where they went from {first} to {final}, each on its line. Where motion is not "
            "wanted, and on paper, they stand where they ended.",
        ),
        figure(
            beside,
            f"{named} while training, joined in their order. Both pictures are seen along the first two "
            f"principal components of the last step, which hold {percent(shown)} of its variance, each "
            "picture at one scale.",
        ),
    ]


def place_attention(attended: Attended) -> Markup:
    """Mean attention of every head by difference of place, over all fields."""
    values = [
        [sum(fields[d] for fields in head) for d in range(len(attended.differences))]
        for layer in attended.weight
        for head in layer
    ][:MOST_HEADS]
    kept = [
        d for d in range(len(attended.differences)) if max(line[d] for line in values) >= ATTENDED
    ]
    columns = [attended.differences[d] for d in kept]
    names = head_names(attended)[:MOST_HEADS]
    told = "; ".join(
        f"{name} mostly {attended.differences[max(kept, key=lambda d: line[d])]}"
        for name, line in zip(names, values, strict=True)
    )
    picture = charts.shares(
        f"Mean attention by difference of place. {told}",
        [[line[d] for d in kept] for line in values],
        names,
        columns,
        "place of what is looked at, minus the place of the token that looks",
    )
    return figure(
        picture,
        f"Mean attention of every head over {attended.num_tokens:,} answer tokens of "
        f"{attended.num_problems:,} test problems; +1 is the column that is written next, where an "
        "answer begins with its units.",
    )


def head_names(attended: Attended) -> list[str]:
    """In their order, with the number of the layer passed through where there are several."""
    several = len(attended.weight) > 1
    return [
        f"head {depth}.{head}" if several else f"head {head}"
        for depth, layer in enumerate(attended.weight)
        for head in range(len(layer))
    ]


def _over_values(
    series: Mapping[str, Mapping[str, Proportion | None]], label: str, title: str
) -> Markup | None:
    """Curves over groups of values such as `8` or `9–16`, in their order."""
    names = sorted(
        dict.fromkeys(itertools.chain.from_iterable(series.values())),
        key=lambda name: int(name.partition("–")[0].replace(",", "")),
    )
    if len(names) < 2:
        return None
    curves = [
        _proportions(name, [(names.index(v), p) for v, p in values.items() if p])
        for name, values in series.items()
        if values
    ]
    told = _told(curves, lambda curve: _lowest(curve, names[int(curve.x[_at_lowest(curve)])]))
    up = charts.percent_axis("exact match" if "match" in title else "token accuracy")
    picture = charts.over_names(f"{title}. {told}", names, curves, up, label)
    return figure(picture, f"{title}, with 95 % Wilson intervals ({told}).")


def _proportions(name: str, points: Sequence[tuple[float, Proportion]]) -> Curve:
    kept = [(x, p.value, p.interval) for x, p in points if p.value is not None and p.interval]
    return Curve(name, [x for x, *_ in kept], [y for _, y, _ in kept], [i for *_, i in kept])


def _steps(curves: Sequence[Curve]) -> charts.Axis:
    return charts.steps_axis(max(x for curve in curves for x in curve.x))


def _at_lowest(curve: Curve) -> int:
    return min(range(len(curve.y)), key=lambda i: curve.y[i])


def _lowest(curve: Curve, where: str) -> str:
    worst = min(curve.y)
    return "no error" if worst == 1 else f"lowest {percent(worst)} at {where}"


def _digits(count: float) -> str:
    return f"{count:,.0f} digit{'s' * (count > 1)}"


def _told(curves: Sequence[Curve], of: Callable[[Curve], str]) -> str:
    """What is to be said of every curve, with its name where there are several."""
    if len(curves) == 1:
        return of(curves[0])
    return "; ".join(f"{curve.name}: {of(curve)}" for curve in curves)
