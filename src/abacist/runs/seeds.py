"""Many seeds of one recipe: trained side by side, each in a process and a directory of its own.

runs/add-20261121-153012/
  seeds.json      the recipe, the seeds, and how they are trained
  seed-0/ …       a run directory each, with outcome.json once the seed is trained, scored and proved
"""

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

from abacist import extensions, files
from abacist.configuration import to_json
from abacist.errors import AbacistError, RunError, check_between
from abacist.recipes import examinations
from abacist.recipes.recipe import Recipe
from abacist.runs import outcome
from abacist.runs.circumstances import circumstances
from abacist.runs.directory import (
    FORMAT_VERSION,
    MAX_SEED,
    MAX_THREADS,
    RunDirectory,
    check_whole_number,
    is_unclaimed,
    read_versioned,
    recipe_in,
)
from abacist.runs.examination import train_and_examine
from abacist.runs.outcome import Distribution, Outcome
from abacist.training.loop import TrainingInterrupted
from abacist.training.threads import usable_processors

OnProgress = Callable[[int, int, list[Outcome]], None]
"""Called twice a second with the steps made, the steps of all seeds, and the outcomes so far."""

_SECONDS_BETWEEN_LOOKS = 0.5


def start(
    recipe: Recipe,
    path: Path,
    seeds: Sequence[int],
    jobs: int | None = None,
    threads: int = 1,
    device: str = "auto",
    on_progress: OnProgress | None = None,
    examination: str | None = None,
) -> Distribution:
    """Train, score and try to prove every seed in its own directory under `path`, `jobs` at a time.

    By default there are as many jobs as processors. `examination` names a recipe of
    recipes/examinations.py; None stands for the default examination.
    """
    check_between("seeds", len(seeds), 1, 10_000, 10)
    examinations.find(examination)
    processors = usable_processors()
    if jobs is not None:
        check_between("jobs", jobs, 1, processors, processors)
    check_between("threads", threads, 1, processors, 1)
    if path.exists() and not is_unclaimed(path, "seeds.json"):
        raise RunError(
            f"{path} exists. Type --resume to finish its seeds, or another --out to train new ones."
        )
    files.make_directory(path)
    plan = {
        "format_version": FORMAT_VERSION,
        "recipe": to_json(recipe),
        "extensions": extensions.needed(to_json(recipe)),
        "seeds": list(seeds),
        "jobs": min(jobs or processors, len(seeds)),
        "threads": threads,
        "device": device,
        "examination": examination,
        **circumstances(),
    }
    files.write_json(path / "seeds.json", plan)
    return _carry_out(path, plan, on_progress)


def resume(path: Path, on_progress: OnProgress | None = None) -> Distribution:
    """Finish what `start` began.

    Finished seeds stay as they are. The others end with the bits they would have had without a break.
    """
    return _carry_out(path, read_plan(path), on_progress)


def read_plan(path: Path) -> dict[str, Any]:
    """Return everything in `seeds.json`.

    Raises `RunError` if it is damaged or its format version is not `FORMAT_VERSION`.
    """
    plan = read_versioned(path / "seeds.json")
    extensions.check_loaded(plan, path)
    try:
        recipe_in(plan)
        examinations.find(plan["examination"])
        for key, high in (("jobs", 10_000), ("threads", MAX_THREADS)):
            check_whole_number(plan, key, 1, high)
        for seed in plan["seeds"]:
            check_whole_number({"seed": seed}, "seed", 0, MAX_SEED)
    except (ValueError, KeyError, TypeError, AbacistError) as error:
        raise RunError(f"{path / 'seeds.json'} is damaged: {error}") from error
    return plan


def _carry_out(path: Path, plan: dict[str, Any], on_progress: OnProgress | None) -> Distribution:
    directories = {seed: RunDirectory(path / f"seed-{seed}") for seed in plan["seeds"]}
    finished = {seed: outcome.read(directory.outcome) for seed, directory in directories.items()}
    outcomes = {seed: result for seed, result in finished.items() if result is not None}
    waiting = [seed for seed in plan["seeds"] if seed not in outcomes]
    steps_per_seed = plan["recipe"]["training"]["num_steps"]
    running: dict[int, Future[Outcome]] = {}
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        plan["jobs"],
        mp_context=spawn,
        max_tasks_per_child=1,
        initializer=_begin_process,
        initargs=(extensions.loaded(),),
    ) as pool:
        while running or waiting:
            # No more than can run are submitted, because submitted seeds would begin even after
            # Ctrl-C, when the running seeds save themselves.
            while waiting and len(running) < plan["jobs"]:
                seed = waiting.pop(0)
                running[seed] = pool.submit(_carry_out_seed, directories[seed], seed, plan)
            # A finished seed makes room for the next one at once.
            wait(running.values(), _SECONDS_BETWEEN_LOOKS, FIRST_COMPLETED)
            for seed in [seed for seed, future in running.items() if future.done()]:
                outcomes[seed] = running.pop(seed).result()
            if on_progress is not None:
                steps = sum(_steps_made(directories[seed]) for seed in running)
                steps += len(outcomes) * steps_per_seed
                so_far = [outcomes[seed] for seed in plan["seeds"] if seed in outcomes]
                on_progress(steps, len(plan["seeds"]) * steps_per_seed, so_far)
    return Distribution([outcomes[seed] for seed in plan["seeds"]])


def _begin_process(sources: list[str]) -> None:
    """Prepare a new process: it ends with its parent, and loads what the user has asked for."""
    _end_with_parent()
    extensions.load_all(sources)


def _end_with_parent() -> None:
    """End this process as soon as its parent has ended, whatever ended it, including kill -9.

    The parent's sentinel is a pipe whose other end only the parent holds, so the operating system
    closes it. The last checkpoint stays, from which the seed resumes.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        multiprocessing.connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def _carry_out_seed(directory: RunDirectory, seed: int, plan: dict[str, Any]) -> Outcome:
    """Train and examine one seed, in a process of its own."""
    examination = examinations.find(plan["examination"])
    try:
        result = train_and_examine(
            recipe_in(plan), directory.path, seed, examination, plan["threads"], plan["device"]
        )
    except TrainingInterrupted as error:
        raise KeyboardInterrupt from error
    files.write_json(directory.outcome, result.to_json())
    return result


def _steps_made(directory: RunDirectory) -> int:
    metrics = directory.read_metrics()
    return int(metrics[-1]["step"]) if metrics else 0
