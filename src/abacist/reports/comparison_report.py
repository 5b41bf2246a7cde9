"""The report of several runs side by side: how they differ, how significantly, and how to repeat them."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from abacist import extensions
from abacist.configuration import to_json
from abacist.errors import UserError
from abacist.reports import csv_records, repeat_command, run_records, score_plots, training_plots
from abacist.reports.html import Part, page
from abacist.reports.html_builder import Markup, element, table
from abacist.reports.plots import LineChart
from abacist.reports.run_records import RunRecords
from abacist.reports.run_report import damage_list, figures, repeating, verdict
from abacist.reports.tables import OTHER_TRAINING, Cell, Table, comparison_tables
from abacist.runs.directory import RunDirectory
from abacist.scoring.comparison import ComparedRow
from abacist.scoring.records import Scorecard, Section


@dataclass(frozen=True)
class RunComparison:
    """Single runs, and the rows that their scorecards share."""

    names: Sequence[str]
    runs: Sequence[RunDirectory]
    cards: Sequence[Scorecard]
    rows: Sequence[ComparedRow]
    trained_alike: bool

    @property
    def notes(self) -> Sequence[str]:
        """Sentences printed after the tables."""
        return () if self.trained_alike else (OTHER_TRAINING,)

    def tables(self) -> list[Table]:
        """A table of common rows for each suite."""
        return comparison_tables(self.names, self.rows)

    def picture(self) -> LineChart:
        """Exact match by length for all runs, whose names must differ.

        Raises `UserError` if a run has no scores by length.
        """
        for run, card in zip(self.runs, self.cards, strict=True):
            if "lengths" not in card.sections:
                scoring = extensions.command("score", str(run.path), "--suite", "lengths")
                raise UserError(f"{run.path} has no scores by length to draw. Type {scoring}.")
        sections = [card.sections["lengths"] for card in self.cards]
        chart = _by_length(dict(zip(self.names, sections, strict=True)))
        if chart is None or len(chart.curves) < len(sections):
            raise UserError("this task has no curve by length to draw. Leave out --out.")
        return chart

    def page(self) -> str:
        """The HTML page about all runs, whose names must differ."""
        runs = dict(zip(self.names, map(run_records.read, self.runs), strict=True))
        return comparison_report(runs, self.rows, self.trained_alike)

    def csv_records(self) -> list[csv_records.Record]:
        """Every common row of every run."""
        return csv_records.of_comparison(self.names, self.rows)

    def to_json(self) -> dict[str, Any]:
        """Return the paths of the runs, and every common row with the proportion of each run."""
        rows = [
            vars(row.key)
            | {"proportions": to_json(row.proportions), "differences": to_json(row.differences)}
            for row in self.rows
        ]
        paths = [str(run.path) for run in self.runs]
        return {"runs": paths, "trained_alike": self.trained_alike, "rows": rows}


def comparison_report(
    runs: Mapping[str, RunRecords], rows: Sequence[ComparedRow], trained_alike: bool = True
) -> str:
    """The whole page about some runs by name, with the rows that their scorecards share."""
    metrics = {name: records.metrics for name, records in runs.items()}
    commands = {n: repeat_command.command(r.recipe, r.run) for n, r in runs.items()}
    repeat = ([element("h3", n), *repeating(runs[n], commands[n])] for n in runs)
    parts = [
        Part("differences", "Differences in settings", [_changes(runs)]),
        Part("training", "Training", figures(training_plots.of_runs(metrics))),
        Part("scorecards", "Scorecards", _scores(runs, rows, trained_alike)),
        Part("repeat", "How to repeat them", list(itertools.chain(*repeat))),
    ]
    lead = [*itertools.chain(*((element("h2", n), verdict(r)) for n, r in runs.items()))]
    lead += [element("p", sentence) for sentence in _clearest(list(runs), rows)]
    damages = [damage for records in runs.values() for damage in records.damages]
    if damages:
        lead.append(damage_list(damages))
    title = f"abacist comparison: {' and '.join(runs)}"
    return page(title, lead, [part for part in parts if part.content])


def _clearest(names: Sequence[str], rows: Sequence[ComparedRow]) -> list[str]:
    """For every further run, the number of rows whose difference from the first is significant."""
    sentences = []
    for number, name in enumerate(names[1:]):
        intervals = [row.differences[number].interval for row in rows]
        better = sum(low > 0 for low, _ in intervals)
        worse = sum(high < 0 for _, high in intervals)
        sentences.append(
            f"Of {len(intervals):,} rows that can be compared, {name} is clearly better than "
            f"{names[0]} in {better:,} and clearly worse in {worse:,}: the 95 % interval of the "
            "difference excludes 0."
        )
    return sentences


def _changes(runs: Mapping[str, RunRecords]) -> Markup:
    first, *others = runs.values()
    changes: dict[str, list[str]] = {}
    for number, other in enumerate(others, start=1):
        for name, (mine, theirs) in repeat_command.changed(first.recipe, other.recipe).items():
            changes.setdefault(name, [mine] * len(runs))[number] = theirs
    rows: list[list[str]] = [[Cell(n, "code"), *values] for n, values in changes.items()]
    for name in ("seed", "threads", "device", "machine", "torch", "commit", "parameters"):
        known = [records.run.get(name) for records in runs.values()]
        values = ["–" if value is None else str(value)[:40] for value in known]
        if len(set(values)) > 1:
            rows.append([name, *values])
    if not rows:
        return element("p", "Settings, seeds and machines are the same.")
    columns = ("setting", *runs)
    return table(Table("Settings that differ", columns, [rows], num_text_columns=len(columns)))


def _scores(
    runs: Mapping[str, RunRecords], rows: Sequence[ComparedRow], trained_alike: bool
) -> list[Markup]:
    sections = {n: r.sections["lengths"] for n, r in runs.items() if "lengths" in r.sections}
    chart = _by_length(sections)
    content = figures([] if chart is None else [chart])
    if not trained_alike:
        content.append(element("p", OTHER_TRAINING))
    for shown in comparison_tables(list(runs), rows):
        content += [element("h3", shown.caption), table(shown)]
    return content


def _by_length(sections: Mapping[str, Section]) -> LineChart | None:
    """A curve for each run; None if there are fewer than two lengths."""
    series = {n: score_plots.length_series(s)["equal lengths"] for n, s in sections.items()}
    trained = {name: section.trained_digits for name, section in sections.items()} or 1
    return score_plots.by_length(series, trained)
