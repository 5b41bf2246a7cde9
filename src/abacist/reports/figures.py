"""Pictures drawn from records."""

import io
from pathlib import Path
from typing import Any

from abacist import files


def draw_lengths(scorecard: dict[str, Any], trained_digits: int, path: Path) -> None:
    """Exact match by number of digits, with 95 % intervals, as a PNG.

    `scorecard` is what `scorecard.json` holds; `trained_digits` is the longest training operand.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.axvspan(0.8, trained_digits + 0.5, color="#4477aa", alpha=0.12, linewidth=0)
    axes.annotate(
        f"training lengths: up to {trained_digits} digits",
        (0.01, 1.03),
        xycoords="axes fraction",
        color="#335f8a",
    )
    series = {"equal lengths": ("o", "#4477aa"), "one operand shorter": ("s", "#cc6677")}
    for name, (marker, colour) in series.items():
        rows = [row for row in scorecard["rows"] if _series(row) == name and row["exact_match"]]
        if not rows:
            continue
        value = [100 * row["exact_match"]["value"] for row in rows]
        low, high = zip(*[row["exact_match"]["interval"] for row in rows], strict=True)
        axes.errorbar(
            [row["digits"] for row in rows],
            value,
            yerr=[
                [v - 100 * edge for v, edge in zip(value, low, strict=True)],
                [100 * edge - v for v, edge in zip(value, high, strict=True)],
            ],
            marker=marker,
            color=colour,
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
    axes.legend(loc="lower left", frameon=False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    files.write_bytes(path, buffer.getvalue())


def _series(row: dict[str, Any]) -> str | None:
    if row["kind"] == "probe" or "all pairs" in row["name"]:
        return None
    return "one operand shorter" if row["name"].endswith("unequal") else "equal lengths"
