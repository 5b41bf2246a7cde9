"""`abacist data`: show, export or check the problems of a recipe."""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from abacist import recipes
from abacist.cli.arguments import Parser, setting_names, split_off_settings, whole_number
from abacist.configuration import override, to_json
from abacist.data.config import SplitName
from abacist.errors import RunError, UserError
from abacist.recipes.recipe import Recipe

if TYPE_CHECKING:
    from abacist.data.check import DataCheck
    from abacist.reports.plots import Bars
    from abacist.reports.tables import Table

_MOST_EXPORTED = 100_000_000
"""Largest number of problems that `--every` writes: about 15 GB."""

_SPLITS = ("train", "validation", "test")


def run(arguments: list[str]) -> int:
    """Return exit code 0, or 1 if splits overlap."""
    changes, options = split_off_settings(arguments)
    parsed = make_parser().parse(options, setting_names(arguments))
    _check_options(parsed)
    recipe = override(recipes.find(parsed.recipe), changes)
    return {"show": _show, "export": _export, "check": _check}[parsed.action](parsed, recipe)


def make_parser() -> Parser:
    """Return the parser of the command's arguments."""
    parser = Parser(
        "data",
        "show: problems as written, with the place, field and target of every token.\n"
        "export: problems as JSON lines, with a manifest.\n"
        "check: sizes and overlap of the splits, problems by operation, statistics of answers, histograms.",
        "Settings of the recipe may be added, such as --task multiply, --format partial-products\n"
        "or --task.max_digits 20. abacist recipes RECIPE lists them all.",
    )
    parser.add_argument("action", choices=["show", "export", "check"])
    parser.add_argument("recipe", metavar="RECIPE", help="a name from abacist recipes")
    parser.add_argument("--split", choices=[*_SPLITS, "all"], help="default: train, or all")
    parser.add_argument(
        "--num-problems",
        type=whole_number(1),
        metavar="N",
        help="default: 4 to show, 10000 to export, 100000 from each split to check",
    )
    parser.add_argument(
        "--every", action="store_true", help="export: every problem of a finite space once"
    )
    parser.add_argument("--seed", type=whole_number(0), default=0, metavar="N", help="default: 0")
    parser.add_argument("--out", metavar="FILE", help="export: .jsonl or .jsonl.gz; check: .png")
    parser.add_json()
    parser.add_csv()
    return parser


def _check_options(parsed: argparse.Namespace) -> None:
    if parsed.every and parsed.action != "export":
        raise UserError(
            f"--every is an option of export, got {parsed.action}. Try abacist data export."
        )
    if parsed.every and parsed.num_problems:
        raise UserError("--every exports all problems. Leave out --num-problems.")
    if parsed.csv and parsed.action != "check":
        raise UserError(
            f"--csv is an option of check, got {parsed.action}. Try abacist data check."
        )
    if parsed.out and parsed.action == "show":
        raise UserError(
            f"--out is an option of export and check, got show. Try abacist data export {parsed.recipe} "
            "--out problems.jsonl."
        )
    if parsed.split and parsed.action == "check":
        raise UserError("check examines all splits. Leave out --split.")
    if parsed.split == "all" and not parsed.every:
        raise UserError("--split all requires export --every. Try --split train.")


def _one_split(parsed: argparse.Namespace) -> SplitName:
    split: SplitName = parsed.split or "train"
    return split


def _show(parsed: argparse.Namespace, recipe: Recipe) -> int:
    from abacist import generators
    from abacist.cli import show
    from abacist.data.export import drawn_problems, exported_records
    from abacist.reports import terminal
    from abacist.runs.run import build_problems

    task, format = build_problems(recipe)
    blocks = drawn_problems(
        task, recipe.split, _one_split(parsed), parsed.num_problems or 4, parsed.seed
    )
    # Two generators with one seed, so that random spaces are the same in the text and the tokens.
    for_records, for_lines = (generators.generator(parsed.seed, "show") for _ in range(2))
    console = terminal.console()
    for problems in blocks:
        lines = format.write(problems, task.answer(problems), for_lines)
        for row, record in enumerate(
            exported_records(task, format, recipe.split, [problems], for_records)
        ):
            if parsed.json:
                print(json.dumps(record))
                continue
            console.print(f"{record['problem']}={record['answer']}", soft_wrap=True)
            tokens = show.annotated(lines, row, format.vocabulary, console.width)
            console.print(tokens, soft_wrap=True)
    return 0


