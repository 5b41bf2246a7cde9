"""Tables and plots on a terminal, rendered by rich.

>>> console().print(Shown([score_table("Exact match", rows), length_grid(details)]))

A heat map without texts is drawn with one character for each cell; every other plot becomes a table.
A table that is too wide is broken into blocks that repeat its first column.
"""

import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from rich import box
from rich.columns import Columns
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table as RichTable
from rich.text import Text

from abacist import extensions
from abacist.reports.plot_tables import STYLES, as_table, level_of
from abacist.reports.plots import HeatMap, View, viridis
from abacist.reports.tables import Table

_SHADES = " ░▒▓█"
_NARROWEST_TEXT = 24
"""Width down to which a column of words is wrapped before a table is broken into blocks."""


def console() -> Console:
    """Standard output; without colours if it is no terminal or NO_COLOR is set.

    Text is printed as it is: brackets and colons in paths and answers are not markup.
    """
    return Console(highlight=False, markup=False, emoji=False)


@dataclass(frozen=True)
class Shown:
    """Views one after the other; heat maps of characters stand side by side."""

    views: Sequence[View]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render every view at the width of the console, with empty lines around tables and plots."""
        is_first = True
        for is_drawn, group in groupby(self.views, _is_drawn):
            views = list(group)
            drawn = [_drawn(view) for view in views if is_drawn and isinstance(view, HeatMap)]
            for view in [Columns(drawn, padding=(0, 3))] if is_drawn else views:
                if not is_first and not isinstance(view, str):
                    yield ""
                is_first = False
                if isinstance(view, Columns):
                    yield view
                elif isinstance(view, str):
                    yield Text(view)
                else:
                    yield from _blocks(as_table(view), options.max_width)


def _is_drawn(view: View) -> bool:
    return isinstance(view, HeatMap) and view.texts is None


def _blocks(table: Table, width: int) -> Iterator[RenderableType]:
    """A table as rich tables that fit the width, under its caption."""
    if table.caption:
        # Not the title of the rich table, which would be wrapped at the width of the table.
        yield Text(table.caption, style="italic")
    rows = [row for group in table.groups for row in group]
    widths = [
        max(_width(cell) for cell in column) for column in zip(table.columns, *rows, strict=True)
    ]
    num_texts = table.num_text_columns
    texts = sum(min(_NARROWEST_TEXT, width) + 2 for width in widths[:num_texts])
    begin = num_texts
    while True:
        end, room = begin, width - texts
        while end < len(widths) and (end == begin or widths[end] <= room):
            room -= widths[end] + 2
            end += 1
        yield _rich_table(table, [*range(num_texts), *range(begin, end)])
        begin = end
        if begin >= len(widths):
            break
        yield ""


def _rich_table(table: Table, columns: Sequence[int]) -> RichTable:
    rich = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for i in columns:
        is_text = i < table.num_text_columns
        justify = "left" if is_text else "right"
        header = Text(table.columns[i])
        rich.add_column(header, justify=justify, no_wrap=not is_text, overflow="fold")  # type: ignore[arg-type]
    for group in table.groups:
        rich.add_section()
        for row in group:
            rich.add_row(*(_cell(row[i]) for i in columns))
    return rich


def _cell(cell: str) -> Text:
    style = getattr(cell, "style", "")
    return Text(cell, {"good": "green", "bad": "red", "code": "", "prose": ""}.get(style, style))


def _width(text: str) -> int:
    return max(map(len, text.split("\n")))


def _drawn(plot: HeatMap) -> Text:
    """Return one character for each cell; a fuller block stands for a larger value, a full one for the largest."""
    margin = max(map(_width, plot.rows)) + 1
    text = Text(f"{plot.title}\n", style="italic")
    if all(len(name) == 1 for name in plot.columns):
        text.append(" " * margin + "".join(plot.columns) + "\n", style="dim")
    for name, values in zip(plot.rows, plot.values, strict=True):
        text.append(f"{name:>{margin - 1}} ", style="dim")
        for value in values:
            text.append(*_character(plot, value))
        text.append("\n")
    if plot.caption:
        text.append(f"{plot.columns[0]} … {plot.columns[-1]} {plot.column_label}; ")
        text.append("░▒▓ from 6, 25 and 50%, █ no error, · not scored")
    return text


def _character(plot: HeatMap, value: float | None) -> tuple[str, str]:
    if value is None:
        return "·", ""
    level = level_of(plot, value)
    if plot.colours == "viridis":
        # A full block is reserved for cells without an error.
        return _SHADES[min(level, 3) if value < plot.high else 4], viridis(value) or ""
    return _SHADES[level], STYLES[level]


def command(*words: str) -> str:
    """Return a command line that works as printed, even if `abacist` is not on the path.

    It loads the extensions that the present command has loaded.
    """
    program = "abacist"
    if shutil.which(program) is None and Path(sys.argv[0]).name == program:
        program = sys.argv[0]
    return shlex.join([program, *words, *extensions.options()])
