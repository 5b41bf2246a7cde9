"""`abacist train`: train a recipe, score it and try to prove it right."""

import argparse
import contextlib
import json
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from abacist import extensions, files, recipes
from abacist.cli import named_run, setting_help, train_seeds
from abacist.cli.arguments import (
    Parser,
    named_recipe,
    number,
    setting_names,
    split_off_settings,
    whole_number,
)
from abacist.cli.typed_recipe import check_unchanged, typed_recipe
from abacist.errors import ConfigurationError, ProblemError, UserError, nearest
from abacist.recipes.recipe import Recipe
from abacist.runs.directory import MAX_SEEDS
from abacist.training.torchrun import launched

if TYPE_CHECKING:
    from abacist.certificates.record import Certificate
    from abacist.runs.run import Run
    from abacist.scoring.records import Scorecard, Solution
    from abacist.training.loop import Observer
    from abacist.training.metrics import Beginning, Metrics, Repair


def run(arguments: list[str]) -> int:
    """Return exit code 0 if training reached its end, whatever the score; 130 after Ctrl-C."""
    if "--help-all" in arguments:
        return _print_settings(arguments)
    recipe = named_recipe(arguments)
    parser = make_parser()
    if "--help" in arguments or "-h" in arguments:
        parser.epilog = "\n".join(
            [
                setting_help.fill(
                    f"settings of the recipe {recipe.name} that are changed most often, with their "
                    "values:"
                ),
                setting_help.often_changed(recipe),
                "",
                setting_help.fill(
                    f"{extensions.command('train', recipe.name, '--help-all')} explains all settings, and "
                    "--help-all model training those of these sections."
                ),
            ]
        )
    changes, options = split_off_settings(arguments)
    parsed = parser.parse(options, setting_names(arguments))
    if parsed.resume and parsed.recipe and not parsed.out and Path(parsed.recipe).is_dir():
        # abacist train --resume runs/add is what people type.
        parsed.out, parsed.recipe = parsed.recipe, None
    if parsed.resume:
        for option, is_typed, inherited in (
            ("--overwrite", parsed.overwrite, "what"),
            ("--examples", parsed.examples is not None, "the problems that"),
            ("--watch", parsed.watch is not None, "the problems that"),
            ("--quick", parsed.quick is not None, "the steps that"),
        ):
            if is_typed:
                raise ConfigurationError(
                    f"{option} belongs to the start of a run, and --resume keeps {inherited} the run has. "
                    f"Leave {option} out."
                )
    if parsed.train_only and parsed.csv:
        raise ConfigurationError(
            f"--csv {parsed.csv} writes the scores, and --train-only makes none. Leave one of them out."
        )
    if parsed.seeds is not None or parsed.jobs is not None or train_seeds.resumes_many(parsed):
        if launched().count > 1:
            raise ConfigurationError(
                "torchrun trains one model with several processes, and --seeds trains several models. "
                "Leave torchrun out."
            )
        return train_seeds.run(parsed, changes)
    trained = _resume(parsed, changes) if parsed.resume else _start(parsed, changes)
    if trained is None:
        return 130
    if not launched().is_first:
        return 0
    if parsed.train_only:
        _announce(parsed.json, trained, {})
        return 0
    return _evaluate(parsed.json, parsed.csv, trained)


