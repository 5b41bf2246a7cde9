"""`abacist data`: show, export or check the problems of a recipe."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from abacist import recipes
from abacist.cli.arguments import Parser, split_off_settings, whole_number
from abacist.configuration import override, to_json
from abacist.errors import RunError, UserError
from abacist.recipes.recipe import Recipe

_SPLITS = ("train", "validation", "test")


def run(arguments: list[str]) -> int:
    """Exit code 0, or 1 when splits overlap."""
    changes, options = split_off_settings(arguments)
    parser = Parser(
        "data",
        "show: problems as written, with what the model is told of every token.\n"
        "export: problems as JSON lines, with a manifest.\n"
        "check: sizes and overlap of the splits, histograms.",
        "Settings of the recipe, such as --task.max_digits 20, may be added.",
    )
    parser.add_argument("action", choices=["show", "export", "check"])
    parser.add_argument("recipe", metavar="RECIPE", help="a name from abacist recipes")
    parser.add_argument("--split", choices=_SPLITS, default="train", help="default: train")
    parser.add_argument(
        "--num-problems", type=whole_number(1), metavar="N", help="default: 4, 10000 or 1000000"
    )
    parser.add_argument("--seed", type=whole_number(0), default=0, metavar="N", help="default: 0")
    parser.add_argument("--out", metavar="FILE", help="export: .jsonl or .jsonl.gz; check: .png")
    parser.add_json()
    parsed = parser.parse(options)
    recipe = override(recipes.find(parsed.recipe), changes)
    return {"show": _show, "export": _export, "check": _check}[parsed.action](parsed, recipe)


def _show(parsed: argparse.Namespace, recipe: Recipe) -> int:
    from abacist.cli import show
    from abacist.data.export import records
    from abacist.runs.run import build_task

    task, format = build_task(recipe)
    drawn = list(
        records(task, format, recipe.split, parsed.split, parsed.num_problems or 4, parsed.seed)
    )
    if parsed.json:
        for record in drawn:
            print(json.dumps(record))
        return 0
    problems = task.parse([record["problem"] for record in drawn])
    lines = format.write(problems, task.answer(problems))
    console = show.console()
    for row, record in enumerate(drawn):
        console.print(f"{record['problem']}={record['answer']}")
        console.print(show.annotated(lines, row, format.vocabulary), soft_wrap=True)
    return 0


def _export(parsed: argparse.Namespace, recipe: Recipe) -> int:
    from abacist.cli.progress import Ticker
    from abacist.data.export import export, records
    from abacist.runs.run import build_task

    if not parsed.out or not parsed.out.endswith((".jsonl", ".jsonl.gz")):
        raise UserError(
            f"export needs a file ending in .jsonl or .jsonl.gz, got {parsed.out or 'none'}. "
            "Try --out problems.jsonl."
        )
    path = Path(parsed.out)
    count = parsed.num_problems or 10_000
    task, format = build_task(recipe)
    manifest = {"recipe": to_json(recipe), "split": parsed.split, "seed": parsed.seed}
    with Ticker("exporting") as ticker:
        beside = export(
            records(task, format, recipe.split, parsed.split, count, parsed.seed),
            path,
            manifest,
            lambda done: ticker.update(done, count) if done % 1_000 == 0 else None,
        )
    if parsed.json:
        print(beside.read_text(), end="")
    else:
        print(f"{count:,} problems in {path}, how to repeat them in {beside}")
    return 0


def _check(parsed: argparse.Namespace, recipe: Recipe) -> int:
    from abacist.cli import show
    from abacist.cli.progress import Ticker
    from abacist.data.check import check
    from abacist.runs.run import build_task

    if parsed.out and not parsed.out.endswith(".png"):
        raise UserError(f"check draws a .png, got {parsed.out!r}. Try --out data.png.")
    if parsed.out and Path(parsed.out).exists():
        raise RunError(f"{parsed.out} exists. Type another --out, or remove it first.")
    task, _ = build_task(recipe)
    with Ticker("checking") as ticker:
        outcome = check(
            task, recipe.split, parsed.num_problems or 1_000_000, parsed.seed, ticker.update
        )
    overlap = sum(outcome.overlap.values())
    histograms = {
        "digits of the longer operand": outcome.longer_operand,
        "digits of the answer": outcome.answer,
        "longest carry chain": outcome.carry_chain,
    }
    if parsed.out:
        from abacist.reports.figures import draw_histograms

        draw_histograms(histograms, Path(parsed.out))
    if parsed.json:
        print(json.dumps(to_json(outcome)))
        return 1 if overlap else 0
    print(f"{outcome.num_problems:,} problems drawn from each split")
    _print_rows("distinct problems", list(outcome.distinct.items()))
    _print_rows("in both splits", list(outcome.overlap.items()))
    console = show.console()
    for name, histogram in histograms.items():
        console.print(show.histogram(f"{name}, training split", histogram))
    return 1 if overlap else 0


def _print_rows(title: str, rows: Sequence[tuple[str, int]]) -> None:
    print(title)
    for name, value in rows:
        print(f"  {name:20} {value:>12,}")
