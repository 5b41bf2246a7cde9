"""Pictures drawn from records."""

import io
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from abacist import files
from abacist.intervals import percent

Row = Mapping[str, Any]
"""One row of `scorecard.json`."""

ENDINGS = (".png", ".svg")
"""Of files that pictures are drawn into."""

# Told apart also without colour (Paul Tol's bright scheme, and a marker each).
_STYLES = (("o", "#4477aa"), ("s", "#cc6677"), ("^", "#228833"), ("D", "#aa7733"), ("v", "#885599"))


def series_of(scorecard: Mapping[str, Any]) -> dict[str, list[Row]]:
    """The curves of one run: operands of equal lengths, and one operand shorter."""
    rows = [
        row
        for row in scorecard["sections"]["lengths"]["rows"]
        if row["kind"] != "probe" and row["proportion"]
    ]
    return {
        "equal lengths": [row for row in rows if row["name"].endswith(("digit", "digits"))],
        "one operand shorter": [row for row in rows if row["name"].endswith("unequal")],
    }


def draw_lengths(series: Mapping[str, Sequence[Row]], trained_digits: int, path: Path) -> None:
    """Exact match by number of digits, a curve for each series, with 95 % intervals.

    `trained_digits` is the longest training operand.
    """
    figure = new_figure((8, 4.2))
    axes = figure.add_subplot()
    axes.axvspan(0.8, trained_digits + 0.5, color="#4477aa", alpha=0.12, linewidth=0)
    axes.set_title(
        f"shaded: training lengths, up to {trained_digits} digits", loc="left", fontsize=10
    )
    curves = zip(series.items(), itertools.cycle(_STYLES), strict=False)
    for series_number, ((name, rows), (marker, colour)) in enumerate(curves):
        value = [100 * row["proportion"]["value"] for row in rows]
        intervals = [row["proportion"]["interval"] for row in rows]
        below = [v - 100 * low for v, (low, _) in zip(value, intervals, strict=True)]
        above = [100 * high - v for v, (_, high) in zip(value, intervals, strict=True)]
        axes.errorbar(
            [row["digits"] for row in rows],
            value,
            yerr=[below, above],
            marker=marker,
            color=colour,
            # Curves often lie on each other; what is drawn later is see-through and larger.
            linestyle="--" if series_number else "-",
            markerfacecolor="none" if series_number else colour,
            markersize=9 if series_number else 6,
            capsize=3,
            linewidth=1.5,
            label=name,
        )
    axes.set_xscale("log")
    axes.set_xlim(left=0.8)
    axes.set_ylim(-3, 103)
    axes.set_xlabel("digits of the longer operand")
    axes.set_ylabel("exact match, % of test problems\n(bars: 95% Wilson interval)")
    axes.xaxis.set_major_formatter(lambda digits, _: f"{digits:,.0f}")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower left" if len(series) < 3 else "center right", frameon=False)
    save(figure, path)


def draw_grid(details: Mapping[str, Any], path: Path) -> None:
    """Exact match for every pair of operand lengths as a heat map; grey is not scored."""
    import numpy as np

    right, count = (np.array(details[name], dtype=float) for name in ("right", "count"))
    size = len(count)
    share = np.ma.masked_array(100 * right / np.maximum(count, 1), mask=count == 0)
    figure = new_figure((6.4, 5.4))
    axes = figure.add_subplot()
    axes.set_facecolor("#dddddd")
    edges = (0.5, size + 0.5)
    image = axes.imshow(
        share, origin="lower", cmap="viridis", vmin=0, vmax=100, extent=(*edges, *edges)
    )
    figure.colorbar(image, label="exact match, % of test problems")
    axes.set_xlabel("digits of the second operand")
    axes.set_ylabel("digits of the first operand")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.yaxis.get_major_locator().set_params(integer=True)
    if details["average"] is not None:
        cells = int((count > 0).sum())
        axes.set_title(
            f"average of {cells:,} cells: {percent(details['average'])} "
            f"(n = {int(count.sum()):,} problems)",
            loc="left",
            fontsize=10,
        )
    save(figure, path)


def draw_training(records: Mapping[str, Sequence[Row]], path: Path) -> None:
    """Loss and exact match on validation by step, a curve for each run, from lines of `metrics.jsonl`."""
    figure = new_figure((8, 5.2))
    losses, matches = figure.subplots(2, 1, sharex=True)
    for (name, lines), (_, colour) in zip(records.items(), itertools.cycle(_STYLES), strict=False):
        steps = [line["step"] for line in lines]
        losses.plot(steps, [line["loss"] for line in lines], color=colour, label=name)
        right = [line["exact_match"] for line in lines]
        bounds = [exact["interval"] or (0.0, 1.0) for exact in right]
        matches.plot(steps, [100 * (exact["value"] or 0.0) for exact in right], color=colour)
        matches.fill_between(
            steps,
            [100 * low for low, _ in bounds],
            [100 * high for _, high in bounds],
            color=colour,
            alpha=0.2,
            linewidth=0,
        )
    losses.set_yscale("log")
    losses.set_ylabel("loss, nats a token")
    losses.legend(frameon=False)
    matches.set_ylim(-3, 103)
    matches.set_ylabel("exact match, % of validation\n(band: 95% Wilson interval)")
    matches.set_xlabel("step")
    for axes in (losses, matches):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    save(figure, path)


def draw_histograms(histograms: Mapping[str, Mapping[int, int]], path: Path) -> None:
    """Counts side by side, a panel for each name."""
    figure = new_figure((4 * len(histograms), 3.2))
    for number, (name, counts) in enumerate(histograms.items(), start=1):
        axes = figure.add_subplot(1, len(histograms), number)
        total = sum(counts.values())
        axes.bar(list(counts), [100 * count / total for count in counts.values()], color="#4477aa")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_xlabel(name)
        axes.set_ylabel("% of training problems")
        axes.spines[["top", "right"]].set_visible(False)
    save(figure, path)


def new_figure(size: tuple[float, float]) -> Any:
    """A figure without a window, for `save`; matplotlib takes a second to import, so only when one is drawn."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Any, path: Path) -> None:
    """Write a figure as PNG or SVG, by the file's ending.

    Text in an SVG stays text, to be searched and read aloud; and what is drawn of the same record
    is the same file, byte for byte.
    """
    import matplotlib

    buffer, is_svg = io.BytesIO(), path.suffix == ".svg"
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "abacist"}):
        figure.savefig(
            buffer,
            format=path.suffix.removeprefix("."),
            dpi=150,
            metadata={"Date": None} if is_svg else None,
        )
    files.write_bytes(path, buffer.getvalue())
