"""`abacist train`: train a recipe, score it and try to prove it right."""

import argparse
import contextlib
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING

from abacist import recipes
from abacist.cli.arguments import Parser, split_off_settings, whole_number
from abacist.configuration import override, settings
from abacist.errors import ConfigurationError, ProblemError
from abacist.recipes.recipe import Recipe

if TYPE_CHECKING:
    from abacist.runs.run import Run
    from abacist.scoring.solving import Solution
    from abacist.training.loop import Metrics


def run(arguments: list[str]) -> int:
    """Exit code 0 when trained, whatever the score."""
    parser = _parser()
    if "--help" in arguments or "-h" in arguments:
        named = next((a for a in arguments if a in recipes.RECIPES), "add")
        parser.epilog = _settings_help(named)
    changes, options = split_off_settings(arguments)
    parsed = parser.parse(options)
    if parsed.seeds is not None or parsed.jobs is not None or _holds_seeds(parsed):
        return _many(parsed, changes)
    trained = _resume(parsed, changes) if parsed.resume else _start(parsed, changes)
    if isinstance(trained, int):
        return trained
    if parsed.train_only:
        _announce(parsed.json, trained, {})
        return 0
    return _evaluate(parsed.json, trained)


def _parser() -> Parser:
    parser = Parser("train", "Train a recipe, score it and try to prove it right.")
    parser.add_argument(
        "recipe", nargs="?", metavar="RECIPE", help="a name from abacist recipes (default: add)"
    )
    parser.add_argument("--out", metavar="DIR", help="run directory (default: a new one in runs/)")
    parser.add_argument("--seed", type=whole_number(0), metavar="N", help="default: 0")
    parser.add_argument(
        "--seeds",
        type=whole_number(1),
        metavar="N",
        help="train so many seeds, from --seed on, and show what comes of them",
    )
    parser.add_argument(
        "--jobs",
        type=whole_number(1),
        metavar="N",
        help="seeds trained side by side (default: a processor each)",
    )
    parser.add_argument(
        "--device",
        metavar="NAME",
        help="cpu, cuda, mps or auto (default: auto; that of a resumed run)",
    )
    parser.add_argument(
        "--track",
        metavar="NAMES",
        help="send metrics to tensorboard, trackio or both, with a comma between",
    )
    parser.add_argument(
        "--threads", type=whole_number(1), metavar="N", help="default: the fastest, by timing"
    )
    parser.add_argument("--resume", action="store_true", help="go on with the run in --out")
    parser.add_argument("--overwrite", action="store_true", help="replace the run in --out")
    parser.add_argument("--train-only", action="store_true", help="neither score nor prove")
    parser.add_json()
    return parser


def _settings_help(name: str) -> str:
    lines = [f"settings of the recipe {name}, with their values:"]
    for setting in settings(recipes.find(name)):
        if setting.name == "name":
            continue
        lines.append(f"  --{setting.name} {setting.typed}")
        lines.append(f"      {setting.explanation}")
    return "\n".join(lines)


def _start(parsed: argparse.Namespace, changes: dict[str, str]) -> "Run | int":
    recipe = override(recipes.find(parsed.recipe or "add"), changes)
    from abacist.runs import directory, training

    path = Path(parsed.out) if parsed.out else directory.new_path(recipe.name)
    return _observed(
        recipe,
        path,
        parsed.track,
        lambda observer: training.start(
            recipe,
            path,
            parsed.seed or 0,
            parsed.threads,
            parsed.overwrite,
            observer,
            parsed.device or "auto",
        ),
    )