def make_parser() -> Parser:
    """Return the parser of the command's arguments."""
    parser = Parser("train", "Train a recipe, score it and try to prove it right.")
    parser.add_argument(
        "recipe", nargs="?", metavar="RECIPE", help="a name from abacist recipes (default: add)"
    )
    parser.add_argument("--out", metavar="DIR", help="run directory (default: a new one in runs/)")
    parser.add_argument("--seed", type=whole_number(0), metavar="N", help="default: 0")
    parser.add_argument(
        "--seeds",
        type=whole_number(1, MAX_SEEDS),
        metavar="N",
        help="train N seeds, from --seed on, and show how their results are distributed",
    )
    parser.add_argument(
        "--jobs",
        type=whole_number(1),
        metavar="N",
        help="number of seeds trained side by side (default: one per processor)",
    )
    parser.add_argument(
        "--device",
        metavar="NAME",
        help="cpu, cuda, mps or auto (default: auto, or the device of the resumed run)",
    )
    parser.add_argument(
        "--track",
        metavar="NAMES",
        help="send metrics to tensorboard, trackio or both, separated by a comma",
    )
    parser.add_argument(
        "--threads",
        type=_thread_count,
        metavar="N",
        help="number of threads, or auto for the fastest in a few timed steps (default: 1, which "
        "gives the same weights on every machine of a kind)",
    )
    parser.add_argument(
        "--resume", action="store_true", help="finish the run in --out (default: the newest run)"
    )
    parser.add_accept_changed_extension()
    parser.add_argument("--overwrite", action="store_true", help="replace the run in --out")
    parser.add_argument(
        "--examples",
        metavar="FILE",
        help="problems, one a line, to train on instead of drawn ones",
    )
    parser.add_argument(
        "--watch",
        metavar="FILE",
        help="problems, one a line, that are solved before training, at every checkpoint and after it",
    )
    parser.add_argument(
        "--quick",
        type=_fraction,
        metavar="FRACTION",
        help="shorten the training to this fraction of its steps, with warm-up, decay and curriculum; "
        "the model may then be wrong",
    )
    parser.add_argument(
        "--help-all", action="store_true", help="explain all settings of the recipe"
    )
    parser.add_argument("--train-only", action="store_true", help="neither score nor prove")
    parser.add_json()
    parser.add_csv()
    return parser


def _thread_count(text: str) -> int | Literal["auto"]:
    return "auto" if text == "auto" else whole_number(1)(text)


def _fraction(text: str) -> float:
    value = number(text)
    if not 0.001 <= value <= 1:
        raise argparse.ArgumentTypeError(
            f"must be a fraction from 0.001 to 1, got {text!r}. Try --quick 0.1"
        )
    return value


def _print_settings(arguments: list[str]) -> int:
    """Print all settings of a recipe, or those of the sections that are named."""
    recipe = named_recipe(arguments)
    sections = setting_help.section_names(recipe)
    words = [word for word in arguments if word not in ("--help-all", recipe.name)]
    for word in words:
        if word not in sections:
            raise UserError(
                f"--help-all takes a recipe and sections of its settings, got {word!r}: "
                f"{nearest(word, [*sections, *recipes.RECIPES])}"
            )
    print(f"settings of the recipe {recipe.name}, with their values\n")
    print(setting_help.all_settings(recipe, words))
    return 0


def _start(parsed: argparse.Namespace, changes: dict[str, str]) -> "Run | None":
    recipe = typed_recipe(parsed, changes)
    from abacist.runs import directory, training

    path = Path(parsed.out) if parsed.out else directory.new_path(recipe.name)
    return _with_progress(
        recipe,
        path,
        parsed.track,
        lambda observer: training.start(
            recipe,
            path,
            parsed.seed or 0,
            parsed.threads or 1,
            parsed.overwrite,
            observer,
            parsed.device or "auto",
        ),
    )


def _resume(parsed: argparse.Namespace, changes: dict[str, str]) -> "Run | None":
    from abacist.runs import directory, training

    run_directory = named_run.find(parsed.out or "latest")
    recipe, record = directory.read_recipe(run_directory)
    threads = record["threads"]
    if parsed.threads == "auto" and record.get("seconds_per_step_by_threads"):
        # The run was started with --threads auto, which chose this number.
        threads = "auto"
    options = {"seed": (record["seed"], parsed.seed), "threads": (threads, parsed.threads)}
    check_unchanged(run_directory.path, recipe, parsed.recipe, changes, options)
    return _with_progress(
        recipe,
        run_directory.path,
        parsed.track,
        lambda observer: training.resume(
            run_directory.path, observer, parsed.device, parsed.accept_changed_extension
        ),
    )


