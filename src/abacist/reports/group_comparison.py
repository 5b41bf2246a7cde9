"""Groups of runs side by side, as tables for a terminal or a page, and as a picture."""

from collections.abc import Sequence
from itertools import groupby

from abacist.intervals import percent
from abacist.reports.html import Part, page
from abacist.reports.html_builder import element, table
from abacist.reports.plots import Bars
from abacist.reports.run_report import figures
from abacist.reports.tables import Table, difference_cell
from abacist.sweeps.comparison import ComparedGroup, GroupRow

EXPLANATION = (
    "Mean share of right answers over the runs of a group, with the smallest and the largest. "
    "The interval of a difference covers the chance of the problems and, where both groups have "
    "several runs, that of the seeds."
)


def tables(groups: Sequence[ComparedGroup], rows: Sequence[GroupRow]) -> list[Table]:
    """The table of groups, and a table of common rows for each suite."""
    names = [group.name for group in groups]
    certified = [[group.name, f"{group.certified.n}", _certified(group)] for group in groups]
    columns = ["problems", *names]
    for name in names[1:]:
        title = "difference, points" if len(names) == 2 else f"{name} − {names[0]}, points"
        columns.append(f"{title}\n(95% interval)")
    return [
        Table("Groups", ("group", "runs", "certified"), [certified]),
        *(
            Table(f"Suite {suite}", columns, [[_cells(row) for row in of_suite]])
            for suite, of_suite in groupby(rows, key=lambda row: row.key[0])
        ),
    ]


def chart(groups: Sequence[ComparedGroup], rows: Sequence[GroupRow]) -> Bars | None:
    """A bar for each group and each row of exact matches, by length if the runs were scored by length.

    None if the groups share no exact match.
    """
    exact = [row for row in rows if row.key[2] == "exact match"]
    by_length = [row for row in exact if row.key[0] == "lengths"]
    drawn = by_length or [row for row in exact if row.key[0] == exact[0].key[0]]
    if not drawn:
        return None
    names = [f"{group.name} (n = {group.certified.n})" for group in groups]
    return Bars(
        "Exact match: mean over the runs of each group, with 95 % intervals",
        [row.key[1] for row in drawn],
        {name: [row.means[number] for row in drawn] for number, name in enumerate(names)},
        "exact match",
        intervals={
            name: [row.intervals[number] for row in drawn] for number, name in enumerate(names)
        },
        percent=True,
        largest=1.0,
        caption="Mean share of right answers over the runs of each group; n is their number.",
    )


def comparison_page(groups: Sequence[ComparedGroup], rows: Sequence[GroupRow]) -> str:
    """Return the HTML page that compares groups: a picture, and a table for each suite."""
    shown = tables(groups, rows)
    parts = [
        Part(f"table-{number}", view.caption, [table(view)]) for number, view in enumerate(shown)
    ]
    picture = chart(groups, rows)
    title = f"abacist comparison: {' and '.join(group.name for group in groups)}"
    lead = [element("p", EXPLANATION), *figures([] if picture is None else [picture])]
    return page(title, lead, parts)


def _certified(group: ComparedGroup) -> str:
    return f"{group.certified.successes} of {group.certified.n}"


def _cells(row: GroupRow) -> list[str]:
    _, name, measure = row.key
    label = name if measure == "exact match" else f"{name} ({measure})"
    cells = []
    for runs, mean in zip(row.shares, row.means, strict=True):
        values = [run.successes / run.n for run in runs]
        text = percent(mean)
        if len(values) > 1:
            text += f"\n({percent(min(values))} – {percent(max(values))})"
        cells.append(text)
    return [label, *cells, *map(difference_cell, row.differences)]
