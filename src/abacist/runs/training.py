"""Carrying out a recipe: from nothing, or from where it stopped."""

import os
import platform
import shutil
import subprocess
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

import abacist
from abacist import files, generators
from abacist.configuration import to_json
from abacist.data.split import draw_from_split
from abacist.data.stream import Batches, Curriculum, TrainingStream
from abacist.devices import find_device
from abacist.errors import CheckpointError, RunError, check_between
from abacist.formats.format import Format
from abacist.intervals import Proportion
from abacist.recipes.recipe import Recipe
from abacist.runs import embeddings
from abacist.runs.directory import RunDirectory, read_recipe
from abacist.runs.run import Run, build_model, build_problems, stage_task
from abacist.scoring.exact_match import exact_match
from abacist.tasks.problems import Problems
from abacist.tasks.task import Task
from abacist.training import checkpoint
from abacist.training.checkpoint import Progress
from abacist.training.loop import Metrics, Observer, train
from abacist.training.optimizer import Optimizer
from abacist.training.threads import fastest_threads, usable_processors

_CPU = torch.device("cpu")


def start(
    recipe: Recipe,
    path: Path,
    seed: int,
    threads: int | None = None,
    overwrite: bool = False,
    observer: Observer | None = None,
    device: str = "auto",
) -> Run:
    """Train a recipe from nothing into a new directory.

    Threads are chosen by timing a few steps unless given; with a GPU there is one. Refuses a directory that exists,
    unless it is an empty one or `overwrite` is set and it holds a run.
    """
    if threads is not None:
        check_between("threads", threads, 1, usable_processors(), 1)
    check_between("seed", seed, 0, (1 << 63) - 1, 0)
    where = find_device(device)
    torch.manual_seed(seed)
    model = build_model(recipe)
    task, format = build_problems(recipe)
    stream = _batches(task, format, recipe, seed, _CPU)
    _validation_problems(task, recipe, seed)
    # Only now: what cannot be built or drawn shall not leave a directory behind.
    directory = RunDirectory(path)
    _claim(directory, overwrite)
    with files.locked(path):
        timings: dict[int, float] = {}
        if threads is None and where.type != "cpu":
            threads = 1
        if threads is None:
            first = stream.batch(0)
            threads, timings = fastest_threads(model, first, stream.aligned, recipe.training)
        record = {
            "recipe": to_json(recipe),
            "seed": seed,
            "threads": threads,
            "device": where.type,
            "seconds_per_step_by_threads": timings,
            "parameters": model.num_parameters,
            **circumstances(),
        }
        files.write_json(directory.run_json, record)
        return _carry_out(directory, recipe, seed, threads, Progress(0, 0.0), observer, where)


def resume(path: Path, observer: Observer | None = None, device: str | None = None) -> Run:
    """Go on with a run from its newest sound checkpoint, with the threads and device it began with.

    Ends with the same weights, bit for bit, as if it had never stopped, unless told to go on
    elsewhere. A damaged checkpoint is
    reported as a warning and the one before it is used.
    """
    directory = RunDirectory(path)
    if not directory.run_json.is_file():
        raise RunError(
            f"there is nothing to resume in {path}: it has no run.json. "
            f"Type abacist train --out {path} to begin."
        )
    recipe, record = read_recipe(directory)
    where = find_device(device or record.get("device", "cpu"))
    with files.locked(path):
        files.remove_leftovers(directory.path)
        files.remove_leftovers(directory.checkpoints)
        progress = _newest_sound(directory)
        return _carry_out(
            directory, recipe, record["seed"], record["threads"], progress, observer, where
        )


def _newest_sound(directory: RunDirectory) -> Progress:
    """How far the newest sound checkpoint is; those that are damaged are reported and deleted."""
    for newest in reversed(checkpoint.all_in(directory.checkpoints)):
        try:
            checkpoint.verify(newest)
        except CheckpointError as error:
            warnings.warn(f"{error} Going back to the checkpoint before it.", stacklevel=3)
            shutil.rmtree(newest)
            continue
        return checkpoint.read_progress(newest)
    return Progress(0, 0.0)


