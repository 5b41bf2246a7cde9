"""The numbers of a plot as a table, for terminals and for readers of pages."""

from abacist.intervals import percent
from abacist.reports.plots import Bars, HeatMap, LineChart, Plot, Points
from abacist.reports.tables import Cell, Table, number

STYLES = ("dim", "blue", "cyan", "green", "bold green")
"""Styles of rich for almost nothing, then for the four quarters of a scale."""


def as_table(view: Table | Plot) -> Table:
    """The numbers of a plot as a table."""
    if isinstance(view, LineChart):
        return _line_chart(view)
    if isinstance(view, Bars):
        return _bars(view)
    if isinstance(view, Points):
        return _points(view)
    return _texts(view) if isinstance(view, HeatMap) else view


def _line_chart(chart: LineChart) -> Table:
    """A row for every x, a column for every curve."""
    curves = [dict(zip(curve.x, curve.y, strict=True)) for curve in chart.curves]
    names = {value: name for value, name in chart.across.ticks if chart.across.low == -0.5}
    rows = []
    for x in sorted({x for curve in curves for x in curve}):
        name = names.get(x, f"{x:,.10g}")
        if chart.mark is not None and chart.mark[0] == x:
            name += f" ({chart.mark[1]})"
        rows.append([name, *(_value(curve.get(x), chart.up.percent) for curve in curves)])
    columns = (chart.across.label, *(curve.name for curve in chart.curves))
    return Table(chart.title, columns, [rows])


def _bars(plot: Bars) -> Table:
    """A row for every name, a column for every series, with its interval if that is known."""
    if plot.upright:
        return _histogram(plot)
    columns = [""]
    rows = [[name] for name in plot.names]
    for series, values in plot.series.items():
        columns.append(series)
        for row, value in zip(rows, values, strict=True):
            row.append(percent(value) if plot.percent else number(value, "+.2f"))
        if series in plot.intervals:
            columns.append("95% interval")
            for row, (low, high) in zip(rows, plot.intervals[series], strict=True):
                row.append(f"{_value(low, plot.percent)} – {_value(high, plot.percent)}")
    title = plot.title
    if plot.reference is not None:
        title += f"; {plot.reference[1]}: {_value(plot.reference[0], plot.percent)}"
    return Table(title, columns, [rows])


def _histogram(plot: Bars) -> Table:
    """A row for every bar, with the bar, its value, and its share if that is not the value."""
    ((series, values),) = plot.series.items()
    total, largest = sum(values) or 1.0, max(values) or 1.0
    rows = [
        [
            name,
            "█" * max(1, round(30 * value / largest)),
            percent(value / (1 if plot.percent else total)),
        ]
        for name, value in zip(plot.names, values, strict=True)
    ]
    if plot.percent:
        return Table(plot.title, ("", "", series), [rows], num_text_columns=2)
    for row, value in zip(rows, values, strict=True):
        row.insert(2, number(value, ","))
    return Table(plot.title, ("", "", series, "share"), [rows], num_text_columns=2)


def _points(plot: Points) -> Table:
    """The coordinates at the last moment."""
    last = list(plot.frames.values())[-1]
    rows = [
        [name, *(number(value, "+.2f") for value in point)]
        for name, point in zip(plot.names, last, strict=True)
    ]
    return Table(plot.title, ("", *plot.axes), [rows])


def _value(value: float | None, is_percent: bool) -> str:
    if value is None:
        return "–"
    return percent(value) if is_percent else number(value, ".4g")


def _texts(plot: HeatMap) -> Table:
    """The texts of a heat map, in colours that follow its values."""
    assert plot.texts is not None
    shown = plot.columns_in_table
    columns = range(len(plot.columns)) if shown is None else shown
    rows = [
        [
            name,
            *(Cell(texts[j], _style(plot, i, j, values[j])) for j in columns),
        ]
        for i, (name, texts, values) in enumerate(
            zip(plot.rows, plot.texts, plot.values, strict=True)
        )
    ]
    caption = plot.title + (f"\nColumns: {plot.column_label}" if plot.column_label else "")
    return Table(caption, (plot.row_label, *(plot.columns[j] for j in columns)), [rows])


def _style(plot: HeatMap, i: int, j: int, value: float | None) -> str:
    if plot.wrong and plot.wrong[i][j]:
        return "red"
    if plot.colours != "RdBu":
        return STYLES[level_of(plot, value)]
    size = abs(value or 0.0) / plot.high
    colour = "green" if (value or 0.0) > 0 else "red"
    return "dim" if size < 0.02 else f"bold {colour}" if size > 0.25 else colour


def level_of(plot: HeatMap, value: float | None) -> int:
    """0 for almost nothing, then 1 to 4 by quarters of the scale."""
    fraction = ((value or plot.low) - plot.low) / (plot.high - plot.low)
    return 0 if fraction < 1 / 16 else min(4, 1 + int(4 * fraction))
