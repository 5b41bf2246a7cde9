"""The report of a sweep as one page: parallel coordinates, a curve for each group, and every table."""

from pathlib import Path

from abacist import extensions
from abacist.reports import html, parallel_coordinates, sweep_views
from abacist.reports.html import Part, page
from abacist.reports.html_builder import Markup, command, element, table
from abacist.reports.plots import View
from abacist.reports.run_report import figures
from abacist.reports.tables import Table
from abacist.sweeps.plan import PAGE
from abacist.sweeps.results import Results


def sweep_report(results: Results, path: Path) -> str:
    """The whole page about the sweep in the directory `path`."""
    picture = parallel_coordinates.picture(results)
    trials = sum(len(group.outcomes) for group in results.groups)
    lead = [
        element(
            "p",
            f"{trials:,} trials of {results.plan.recipe.name} in {len(results.groups):,} groups, "
            f"{len(results.failures):,} failed, {results.unfinished:,} unfinished.",
        )
    ]
    groups, *others = sweep_views.tables(results)
    scores = sweep_views.scores(results)
    parts = [
        Part("settings", "Settings and results", [] if picture is None else [picture]),
        Part("groups", "Groups", [_drawn(groups)]),
        Part("training", "Training", figures(list(sweep_views.curves(results)))),
        Part("scores", "Scores", [] if scores is None else [table(scores)]),
        Part("details", "Tuning and failures", [_drawn(view) for view in others]),
        Part("repeat", "How to go on", [command(_resume(results, path))]),
    ]
    return page(
        f"abacist sweep: {results.plan.recipe.name}", lead, [part for part in parts if part.content]
    )


def write(results: Results, path: Path) -> None:
    """Write `sweep.html` into the directory of the sweep."""
    html.write(sweep_report(results, path), path / PAGE)


def _resume(results: Results, path: Path) -> str:
    record = {"extensions": results.plan.extensions}
    return extensions.command("sweep", "--resume", "--out", str(path), record=record)


def _drawn(view: View) -> Markup:
    if isinstance(view, Table):
        return table(view)
    assert isinstance(view, str)
    return element("p", view)
