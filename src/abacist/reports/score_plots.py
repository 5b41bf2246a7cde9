"""What is drawn and said of the records of a run; None if there is nothing to draw."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from abacist.intervals import Proportion, percent
from abacist.reports import plots
from abacist.reports.plots import Curve, HeatMap, LineChart, Points
from abacist.reports.tables import points, shortened
from abacist.scoring.records import Row, Section
from abacist.training.metrics import Metrics

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST_PANELS = 8
_MOST_FRAMES = 24
_MOST_CELLS = 40
"""Cells along each side of a grid; those of larger grids are merged into blocks."""


def remarks(section: Section) -> list[str]:
    """What a section says besides its rows, in sentences without a full stop."""
    details, sentences = section.details, []
    if details.get("average") is not None:
        average = percent(details["average"])
        sentences.append(f"Average of all cells, each with the same weight: {average}")
    if "perplexity" in details:
        values = ", ".join(
            f"{name} {'beyond 1e308' if value is None else format(value, '.6g')}"
            for name, value in details["perplexity"].items()
        )
        sentences.append(f"Perplexity of the right answer: {values}")
    if details.get("train_minus_test"):
        gap = details["train_minus_test"]
        low, high = gap["interval"]
        sentences.append(
            f"Training minus test: {points(gap['value'])} percentage points "
            f"(95% {points(low)} to {points(high)})"
        )
    if "problem" in details:
        sentences.append(
            f"Least confident: {shortened(str(details['problem']))}, "
            f"margin {details['smallest_margin']:.4g} logits"
        )
    return sentences


def of_section(suite: str, section: Section) -> list[LineChart | HeatMap]:
    """The plots of one section of the scorecard."""
    candidates: list[LineChart | HeatMap | None] = []
    if suite == "lengths":
        candidates.append(by_length(length_series(section), section.trained_digits))
    if suite == "strata":
        candidates += [by_carry_chain(section), by_place(section)]
    if "count" in section.details:
        candidates.append(length_grid(section.details))
    return [plot for plot in candidates if plot is not None]


def training(metrics: Mapping[str, Sequence[Metrics]]) -> list[LineChart]:
    """Loss and exact match on validation problems by step, with a curve for each run."""
    charts = [_loss(metrics), _validation(metrics)]
    return [chart for chart in charts if chart is not None]


def _loss(metrics: Mapping[str, Sequence[Metrics]]) -> LineChart | None:
    curves = [
        Curve(name, [record.step for record in finite], [record.loss for record in finite])
        for name, records in metrics.items()
        if (finite := [r for r in records if math.isfinite(r.loss) and r.loss > 0])
    ]
    if not curves:
        return None
    if len(curves) == 1:
        records = next(iter(metrics.values()))
        pairs = [(r.step, r.validation_loss) for r in records if r.validation_loss]
        if pairs:
            curves = [
                replace(curves[0], name="training"),
                Curve("validation", [step for step, _ in pairs], [loss for _, loss in pairs]),
            ]
    up = plots.logarithmic_axis("loss, nats per token", [y for curve in curves for y in curve.y])
    summary = _of_each(curves, lambda curve: f"from {curve.y[0]:.3g} to {curve.y[-1]:.3g}")
    return LineChart(
        f"Loss by training step. {summary}",
        curves,
        _steps(curves),
        up,
        caption=f"Loss during training, on a logarithmic scale ({summary}).",
    )


def _validation(metrics: Mapping[str, Sequence[Metrics]]) -> LineChart | None:
    curves = [
        _curve(name, [(record.step, record.exact_match) for record in records])
        for name, records in metrics.items()
        if records
    ]
    if not curves:
        return None
    summary = _of_each(
        curves,
        lambda curve: (
            f"{percent(curve.y[0])} at step {curve.x[0]:,.0f}, {percent(curve.y[-1])} at step "
            f"{curve.x[-1]:,.0f}"
        ),
    )
    n = next(records[0].exact_match.n for records in metrics.values() if records)
    return LineChart(
        f"Exact match on validation problems by training step. {summary}",
        curves,
        _steps(curves),
        plots.percent_axis("exact match"),
        caption=f"Exact match on {n:,} validation problems, with 95 % Wilson band ({summary}).",
        band=True,
    )


def by_length(series: Mapping[str, Sequence[Row]], trained_digits: int) -> LineChart | None:
    """Exact match by the length of the longer operand; None if there are fewer than two lengths."""
    curves = [
        _curve(name, pairs)
        for name, rows in series.items()
        if (pairs := [(row.digits, row.proportion) for row in rows if row.proportion])
    ]
    digits = [x for curve in curves for x in curve.x]
    if len(set(digits)) < 2:
        return None
    across = plots.logarithmic_axis("digits of the longer operand", digits, room=1.15)
    summary = _of_each(curves, lambda curve: _lowest(curve, _digits(curve.x[_worst(curve)])))
    return LineChart(
        f"Exact match by number of digits. {summary}",
        curves,
        across,
        plots.percent_axis("exact match"),
        caption=f"Exact match on test problems by length, with 95 % Wilson intervals ({summary}). "
        f"Shaded: training lengths, up to {trained_digits:,} digits.",
        shaded=min(trained_digits * 1.12, across.high),
    )


def length_series(section: Section) -> dict[str, list[Row]]:
    """The rows of the suite `lengths` by curve: operands of equal lengths, and one operand shorter."""
    rows = [row for row in section.rows if row.kind != "probe" and row.proportion]
    return {
        "equal lengths": [row for row in rows if row.name.endswith(("digit", "digits"))],
        "one operand shorter": [row for row in rows if row.name.endswith("unequal")],
    }


def by_carry_chain(section: Section) -> LineChart | None:
    """Exact match by the longest carry chain, for problems as in training and drawn by carry chain."""
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


def by_place(section: Section) -> LineChart | None:
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


def length_grid(details: Mapping[str, Any], most_cells: int = _MOST_CELLS) -> HeatMap:
    """Exact match for every pair of operand lengths; the first operand is longest in the first row."""
    size = len(details["count"])
    block = math.ceil(size / most_cells)
    starts = range(0, size, block)
    names = [_range(start + 1, min(start + block, size)) for start in starts]

    def sums(key: str) -> list[list[int]]:
        """Sums over blocks of cells, the last row first."""
        matrix = details[key]
        return [
            [sum(sum(row[j : j + block]) for row in matrix[i : i + block]) for j in starts]
            for i in reversed(starts)
        ]

    right, count = sums("right"), sums("count")
    rows = names[::-1]
    cells = [
        (good / asked, rows[i], names[j], good, asked)
        for i, (rights, counts) in enumerate(zip(right, count, strict=True))
        for j, (good, asked) in enumerate(zip(rights, counts, strict=True))
        if asked
    ]
    worst = [
        f"{first} and {second} digits ({good:,} of {asked:,} right)"
        for share, first, second, good, asked in sorted(cells)[:3]
        if share < 1
    ]
    summary = f"Lowest: {', '.join(worst)}." if worst else "No cell has an error."
    return HeatMap(
        f"Exact match for every pair of operand lengths up to {size} digits. {summary}",
        [
            [good / asked if asked else None for good, asked in zip(*pair, strict=True)]
            for pair in zip(right, count, strict=True)
        ],
        rows,
        names,
        "digits of the first operand",
        "digits of the second operand",
        "exact match",
        caption=f"Exact match on test problems for every pair of lengths. {summary}",
        hints=[
            [
                f"{first} and {second} digits: "
                + (
                    f"{good:,} of {asked:,} right, {percent(good / asked)}"
                    if asked
                    else "not scored"
                )
                for second, good, asked in zip(names, rights, counts, strict=True)
            ]
            for first, rights, counts in zip(rows, right, count, strict=True)
        ],
    )


def embeddings(tables: "Mapping[int, NDArray[np.float64]]") -> list[Points]:
    """The embedding vectors at many steps, to be animated, and at a few steps.

    Both are seen along the first two principal components of the last step. The list is empty if
    there are fewer than two steps or two dimensions.
    """
    import numpy as np

    if not tables:
        return []
    last = list(tables.values())[-1]
    tables = {step: table for step, table in tables.items() if table.shape == last.shape}
    if len(tables) < 2 or min(last.shape) < 2:
        return []
    _, sizes, directions = np.linalg.svd(last - last.mean(axis=0), full_matrices=False)
    explained = float((sizes[:2] ** 2).sum() / max(float((sizes**2).sum()), 1e-30))

    def frames(most: int) -> dict[str, list[tuple[float, float]]]:
        """The points of at most that many evenly spaced steps, the first and the last among them."""
        steps, points = list(tables), {}
        count = min(most, len(steps))
        for step in (steps[round(i * (len(steps) - 1) / (count - 1))] for i in range(count)):
            centred = (tables[step] - tables[step].mean(axis=0)) @ directions[:2].T
            points[f"step {step:,}"] = [(float(x), float(y)) for x, y in centred]
        return points

    symbols = [str(symbol) for symbol in range(len(last))]
    title = f"Embeddings of {symbols[0]} to {symbols[-1]}"
    many, few = frames(_MOST_FRAMES), frames(_MOST_PANELS)
    first, *_, final = many
    moving = Points(
        f"{title}, moving from {first} to {final}",
        symbols,
        many,
        caption=f"{title}: their paths from {first} to {final}. On paper, and for readers who "
        "prefer reduced motion, they stand where they ended.",
    )
    steps = ", ".join(name.removeprefix("step ") for name in few)
    caption = (
        f"{title} during training, joined in their order. Both pictures show the first two "
        f"principal components of the last step, which hold {percent(explained)} of its variance, "
        "each picture at one scale."
    )
    return [
        moving,
        replace(moving, title=f"{title} at steps {steps}", frames=few, caption=caption),
    ]


def _over_values(
    series: Mapping[str, Mapping[str, Proportion | None]], label: str, title: str
) -> LineChart | None:
    """Curves over groups of values such as `8` or `9–16`, in ascending order."""
    names = sorted(
        dict.fromkeys(itertools.chain.from_iterable(series.values())),
        key=lambda name: int(name.partition("–")[0].replace(",", "")),
    )
    if len(names) < 2:
        return None
    curves = [
        _curve(name, [(names.index(v), p) for v, p in values.items() if p])
        for name, values in series.items()
        if values
    ]
    summary = _of_each(curves, lambda curve: _lowest(curve, names[int(curve.x[_worst(curve)])]))
    return LineChart(
        f"{title}. {summary}",
        curves,
        plots.named_axis(label, names),
        plots.percent_axis("exact match" if "match" in title else "token accuracy"),
        caption=f"{title}, with 95 % Wilson intervals ({summary}).",
    )


def _curve(name: str, pairs: Sequence[tuple[float, Proportion]]) -> Curve:
    known = [(x, p.value, p.interval) for x, p in pairs if p.value is not None and p.interval]
    return Curve(name, [x for x, *_ in known], [y for _, y, _ in known], [i for *_, i in known])


def _steps(curves: Sequence[Curve]) -> plots.Axis:
    return plots.linear_axis("step", max(x for curve in curves for x in curve.x))


def _worst(curve: Curve) -> int:
    """Index of the lowest point."""
    return min(range(len(curve.y)), key=lambda i: curve.y[i])


def _lowest(curve: Curve, position: str) -> str:
    worst = min(curve.y)
    return "no error" if worst == 1 else f"lowest {percent(worst)} at {position}"


def _digits(count: float) -> str:
    return f"{count:,.0f} digit{'s' * (count > 1)}"


def _range(low: int, high: int) -> str:
    return f"{low}" if low == high else f"{low}–{high}"


def _of_each(curves: Sequence[Curve], summary: Callable[[Curve], str]) -> str:
    """The summary of every curve, with its name if there are several."""
    if len(curves) == 1:
        return summary(curves[0])
    return "; ".join(f"{curve.name}: {summary(curve)}" for curve in curves)