def _with_progress(
    recipe: Recipe, path: Path, track: str | None, carry_out: "Callable[[Observer], Run]"
) -> "Run | None":
    """Train with progress shown; after Ctrl-C, say how to resume and return None."""
    from abacist.cli.progress import Ticker, time_left
    from abacist.intervals import percent
    from abacist.reports import terminal
    from abacist.training.loop import Observer, TrainingInterrupted

    config = recipe.training

    class Shown(Observer):
        latest = ""

        def __init__(self, ticker: Ticker) -> None:
            self.ticker = ticker

        def on_beginning_step(self, number: int, step: int, loss: float) -> None:
            which = f"of beginning {number + 1} of {config.num_beginnings}, loss {loss:.4f}"
            self.ticker.update(step, min(config.beginning_steps, config.num_steps), which)

        def on_beginning(self, beginning: "Beginning") -> None:
            match = beginning.exact_match
            share = "the loss was not finite" if match is None else f"exact match {match}"
            self.ticker.say(
                f"beginning {beginning.number + 1} of {config.num_beginnings}: {share} after "
                f"{beginning.step:,} steps"
            )

        def on_start(self, parameters: int, threads: int, step: int) -> None:
            begun = f", from step {step:,}" if step else ""
            if recipe.name in recipes.RECIPES.origins:
                self.ticker.say(" ".join(recipes.promise(recipe.name)[1].split()))
            self.ticker.say(
                f"training {recipe.name} into {path}: {parameters:,} parameters, "
                f"{threads} thread{'s' * (threads > 1)}{begun}"
            )

        def on_step(self, step: int, loss: float) -> None:
            self.ticker.update(step, config.end_after(step), f"loss {loss:.4f}{self.latest}")

        def on_metrics(self, metrics: "Metrics") -> None:
            match = metrics.exact_match
            value = "–" if match.value is None else percent(match.value)
            speed = f"{metrics.problems_per_second:,.0f} problems/s"
            self.latest = f", exact match {value}, {speed}"
            if metrics.step == 0:
                self.latest = ""
                return
            total = config.end_after(metrics.step)
            left = time_left(metrics.seconds / metrics.step * (total - metrics.step))
            self.ticker.say(
                f"step {metrics.step:>6,} of {total:,}   loss {metrics.loss:.5f}   "
                f"exact match {value} of {match.n:,} validation problems   {speed}   "
                + ", ".join(filter(None, [f"{metrics.seconds:.0f} s", left]))
            )

        def on_check(self, repair: "Repair") -> None:
            wrong = f"{repair.wrong:,}" if repair.wrong else "no"
            found = f"{wrong} wrong neighbourhood{'s' * (repair.wrong != 1)}"
            if repair.drawn is not None:
                found = f"{wrong} wrong answer{'s' * (repair.wrong != 1)} to {repair.drawn:,} drawn problems"
            if not repair.wrong:
                self.ticker.say(f"check: {found}")
                return
            number = (repair.step - config.num_steps) // config.repair_steps + 1
            listed = len(repair.problems)
            self.ticker.say(
                f"check: {found}; round {number} of at most {config.repair_rounds} lists {listed:,} "
                f"problem{'s' * (listed != 1)} and takes {config.repair_steps:,} steps"
            )

    if not launched().is_first:
        with contextlib.suppress(TrainingInterrupted):
            return carry_out(Observer())
        return None
    with contextlib.ExitStack() as stack:
        ticker = stack.enter_context(Ticker("training", unit="steps"))
        observer: Observer = Shown(ticker)
        if track is not None:
            from abacist.runs.tracking import Tracked

            observer = stack.enter_context(Tracked(track.split(","), path, observer))
        try:
            return carry_out(observer)
        except TrainingInterrupted as interruption:
            ticker.say(
                f"abacist: {interruption} and saved. "
                f"Resume with: {terminal.command('train', '--resume', '--out', str(path))}"
            )
            return None


