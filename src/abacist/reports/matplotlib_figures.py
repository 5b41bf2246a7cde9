"""Plots drawn by matplotlib into PNG and SVG files.

>>> draw(training_plots.of_run(metrics), Path("training.png"))
"""

import io
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from abacist import files
from abacist.reports.plots import Axis, Bars, HeatMap, LineChart, Plot, Points

ENDINGS = (".png", ".svg")
"""Endings of files that can be drawn."""

# Distinguishable without colour as well (Paul Tol's bright scheme, and a marker each).
_STYLES = (("o", "#4477aa"), ("s", "#cc6677"), ("^", "#228833"), ("D", "#aa7733"), ("v", "#885599"))
_MOST_TEXTS = 400
"""Cells of a heat map beyond which their texts could not be read."""
_MOST_PANELS = 64
_WIDEST = 14.0
"""Width of a figure in inches, unless one panel is wider."""
_WIDEST_TEXTS = 24.0
"""Maximum width in inches of a heat map; its texts are left out if they need more."""
_SCALE_WIDTH = 0.25
"""Width of a colour scale in inches."""
_NUM_COLOURS = 10


_DPI = 150
_INLINE_DPI = 72
_INLINE_COLOURS = 64
"""Dots per inch and number of colours of a picture in a notebook, whose file holds every picture."""


@dataclass(frozen=True)
class Inline:
    """Plots that a notebook shows in one picture if they are the last value of a cell."""

    plots: Sequence[Plot] = field(repr=False)
    columns: int | None = None
    """Number of panels in a row; None means as many as fit."""

    def _repr_png_(self) -> bytes:
        return _with_few_colours(_encoded(_figure(self.plots, self.columns), "png", _INLINE_DPI))


def draw(plots: Sequence[Plot], path: Path, columns: int | None = None) -> None:
    """Draw plots as panels of one figure, in `columns` columns, by default as many as fit."""
    save(_figure(plots, columns), path)


def _figure(plots: Sequence[Plot], columns: int | None) -> Any:
    plots = [panel for plot in plots for panel in _panels(plot)][:_MOST_PANELS]
    sizes = [_size(plot, columns or 1) for plot in plots]
    width, height = (max(lengths) for lengths in zip(*sizes, strict=True))
    columns = columns or _columns(len(plots), max(1, round(_WIDEST / width)))
    rows = math.ceil(len(plots) / columns)
    figure = new_figure((max(6.4, columns * width), rows * height))
    places = _places(figure, plots, rows, columns)
    for number, (plot, place) in enumerate(zip(plots, places, strict=True), start=1):
        axes = figure.add_subplot(place)
        if isinstance(plot, HeatMap):
            # One colour scale for all panels of a row.
            image = _heat_map(axes, plot)
            if number % columns == 0 or number == len(plots):
                label = plot.value_label
                share = min(0.05, _SCALE_WIDTH / width)
                figure.colorbar(image, ax=axes, label=label, fraction=share, pad=0.02, aspect=15)
        elif isinstance(plot, LineChart):
            _line_chart(axes, plot)
        elif isinstance(plot, Bars):
            _bars(axes, plot)
        else:
            _points(axes, plot)
        axes.spines[["top", "right"]].set_visible(False)
        # A letter is about a twelfth of an inch wide, and the labels of the vertical axis need an inch.
        title = textwrap.fill(plot.title, max(30, round(12 * (width - 1))))
        axes.set_title(title, loc="left", fontsize=9)
    return figure


def _columns(num_panels: int, most: int) -> int:
    """Number of panels in a row: as many as fit, but four panels are drawn as 2 × 2 and not as 3 + 1."""
    rows = math.ceil(num_panels / most)
    return math.ceil(num_panels / rows)


