"""`abacist sweep`: many runs over settings and seeds, with one table of results."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abacist import extensions, recipes
from abacist.cli.arguments import Parser, number, setting_names, split_off_settings, whole_number
from abacist.errors import ConfigurationError, UserError
from abacist.runs.directory import MAX_SEEDS

if TYPE_CHECKING:
    from abacist.sweeps.choices import Range, Values
    from abacist.sweeps.execution import Executor
    from abacist.sweeps.plan import Plan
    from abacist.sweeps.results import Results
    from abacist.sweeps.sweep import OnProgress, Progress

_MOST_PROCESSORS = 1_024


def run(arguments: list[str]) -> int:
    """Return exit code 0 if every trial has ended, whatever its score; 1 if one failed; 130 after Ctrl-C."""
    changes, options = split_off_settings(arguments)
    parsed = make_parser().parse(options, setting_names(arguments))
    if parsed.resume:
        return _resume(parsed, changes)
    return _start(parsed, changes)


def make_parser() -> Parser:
    """Return the parser of the command's arguments."""
    parser = Parser(
        "sweep",
        "Train many runs over settings and seeds, score and prove each, and show one table of results.",
        epilog="Examples:\n"
        "  abacist sweep add --over model.width=16,32 --over training.learning_rate=3e-3,1e-2 --seeds 3\n"
        "  abacist sweep add --over training.learning_rate=log:1e-3..1e-1 --random 20\n"
        "  abacist sweep studies/positions.toml --out runs/positions\n"
        "  abacist sweep --resume --out runs/positions\n\n"
        "Settings such as --training.num_steps 500 hold for all trials.",
    )
    parser.add_argument(
        "what",
        nargs="?",
        metavar="FILE.toml|RECIPE",
        help="a sweep file, or the name of a recipe (default: add)",
    )
    parser.add_argument(
        "--over",
        action="append",
        default=[],
        metavar="NAME=VALUES",
        help="values of a setting, with commas between; or a range, LOW..HIGH or log:LOW..HIGH, "
        "for --random. All combinations of several --over are tried",
    )
    parser.add_argument(
        "--random",
        type=whole_number(1, MAX_SEEDS),
        metavar="N",
        help="draw N random combinations instead of trying all",
    )
    parser.add_argument(
        "--seeds",
        type=whole_number(1, MAX_SEEDS),
        metavar="N",
        help="seeds of each group (default: 1)",
    )
    parser.add_argument(
        "--out", metavar="DIR", help="directory of the sweep (default: a new one in runs/)"
    )
    parser.add_argument(
        "--resume", action="store_true", help="finish the sweep in --out, failed trials included"
    )
    parser.add_accept_changed_extension()
    parser.add_argument(
        "--jobs",
        type=whole_number(1),
        metavar="N",
        help="number of trials side by side on this machine (default: one per processor)",
    )
    parser.add_argument(
        "--on",
        default="local",
        metavar="WHERE",
        help="local (the default), ray (the cluster of RAY_ADDRESS or of this machine; without one, it "
        "is started for the sweep), or ray://HOST:PORT",
    )
    parser.add_argument(
        "--cpus-per-trial",
        type=_share,
        metavar="N",
        help="on Ray: processors that a trial reserves (default: one for each thread)",
    )
    parser.add_argument(
        "--gpus-per-trial",
        type=_share,
        metavar="N",
        help="on Ray: GPUs that a trial reserves; 0.25 lets four share one (default: 0)",
    )
    parser.add_argument(
        "--retries",
        type=whole_number(0),
        metavar="N",
        help="on Ray: how often a trial is repeated after its node has died (default: 3)",
    )
    parser.add_argument(
        "--asha",
        action="store_true",
        default=None,
        help="on Ray: stop trials early whose validation loss is large",
    )
    parser.add_argument(
        "--threads", type=whole_number(1), metavar="N", help="threads of each trial (default: 1)"
    )
    parser.add_argument("--device", metavar="NAME", help="cpu, cuda, mps or auto (default: auto)")
    parser.add_argument("--yes", action="store_true", help="train even more than 10,000 trials")
    parser.add_json()
    parser.add_csv()
    return parser


def _share(text: str) -> float:
    """Return a number of processors or GPUs, which may be a fraction of one; an argument type."""
    value = number(text)
    if not (0 <= value < 1 or (value.is_integer() and 0 < value <= _MOST_PROCESSORS)):
        raise argparse.ArgumentTypeError(
            f"must be a fraction below 1 or a whole number up to {_MOST_PROCESSORS:,}, got {text!r}"
        )
    return value


def _start(parsed: argparse.Namespace, changes: dict[str, str]) -> int:
    from abacist.runs import directory
    from abacist.sweeps import sweep

    if parsed.what is not None and parsed.what.endswith(".toml"):
        plan = _plan_of_file(parsed, changes)
    else:
        plan = _plan_of_options(parsed, changes)
    path = Path(parsed.out) if parsed.out else directory.new_path(f"sweep-{plan.recipe.name}")
    executor = _executor(parsed, plan)
    return _carry_out(
        parsed, plan, path, lambda progress: sweep.start(plan, path, executor, progress)
    )


def _resume(parsed: argparse.Namespace, changes: dict[str, str]) -> int:
    from abacist.sweeps import plan as plans
    from abacist.sweeps import sweep

    if parsed.out is None:
        raise UserError("--resume needs the directory of a sweep. Type --out DIR.")
    typed = [parsed.what, *parsed.over, parsed.random, parsed.seeds, parsed.threads, parsed.device]
    if changes or any(value is not None for value in typed):
        raise ConfigurationError(
            f"{parsed.out} is resumed with its own settings. "
            f"Type {extensions.command('sweep', '--resume', '--out', parsed.out)}, "
            "or another --out to start a sweep."
        )
    path = Path(parsed.out)
    accept = parsed.accept_changed_extension
    plan = plans.read(path, accept)
    executor = _executor(parsed, plan)
    return _carry_out(
        parsed, plan, path, lambda progress: sweep.resume(path, executor, progress, accept)
    )