def _evaluate(as_json: bool, csv: Path | None, trained: "Run") -> int:
    from abacist.cli.prove import proved
    from abacist.cli.score import scored
    from abacist.reports import csv_records

    card = scored(trained)
    if csv:
        csv_records.write(csv, csv_records.of_scorecard(card))
    certificate = proved(trained)
    if as_json:
        records: dict[str, object] = {
            "scorecard": card.to_json(),
            "certificate": certificate.to_json(),
        }
        _announce(True, trained, records)
        return 0
    _summarise(trained, card, certificate)
    _announce(False, trained, {})
    return 0


def _summarise(trained: "Run", card: "Scorecard", certificate: "Certificate") -> None:
    """Print the most telling rows of the scorecard, one problem, and the outcome of the proof."""
    from abacist.cli import show
    from abacist.reports import terminal
    from abacist.reports.run_report import exemption
    from abacist.reports.tables import score_table, shortened, telling_rows

    section = card.sections["lengths"]
    rows = telling_rows(section)
    stored = terminal.command("score", str(trained.path), "--stored")
    table = score_table("", rows)
    console = terminal.console()
    more = "" if len(section.rows) == len(rows) else f" (all {len(section.rows)} rows: {stored})"
    console.print(f"{section.title}{more}", soft_wrap=True)
    # One group, without lines between the rows.
    console.print(terminal.Shown([replace(table, groups=[[*chain(*table.groups)]])]))
    if note := exemption(card.exempt_digits):
        console.print(note, soft_wrap=True)
    console.print(shortened(str(_example(trained))), soft_wrap=True)
    console.print(show.certificate(certificate), soft_wrap=True)


def _example(trained: "Run") -> "Solution":
    """Return a solved problem to end with: a sum of 100 digits if the format can write it, or a test problem."""
    from abacist import generators
    from abacist.data.split import draw_from_split

    task = trained.task
    if task.operations == ("+",):
        draws = random.Random(trained.seed)
        operands = len(task.example.split("+"))
        numbers = [str(draws.randrange(10**99, 10**100)) for _ in range(operands)]
        with contextlib.suppress(ProblemError):
            return trained.solve("+".join(numbers))[0]
    generator = generators.generator(trained.seed, "examples")
    shapes = task.draw_shapes(1, generator)
    problems = draw_from_split(task, shapes, "test", trained.recipe.split, generator)
    return trained.solve(task.expressions(problems))[0]


def _announce(as_json: bool, trained: "Run", results: dict[str, object]) -> None:
    """Print where the run is and what to do with it."""
    from abacist.reports import matplotlib_figures, run_records, training_plots
    from abacist.reports.terminal import command

    path = str(trained.path)
    records = run_records.read_metrics(trained.directory, [])
    if as_json:
        data = {
            "run": path,
            "recipe": trained.recipe.name,
            "seed": trained.seed,
            "parameters": trained.model.num_parameters,
            "steps": trained.step,
            "seconds": records[-1].seconds if records else None,
            "weights_bytes": trained.directory.weights_bytes,
        }
        print(json.dumps(data | results))
        return
    losses = run_records.read_losses(trained.directory, [])
    plots = training_plots.of_run(records, losses)
    if plots:
        with files.not_saved_as_warning("The picture"):
            matplotlib_figures.draw(plots, trained.directory.training_picture)
    pictures = (trained.directory.training_picture, trained.directory.lengths_picture)
    drawn = " and ".join(picture.name for picture in pictures if picture.exists())
    saved = f"The run is in {path}, with {trained.directory.weights_bytes or 0:,} bytes of weights"
    print(saved + (f" and the pictures {drawn}" if drawn else ""))
    print("Next:")
    print("  " + command("solve", path, trained.task.example))
    print("  " + command("look", path, trained.task.example))
    print("  " + command("report" if trained.directory.scorecard.exists() else "score", path))
