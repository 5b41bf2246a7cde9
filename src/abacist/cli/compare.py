"""`abacist compare`: several runs side by side."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


def run(arguments: list[str]) -> int:
    """Return exit code 0, whichever run is better."""
    parsed = make_parser().parse(arguments)
    check_html("--html", parsed.html)
    if len(parsed.runs) < 2:
        raise UserError(
            f"abacist compare needs two runs or more, got {parsed.runs[0]}. "
            "Type abacist compare RUN RUN."
        )
    if parsed.out and Path(parsed.out).suffix != ".png":
        raise UserError(f"--out draws a PNG, got {parsed.out!r}. Type --out comparison.png.")

    from abacist.reports import csv_records, terminal
    from abacist.reports.comparison_report import OTHER_TRAINING
    from abacist.reports.run_records import read_scorecard
    from abacist.reports.tables import comparison_tables
    from abacist.runs.directory import read_recipe
    from abacist.scoring.comparison import common_rows

    directories = [named_run.find(name) for name in parsed.runs]
    names = _short_names([str(run.path) for run in directories])
    if parsed.html and len(set(names)) < len(names):
        raise UserError(
            f"--html compares different runs, got {', '.join(names)}. Type each run once."
        )
    recipes = [read_recipe(run)[0] for run in directories]
    _check_tasks(names, recipes)
    cards = [read_scorecard(run) for run in directories]
    alike = all((r.task, r.split) == (recipes[0].task, recipes[0].split) for r in recipes)
    rows = common_rows(cards, alike)
    if not rows:
        raise UserError(
            "these runs share no row that can be compared. "
            f"Type abacist score RUN --suite lengths for each of {', '.join(names)}."
        )
    if parsed.out:
        _draw(dict(zip(names, cards, strict=True)), Path(parsed.out))
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
        "better each run is than the first, with 95 % intervals (Newcombe 1998).",
    )
    parser.add_argument("runs", metavar="RUN", nargs="+", help="run directories, two or more")
    parser.add_argument("--out", metavar="FILE.png", help="draw exact match by length for all runs")
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
    """A description of the problems of a task, without their lengths."""
    task: dict[str, Any] = to_json(recipe.task)
    words = [f"{task['kind']}"]
    if "operations" in task:
        words.append(" ".join(task["operations"]))
        low, high = task["min_operands"], task["max_operands"]
        words.append(f"of {low} operands" if low == high else f"of {low} to {high} operands")
    if "modulus" in task:
        words.append(f"modulo {task['modulus']}")
    return " ".join(words)


def _draw(cards: "dict[str, Scorecard]", path: Path) -> None:
    """Draw exact match by length for all runs."""
    from abacist.reports import matplotlib_figures, score_plots

    for name, card in cards.items():
        if "lengths" not in card.sections:
            raise UserError(
                f"{name} has no scores by length to draw. Type abacist score {name} --suite lengths."
            )
    sections = {name: card.sections["lengths"] for name, card in cards.items()}
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


def _short_names(paths: list[str]) -> list[str]:
    """The shortest ends of the paths that distinguish the runs."""
    parts = [Path(path).parts for path in paths]
    for count in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-count:]) for part in parts]
        if len(set(names)) == len(set(paths)):
            return names
    return paths
