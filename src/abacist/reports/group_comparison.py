"""Groups of runs side by side, as tables for a terminal or a page, and as a picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from abacist.configuration import to_json
from abacist.errors import UserError
from abacist.intervals import percent
from abacist.reports import csv_records
from abacist.reports.html import Part, page
from abacist.reports.html_builder import element, table
from abacist.reports.plots import Bars
from abacist.reports.run_report import figures
from abacist.reports.tables import OTHER_TRAINING, Table, difference_cell, difference_columns
from abacist.scoring.comparison import ComparedGroup, ComparedRow, GroupScore

_EXPLANATION = (
    "Mean share of right answers over the runs of a group, with the smallest and the largest. "
    "The interval of a difference covers the chance of the problems and, where both groups have "
    "several runs, that of the seeds."
)


@dataclass(frozen=True)
class GroupComparison:
    """Groups of runs, and the rows that all of them have."""

    groups: Sequence[ComparedGroup]
    rows: Sequence[ComparedRow]
    trained_alike: bool

    @property
    def notes(self) -> Sequence[str]:
        """Sentences printed after the tables."""
        return (_EXPLANATION,) if self.trained_alike else (_EXPLANATION, OTHER_TRAINING)

    def tables(self) -> list[Table]:
        """The table of groups, and a table of common rows for each suite."""
        groups = [
            [g.name, f"{g.certified.n}", f"{g.certified.successes} of {g.certified.n}"]
            for g in self.groups
        ]
        names = [group.name for group in self.groups]
        columns = ["problems", *names, *difference_columns(names)]
        return [
            Table("Groups", ("group", "runs", "certified"), [groups]),
            *(
                Table(f"Suite {suite}", columns, [[_cells(row) for row in of_suite]])
                for suite, of_suite in groupby(self.rows, key=lambda row: row.key.suite)
            ),
        ]

    def picture(self) -> Bars:
        """A bar for each group and each row of exact matches, by length if the runs were scored by length.

        Raises `UserError` if the groups share no exact match.
        """
        bars = self._bars()
        if bars is None:
            raise UserError("these groups share no exact match to draw. Leave out --out.")
        return bars

    def page(self) -> str:
        """The HTML page: a picture, and a table for each suite."""
        parts = [
            Part(f"table-{number}", view.caption, [table(view)])
            for number, view in enumerate(self.tables())
        ]
        bars = self._bars()
        title = f"abacist comparison: {' and '.join(group.name for group in self.groups)}"
        lead = [element("p", " ".join(self.notes)), *figures([] if bars is None else [bars])]
        return page(title, lead, parts)

    def csv_records(self) -> list[csv_records.Record]:
        """Every common row of every group."""
        return csv_records.of_groups(self.groups, self.rows)

    def to_json(self) -> dict[str, Any]:
        """Return every group, and every common row with the score of each group."""
        groups = [
            {"name": g.name, "runs": g.certified.n, "certified": g.certified.to_json()}
            for g in self.groups
        ]
        rows = [
            {
                "suite": row.key.suite,
                "name": row.key.name,
                "measure": row.key.measure,
                "groups": to_json(row.groups),
                "differences": to_json(row.differences),
            }
            for row in self.rows
        ]
        return {"groups": groups, "trained_alike": self.trained_alike, "rows": rows}

    def _bars(self) -> Bars | None:
        exact = [row for row in self.rows if row.key.measure == "exact match"]
        by_length = [row for row in exact if row.key.suite == "lengths"]
        drawn = by_length or [row for row in exact if row.key.suite == exact[0].key.suite]
        if not drawn:
            return None
        names = [f"{group.name} (n = {group.certified.n})" for group in self.groups]
        scores = list(zip(names, zip(*(row.groups for row in drawn), strict=True), strict=True))
        return Bars(
            "Exact match: mean over the runs of each group, with 95 % intervals",
            [row.key.name for row in drawn],
            {name: [score.mean for score in of_group] for name, of_group in scores},
            "exact match",
            intervals={name: [score.interval for score in of_group] for name, of_group in scores},
            percent=True,
            largest=1.0,
            caption="Mean share of right answers over the runs of each group; n is their number.",
        )


def _cells(row: ComparedRow) -> list[str]:
    differences = map(difference_cell, row.differences)
    return [row.key.label, *map(_mean_and_range, row.groups), *differences]


def _mean_and_range(score: GroupScore) -> str:
    if score.runs == 1:
        return percent(score.mean)
    return f"{percent(score.mean)}\n({percent(score.smallest)} – {percent(score.largest)})"