def _places(figure: Any, plots: Sequence[Plot], rows: int, columns: int) -> list[Any]:
    """The place of every panel. Heat maps stand in a grid; other panels fill the rows that have fewer."""
    if any(isinstance(plot, HeatMap) for plot in plots):
        grid = figure.add_gridspec(rows, columns)
        return [grid[number // columns, number % columns] for number in range(len(plots))]
    counts = [len(plots) // rows + (row < len(plots) % rows) for row in range(rows)]
    units = math.lcm(*counts)
    grid = figure.add_gridspec(rows, units)
    return [
        grid[row, i * units // count : (i + 1) * units // count]
        for row, count in enumerate(counts)
        for i in range(count)
    ]


def _panels(plot: Plot) -> list[Plot]:
    """Points in three dimensions are drawn from the front and from above, as no single view is readable."""
    if not isinstance(plot, Points) or len(plot.axes) < 3:
        return [plot]
    return [
        replace(
            plot,
            frames={
                name: [(point[0], point[upwards]) for point in points]
                for name, points in plot.frames.items()
            },
            axes=[plot.axes[0], plot.axes[upwards]],
        )
        for upwards in (1, 2)
    ]


def _size(plot: Plot, columns: int) -> tuple[float, float]:
    """Width and height in inches that a plot needs; a line chart is narrower beside others."""
    if isinstance(plot, HeatMap):
        width, height = _cell_size(plot)
        return max(3.4, len(plot.columns) * width + 1.8), max(1.6, len(plot.rows) * height + 1.3)
    if isinstance(plot, Bars) and not plot.upright:
        return 7.0, 1.4 + 0.2 * len(plot.names) * max(1.5, len(plot.series))
    if isinstance(plot, LineChart):
        return min(7.5, max(4.2, _WIDEST / columns)), 3.8
    return 4.2, 3.9


def _cell_size(plot: HeatMap) -> tuple[float, float]:
    """Width and height of a cell in inches, so that its text and the labels fit."""
    if not _has_texts(plot) and max(len(plot.rows), len(plot.columns)) > 30:
        return 4.6 / len(plot.columns), 4.1 / len(plot.rows)
    height = max((text.count("\n") for row in plot.texts or () for text in row), default=0)
    return _text_width(plot), 0.3 + 0.13 * height


def _text_width(plot: HeatMap) -> float:
    """Width in inches of a cell that holds the longest text or label."""
    texts = [*plot.columns, *(text for row in plot.texts or () for text in row)]
    lines = [line for text in texts for line in text.split("\n")]
    return max(0.3, 0.1 + 0.075 * max(map(len, lines)))


def _has_texts(plot: HeatMap) -> bool:
    """Whether the texts of the cells are drawn: if they can be read, side by side."""
    num_cells = len(plot.rows) * len(plot.columns)
    fit = len(plot.columns) * _text_width(plot) <= _WIDEST_TEXTS
    return plot.texts is not None and fit and num_cells <= _MOST_TEXTS


def _heat_map(axes: Any, plot: HeatMap) -> Any:
    import numpy as np
    from matplotlib import colormaps

    values = np.array([[math.nan if v is None else v for v in row] for row in plot.values])
    # Cells without a value stay grey.
    axes.set_facecolor("#dddddd")
    colours = colormaps[plot.colours]
    image = axes.imshow(values, cmap=colours, vmin=plot.low, vmax=plot.high, aspect="auto")
    for names, set_ticks in ((plot.columns, axes.set_xticks), (plot.rows, axes.set_yticks)):
        stride = math.ceil(len(names) / 10) if len(names) > 60 else 1
        set_ticks(range(0, len(names), stride), names[::stride], fontsize=8)
    axes.tick_params(length=0)
    axes.set_xlabel(plot.column_label, fontsize=8)
    axes.set_ylabel(plot.row_label, fontsize=8)
    axes.spines[:].set_visible(False)
    if plot.texts is None or not _has_texts(plot):
        return image
    shades = colours((values - plot.low) / (plot.high - plot.low))
    for i, texts in enumerate(plot.texts):
        for j, text in enumerate(texts):
            is_dark = shades[i, j, :3] @ (0.299, 0.587, 0.114) < 0.5
            ink = "white" if is_dark and not math.isnan(values[i, j]) else "black"
            if plot.wrong and plot.wrong[i][j]:
                ink = "#ff9a8a" if is_dark else "#b00020"
            axes.text(j, i, text, ha="center", va="center", fontsize=8, color=ink)
    return image


def _line_chart(axes: Any, chart: LineChart) -> None:
    if chart.shaded is not None:
        axes.axvspan(
            chart.across.low,
            chart.shaded,
            color="#4477aa",
            alpha=0.12,
            linewidth=0,
            label=chart.shaded_name or None,
        )
    if chart.mark is not None:
        axes.axvline(chart.mark[0], color="grey", linestyle=":", label=chart.mark[1])
    for number, curve in enumerate(chart.curves):
        marker, colour = _STYLES[number % len(_STYLES)]
        many = len(curve.x) > 40
        # Curves often lie on each other; later ones are see-through and larger.
        axes.plot(
            curve.x, curve.y, color=colour, label=curve.name, linewidth=1.5,
            linestyle="--" if number and not many else "-", marker=None if many else marker,
            markerfacecolor="none" if number else colour, markersize=9 if number else 6,
        )  # fmt: skip
        low, high = ([bounds[i] for bounds in curve.intervals] for i in (0, 1))
        if curve.intervals and chart.band:
            axes.fill_between(curve.x, low, high, color=colour, alpha=0.2, linewidth=0)
        elif curve.intervals:
            axes.vlines(curve.x, low, high, color=colour, linewidth=1.5)
    for axis, name in ((chart.across, "x"), (chart.up, "y")):
        _set_axis(axes, name, axis)
    axes.grid(alpha=0.25)
    if len(chart.curves) > 1 or chart.mark or chart.shaded_name or chart.is_named:
        axes.legend(frameon=False, fontsize=8)


def _set_axis(axes: Any, name: str, axis: Axis) -> None:
    """Range, ticks and label of one axis."""
    getattr(axes, f"set_{name}label")(axis.label)
    getattr(axes, f"set_{name}scale")("log" if axis.logarithmic else "linear")
    low, high = axis.low, axis.high
    if axis.logarithmic:
        limits = (low * (low / high) ** 0.03, high * (high / low) ** 0.03)
    else:
        limits = (low - 0.03 * (high - low), high + 0.03 * (high - low))
    getattr(axes, f"set_{name}lim")(*limits)
    values = [value for value, _ in axis.ticks]
    getattr(axes, f"set_{name}ticks")(values, [text for _, text in axis.ticks])
    getattr(axes, f"{name}axis").minorticks_off()


def _bars(axes: Any, plot: Bars) -> None:
    scale = 100 if plot.percent else 1
    width = 0.8 / len(plot.series)
    for number, (name, values) in enumerate(plot.series.items()):
        offset = width * (number - (len(plot.series) - 1) / 2)
        _, colour = _STYLES[number % len(_STYLES)]
        colours = [colour if value >= 0 else "#cc6677" for value in values]
        positions = [row + offset for row in range(len(values))]
        lengths = [scale * value for value in values]
        bar = axes.bar if plot.upright else axes.barh
        bar(positions, lengths, width, color=colours, label=name)
        for position, (low, high) in zip(positions, plot.intervals.get(name, ()), strict=False):
            axes.hlines(position, scale * low, scale * high, color="black", linewidth=1)
    if plot.reference is not None:
        value, name = plot.reference
        axes.axvline(scale * value, color="grey", linestyle=":", label=name)
    label = f"{plot.label}, %" if plot.percent else plot.label
    if plot.upright:
        stride = max(1, math.ceil(len(plot.names) / 12))
        axes.set_xticks(range(0, len(plot.names), stride), plot.names[::stride])
        axes.set_ylabel(label)
        axes.set_xlabel(plot.name_label)
    else:
        if plot.largest is not None:
            axes.set_xlim(0, scale * plot.largest)
        axes.set_yticks(range(len(plot.names)), plot.names)
        axes.invert_yaxis()
        axes.set_xlabel(label)
    if len(plot.series) > 1:
        # Below the bars, where it hides none.
        axes.legend(
            loc="upper right", bbox_to_anchor=(1, -0.22), ncols=3, frameon=False, fontsize=8
        )


def _points(axes: Any, plot: Points) -> None:
    """Named points joined in their order; the paths of each if there are several moments."""
    last = list(plot.frames.values())[-1]
    if len(plot.frames) > 1:
        tracks = zip(*plot.frames.values(), strict=True)
        for track, colour in zip(tracks, _colours(len(last)), strict=True):
            axes.plot(*zip(*track, strict=True), color=colour, linewidth=1, alpha=0.7)
            axes.plot(*track[0], color=colour, marker="o", markersize=3)
    else:
        # The line also makes the axes hold all points, which are texts.
        style = "-" if plot.is_ordered else "none"
        axes.plot(*zip(*last, strict=True), color="#cccccc", linewidth=0.8, linestyle=style)
    for point, name, colour in zip(last, plot.names, _colours(len(last)), strict=True):
        axes.text(*point, name, color=colour, ha="center", va="center", weight="bold", fontsize=9)
    axes.set_xlabel(plot.axes[0], fontsize=8)
    axes.set_ylabel(plot.axes[1], fontsize=8)
    axes.margins(0.12)


def _colours(count: int) -> list[Any]:
    """One colour for each of ten digits; a range from dark to light for more."""
    from matplotlib import colormaps

    if count <= _NUM_COLOURS:
        return [colormaps["tab10"](number) for number in range(count)]
    return [colormaps["viridis"](number / count) for number in range(count)]


def new_figure(size: tuple[float, float]) -> Any:
    """A figure of `size` inches for `save`, without a window.

    matplotlib takes a second to import, so it is imported only when something is drawn.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Any, path: Path) -> None:
    """Write a figure as PNG or SVG, by the ending of the file.

    Text in an SVG stays text, so that it can be searched and read aloud. The same figure always
    gives the same bytes.
    """
    files.write_bytes(path, _encoded(figure, path.suffix.removeprefix("."), _DPI))


def _encoded(figure: Any, format: str, dpi: int) -> bytes:
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "abacist"}):
        figure.savefig(
            buffer, format=format, dpi=dpi, metadata={"Date": None} if format == "svg" else None
        )
    return buffer.getvalue()


def _with_few_colours(png: bytes) -> bytes:
    """Return a picture with a palette, a third of its size."""
    from PIL import Image

    buffer = io.BytesIO()
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    picture.quantize(_INLINE_COLOURS).save(buffer, format="png", optimize=True)
    return buffer.getvalue()
