"""What a sweep found, as tables and curves for a terminal or a page."""

from collections.abc import Iterator, Sequence

from abacist.intervals import percent
from abacist.reports import plots
from abacist.reports.plots import Curve, LineChart, View
from abacist.reports.tables import Cell, Table, interval, number
from abacist.runs.outcome import Outcome
from abacist.sweeps.results import GroupResults, Results, Row

_MOST_COLUMNS = 12
"""Number of groups up to which every row of the scorecards is shown."""
_CURVES_IN_A_CHART = 5
_MOST_CURVES = 40


def tables(results: Results) -> list[View]:
    """The table of groups, what was tuned, and what failed."""
    views: list[View] = [_groups(results)]
    if results.candidates:
        views.append(_tuning(results))
    if results.failures:
        views.append(_failures(results))
    if results.unfinished:
        views.append(f"{results.unfinished:,} trials are unfinished.")
    return views


def curves(results: Results) -> Iterator[LineChart]:
    """Exact match on validation problems by step: the median over seeds, from the worst to the best seed."""
    trained = [group for group in results.groups if any(o.curve for o in group.outcomes)]
    shown = trained[:_MOST_CURVES]
    for first in range(0, len(shown), _CURVES_IN_A_CHART):
        groups = shown[first : first + _CURVES_IN_A_CHART]
        lines = [_curve(group) for group in groups]
        caption = "Exact match on validation problems: the median over seeds, and from the worst to the best seed."
        if len(trained) > len(shown):
            caption += f" The first {len(shown)} of {len(trained):,} groups."
        yield LineChart(
            "Exact match on validation problems by training step",
            lines,
            plots.linear_axis("training step", max(curve.x[-1] for curve in lines)),
            plots.percent_axis("exact match"),
            caption=caption,
            band=True,
        )


def headline(group: GroupResults) -> Row | None:
    """The first row of the scorecards, which stands for all of them; None if there is none."""
    return group.rows[0] if group.rows else None


def setting_text(group: GroupResults, name: str) -> str:
    """The value of a setting in which groups differ."""
    value = group.group.settings.get(name)
    if isinstance(value, list):
        return ",".join(map(str, value))
    return "–" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _groups(results: Results) -> Table:
    rows = []
    for group in results.groups:
        head = headline(group)
        rows.append(
            [
                _name(group, results),
                f"{len(group.outcomes)}",
                f"{number(group.distribution.median(lambda o: o.steps_to_target), ',.0f')} "
                f"({group.reached} seeds)",
                _seeds(group.distribution.without_error.successes, group),
                _seeds(group.distribution.certified.successes, group),
                "–" if head is None else _right(head),
                "–" if head is None else _interval(head),
            ]
        )
    names = {row.key.name for group in results.groups if (row := headline(group)) is not None}
    caption = "Groups of trials"
    if len(names) == 1:
        caption += f"; right: the row “{names.pop()}”, median over seeds"
    caption += ". The interval is over seeds if there are six or more, and over problems otherwise"
    columns = ("group", "seeds", "to target", "no error", "certified", "right", "95% interval")
    return Table(caption, columns, [rows])


def _name(group: GroupResults, results: Results) -> str:
    return group.group.name or results.plan.recipe.name


def _seeds(count: int, group: GroupResults) -> str:
    """Return the cell for a number of seeds, marked as good if it is all of them."""
    return Cell(f"{count}", "good" if count == len(group.outcomes) else "bad")


def _right(row: Row) -> str:
    return Cell(percent(row.median), "good" if row.pooled.errors == 0 else "bad")


def _interval(row: Row) -> str:
    if row.median_interval is None:
        return interval(row.pooled)
    low, high = row.median_interval
    return f"{percent(low)} – {percent(high)}"


def scores(results: Results) -> Table | None:
    """Every row of the scorecards, with a column for each group; None for too many groups."""
    groups = [group for group in results.groups if group.rows]
    if not groups or len(groups) > _MOST_COLUMNS:
        return None
    by_key = [{row.key: row for row in group.rows} for group in groups]
    keys = dict.fromkeys(key for rows in by_key for key in rows)
    lines = [[key.label, *(_median_and_range(rows.get(key)) for rows in by_key)] for key in keys]
    caption = "Share of right answers: median over seeds (smallest – largest)"
    columns = ("problems", *(_name(group, results) for group in groups))
    return Table(caption, columns, [lines])


def _median_and_range(row: Row | None) -> str:
    if row is None:
        return "–"
    text = percent(row.median)
    if len(row.shares) > 1:
        text += f"\n({percent(min(row.shares))} – {percent(max(row.shares))})"
    return Cell(text, "good" if row.pooled.errors == 0 else "")


def _tuning(results: Results) -> Table:
    """What was chosen on validation problems for each contender."""
    names = list(
        dict.fromkeys(name for candidate in results.candidates for name in candidate.group.settings)
    )
    tuned = [n for n in names if len(_values(results, n)) > 1]
    rows = [
        [
            candidate.group.contender,
            ", ".join(f"{n}={candidate.group.settings.get(n, '–')}" for n in tuned),
            f"{candidate.num_seeds}",
            percent(candidate.validation),
            number(candidate.loss, ".3g"),
            Cell("yes", "good") if candidate.chosen else "no",
        ]
        for candidate in results.candidates
    ]
    columns = ("contender", "tuned settings", "seeds", "validation", "loss", "chosen")
    return Table("Tuned on validation problems", columns, [rows], num_text_columns=2)


def _values(results: Results, name: str) -> set[str]:
    """Values of a setting within one contender, if any contender has several."""
    by_contender: dict[str, set[str]] = {}
    for candidate in results.candidates:
        value = str(candidate.group.settings.get(name))
        by_contender.setdefault(candidate.group.contender, set()).add(value)
    return max(by_contender.values(), key=len)


def _failures(results: Results) -> Table:
    rows = [[Cell(run, "code"), why] for run, why in results.failures.items()]
    caption = "Trials that failed; --resume tries them again"
    return Table(caption, ("run", "reason"), [rows], num_text_columns=2)


def _curve(group: GroupResults) -> Curve:
    outcomes = [outcome for outcome in group.outcomes if outcome.curve]
    steps = sorted({point["step"] for outcome in outcomes for point in outcome.curve})
    values = [sorted(_value_at(outcome, step) for outcome in outcomes) for step in steps]
    middle = [(row[(len(row) - 1) // 2] + row[len(row) // 2]) / 2 for row in values]
    name = group.group.name or "all seeds"
    return Curve(name, steps, middle, [(row[0], row[-1]) for row in values])


def _value_at(outcome: Outcome, step: int) -> float:
    """Exact match at a step; seeds that stopped earlier keep their last value."""
    before = [point for point in outcome.curve if point["step"] <= step] or outcome.curve[:1]
    return before[-1]["exact_match"] or 0.0


def shown_groups(results: Results) -> Sequence[GroupResults]:
    """The groups with at least one outcome."""
    return [group for group in results.groups if group.outcomes]