def _carry_out(
    directory: RunDirectory,
    recipe: Recipe,
    seed: int,
    threads: int,
    begin: Progress,
    observer: Observer | None,
    device: torch.device,
) -> Run:
    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    model = build_model(recipe).to(device)
    optimizer = Optimizer(model, recipe.training)
    if begin.step:
        newest = checkpoint.all_in(directory.checkpoints)[-1]
        checkpoint.load_weights(newest, model)
        checkpoint.load_optimizer(newest, optimizer)
    run = Run(directory, recipe, seed, model)
    if begin.step < recipe.training.num_steps:
        # They would speak of weights that are about to change.
        for verdict in directory.verdicts:
            verdict.unlink(missing_ok=True)
    # Records made after the checkpoint are made again.
    kept = [record for record in directory.read_metrics() if record["step"] <= begin.step]
    directory.write_metrics(kept)
    progress = train(
        model,
        optimizer,
        _batches(run.task, run.format, recipe, seed, device),
        recipe.training,
        _validation(run),
        directory.checkpoints,
        _Recorder(run, observer or Observer()),
        begin,
    )
    optimizer.adopt_average()
    run.step = progress.step
    model.eval()
    return run


class _Recorder(Observer):
    """Writes records to `metrics.jsonl` and passes everything on."""

    def __init__(self, run: Run, inner: Observer) -> None:
        self.run, self.inner = run, inner
        self.directory = run.directory
        self.every = run.recipe.training.record_embeddings_every

    def on_start(self, parameters: int, threads: int, step: int) -> None:
        if self.every is not None:
            embeddings.forget_after(self.directory.embeddings, step)
            if step == 0:
                embeddings.record(self.directory.embeddings, self.run.model, 0)
        self.inner.on_start(parameters, threads, step)

    def on_step(self, step: int, loss: float) -> None:
        if self.every is not None and step % self.every == 0:
            embeddings.record(self.directory.embeddings, self.run.model, step)
        self.inner.on_step(step, loss)

    def on_metrics(self, metrics: Metrics) -> None:
        data = asdict(metrics) | {"exact_match": metrics.exact_match.to_json()}
        self.directory.append_metrics(data)
        self.inner.on_metrics(metrics)


def _batches(
    task: Task, format: Format, recipe: Recipe, seed: int, device: torch.device
) -> Batches:
    """The stages of the curriculum and then the task itself; all in the recipe's own format."""
    training = recipe.training

    def stream(asked: Task, stage: int | None = None) -> TrainingStream:
        examples = training.num_examples if stage is None else None
        return TrainingStream(
            asked, format, recipe.split, training.batch_size, seed, examples, device, stage
        )

    if not training.curriculum:
        return stream(task)
    streams = [
        stream(stage_task(recipe, number), number) for number in range(len(training.curriculum))
    ]
    return Curriculum([*streams, stream(task)], [stage.num_steps for stage in training.curriculum])


def _validation(run: Run) -> Callable[[], Proportion]:
    """Exact match on one fixed sample of the validation split."""
    problems = _validation_problems(run.task, run.recipe, run.seed)

    def validate() -> Proportion:
        run.model.eval()
        proportion = exact_match(run.trained_model(), problems).proportion
        run.model.train()
        return proportion

    return validate


def _validation_problems(task: Task, recipe: Recipe, seed: int) -> Problems:
    generator = generators.generator(seed, "validation")
    shapes = task.draw_shapes(recipe.training.validation_problems, generator)
    return draw_from_split(task, shapes, "validation", recipe.split, generator)


def _claim(directory: RunDirectory, overwrite: bool) -> None:
    """Make the directory ours, or refuse."""
    path = directory.path
    if path.exists():
        if not path.is_dir():
            raise RunError(f"{path} is a file; --out needs a directory that does not exist yet.")
        occupied = any(path.iterdir())
        if occupied and overwrite and directory.run_json.is_file():
            with files.locked(path):
                shutil.rmtree(path)
        elif occupied and overwrite:
            raise RunError(f"{path} holds something else than a run; it is not overwritten.")
        elif occupied:
            raise RunError(
                f"{path} exists. Type --resume to go on with it, --overwrite to begin again, "
                "or another --out."
            )
    files.make_directory(directory.checkpoints)


def circumstances() -> dict[str, Any]:
    """What else a reader needs to repeat a run: versions, machine, commit."""
    return {
        "abacist": abacist.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": _processor(),
        "cores": os.cpu_count(),
        "commit": _commit(),
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _commit() -> str | None:
    """The commit of the source tree abacist runs from; None where it is installed elsewhere."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return None
    try:
        result = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() or None
