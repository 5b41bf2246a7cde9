"""The grid of lengths as a table of buttons, and the failures of one cell."""

import math

from abacist.app.lengths import CellFailures, LengthGrid
from abacist.intervals import percent
from abacist.reports.charts import colour_of
from abacist.reports.html_builder import Markup, element, table
from abacist.reports.pluralisation import cut

_MOST_CELLS = 40
"""Along each side; finer grids are summed in blocks."""


def grid_card(name: str, grid: LengthGrid) -> Markup:
    """The first number downwards, the second to the right; every cell can be clicked."""
    size = len(grid.count)
    block = math.ceil(size / _MOST_CELLS)
    cells = range(math.ceil(size / block))
    scored = sum(sum(line) for line in grid.count)
    right = sum(sum(line) for line in grid.right)
    rows = [
        element(
            "tr",
            element("th", _range(row, block, size), scope="row"),
            *(element("td", _cell(grid, row, column, block)) for column in cells),
        )
        for row in cells
    ]
    head = element(
        "tr",
        element("td"),
        *(element("th", _range(column, block, size), scope="col") for column in cells),
    )
    source = "from the scorecard" if grid.stored else "scored just now"
    if not grid.complete:
        source += ", not complete"
    caption = (
        f"{name}: {right:,} of {scored:,} test problems right for all pairs of lengths up to "
        f"{size} by {size} digits ({source}). Downwards: digits of the first number; to the right: "
        "of the second. Cells with errors have a ×."
    )
    return element(
        "div",
        element(
            "table",
            element("caption", caption),
            element("thead", head),
            element("tbody", *rows),
            class_="lengths",
        ),
        class_="scroll",
    )


def failures_card(told: CellFailures) -> Markup:
    """The proportion and some failures."""
    what = f"{_digits(told.first)} and {_digits(told.second)}: {told.proportion} of test problems right."
    lines = [element("p", what)]
    if told.failures:
        rows = [
            [cut(found.problem), cut(found.answer or "(no answer)"), cut(found.expected)]
            for found in told.failures
        ]
        caption = "Problems answered wrongly"
        lines.append(table(caption, ["problem", "model wrote", "right"], [rows], texts=3))
    return element("div", *lines, role="status")


def _cell(grid: LengthGrid, row: int, column: int, block: int) -> Markup:
    right, count = (
        sum(
            sum(line[column * block : (column + 1) * block])
            for line in counts[row * block : (row + 1) * block]
        )
        for counts in (grid.right, grid.count)
    )
    size = len(grid.count)
    first, second = (_range(number, block, size) for number in (row, column))
    told = f"{first} and {second} digits: " + (
        f"{right:,} of {count:,} right, {percent(right / count)}" if count else "not scored"
    )
    kinds = [] if count and right == count else ["errors"] if count else ["unscored"]
    return element(
        "button",
        element("span", "×" if "errors" in kinds else ""),
        type="button",
        class_=" ".join(kinds) or None,
        style=f"--share:{colour_of(right / count)}" if count else None,
        aria_label=told,
        title=told,
        tabindex=0 if row == column == 0 else -1,
        # Of a block, the longest.
        data_first=min((row + 1) * block, size),
        data_second=min((column + 1) * block, size),
    )


def _range(number: int, block: int, size: int) -> str:
    low, high = number * block + 1, min((number + 1) * block, size)
    return f"{low}" if low == high else f"{low}–{high}"


def _digits(count: int) -> str:
    return f"{count} digit{'s' * (count > 1)}"
