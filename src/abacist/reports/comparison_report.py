"""The report of several runs side by side: how they differ, how significantly, and how to repeat them."""

import itertools
from collections.abc import Mapping, Sequence

from abacist.reports import repeat_command, score_plots, training_plots
from abacist.reports.html import Part, page
from abacist.reports.html_builder import Markup, element, table
from abacist.reports.run_records import RunRecords
from abacist.reports.run_report import damage_list, figures, repeating, verdict
from abacist.reports.tables import Cell, Table, comparison_tables
from abacist.scoring.comparison import ComparedRow

OTHER_TRAINING = (
    "The runs were trained on different problems, so only rows of a stated length are shown."
)


def comparison_report(
    runs: Mapping[str, RunRecords], rows: Sequence[ComparedRow], trained_alike: bool = True
) -> str:
    """The whole page about some runs by name, with the rows that their scorecards share."""
    metrics = {name: records.metrics for name, records in runs.items()}
    repeat = ([element("h3", name), *repeating(records)] for name, records in runs.items())
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
        intervals = [d.interval for row in rows if (d := row.differences[number]) is not None]
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
    content: list[Markup] = []
    if sections:
        series = {n: score_plots.length_series(s)["equal lengths"] for n, s in sections.items()}
        trained = max(section.trained_digits for section in sections.values())
        chart = score_plots.by_length(series, trained)
        content += figures([] if chart is None else [chart])
    if not trained_alike:
        content.append(element("p", OTHER_TRAINING))
    for shown in comparison_tables(list(runs), rows):
        content += [element("h3", shown.caption), table(shown)]
    return content