def _resume(parsed: argparse.Namespace, changes: dict[str, str]) -> "Run | int":
    given = (parsed.recipe, parsed.overwrite, parsed.threads, parsed.seed)
    if changes or any(value not in (None, False) for value in given):
        raise ConfigurationError(
            "--resume goes on with the settings in run.json. Type "
            f"abacist train --resume --out {parsed.out or 'latest'}, without others."
        )
    from abacist.runs import directory, training
    from abacist.runs.directory import read_recipe

    found = directory.find(parsed.out or "latest")
    recipe, _ = read_recipe(found)
    return _observed(
        recipe,
        found.path,
        parsed.track,
        lambda observer: training.resume(found.path, observer, parsed.device),
    )


def _holds_seeds(parsed: argparse.Namespace) -> bool:
    """Whether what is to be resumed is a directory of seeds."""
    return bool(parsed.resume and parsed.out and (Path(parsed.out) / "seeds.json").is_file())


def _many(parsed: argparse.Namespace, changes: dict[str, str]) -> int:
    """Train many seeds side by side and show what came of them."""
    from abacist.cli import show
    from abacist.cli.progress import Ticker
    from abacist.runs import directory, seeds

    if parsed.overwrite or parsed.train_only or parsed.track:
        raise ConfigurationError(
            "--seeds goes with neither --overwrite, --train-only nor --track. "
            "Type another --out, or train seeds one by one."
        )
    if parsed.resume:
        given = (parsed.recipe, parsed.threads, parsed.seed, parsed.seeds, parsed.jobs)
        if changes or parsed.device or any(value is not None for value in given):
            raise ConfigurationError(
                "--resume goes on with the settings in seeds.json. Type "
                f"abacist train --resume --out {parsed.out or 'DIR'}, without others."
            )
        path = Path(parsed.out)
        name = seeds.read_plan(path)["recipe"]["name"]
    else:
        recipe = override(recipes.find(parsed.recipe or "add"), changes)
        path, name = (
            Path(parsed.out) if parsed.out else directory.new_path(recipe.name),
            recipe.name,
        )
    with Ticker("training seeds") as ticker:
        begun = False

        def update(made: int, total: int, details: str) -> None:
            nonlocal begun
            if not begun:
                ticker.say(f"training seeds of {name} into {path}")
            begun = True
            ticker.update(made, total, details)

        try:
            if parsed.resume:
                distribution = seeds.resume(path, update)
            else:
                first = parsed.seed or 0
                distribution = seeds.start(
                    recipe,
                    path,
                    range(first, first + (parsed.seeds or 1)),
                    parsed.jobs,
                    parsed.threads,
                    parsed.device or "auto",
                    update,
                )
        except KeyboardInterrupt:
            again = show.command("train", "--resume", "--out", str(path))
            ticker.say(f"abacist: interrupted; what was trained is saved. Go on with: {again}")
            return 130
    if parsed.json:
        print(json.dumps({"run": str(path), "recipe": name} | distribution.to_json()))
        return 0
    show.console().print(show.seeds(distribution), soft_wrap=True)
    print(f"\nThe runs are {path}/seed-{distribution.outcomes[0].seed} and so on.")
    return 0


