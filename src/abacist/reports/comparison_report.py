"""The report of several runs side by side: what they share, how surely they differ, how to repeat them."""

import itertools
from collections.abc import Mapping, Sequence

from abacist.intervals import Difference, Proportion, percent
from abacist.reports import pictures, repeat
from abacist.reports.html import Part, page
from abacist.reports.html_builder import Markup, code, element, table
from abacist.reports.pluralisation import points
from abacist.reports.run_records import Records
from abacist.reports.run_report import repeating, verdict
from abacist.scoring.comparison import ComparedRow


def comparison_report(
    runs: Mapping[str, Records], rows: Sequence[ComparedRow], trained_alike: bool = True
) -> str:
    """A whole page on some runs by name, with the rows that their scorecards share."""
    parts = [_changes(runs), _training(runs), _scores(runs, rows, trained_alike), _repeat(runs)]
    lead = [
        *itertools.chain.from_iterable(
            (element("h2", name), verdict(records)) for name, records in runs.items()
        ),
        *_clearest(list(runs), rows),
    ]
    damages = [damage for records in runs.values() for damage in records.damages]
    if damages:
        lead.append(element("ul", *(element("li", damage) for damage in damages), class_="damages"))
    title = f"abacist comparison: {' and '.join(runs)}"
    return page(title, lead, [part for part in parts if part.content])


def _clearest(names: Sequence[str], rows: Sequence[ComparedRow]) -> list[Markup]:
    """How many rows differ by more than chance, for every further run."""
    found = []
    for number, name in enumerate(names[1:]):
        told = [row.differences[number] for row in rows if row.differences[number] is not None]
        better = sum(difference.interval[0] > 0 for difference in told if difference)
        worse = sum(difference.interval[1] < 0 for difference in told if difference)
        found.append(
            element(
                "p",
                f"Of {len(told):,} rows that can be compared, {name} is clearly better than "
                f"{names[0]} in {better:,} and clearly worse in {worse:,}: the 95 % interval of the "
                "difference leaves out 0.",
            )
        )
    return found


def _changes(runs: Mapping[str, Records]) -> Part:
    first, *others = runs.values()
    changes: dict[str, list[str]] = {}
    for number, other in enumerate(others, start=1):
        for name, (mine, theirs) in repeat.changed(first.recipe, other.recipe).items():
            row = changes.setdefault(name, [mine] * len(runs))
            row[number] = theirs
    told = [[code(name), *values] for name, values in changes.items()]
    for name in ("seed", "threads", "device", "machine", "torch", "commit", "parameters"):
        values = [str(records.run.get(name, "–"))[:40] for records in runs.values()]
        if len(set(values)) > 1:
            told.append([name, *values])
    if not told:
        content = [element("p", "Settings, seeds and machines are the same.")]
    else:
        header = ("setting", *runs)
        content = [table("What was set differently", header, [told], texts=len(header))]
    return Part("differences", "Differences in settings", content)


def _training(runs: Mapping[str, Records]) -> Part:
    metrics = {name: records.metrics for name, records in runs.items()}
    return Part(
        "training", "Training", _together([pictures.loss(metrics), pictures.validation(metrics)])
    )


def _scores(runs: Mapping[str, Records], rows: Sequence[ComparedRow], trained_alike: bool) -> Part:
    content: list[Markup] = []
    sections = {n: r.sections["lengths"] for n, r in runs.items() if "lengths" in r.sections}
    if sections:
        series = {
            name: pictures.length_series(section)["equal lengths"]
            for name, section in sections.items()
        }
        trained = max(map(pictures.trained_digits, sections.values()))
        content += _together([pictures.by_length(series, trained)])
    if not trained_alike:
        told = "The runs were trained on different problems, so only rows of a stated length are shown."
        content.append(element("p", told))
    header = ["problems"]
    for name in runs:
        header += [name, "95 % interval"]
    first, *others = runs
    header += [
        text
        for name in others
        for text in (
            "difference, points" if len(others) == 1 else f"{name} − {first}, points",
            "95 % interval",
        )
    ]
    for suite, of_suite in itertools.groupby(rows, key=lambda row: row.suite):
        groups = [
            [_cells(row) for row in group]
            for _, group in itertools.groupby(of_suite, key=lambda row: (row.kind, row.measure))
        ]
        content.append(element("h3", f"Suite {suite}"))
        content.append(table(f"Suite {suite}: every row that all runs have", header, groups))
    return Part("scorecards", "Scorecards", content)


def _cells(row: ComparedRow) -> list[str]:
    name = row.name if row.measure == "exact match" else f"{row.name} ({row.measure})"
    cells = [name]
    for proportion in row.proportions:
        cells += _told(proportion)
    for difference in row.differences:
        cells += _difference(difference)
    return cells


def _told(proportion: Proportion) -> list[str]:
    if proportion.value is None or proportion.interval is None:
        return ["–", "–"]
    low, high = proportion.interval
    return [f"{percent(proportion.value)} of {proportion.n:,}", f"{percent(low)} – {percent(high)}"]


def _difference(found: Difference | None) -> list[str]:
    """Coloured and bold where the interval leaves out 0."""
    if found is None:
        return ["–", "–"]
    low, high = found.interval
    value = _minus(points(found.value))
    if low > 0 or high < 0:
        value = element("strong", value, class_="good" if low > 0 else "bad")
    return [value, _minus(f"{points(low)} to {points(high)}")]


def _minus(text: str) -> str:
    return text.replace("-", "−")


def _repeat(runs: Mapping[str, Records]) -> Part:
    content: list[Markup] = []
    for name, records in runs.items():
        content += [element("h3", name), *repeating(records)]
    return Part("repeat", "How to repeat them", content)


def _together(found: Sequence[Markup | None]) -> list[Markup]:
    drawn = [picture for picture in found if picture is not None]
    return [element("div", *drawn, class_="pictures")] if drawn else []
