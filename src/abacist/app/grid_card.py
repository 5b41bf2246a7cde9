"""The grid of lengths as a table of buttons, and the failures of one cell."""

from abacist.app.lengths import CellFailures, LengthGrid
from abacist.reports.html_builder import Markup, element, table
from abacist.reports.plots import viridis
from abacist.reports.score_plots import length_grid
from abacist.reports.tables import Table, shortened


def grid_card(name: str, grid: LengthGrid) -> Markup:
    """A button for every cell: the first operand downwards, the second one to the right."""
    size = len(grid.count)
    scored, right = sum(map(sum, grid.count)), sum(map(sum, grid.right))
    plot = length_grid({"right": grid.right, "count": grid.count})
    assert plot.hints is not None
    head = (element("th", column, scope="col") for column in plot.columns)
    # The heat map begins with the longest operands, the table with the shortest.
    cells = list(zip(plot.rows, plot.values, plot.hints, strict=True))[::-1]
    body = (
        element(
            "tr",
            element("th", row, scope="row"),
            *(
                element("td", _button(share, hint, row, column))
                for share, hint, column in zip(values, hints, plot.columns, strict=True)
            ),
        )
        for row, values, hints in cells
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
            element("thead", element("tr", element("td"), *head)),
            element("tbody", *body),
            class_="lengths",
        ),
        class_="scroll",
    )


def failures_card(cell: CellFailures) -> Markup:
    """The proportion of right answers and some failures."""
    lengths = " and ".join(
        f"{count} digit{'s' * (count > 1)}" for count in (cell.first, cell.second)
    )
    lines = [element("p", f"{lengths}: {cell.proportion} of test problems right.")]
    if cell.failures:
        rows = [
            [shortened(text) for text in (f.problem, f.answer or "(no answer)", f.expected)]
            for f in cell.failures
        ]
        columns = ("problem", "model wrote", "right")
        lines.append(table(Table("Problems with a wrong answer", columns, [rows], 3)))
    return element("div", *lines, role="status")


def _button(share: float | None, hint: str, row: str, column: str) -> Markup:
    """One cell. `row` and `column` are lengths, or ranges of lengths such as `1–3`."""
    first, second = (name.partition("–") for name in (row, column))
    kind = None if share == 1 else "unscored" if share is None else "errors"
    return element(
        "button",
        element("span", "×" if kind == "errors" else ""),
        type="button",
        class_=kind,
        style=None if share is None else f"--share:{viridis(share)}",
        aria_label=hint,
        title=hint,
        tabindex=0 if first[0] == second[0] == "1" else -1,
        # A click asks for the longest of a range.
        data_first=int(first[2] or first[0]),
        data_second=int(second[2] or second[0]),
    )