def _observed(recipe: Recipe, path: Path, track: str | None, carry_out) -> "Run | int":  # type: ignore[no-untyped-def]
    """Train with progress shown; on Ctrl-C say how to go on."""
    from abacist.cli import show
    from abacist.cli.progress import Ticker
    from abacist.intervals import percent
    from abacist.training.loop import Observer, TrainingInterrupted

    total = recipe.training.num_steps

    class Shown(Observer):
        latest = ""

        def __init__(self, ticker: Ticker) -> None:
            self.ticker = ticker

        def on_start(self, parameters: int, threads: int, step: int) -> None:
            begun = f", from step {step:,}" if step else ""
            self.ticker.say(
                f"training {recipe.name} into {path}: {parameters:,} parameters, "
                f"{threads} thread{'s' * (threads > 1)}{begun}"
            )

        def on_step(self, step: int, loss: float) -> None:
            self.ticker.update(step, total, f"loss {loss:.4f}{self.latest}")

        def on_metrics(self, metrics: "Metrics") -> None:
            match = metrics.exact_match
            value = "–" if match.value is None else percent(match.value)
            speed = f"{metrics.problems_per_second:,.0f} problems/s"
            self.latest = f", exact match {value}, {speed}"
            left = metrics.seconds / metrics.step * (total - metrics.step)
            self.ticker.say(
                f"step {metrics.step:>6,} of {total:,}   loss {metrics.loss:.5f}   "
                f"exact match {value} of {match.n:,} validation problems   {speed}   "
                f"{metrics.seconds:.0f} s, {left:.0f} s left"
            )

    with contextlib.ExitStack() as stack:
        ticker = stack.enter_context(Ticker("training"))
        observer: Observer = Shown(ticker)
        if track is not None:
            from abacist.runs.tracking import Tracked

            observer = stack.enter_context(Tracked(track.split(","), path, observer))
        try:
            trained: Run = carry_out(observer)
        except TrainingInterrupted as interruption:
            ticker.say(
                f"abacist: {interruption}; saved. "
                f"Go on with: {show.command('train', '--resume', '--out', str(path))}"
            )
            return 130
    return trained


def _evaluate(as_json: bool, trained: "Run") -> int:
    from abacist.cli import show
    from abacist.cli.prove import proved
    from abacist.cli.score import scored

    card = scored(trained)
    certificate = proved(trained)
    if as_json:
        _announce(
            True, trained, {"scorecard": card.to_json(), "certificate": certificate.to_json()}
        )
        return 0
    console = show.console()
    console.print(show.scorecard(card))
    title, solutions = _examples(trained)
    console.print(f"\n{title}, written by the model:")
    for solution in solutions:
        console.print(f"  {solution}", soft_wrap=True)
    console.print()
    console.print(show.certificate(certificate), soft_wrap=True)
    _announce(False, trained, {})
    return 0


def _examples(trained: "Run") -> tuple[str, list["Solution"]]:
    """Problems to end with: long sums where the format can write them, or test problems."""
    from abacist import generators
    from abacist.data.split import draw_from_split

    task = trained.task
    if task.operations == ("+",):
        digits = random.Random(trained.seed)
        operands = len(task.example.split("+"))
        long = "+".join(str(digits.randrange(10**99, 10**100)) for _ in range(operands))
        carried = "+".join(["9" * 100, "1", *["0"] * (operands - 2)])
        with contextlib.suppress(ProblemError):
            return "Long sums", trained.solve([long, carried])
    generator = generators.generator(trained.seed, "examples")
    shapes = task.draw_shapes(3, generator)
    problems = draw_from_split(task, shapes, "test", trained.recipe.split, generator)
    return "Test problems", trained.solve(task.expressions(problems))


def _announce(as_json: bool, trained: "Run", results: dict[str, object]) -> None:
    """Where the run is and what to do with it."""
    from abacist.cli import show

    path = str(trained.path)
    records = trained.directory.read_metrics()
    if as_json:
        data = {
            "run": path,
            "recipe": trained.recipe.name,
            "seed": trained.seed,
            "parameters": trained.model.num_parameters,
            "steps": trained.recipe.training.num_steps,
            "seconds": records[-1]["seconds"] if records else None,
        }
        print(json.dumps(data | results))
        return
    from abacist.reports.figures import draw_training

    draw_training({trained.recipe.name: records}, trained.directory.training_picture)
    print(f"\nThe run is in {path}")
    print(f"Loss and exact match by step, drawn: {path}/{trained.directory.training_picture.name}")
    if trained.directory.lengths_picture.exists():
        print(f"Exact match by length, drawn: {path}/{trained.directory.lengths_picture.name}")
    print("Next:")
    print("  " + show.command("solve", path, trained.task.example))
    print("  " + show.command("look", path, trained.task.example))
    print("  " + show.command("report", path))
    print("  " + show.command("prove", path))
    print("  " + show.command("score", path, "--num-problems", "10000"))
