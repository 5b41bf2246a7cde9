"""`abacist train --seeds`: train many seeds of a recipe and show how their results are distributed."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from abacist import extensions
from abacist.cli import named_run
from abacist.cli.typed_recipe import check_unchanged, typed_recipe
from abacist.errors import ConfigurationError

if TYPE_CHECKING:
    from abacist.sweeps.plan import Plan
    from abacist.sweeps.sweep import Progress


def resumes_many(parsed: argparse.Namespace) -> bool:
    """Whether the directory to be resumed is one of many seeds."""
    return bool(parsed.resume and parsed.out and named_run.is_group(parsed.out))


def run(parsed: argparse.Namespace, changes: dict[str, str]) -> int:
    """Train many seeds side by side and show how their results are distributed."""
    from abacist.cli import show
    from abacist.cli.progress import Ticker
    from abacist.devices import find_device
    from abacist.reports import csv_records, terminal
    from abacist.sweeps import sweep
    from abacist.sweeps.local import LocalProcesses

    if parsed.overwrite or parsed.train_only or parsed.track:
        raise ConfigurationError(
            "--seeds goes with neither --overwrite, --train-only nor --track. "
            "Type another --out, or train the seeds one by one."
        )
    plan, path = (_plan_in if parsed.resume else _plan_of_seeds)(parsed, changes)
    find_device(plan.device)
    executor = LocalProcesses(parsed.jobs, plan.threads)
    name = plan.recipe.name
    with Ticker("training seeds", unit="steps") as ticker:
        is_announced = False

        def update(progress: "Progress") -> None:
            nonlocal is_announced
            if not is_announced:
                ticker.say(f"training seeds of {name} into {path}")
            is_announced = True
            finished = len(progress.outcomes)
            right = sum(outcome.is_right for outcome in progress.outcomes)
            seeds = "seed" if finished == 1 else "seeds"
            details = f"{finished} {seeds} finished, {right} without an error"
            ticker.update(progress.steps, progress.total_steps, details)

        try:
            if parsed.resume:
                accept = parsed.accept_changed_extension
                results = sweep.resume(path, executor, update, accept)
            else:
                results = sweep.start(plan, path, executor, update)
        except KeyboardInterrupt:
            again = terminal.command("train", "--resume", "--out", str(path))
            ticker.say(f"abacist: interrupted and saved. Resume with: {again}")
            return 130
    (group,) = results.groups
    failures = [{"run": run, "reason": reason} for run, reason in results.failures.items()]
    if parsed.csv:
        csv_records.write(parsed.csv, [outcome.summary() for outcome in group.outcomes])
    if parsed.json:
        record = {"run": str(path), "recipe": name, "failures": failures}
        print(json.dumps(record | group.distribution.to_json()))
    else:
        terminal.console().print(show.seeds(group.distribution), soft_wrap=True)
        for failure in failures:
            print(f"{failure['run']} failed: {failure['reason']}")
        print(f"\nThe runs are {path}/seed-{plan.seeds[0]} and so on.")
    return 1 if failures else 0


def _plan_of_seeds(parsed: argparse.Namespace, changes: dict[str, str]) -> "tuple[Plan, Path]":
    """Return the plan of the seeds that were typed, and the directory to train them in."""
    from abacist.runs import directory
    from abacist.sweeps import sweep

    recipe = typed_recipe(parsed, changes)
    path = Path(parsed.out) if parsed.out else directory.new_path(recipe.name)
    if parsed.threads == "auto":
        raise ConfigurationError("--seeds needs a number of threads, got auto. Try --threads 1.")
    first = parsed.seed or 0
    seeds = range(first, first + (parsed.seeds or 1))
    return sweep.of_seeds(recipe, seeds, parsed.threads or 1, parsed.device or "auto"), path


def _plan_in(parsed: argparse.Namespace, changes: dict[str, str]) -> "tuple[Plan, Path]":
    """Return the plan of the seeds to be resumed, and their directory."""
    from abacist.sweeps import plan as plans

    if not resumes_many(parsed):
        raise ConfigurationError(
            f"there are no seeds to resume in {parsed.out or 'the newest run'}: it has no plan.json. "
            "Type --out with a directory that abacist train --seeds made."
        )
    path = Path(parsed.out)
    plan = plans.read(path, parsed.accept_changed_extension)
    if len(plan.groups) > 1:
        raise ConfigurationError(
            f"{path} is a sweep over settings. Type {extensions.command('sweep', '--resume', '--out', str(path))}."
        )
    options = {
        "seed": (plan.seeds[0], parsed.seed),
        "seeds": (len(plan.seeds), parsed.seeds),
        **{name: (getattr(plan, name), getattr(parsed, name)) for name in ("threads", "device")},
    }
    check_unchanged(path, plan.recipe, parsed.recipe, changes, options)
    return plan, path
