"""`abacist compare`: several runs side by side."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abacist.cli.arguments import Parser
from abacist.cli.report import check_html
from abacist.configuration import to_json
from abacist.errors import ConfigurationError, UserError

if TYPE_CHECKING:
    from abacist.recipes.recipe import Recipe
    from abacist.runs.directory import RunDirectory
    from abacist.scoring.comparison import ComparedRow


def run(arguments: list[str]) -> int:
    """Exit code 0, whichever is better."""
    parser = Parser(
        "compare",
        "What the scorecards of several runs say, side by side: every row they share, and how much\n"
        "better each run is than the first, with 95 % intervals (Newcombe 1998).",
    )
    parser.add_argument("runs", metavar="RUN", nargs="+", help="run directories, two or more")
    parser.add_argument("--out", metavar="FILE.png", help="draw exact match by length for all runs")
    parser.add_argument("--html", metavar="FILE.html", help="write all of it as one HTML file")
    parser.add_json()
    parsed = parser.parse(arguments)
    check_html("--html", parsed.html)
    if len(parsed.runs) < 2:
        raise UserError(
            f"abacist compare needs two runs or more, got {parsed.runs[0]}. "
            "Type abacist compare RUN RUN."
        )
    if parsed.out and Path(parsed.out).suffix != ".png":
        raise UserError(f"--out draws a PNG, got {parsed.out!r}. Type --out comparison.png.")

    from abacist.cli import show
    from abacist.runs import directory
    from abacist.runs.directory import read_recipe
    from abacist.runs.scores import read_scorecard
    from abacist.scoring.comparison import common_rows

    found = [directory.find(name) for name in parsed.runs]
    names = _told_apart([str(one.path) for one in found])
    if parsed.html and len(set(names)) < len(names):
        raise UserError(
            f"--html compares different runs, got {', '.join(names)}. Type each run once."
        )
    tasks = [read_recipe(one)[0] for one in found]
    _check_tasks(names, tasks)
    cards = [read_scorecard(one) for one in found]
    alike = all((t.task, t.split) == (tasks[0].task, tasks[0].split) for t in tasks)
    rows = common_rows(cards, alike)
    if not rows:
        raise UserError(
            "these runs share no row that can be compared. "
            f"Type abacist score RUN --suite lengths for each of {', '.join(names)}."
        )
    if parsed.out:
        _draw(names, cards, tasks, Path(parsed.out))
    if parsed.html:
        _write(dict(zip(names, found, strict=True)), rows, alike, Path(parsed.html))
    if parsed.json:
        data = {
            "runs": [str(one.path) for one in found],
            "trained_alike": alike,
            "rows": [row.to_json() for row in rows],
        }
        print(json.dumps(data))
        return 0
    console = show.console()
    console.print(show.comparison(names, rows))
    if not alike:
        console.print(
            "The runs were trained on different problems, so only rows of a stated length are shown."
        )
    if parsed.out:
        console.print(f"Drawn: {parsed.out}", soft_wrap=True)
    if parsed.html:
        console.print(f"Report: {parsed.html}", soft_wrap=True)
    return 0


def _check_tasks(names: list[str], recipes: "list[Recipe]") -> None:
    """Raise `ConfigurationError` unless all runs are asked the same kind of problem."""
    kinds = [_kind(recipe) for recipe in recipes]
    for name, kind in zip(names, kinds, strict=True):
        if kind != kinds[0]:
            raise ConfigurationError(
                f"runs of different tasks cannot be compared: {names[0]} is asked {kinds[0]}, "
                f"{name} {kind}. Type runs of one task."
            )


def _kind(recipe: "Recipe") -> str:
    """What a task asks, without how long its training problems are."""
    task: dict[str, Any] = to_json(recipe.task)
    told = [f"{task['kind']}"]
    if "operations" in task:
        told.append(" ".join(task["operations"]))
        low, high = task["min_operands"], task["max_operands"]
        told.append(f"of {low} operands" if low == high else f"of {low} to {high} operands")
    if "modulus" in task:
        told.append(f"modulo {task['modulus']}")
    return " ".join(told)


def _draw(
    names: list[str], cards: list[dict[str, Any]], recipes: "list[Recipe]", path: Path
) -> None:
    """Overlaid curves of exact match by length."""
    from abacist.reports.figures import draw_lengths, series_of

    series = {}
    for name, card in zip(names, cards, strict=True):
        if "lengths" not in card["sections"]:
            raise UserError(
                f"{name} has no scores by length to draw. Type abacist score {name} --suite lengths."
            )
        series[name] = series_of(card)["equal lengths"]
    if not all(series.values()):
        raise UserError("this task has no curve by length to draw. Leave out --out.")
    trained = [
        max(
            row["digits"] for row in card["sections"]["lengths"]["rows"] if row["kind"] == "trained"
        )
        for card in cards
    ]
    draw_lengths(series, max(trained), path)


def _write(
    runs: "dict[str, RunDirectory]", rows: "list[ComparedRow]", alike: bool, path: Path
) -> None:
    """All runs on one page."""
    from abacist.reports import html, run_records
    from abacist.reports.comparison_report import comparison_report

    known = {name: run_records.read(directory) for name, directory in runs.items()}
    html.write(comparison_report(known, rows, alike), path)


def _told_apart(paths: list[str]) -> list[str]:
    """Runs by the last parts of their paths, as many as it takes."""
    parts = [Path(path).parts for path in paths]
    for count in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-count:]) for part in parts]
        if len(set(names)) == len(set(paths)):
            return names
    return paths
