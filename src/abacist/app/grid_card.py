"""The grid of lengths as a table of buttons, and the failures of one cell."""

from abacist.app.lengths import CellFailures, LengthGrid
from abacist.reports.html_builder import Markup, element, table
from abacist.reports.plots import viridis
from abacist.reports.score_plots import length_grid
from abacist.reports.tables import Table, shortened


def grid_card(name: str, grid: LengthGrid, trained_digits: int | None = None) -> Markup:
    """A button for every cell: the first operand downwards, the second one to the right.

    A frame marks the lengths up to `trained_digits`.
    """
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
                element(
                    "td",
                    _button(share, hint, row, column),
                    class_=_frame(row, column, trained_digits),
                )
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
        f"{size} by {size} digits, with all parts on ({source}). Downwards: digits of the first number; to the right: "
        "of the second. Click on a cell to see failures."
    )
    if scored and not right:
        caption += " Every problem was answered wrongly."
    return element(
        "div",
        element(
            "table",
            element("caption", caption, _legend(trained_digits)),
            element("thead", element("tr", element("td"), *head)),
            element("tbody", *body),
            class_="lengths",
        ),
        class_="scroll",
    )


def _legend(trained_digits: int | None) -> Markup:
    """The meaning of the colours, of the sign × and of the frame."""
    shares = (0.0, 0.25, 0.5, 0.75, 1.0)
    ramp = [
        element("span", f"{share:.0%}", style=f"--share:{viridis(share)}", class_="shade")
        for share in shares
    ]
    signs = [element("span", "× at least one wrong")]
    if trained_digits is not None:
        text = f"framed: lengths in training, up to {trained_digits} digits"
        signs.append(element("span", text, class_="framed"))
    return element("span", "right: ", *ramp, *signs, class_="key")


def _frame(row: str, column: str, trained_digits: int | None) -> str | None:
    """The sides of a cell at which the frame around the trained lengths runs, as classes."""
    if trained_digits is None:
        return None
    (row_first, row_last), (first, last) = (_range(row), _range(column))
    if row_first > trained_digits or first > trained_digits:
        return None
    classes = ["trained"]
    classes += ["top"] if row_first == 1 else []
    classes += ["left"] if first == 1 else []
    classes += ["bottom"] if row_last >= trained_digits else []
    classes += ["right"] if last >= trained_digits else []
    return " ".join(classes)


def _range(name: str) -> tuple[int, int]:
    """The first and the last length of a cell, from `3` or `1–3`."""
    first, _, last = name.partition("–")
    return int(first), int(last or first)


def failures_card(cell: CellFailures, speaks_of_parts: bool = False) -> Markup:
    """The proportion of right answers and some failures.

    With `speaks_of_parts`, which parts were on is said even if all were.
    """
    lengths = " and ".join(
        f"{count} digit{'s' * (count > 1)}" for count in (cell.first, cell.second)
    )
    parts = f", without {', '.join(cell.off)}" if cell.off else ""
    if speaks_of_parts and not cell.off:
        parts = ", with all parts on"
    lines = [element("p", f"{lengths}{parts}: {cell.proportion} of test problems right.")]
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
    (row_first, row_last), (first, last) = _range(row), _range(column)
    kind = None if share == 1 else "unscored" if share is None else "errors"
    return element(
        "button",
        element("span", "×" if kind == "errors" else ""),
        type="button",
        class_=kind,
        style=None if share is None else f"--share:{viridis(share)}",
        aria_label=hint,
        title=hint,
        tabindex=0 if row_first == first == 1 else -1,
        # A click asks for the longest of a range.
        data_first=row_last,
        data_second=last,
    )