def _executor(parsed: argparse.Namespace, plan: "Plan") -> "Executor":
    from abacist.devices import find_device
    from abacist.sweeps.local import LocalProcesses
    from abacist.sweeps.ray_cluster import RayTasks

    on_ray = ("cpus_per_trial", "gpus_per_trial", "retries", "asha")
    options = {name: getattr(parsed, name) for name in on_ray if getattr(parsed, name) is not None}
    if parsed.on == "local":
        if options:
            option = next(iter(options)).replace("_", "-")
            raise ConfigurationError(f"--{option} is for clusters. Add --on ray, or leave it out.")
        # Otherwise every trial would fail on its own.
        find_device(plan.device)
        return LocalProcesses(parsed.jobs, plan.threads)
    if parsed.on != "ray" and not parsed.on.startswith("ray://"):
        raise UserError(f"--on must be local, ray or ray://HOST:PORT, got {parsed.on!r}.")
    if parsed.jobs is not None:
        raise ConfigurationError(
            "--jobs is for this machine; a cluster trains as many trials as it has room for. "
            "Try --cpus-per-trial 2, or leave --jobs out."
        )
    return RayTasks(parsed.on, threads=plan.threads, **options)


def _plan_of_file(parsed: argparse.Namespace, changes: dict[str, str]) -> "Plan":
    from abacist.sweeps import sweep_file

    options = {
        "--over": parsed.over,
        "--random": parsed.random,
        "--threads": parsed.threads,
        "--device": parsed.device,
        **{f"--{name}": True for name in changes},
    }
    if typed := [name for name, value in options.items() if value]:
        raise ConfigurationError(
            f"{typed[0]} belongs in {parsed.what}, which says what the sweep is. Write it there."
        )
    return sweep_file.read(Path(parsed.what), parsed.seeds, parsed.yes)


def _plan_of_options(parsed: argparse.Namespace, changes: dict[str, str]) -> "Plan":
    from abacist.sweeps.choices import Choices

    over: dict[str, Values] = {}
    for text in parsed.over:
        name, values = _values(text)
        if name in over:
            raise UserError(f"--over {name} is typed twice. Type all its values in one --over.")
        over[name] = values
    choices = Choices(
        recipe=recipes.find(parsed.what or "add"),
        settings=changes,
        over=over,
        num_draws=parsed.random,
        seeds=range(parsed.seeds or 1),
        threads=parsed.threads or 1,
        device=parsed.device or "auto",
    )
    return choices.plan(parsed.yes)


def _values(text: str) -> "tuple[str, Values]":
    """Return the name and the values in the argument of `--over`."""
    name, equals, values = text.partition("=")
    if not equals or not name:
        raise UserError(
            f"--over needs a setting and its values, got {text!r}. Try --over model.width=16,32."
        )
    if ".." in values:
        return name, _range(name, values)
    return name, [value for value in values.split(",") if value]


def _range(name: str, text: str) -> "Range":
    from abacist.sweeps.choices import Range

    low, _, high = text.removeprefix("log:").partition("..")
    try:
        ends = [_number(end) for end in (low, high)]
    except ValueError:
        raise UserError(
            f"--over {name} needs a range of numbers, got {text!r}. Try log:0.001..0.1."
        ) from None
    return Range(ends[0], ends[1], "log" if text.startswith("log:") else "linear")


def _number(text: str) -> float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _carry_out(parsed: argparse.Namespace, plan: "Plan", path: Path, call: Any) -> int:
    """Carry out a sweep with progress shown, write its page, and print its table."""
    from abacist import files
    from abacist.cli.progress import Ticker
    from abacist.reports import csv_records, sweep_report, sweep_views, terminal
    from abacist.sweeps.plan import PAGE

    with Ticker("training trials", unit="steps") as ticker:
        try:
            results: Results = call(_shown(ticker, plan, path))
        except KeyboardInterrupt:
            again = terminal.command("sweep", "--resume", "--out", str(path))
            ticker.say(f"abacist: interrupted and saved. Resume with: {again}")
            return 130
    with files.not_saved_as_warning("The page"):
        sweep_report.write(results, path)
    if parsed.csv:
        csv_records.write(
            parsed.csv,
            [
                {"group": group.group.name, **group.group.settings, **outcome.summary()}
                for group in results.groups
                for outcome in group.outcomes
            ],
        )
    if parsed.json:
        print(json.dumps({"sweep": str(path)} | results.to_json()))
    else:
        terminal.console().print(terminal.Shown(sweep_views.tables(results)), soft_wrap=True)
        print(f"\nThe sweep is in {path}, with every run, sweep.json and {PAGE}.")
    return 1 if results.failures else 0


def _shown(ticker: Any, plan: "Plan", path: Path) -> "OnProgress":
    is_announced = False

    def update(progress: "Progress") -> None:
        nonlocal is_announced
        if not is_announced:
            ticker.say(
                f"{plan.num_trials:,} trial{'s' * (plan.num_trials > 1)} of {plan.recipe.name} in "
                f"{len(plan.groups):,} group{'s' * (len(plan.groups) > 1)}, into {path}"
            )
        is_announced = True
        finished = progress.num_tuned + len(progress.outcomes)
        details = f"{finished:,} of {plan.num_trials:,} trials finished"
        if progress.num_failed:
            details += f", {progress.num_failed:,} failed"
        ticker.update(progress.steps, progress.total_steps, details)

    return update
