"""A grid of proportions on a terminal.

In colour two rows of cells share a line of half blocks; elsewhere every cell is one of five shades.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

_MOST_CELLS = 60
"""A larger grid is shown coarser, so many cells wide and high."""
_COLOURS = ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))
"""Of 0, 25, 50, 75 and 100 % (viridis, as in the picture)."""
_SHADES = " ░▒▓█"
_NOT_SCORED = "·"
_MARGIN = 5


@dataclass(frozen=True)
class HeatMap:
    """Share of right answers; first operand upwards, second operand to the right."""

    right: Sequence[Sequence[int]]
    count: Sequence[Sequence[int]]
    """Problems scored in each cell; 0 where none is."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Rows from the longest first operand down to the shortest, then the legend."""
        most = max(1, min(_MOST_CELLS, options.max_width - _MARGIN))
        step = -(-len(self.count) // most)
        shares = self._shares(step)
        plain = console.no_color or console.color_system is None
        rows = len(shares)
        for top in range(rows - 1, -1, -1 if plain else -2):
            label = f"{(top + 1) * step:>{_MARGIN - 1}} "
            yield Text(label) + (
                _shaded(shares[top])
                if plain
                else _coloured(shares[top], shares[top - 1] if top else [None] * rows)
            )
        legend = Text(" " * _MARGIN + f"1 … {rows * step} digits of the second operand; ")
        if plain:
            legend.append(f"{_SHADES!r} 0 … 100%, {_NOT_SCORED} not scored")
        else:
            for number, (red, green, blue) in enumerate(_COLOURS):
                legend.append("██", style=f"rgb({red},{green},{blue})")
                legend.append(f" {25 * number}% ")
        yield legend

    def _shares(self, step: int) -> list[list[float | None]]:
        """Right answers over problems of blocks of step × step cells; None where nothing was scored."""
        size = len(self.count)
        blocks = range(0, size, step)

        def total(cells: Sequence[Sequence[int]], i: int, j: int) -> int:
            return sum(sum(row[j : j + step]) for row in cells[i : i + step])

        return [
            [
                total(self.right, i, j) / count if (count := total(self.count, i, j)) else None
                for j in blocks
            ]
            for i in blocks
        ]


def _shaded(shares: list[float | None]) -> Text:
    # Full blocks are for what is all right.
    return Text(
        "".join(_NOT_SCORED if share is None else _SHADES[int(4 * share)] for share in shares)
    )


def _coloured(upper: list[float | None], lower: list[float | None]) -> Text:
    text = Text()
    for above, below in zip(upper, lower, strict=True):
        text.append("▀", style=f"{_colour(above)} on {_colour(below)}")
    return text


def _colour(share: float | None) -> str:
    """A colour between those of the scale, as rich names it; the terminal's own where nothing is."""
    if share is None:
        return "default"
    position = 4 * share
    low = min(int(position), 3)
    mixed = (
        round(a + (b - a) * (position - low))
        for a, b in zip(_COLOURS[low], _COLOURS[low + 1], strict=True)
    )
    return "rgb({},{},{})".format(*mixed)
