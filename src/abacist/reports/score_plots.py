"""What is drawn and said of the records of a run; None if there is nothing to draw."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from abacist.intervals import Proportion, percent
from abacist.reports import plots
from abacist.reports.plots import Bars, Curve, HeatMap, LineChart, Points
from abacist.reports.tables import points, shortened
from abacist.reports.training_plots import of_each, proportion_curve
from abacist.scoring.records import Row, Section

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
    if details.get("count"):
        sentences.append(f"Best cell: {_cell(details, True)}; worst cell: {_cell(details, False)}")
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


def of_section(suite: str, section: Section) -> list[LineChart | HeatMap | Bars]:
    """The plots of one section of the scorecard."""
    candidates: list[LineChart | HeatMap | Bars | None] = []
    if suite == "lengths":
        candidates.append(by_length(length_series(section), section.trained_digits))
    if suite == "strata":
        candidates += [by_carry_chain(section), by_place(section)]
    if suite == "notation":
        candidates.append(by_notation(section))
    if suite == "recurrences":
        candidates.append(by_recurrences(section))
    candidates += grids(section.details)
    return [plot for plot in candidates if plot is not None]


def by_length(
    series: Mapping[str, Sequence[Row]], trained_digits: Mapping[str, int] | int
) -> LineChart | None:
    """Exact match by the length of the longer operand; None if there are fewer than two lengths.

    Args:
        trained_digits: the longest operand in training, for each run if they are several. Lengths
            that all of them were trained on are shaded.
    """
    by_run = trained_digits if isinstance(trained_digits, Mapping) else {"": trained_digits}
    shared = min(by_run.values())
    shaded = f"training lengths, up to {_digits(shared)}"
    differ = ""
    if len(set(by_run.values())) > 1:
        shaded += ", of all runs"
        each = ", ".join(f"{count:,} in {name}" for name, count in by_run.items())
        differ = f" The longest operand in training has a different number of digits: {each}."
    curves = [
        proportion_curve(name, pairs)
        for name, rows in series.items()
        if (pairs := [(row.digits, row.proportion) for row in rows if row.proportion])
    ]
    digits = [x for curve in curves for x in curve.x]
    if len(set(digits)) < 2:
        return None
    across = plots.logarithmic_axis("digits of the longer operand", digits, room=1.15)
    summary = of_each(curves, lambda curve: _lowest(curve, _digits(curve.x[_worst(curve)])))
    return LineChart(
        f"Exact match by number of digits. {summary}",
        curves,
        across,
        plots.percent_axis("exact match"),
        caption=f"Exact match on test problems by length, with 95 % Wilson intervals ({summary}). "
        f"Shaded: {shaded}.{differ}",
        shaded=min(shared * 1.12, across.high),
        shaded_name=shaded,
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
    """Return the chart of token accuracy by place; None if the section has fewer than two places."""
    start = "tokens at place "
    places = {
        row.name.removeprefix(start): row.proportion
        for row in section.rows
        if row.kind == "tokens" and row.name.startswith(start)
    }
    return _over_values(
        {"answer tokens": places}, "place, 1 for units", "Accuracy of single answer tokens by place"
    )


def by_recurrences(section: Section) -> LineChart | None:
    """Exact match by number of recurrences, with a curve for each sample: trained and longer operands."""
    series: dict[str, dict[str, Proportion | None]] = {}
    for row in section.rows:
        sample, _, recurrences = row.name.rpartition(", ")
        count = recurrences.partition(" ")[0]
        if count.isdecimal():
            series.setdefault(sample, {})[count] = row.proportion
    trained = section.details.get("trained_recurrences")
    label = "recurrences" if trained is None else f"recurrences, {trained} in training"
    return _over_values(series, label, "Exact match by number of recurrences")


def by_notation(section: Section) -> Bars | None:
    """Exact match for every spacing, in and out of distribution, and matches that ignore spaces."""
    exact = [row for row in section.rows if row.measure == "exact match" and row.proportion]
    ignoring = {
        row.name.partition(",")[0]: row.proportion
        for row in section.rows
        if row.measure == "match without spaces"
    }
    names = [row.name.partition(":")[0] for row in exact]
    if not exact or not all(ignoring.get(name) for name in names):
        return None
    series = {
        "exact match": [row.proportion for row in exact],
        "spaces ignored": [ignoring[name] for name in names],
    }
    summary = "; ".join(
        f"{name} {percent(row.proportion.value)}"
        for name, row in zip(names, exact, strict=True)
        if row.proportion and row.proportion.value is not None
    )
    return Bars(
        f"Match by spaces in the problem. {summary}",
        [row.name for row in exact],
        {
            name: [(p.value if p else None) or 0.0 for p in shares]
            for name, shares in series.items()
        },
        "right answers",
        intervals={
            name: [p.interval for p in shares if p and p.interval]
            for name, shares in series.items()
        },
        percent=True,
        largest=1.0,
        caption=f"Right answers by spaces in the problem, with 95 % Wilson intervals ({summary}).",
    )


def grids(details: Mapping[str, Any]) -> list[HeatMap]:
    """The grid of a section, or one for each number of recurrences; nothing if there is none."""
    if "count" not in details:
        return []
    by_count = details.get("recurrences")
    if not by_count:
        return [length_grid(details)]
    maps = {count: length_grid(grid) for count, grid in by_count.items()}
    return [
        replace(
            heat_map,
            title=f"{count} recurrence{'s' * (count != '1')}: {heat_map.title}",
            caption=f"{count} recurrence{'s' * (count != '1')}. {heat_map.caption}",
        )
        for count, heat_map in maps.items()
    ]


def _cell(details: Mapping[str, Any], is_best: bool) -> str:
    """The best or the worst cell of a grid among those that were scored."""
    right, count = details["right"], details["count"]
    cells = [
        (right[i][j] / asked, i, j)
        for i, row in enumerate(count)
        for j, asked in enumerate(row)
        if asked
    ]
    if not cells:
        return "none was scored"
    # Of equally good cells, the best is the one of the longest operands, the worst that of the shortest.
    _, i, j = max(cells) if is_best else min(cells)
    return f"{i + 1} and {j + 1} digits, {right[i][j]:,} of {count[i][j]:,} right"


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


def embeddings(
    tables: "Mapping[int, NDArray[np.float64]]", symbols: Sequence[str], num_digits: int
) -> list[Points]:
    """The embedding vectors during training, in four pictures.

    The digits are drawn at many steps, to be animated, and at a few steps, both along the first two
    principal components of the last step. All symbols, such as `+` and `=`, are drawn at a few steps
    along theirs, and along dimensions 1 and 2 as they are. The list is empty if there are fewer than
    two steps or two dimensions.

    Args:
        tables: vectors of all symbols, (symbols, width), by training step.
        symbols: name of each symbol.
        num_digits: number of digits or residues, which are the first symbols.
    """
    if not tables:
        return []
    shape = list(tables.values())[-1].shape
    tables = {step: table for step, table in tables.items() if table.shape == shape}
    if len(tables) < 2 or min(shape) < 2 or num_digits < 2:
        return []
    digits = {step: table[:num_digits] for step, table in tables.items()}
    along_digits, digits_explained = _along_components(digits)
    along_all, explained = _along_components(tables)
    dimensions = {step: table[:, :2] for step, table in tables.items()}
    title = f"Embeddings of {symbols[0]} to {symbols[num_digits - 1]}"
    many, few = (_frames(along_digits, most) for most in (_MOST_FRAMES, _MOST_PANELS))
    first, *_, final = many
    steps = ", ".join(name.removeprefix("step ") for name in few)
    moving = Points(
        f"{title}, moving from {first} to {final}",
        symbols[:num_digits],
        many,
        caption=f"{title}: their paths from {first} to {final}. On paper, and for readers who "
        "prefer reduced motion, they stand where they ended.",
    )
    still = replace(
        moving,
        title=f"{title} at steps {steps}",
        frames=few,
        caption=f"{title} during training, joined in their order. Both pictures show the first two "
        f"principal components of the last step, which hold {percent(digits_explained)} of its "
        "variance, each picture at one scale.",
    )
    everything = f"Embeddings of all {len(symbols)} symbols"
    in_components = replace(
        still,
        title=f"{everything} in principal components at steps {steps}",
        names=symbols,
        frames=_frames(along_all, _MOST_PANELS),
        caption=f"{everything} during training, along the first two principal components of the "
        f"last step, which hold {percent(explained)} of its variance.",
    )
    in_dimensions = replace(
        in_components,
        title=f"{everything} in dimensions 1 and 2 at steps {steps}",
        frames=_frames(dimensions, _MOST_PANELS),
        axes=("dimension 1", "dimension 2"),
        caption=f"{everything} during training: the first two numbers of each vector, as they are.",
    )
    return [moving, still, in_components, in_dimensions]


def _along_components(
    tables: "Mapping[int, NDArray[np.float64]]",
) -> "tuple[dict[int, NDArray[np.float64]], float]":
    """Centred vectors along the first two principal components of the last step, and their share."""
    import numpy as np

    last = list(tables.values())[-1]
    _, sizes, directions = np.linalg.svd(last - last.mean(axis=0), full_matrices=False)
    explained = float((sizes[:2] ** 2).sum() / max(float((sizes**2).sum()), 1e-30))
    along = {
        step: (table - table.mean(axis=0)) @ directions[:2].T for step, table in tables.items()
    }
    return along, explained


def _frames(
    points: "Mapping[int, NDArray[np.float64]]", most: int
) -> dict[str, list[tuple[float, float]]]:
    """The points of at most that many evenly spaced steps, the first and the last among them."""
    steps = list(points)
    count = min(most, len(steps))
    chosen = [steps[round(i * (len(steps) - 1) / (count - 1))] for i in range(count)]
    return {f"step {step:,}": [(float(x), float(y)) for x, y in points[step]] for step in chosen}


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
        proportion_curve(name, [(names.index(v), p) for v, p in values.items() if p])
        for name, values in series.items()
        if values
    ]
    summary = of_each(curves, lambda curve: _lowest(curve, names[int(curve.x[_worst(curve)])]))
    return LineChart(
        f"{title}. {summary}",
        curves,
        plots.named_axis(label, names),
        plots.percent_axis("exact match" if "match" in title else "token accuracy"),
        caption=f"{title}, with 95 % Wilson intervals ({summary}).",
    )


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