def _export(parsed: argparse.Namespace, recipe: Recipe) -> int:
    from abacist import generators
    from abacist.cli.progress import Ticker
    from abacist.data.export import all_problems, drawn_problems, export, exported_records
    from abacist.runs.run import build_problems

    if not parsed.out or not parsed.out.endswith((".jsonl", ".jsonl.gz")):
        raise UserError(
            f"export needs a file ending in .jsonl or .jsonl.gz, got {parsed.out or 'none'}. "
            "Try --out problems.jsonl."
        )
    path = Path(parsed.out)
    task, format = build_problems(recipe)
    if parsed.every:
        space = task.space()
        if space is None:
            raise UserError(
                f"--every needs problems that can be numbered, got the task {task.claim}. "
                "Try --task.max_digits 3, or --num-problems 10000."
            )
        if len(space) > _MOST_EXPORTED:
            raise UserError(
                f"--every writes at most {_MOST_EXPORTED:,} problems, and this task has "
                f"{len(space):,}. Try --task.max_digits 3, or --num-problems 10000."
            )
        count, only = len(space), None if parsed.split == "all" else parsed.split
        blocks = all_problems(space, recipe.split, only)
    else:
        count = parsed.num_problems or 10_000
        only = _one_split(parsed)
        blocks = drawn_problems(task, recipe.split, only, count, parsed.seed)
    generator = generators.generator(parsed.seed, "export", "lines")
    manifest = {
        "recipe": to_json(recipe),
        "split": only or "all",
        "every": parsed.every,
        "seed": parsed.seed,
    }
    with Ticker("exporting", unit="problems") as ticker:
        beside = export(
            exported_records(task, format, recipe.split, blocks, generator),
            path,
            manifest,
            lambda done: ticker.update(done, count) if done % 1_000 == 0 else None,
        )
    if parsed.json:
        print(beside.read_text(), end="")
    else:
        written = json.loads(beside.read_text())["num_problems"]
        print(f"{written:,} problems in {path}; {beside} says how to repeat them")
    return 0


def _check(parsed: argparse.Namespace, recipe: Recipe) -> int:
    from abacist.cli.progress import Ticker
    from abacist.data.check import check
    from abacist.reports import csv_records, matplotlib_figures, terminal
    from abacist.reports.tables import Table
    from abacist.runs.run import build_problems

    if parsed.out and not parsed.out.endswith(".png"):
        raise UserError(f"check draws a .png, got {parsed.out!r}. Try --out data.png.")
    if parsed.out and Path(parsed.out).exists():
        raise RunError(f"{parsed.out} exists. Type another --out, or remove it first.")
    task, _ = build_problems(recipe)
    with Ticker("checking", unit="problems") as ticker:
        outcome = check(
            task, recipe.split, parsed.num_problems or 100_000, parsed.seed, ticker.update
        )
    overlap = sum(outcome.overlap.values())
    histograms = [_histogram(name, counts) for name, counts in outcome.histograms.items()]
    if parsed.out and not histograms:
        raise UserError(
            "no training problem was found, so there is nothing to draw. Leave out --out."
        )
    if parsed.out:
        matplotlib_figures.draw(histograms, Path(parsed.out), columns=len(histograms))
    if parsed.csv:
        csv_records.write(parsed.csv, csv_records.of_check(outcome))
    if parsed.json:
        print(json.dumps(to_json(outcome)))
        return 1 if overlap else 0
    console = terminal.console()
    console.print(f"{outcome.num_problems:,} problems drawn from each split")
    for split in outcome.distinct:
        if not any(by_split[split] for by_split in outcome.operations.values()):
            console.print(f"No {split} problem was found: the split seems to be empty.")
    counts = {"distinct problems": outcome.distinct, "in both splits": outcome.overlap}
    for column, by_split in counts.items():
        rows = [[name, f"{count:,}"] for name, count in by_split.items()]
        console.print(terminal.Shown([Table("", ("split", column), [rows])]))
    console.print(terminal.Shown(_statistics(outcome)))
    if recipe.split.exempt_digits:
        console.print(
            f"Problems of at most {recipe.split.exempt_digits} digits are in all splits and are "
            "not counted."
        )
    if outcome.compared:
        console.print(
            f"The answers of {outcome.compared:,} problems agree with the task's `answer`."
        )
    console.print(terminal.Shown(histograms))
    return 1 if overlap else 0


def _statistics(outcome: "DataCheck") -> "list[Table]":
    """Return the tables of problems by operation and split, and of the answers of each split."""
    from abacist.reports.tables import Table

    splits = list(outcome.distinct)
    shown = [
        Table(
            "Problems by operation and split",
            ("operation", *splits),
            [
                [
                    [operation, *(f"{by_split[split]:,}" for split in splits)]
                    for operation, by_split in outcome.operations.items()
                ]
            ],
        )
    ]
    if outcome.answers:
        rows = [
            [
                split,
                *(f"{n:,}" for n in (a.smallest, a.largest)),
                *(f"{x:,.2f}" for x in (a.mean, a.standard_deviation)),
            ]
            for split, a in outcome.answers.items()
        ]
        columns = ("split", "smallest", "largest", "mean", "standard deviation")
        shown.append(Table("Answers", columns, [rows]))
    return shown


def _histogram(name: str, counts: Mapping[int, int]) -> "Bars":
    from abacist.reports.plots import Bars

    names, series = [str(value) for value in counts], {"problems": list(counts.values())}
    return Bars(f"{name}, training split", names, series, "problems", upright=True)
