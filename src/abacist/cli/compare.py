"""`abacist compare`: several runs side by side."""

import argparse
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abacist import extensions
from abacist.cli import named_run
from abacist.cli.arguments import Parser
from abacist.cli.report import check_html
from abacist.configuration import to_json
from abacist.errors import ConfigurationError, UserError
from abacist.intervals import Proportion

if TYPE_CHECKING:
    from abacist.recipes.recipe import Recipe
    from abacist.reports.comparison_report import RunComparison
    from abacist.reports.group_comparison import GroupComparison
    from abacist.scoring.comparison import ComparedGroup


_NAME_WIDTH = 18
"""Characters of the name of a run, so that four runs fit a terminal of 80 columns."""


def run(arguments: list[str]) -> int:
    """Return exit code 0, whichever run is better."""
    parsed = make_parser().parse(arguments)
    check_html("--html", parsed.html)
    if parsed.out and Path(parsed.out).suffix != ".png":
        raise UserError(f"--out draws a PNG, got {parsed.out!r}. Type --out comparison.png.")
    are_groups = any(map(named_run.is_group, parsed.runs))
    comparison: GroupComparison | RunComparison = (
        _of_groups(parsed) if are_groups else _of_runs(parsed)
    )

    from abacist.reports import csv_records, html, matplotlib_figures, terminal

    if parsed.out:
        matplotlib_figures.draw([comparison.picture()], Path(parsed.out))
    if parsed.html:
        html.write(comparison.page(), Path(parsed.html))
    if parsed.csv:
        csv_records.write(parsed.csv, comparison.csv_records())
    if parsed.json:
        print(json.dumps(comparison.to_json()))
        return 0
    console = terminal.console()
    console.print(terminal.Shown(comparison.tables()))
    for note in comparison.notes:
        console.print(note)
    for what, path in (("Drawn", parsed.out), ("Report", parsed.html)):
        if path:
            console.print(f"{what}: {path}", soft_wrap=True)
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


def _of_runs(parsed: argparse.Namespace) -> "RunComparison":
    """Compare single runs."""
    if len(parsed.runs) < 2:
        raise UserError(
            f"abacist compare needs two runs or more, got {parsed.runs[0]}. "
            f"Type {extensions.command('compare', 'RUN', 'RUN')}."
        )

    from abacist.reports.comparison_report import RunComparison
    from abacist.reports.run_records import read_scorecard
    from abacist.runs.directory import read_recipe
    from abacist.scoring.comparison import common_rows, shares_of

    runs = [named_run.find(name) for name in parsed.runs]
    paths = [str(run.path) for run in runs]
    names = short_names(paths)
    if (parsed.out or parsed.html) and len(set(names)) < len(names):
        raise UserError(
            f"--out and --html compare different runs, got {', '.join(names)}. Type each run once."
        )
    alike = _trained_alike(paths, [read_recipe(run)[0] for run in runs])
    cards = [read_scorecard(run) for run in runs]
    rows = common_rows([shares_of(card) for card in cards], alike)
    if not rows:
        raise UserError(
            "these runs share no row that can be compared. "
            f"Type {extensions.command('score', 'RUN', '--suite', 'lengths')} for each of {', '.join(paths)}."
        )
    return RunComparison(names, runs, cards, rows, alike)


def _of_groups(parsed: argparse.Namespace) -> "GroupComparison":
    """Compare the seeds of recipes and the groups of sweeps, each as one result; a run is a group of one."""
    from abacist.reports.group_comparison import GroupComparison
    from abacist.scoring.comparison import common_rows

    groups, recipes = _groups(parsed.runs)
    if len(groups) < 2:
        raise UserError(
            f"abacist compare needs two runs or groups of runs, got {parsed.runs[0]}. "
            f"Type {extensions.command('compare', parsed.runs[0], 'RUN')}, "
            f"or {extensions.command('report', parsed.runs[0])}."
        )
    alike = _trained_alike([group.name for group in groups], recipes)
    rows = common_rows([group.shares for group in groups], alike)
    if not rows:
        raise UserError(
            "these groups share no row that can be compared. "
            "Type groups whose runs were scored by the same suites."
        )
    return GroupComparison(groups, rows, alike)


def _trained_alike(names: list[str], recipes: "list[Recipe]") -> bool:
    """Return whether all runs were trained on the same problems.

    Raises `ConfigurationError` if they have different kinds of problems.
    """
    kinds = [_kind(recipe) for recipe in recipes]
    for name, kind in zip(names, kinds, strict=True):
        if kind != kinds[0]:
            raise ConfigurationError(
                f"runs of different tasks cannot be compared: {names[0]} has {kinds[0]}, "
                f"{name} {kind}. Type runs of one task."
            )
    first = recipes[0]
    return all((r.task, r.split) == (first.task, first.split) for r in recipes)


def _kind(recipe: "Recipe") -> str:
    """Return a description of the problems of a task, without their lengths."""
    task: dict[str, Any] = to_json(recipe.task)
    words = [f"{task['kind']}"]
    if "operations" in task:
        words.append(" ".join(task["operations"]))
        low, high = task["min_operands"], task["max_operands"]
        words.append(f"of {low} operands" if low == high else f"of {low} to {high} operands")
        if task["signed"]:
            words.append("with signs")
    if "modulus" in task:
        words.append(f"modulo {task['modulus']}")
    return " ".join(words)


def _groups(names: list[str]) -> "tuple[list[ComparedGroup], list[Recipe]]":
    """Return every group that is named, with its recipe."""
    from abacist.reports.run_records import read_certificate, read_scorecard
    from abacist.runs.directory import read_recipe
    from abacist.scoring.comparison import ComparedGroup, shares_of
    from abacist.sweeps import sweep

    groups: list[ComparedGroup] = []
    recipes: list[Recipe] = []
    for name, short in zip(names, short_names(names), strict=True):
        if not named_run.is_group(name):
            run = named_run.find(name)
            certificate = read_certificate(run, [])
            certified = certificate is not None and certificate.certified
            shares = shares_of(read_scorecard(run))
            groups.append(ComparedGroup(short, Proportion(int(certified), 1), shares))
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
            groups.append(ComparedGroup(inside, group.distribution.certified, group.shares))
            recipes.append(results.plan.recipe_of(group.group))
    shortened = short_names([group.name for group in groups])
    return [replace(g, name=n) for g, n in zip(groups, shortened, strict=True)], recipes


def short_names(paths: list[str]) -> list[str]:
    """Return the shortest ends of paths that distinguish runs, cut from the left where they are long."""
    parts = [Path(os.path.abspath(path)).parts for path in paths]
    different = len(set(parts))
    for count in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-count:]) for part in parts]
        if len(set(names)) == different:
            break
    for length in range(_NAME_WIDTH, max(map(len, names)) + 1):
        cut = [name if len(name) <= length else "…" + name[1 - length :] for name in names]
        if len(set(cut)) == different:
            return cut
    return names
