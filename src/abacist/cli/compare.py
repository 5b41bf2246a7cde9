"""`abacist compare`: several runs side by side."""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abacist import extensions
from abacist.cli import named_run
from abacist.cli.arguments import Parser
from abacist.cli.report import check_html
from abacist.configuration import to_json
from abacist.errors import ConfigurationError, UserError

if TYPE_CHECKING:
    from abacist.recipes.recipe import Recipe
    from abacist.runs.directory import RunDirectory
    from abacist.scoring.comparison import ComparedRow
    from abacist.scoring.records import Scorecard
    from abacist.sweeps.comparison import ComparedGroup


_NAME_WIDTH = 18
"""Characters of the name of a run, so that four runs fit a terminal of 80 columns."""


def run(arguments: list[str]) -> int:
    """Return exit code 0, whichever run is better."""
    parsed = make_parser().parse(arguments)
    check_html("--html", parsed.html)
    if parsed.out and Path(parsed.out).suffix != ".png":
        raise UserError(f"--out draws a PNG, got {parsed.out!r}. Type --out comparison.png.")
    if any(map(named_run.is_group, parsed.runs)):
        return _compare_groups(parsed)
    _check_count(parsed.runs)

    from abacist.reports import csv_records, terminal
    from abacist.reports.comparison_report import OTHER_TRAINING
    from abacist.reports.run_records import read_scorecard
    from abacist.reports.tables import comparison_tables
    from abacist.runs.directory import read_recipe
    from abacist.scoring.comparison import common_rows

    directories = [named_run.find(name) for name in parsed.runs]
    paths = [str(run.path) for run in directories]
    names = short_names(paths)
    if parsed.html and len(set(names)) < len(names):
        raise UserError(
            f"--html compares different runs, got {', '.join(names)}. Type each run once."
        )
    recipes = [read_recipe(run)[0] for run in directories]
    _check_tasks(paths, recipes)
    cards = [read_scorecard(run) for run in directories]
    alike = all((r.task, r.split) == (recipes[0].task, recipes[0].split) for r in recipes)
    rows = common_rows(cards, alike)
    if not rows:
        raise UserError(
            "these runs share no row that can be compared. "
            f"Type {extensions.command('score', 'RUN', '--suite', 'lengths')} for each of {', '.join(paths)}."
        )
    if parsed.out:
        _draw(dict(zip(names, paths, strict=True)), cards, Path(parsed.out))
    if parsed.html:
        _write(dict(zip(names, directories, strict=True)), rows, alike, Path(parsed.html))
    if parsed.csv:
        csv_records.write(parsed.csv, csv_records.of_comparison(names, rows))
    if parsed.json:
        data = {
            "runs": [str(run.path) for run in directories],
            "trained_alike": alike,
            "rows": [row.to_json() for row in rows],
        }
        print(json.dumps(data))
        return 0
    console = terminal.console()
    console.print(terminal.Shown(comparison_tables(names, rows)))
    if not alike:
        console.print(OTHER_TRAINING)
    if parsed.out:
        console.print(f"Drawn: {parsed.out}", soft_wrap=True)
    if parsed.html:
        console.print(f"Report: {parsed.html}", soft_wrap=True)
    return 0


def make_parser() -> Parser:
    """Return the parser of the command's arguments."""
    parser = Parser(
        "compare",
        "Show the scorecards of several runs side by side: every row that they share, and how much\n"
        "better each run is than the first, with 95 % intervals (Newcombe 1998). Directories of many\n"
        "seeds and of sweeps are compared as groups: by their means over seeds.",
    )
    parser.add_argument(
        "runs", metavar="RUN", nargs="+", help="two or more directories of runs, seeds or sweeps"
    )
    parser.add_argument("--out", metavar="FILE.png", help="draw exact match of all runs or groups")
    parser.add_argument("--html", metavar="FILE.html", help="write the comparison as one HTML file")
    parser.add_json()
    parser.add_csv()
    return parser


def _check_tasks(names: list[str], recipes: "list[Recipe]") -> None:
    """Raise `ConfigurationError` unless all runs have the same kind of problem."""
    kinds = [_kind(recipe) for recipe in recipes]
    for name, kind in zip(names, kinds, strict=True):
        if kind != kinds[0]:
            raise ConfigurationError(
                f"runs of different tasks cannot be compared: {names[0]} has {kinds[0]}, "
                f"{name} {kind}. Type runs of one task."
            )


def _kind(recipe: "Recipe") -> str:
    """Return a description of the problems of a task, without their lengths."""
    task: dict[str, Any] = to_json(recipe.task)
    words = [f"{task['kind']}"]
    if "operations" in task:
        words.append(" ".join(task["operations"]))
        low, high = task["min_operands"], task["max_operands"]
        words.append(f"of {low} operands" if low == high else f"of {low} to {high} operands")
    if "modulus" in task:
        words.append(f"modulo {task['modulus']}")
    return " ".join(words)


def _draw(runs: dict[str, str], cards: "list[Scorecard]", path: Path) -> None:
    """Draw exact match by length for all runs, whose paths `runs` holds by name."""
    from abacist.reports import matplotlib_figures, score_plots

    for run, card in zip(runs.values(), cards, strict=True):
        if "lengths" not in card.sections:
            scoring = extensions.command("score", run, "--suite", "lengths")
            raise UserError(f"{run} has no scores by length to draw. Type {scoring}.")
    sections = {name: card.sections["lengths"] for name, card in zip(runs, cards, strict=True)}
    series = {n: score_plots.length_series(s)["equal lengths"] for n, s in sections.items()}
    trained = max(section.trained_digits for section in sections.values())
    chart = score_plots.by_length(series, trained)
    if chart is None or not all(series.values()):
        raise UserError("this task has no curve by length to draw. Leave out --out.")
    matplotlib_figures.draw([chart], path)


def _write(
    runs: "dict[str, RunDirectory]", rows: "list[ComparedRow]", alike: bool, path: Path
) -> None:
    """Write all runs to one page."""
    from abacist.reports import html, run_records
    from abacist.reports.comparison_report import comparison_report

    records = {name: run_records.read(directory) for name, directory in runs.items()}
    html.write(comparison_report(records, rows, alike), path)


def _compare_groups(parsed: argparse.Namespace) -> int:
    """Compare the seeds of recipes and the groups of sweeps, each as one result; a run is a group of one."""
    from abacist.reports import csv_records, group_comparison, html, matplotlib_figures, terminal
    from abacist.sweeps.comparison import common_rows

    groups, recipes = _groups(parsed.runs)
    if len(groups) < 2:
        raise UserError(
            f"abacist compare needs two runs or groups of runs, got {parsed.runs[0]}. "
            f"Type {extensions.command('compare', parsed.runs[0], 'RUN')}, "
            f"or {extensions.command('report', parsed.runs[0])}."
        )
    _check_tasks([group.name for group in groups], recipes)
    alike = all((r.task, r.split) == (recipes[0].task, recipes[0].split) for r in recipes)
    rows = common_rows(groups, alike)
    if not rows:
        raise UserError(
            "these groups share no row that can be compared. "
            "Type groups whose runs were scored by the same suites."
        )
    if parsed.out:
        chart = group_comparison.chart(groups, rows)
        if chart is None:
            raise UserError("these groups share no exact match to draw. Leave out --out.")
        matplotlib_figures.draw([chart], Path(parsed.out))
    if parsed.csv:
        csv_records.write(parsed.csv, csv_records.of_groups(groups, rows))
    if parsed.html:
        html.write(group_comparison.comparison_page(groups, rows), Path(parsed.html))
    if parsed.json:
        records = [
            {"name": g.name, "runs": g.certified.n, "certified": g.certified.to_json()}
            for g in groups
        ]
        print(json.dumps({"groups": records, "rows": [row.to_json() for row in rows]}))
        return 0
    console = terminal.console()
    console.print(terminal.Shown([*group_comparison.tables(groups, rows)]))
    console.print(group_comparison.EXPLANATION)
    if parsed.out:
        console.print(f"Drawn: {parsed.out}", soft_wrap=True)
    if parsed.html:
        console.print(f"Report: {parsed.html}", soft_wrap=True)
    return 0


def _groups(names: list[str]) -> "tuple[list[ComparedGroup], list[Recipe]]":
    """Return every group that is named, with its recipe."""
    from abacist.reports.run_records import read_certificate, read_scorecard
    from abacist.runs.directory import read_recipe
    from abacist.sweeps import comparison, sweep

    groups: list[ComparedGroup] = []
    recipes: list[Recipe] = []
    for name, short in zip(names, short_names(names), strict=True):
        if not named_run.is_group(name):
            run = named_run.find(name)
            certificate = read_certificate(run, [])
            certified = certificate is not None and certificate.certified
            groups.append(comparison.of_scorecard(short, read_scorecard(run), certified))
            recipes.append(read_recipe(run)[0])
            continue
        results = sweep.read(Path(name))
        for group in results.groups:
            if not group.outcomes:
                raise UserError(
                    f"{name} has no finished run in {group.group.name or 'its only group'}. "
                    f"Type {extensions.command('sweep', '--resume', '--out', name)}."
                )
            inside = f"{short}/{group.group.name}" if group.group.name else short
            groups.append(comparison.of_results(inside, group))
            recipes.append(results.plan.recipe_of(group.group))
    shortened = short_names([group.name for group in groups])
    return [replace(g, name=n) for g, n in zip(groups, shortened, strict=True)], recipes


def _check_count(runs: list[str]) -> None:
    if len(runs) < 2:
        raise UserError(
            f"abacist compare needs two runs or more, got {runs[0]}. "
            f"Type {extensions.command('compare', 'RUN', 'RUN')}."
        )


def short_names(paths: list[str]) -> list[str]:
    """Return the shortest ends of paths that distinguish runs, cut from the left where they are long."""
    different = len(set(paths))
    parts = [Path(path).parts for path in paths]
    for count in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-count:]) for part in parts]
        if len(set(names)) == different:
            break
    for length in range(_NAME_WIDTH, max(map(len, names)) + 1):
        cut = [name if len(name) <= length else "…" + name[1 - length :] for name in names]
        if len(set(cut)) == different:
            return cut
    return names
