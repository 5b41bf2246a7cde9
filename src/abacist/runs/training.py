"""Training a run: from the start, or resumed from its newest checkpoint."""

import json
import shutil
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import torch

from abacist import extensions, files, generators
from abacist.configuration import from_json, to_json
from abacist.data.split import draw_from_split
from abacist.data.stream import Batches, Curriculum, TrainingStream
from abacist.devices import find_device
from abacist.errors import CheckpointError, RunError, check_between
from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.format import Format
from abacist.recipes.column_tasks import warning_about_proof
from abacist.recipes.recipe import Recipe
from abacist.runs import embeddings
from abacist.runs.circumstances import circumstances
from abacist.runs.directory import (
    FORMAT_VERSION,
    MAX_SEED,
    RunDirectory,
    is_unclaimed,
    read_recipe,
)
from abacist.runs.repairs import Repairs
from abacist.runs.run import Run, build_model, build_problems, examples_of, stage_task
from abacist.scoring.measures import ALL, measure
from abacist.scoring.typed import read_typed
from abacist.tasks.problems import Problems
from abacist.tasks.task import Task
from abacist.training import checkpoint
from abacist.training.beginnings import best_of, seed_weights, try_beginning
from abacist.training.checkpoint import Checkpoint, Progress
from abacist.training.checkpoint_paths import path_of
from abacist.training.loop import Forwarding, Observer, Training, Validation
from abacist.training.metrics import Beginning, Metrics, StepLoss
from abacist.training.optimizer import Optimizer
from abacist.training.processes import Processes, joined
from abacist.training.threads import fastest_threads, usable_processors

_CPU = torch.device("cpu")


def start(
    recipe: Recipe,
    path: Path,
    seed: int,
    threads: int | Literal["auto"] = 1,
    overwrite: bool = False,
    observer: Observer | None = None,
    device: str = "auto",
) -> Run:
    """Train a recipe from the start in a new directory.

    The same recipe, seed and number of threads give the same bits on the same kind of machine.

    Args:
        path: the run directory. It may exist if it is empty, or if it holds a run and `overwrite` is set.
        threads: number of threads, or `auto` for the number that is fastest in a few timed steps.

    Raises:
        ConfigurationError: the recipe, seed, threads or device cannot be used.
        RunError: `path` is in use or cannot be written.
        TrainingDiverged: the loss is not finite.
    """
    if threads != "auto":
        check_between("threads", threads, 1, usable_processors(), 1)
    check_between("seed", seed, 0, MAX_SEED, 0)
    with joined(find_device(device)) as (processes, own_device):
        return _start(recipe, path, seed, threads, overwrite, observer, own_device, processes)


def _start(
    recipe: Recipe,
    path: Path,
    seed: int,
    threads: int | Literal["auto"],
    overwrite: bool,
    observer: Observer | None,
    device: torch.device,
    processes: Processes,
) -> Run:
    processes.check_batch_size(recipe.training.batch_size)
    torch.manual_seed(seed)
    model = build_model(recipe)
    task, format = build_problems(recipe)
    stream = _batches(task, format, recipe, seed, _CPU)
    _validation_problems(task, recipe, seed)
    read_typed(task, format, list(recipe.training.watch))
    if (doubt := warning_about_proof(recipe)) is not None:
        warnings.warn(doubt, stacklevel=2)
    timings: dict[int, float] = {}
    if threads == "auto":
        threads = 1
        if device.type == "cpu" and processes.count == 1:
            threads, timings = fastest_threads(
                model, stream.batch(0), stream.aligned, recipe.training
            )
    # The directory is created last, so that a recipe that cannot be trained leaves none.
    directory = RunDirectory(path)
    if not processes.is_first:
        processes.agree()
        return _carry_out(directory, recipe, seed, threads, None, observer, device, processes)
    _claim(directory, overwrite)
    with files.locked(path):
        record = {
            "format_version": FORMAT_VERSION,
            "recipe": to_json(recipe),
            "extensions": extensions.needed(to_json(recipe)),
            "seed": seed,
            "threads": threads,
            "device": device.type,
            "processes": processes.count,
            "seconds_per_step_by_threads": timings,
            "parameters": model.num_parameters,
            **circumstances(),
        }
        files.write_json(directory.run_json, record)
        files.remove_leftovers(path)
        processes.agree()
        return _carry_out(directory, recipe, seed, threads, None, observer, device, processes)


def resume(
    path: Path,
    observer: Observer | None = None,
    device: str | None = None,
    accept_changed_extension: bool = False,
) -> Run:
    """Resume a run from its newest sound checkpoint, by default on the device it was trained on.

    The number of threads is that of the start. On the same device the run ends with the same
    weights, bit for bit, as if it had never stopped. A checkpoint that proves to be damaged is
    reported as a warning and renamed, and the one before it is used.

    Raises:
        RunError: there is no run in `path`, another process is training it, it cannot be
            read, or an extension that it needs is not loaded, or has changed and
            `accept_changed_extension` is not set.
        CheckpointError: no checkpoint fits the model.
        TrainingDiverged: the loss is not finite.
    """
    directory = RunDirectory(path)
    if not directory.run_json.is_file():
        start = extensions.command("train", "--out", str(path))
        raise RunError(
            f"there is nothing to resume in {path}: it has no run.json. "
            f"Type {start} to start a run there."
        )
    recipe, record = read_recipe(directory)
    if not accept_changed_extension:
        extensions.refuse_changes(record, path)
    seed, threads = record["seed"], record["threads"]
    with joined(find_device(device or record.get("device", "cpu"))) as (processes, own_device):
        processes.check_batch_size(recipe.training.batch_size)
        if not processes.is_first:
            # The first process says which checkpoint is sound: its step plus 1, or 0 for none.
            number = processes.agree()
            newest = None
            if number:
                newest = checkpoint.read(path_of(directory.checkpoints, number - 1))
            return _carry_out(
                directory, recipe, seed, threads, newest, observer, own_device, processes
            )
        with files.locked(path):
            for written in directory.written:
                files.remove_leftovers(written)
            newest = _newest_sound_checkpoint(directory)
            processes.agree(0 if newest is None else newest.progress.step + 1)
            return _carry_out(
                directory, recipe, seed, threads, newest, observer, own_device, processes
            )


def _newest_sound_checkpoint(directory: RunDirectory) -> Checkpoint | None:
    """Return the newest sound checkpoint; warn about damaged ones and set them aside.

    A checkpoint that cannot be read now may be sound, so `RunError` is raised and it stays.
    """
    for newest in reversed(checkpoint.all_in(directory.checkpoints)):
        try:
            return checkpoint.read(newest)
        except CheckpointError as error:
            aside = checkpoint.set_aside(newest)
            warnings.warn(
                f"{error} It is now {aside.name}. Going back to the checkpoint before it.",
                stacklevel=3,
            )
    return None


def _carry_out(
    directory: RunDirectory,
    recipe: Recipe,
    seed: int,
    threads: int,
    newest: Checkpoint | None,
    observer: Observer | None,
    device: torch.device,
    processes: Processes,
) -> Run:
    torch.set_num_threads(threads)
    inner = (observer or Observer()) if processes.is_first else Observer()
    number, seconds = 0, 0.0
    if newest is None and recipe.training.num_beginnings > 1:
        number, seconds = _best_beginning(directory, recipe, seed, inner, device, processes)
    run = _untrained(directory, recipe, seed, number, device)
    model = run.model
    optimizer = Optimizer(model, recipe.training)
    begin = Progress(0, seconds) if newest is None else newest.progress
    if newest is not None:
        newest.load_weights(model)
        newest.load_optimizer(optimizer)
    recorder = Observer()
    if processes.is_first:
        _prepare(run, begin)
        recorder = _Recorder(run, inner)
    batches = _batches(run.task, run.format, recipe, seed, device)
    repairs = Repairs(run, batches, begin, recorder, processes)
    training = Training(
        model,
        optimizer,
        recipe.training,
        _validation(run),
        directory.checkpoints,
        directory.best,
        recorder,
        begin,
        processes,
        repairs.are_needed,
    )
    progress = training.run(repairs.batches)
    optimizer.adopt_average()
    run.step = progress.step
    model.eval()
    return run


def _untrained(
    directory: RunDirectory, recipe: Recipe, seed: int, number: int, device: torch.device
) -> Run:
    """Return the run with the initial weights of a beginning."""
    seed_weights(seed, number)
    return Run(directory, recipe, seed, build_model(recipe).to(device))


def _best_beginning(
    directory: RunDirectory,
    recipe: Recipe,
    seed: int,
    observer: Observer,
    device: torch.device,
    processes: Processes,
) -> tuple[int, float]:
    """Try every beginning that has no record yet; return the number of the best and the time of all, in seconds."""
    records = directory.read_lines(directory.beginnings, Beginning)
    tried = [from_json(Beginning, record, "record") for record in records]
    for number in range(len(tried), recipe.training.num_beginnings):
        run = _untrained(directory, recipe, seed, number, device)
        stream = _batches(run.task, run.format, recipe, seed, device)
        began = time.perf_counter()
        beginning = try_beginning(
            number, run.model, recipe.training, stream, _validation(run), observer, processes
        )
        tried.append(replace(beginning, seconds=time.perf_counter() - began))
        observer.on_beginning(tried[-1])
        if processes.is_first:
            lines = "".join(json.dumps(to_json(record)) + "\n" for record in tried)
            files.write_bytes(directory.beginnings, lines.encode())
    return best_of(tried), sum(beginning.seconds for beginning in tried)


def _prepare(run: Run, begin: Progress) -> None:
    """Write the vocabulary, and delete results and records that training from `begin` on replaces."""
    directory, vocabulary = run.directory, run.format.vocabulary
    files.write_json(directory.tokenizer, vocabulary.to_tokenizer_json())
    files.write_json(directory.tokenizer_config, vocabulary.to_tokenizer_config_json())
    if not begin.finished and begin.step < run.recipe.training.num_steps:
        # They describe weights that are about to change.
        for file in directory.results:
            file.unlink(missing_ok=True)
    # The steps after the checkpoint are repeated, and with them their records.
    directory.forget_after(begin.step)


class _Recorder(Forwarding):
    """Writes records into the run directory, copies the embeddings, and passes every call on."""

    def __init__(self, run: Run, inner: Observer) -> None:
        super().__init__(inner)
        self.run = run
        self.directory, self.config = run.directory, run.recipe.training
        self.every = self.config.record_embeddings_every

    def on_start(self, parameters: int, threads: int, step: int) -> None:
        if self.every is not None:
            embeddings.forget_after(self.directory.embeddings, step)
            if step == 0:
                embeddings.record(self.directory.embeddings, self.run.model, 0)
        super().on_start(parameters, threads, step)

    def on_step(self, step: int, loss: float) -> None:
        if self.every is not None and step % self.every == 0:
            embeddings.record(self.directory.embeddings, self.run.model, step)
        if self.config.record_loss_every and (step - 1) % self.config.record_loss_every == 0:
            self.directory.append(self.directory.losses, to_json(StepLoss(step, loss)))
        super().on_step(step, loss)

    def on_metrics(self, metrics: Metrics) -> None:
        self.directory.append(self.directory.metrics, to_json(metrics))
        super().on_metrics(metrics)

    def on_checkpoint(self, step: int) -> None:
        if self.config.watch:
            self.run.model.eval()
            for solution in self.run.solve(list(self.config.watch)):
                record = {"step": step} | solution.to_json()
                self.directory.append(self.directory.watched, record)
            self.run.model.train()
        super().on_checkpoint(step)

    def on_divergence(self, step: int, batch: AnnotatedTokens) -> None:
        ids = batch.ids.tolist()
        lines = [self.run.format.vocabulary.decode(line) for line in ids]
        record = {"step": step, "lines": lines, "ids": ids}
        files.write_json(self.directory.nonfinite_batch, record)
        super().on_divergence(step, batch)


def _batches(
    task: Task, format: Format, recipe: Recipe, seed: int, device: torch.device
) -> Batches:
    """Return the batches of the curriculum's stages, then those of the task, all in the recipe's format."""
    training = recipe.training

    def stream(task_of_stage: Task, stage: int | None = None) -> TrainingStream:
        examples = examples_of(training) if stage is None else None
        return TrainingStream(
            task_of_stage,
            format,
            recipe.split,
            training.batch_size,
            seed,
            examples,
            device,
            stage,
            keep_partial_batches=training.keep_partial_batches,
            mixed_lengths=training.mixed_lengths,
        )

    if not training.curriculum:
        return stream(task)
    streams = [
        stream(stage_task(recipe, number), number) for number in range(len(training.curriculum))
    ]
    return Curriculum([*streams, stream(task)], [stage.num_steps for stage in training.curriculum])


def _validation(run: Run) -> Callable[[], Validation]:
    """Return a function that measures the model on fixed samples of validation and training problems."""
    problems = _validation_problems(run.task, run.recipe, run.seed)
    sample = _training_sample(run.task, run.recipe, run.seed)

    def validate() -> Validation:
        run.model.eval()
        trained_model = run.trained_model()
        validation = Validation(
            measure(trained_model, problems), measure(trained_model, sample)[ALL]
        )
        run.model.train()
        return validation

    return validate


def _training_sample(task: Task, recipe: Recipe, seed: int) -> Problems:
    """Return a sample of a fixed training set, or problems drawn as in training."""
    training = recipe.training
    if (examples := examples_of(training)) is not None:
        return examples.sample(task, recipe.split, seed, training.sample_problems)
    generator = generators.generator(seed, "training sample")
    shapes = task.draw_shapes(training.sample_problems, generator)
    return draw_from_split(task, shapes, "train", recipe.split, generator)


def _validation_problems(task: Task, recipe: Recipe, seed: int) -> Problems:
    generator = generators.generator(seed, "validation")
    shapes = task.draw_shapes(recipe.training.validation_problems, generator)
    return draw_from_split(task, shapes, "validation", recipe.split, generator)


def _claim(directory: RunDirectory, overwrite: bool) -> None:
    """Create the directory, or empty it if it may be overwritten; otherwise raise `RunError`.

    A directory that a process left before it wrote `run.json` is free.
    """
    path = directory.path
    if path.exists() and not path.is_dir():
        raise RunError(f"{path} is a file. Type --out with a directory that does not exist yet.")
    if path.exists() and not is_unclaimed(path, "run.json"):
        if not overwrite:
            raise RunError(
                f"{path} exists. Type --resume to finish this run, --overwrite to replace it, "
                "or another --out."
            )
        if not directory.run_json.is_file():
            raise RunError(
                f"{path} holds something other than a run and is not overwritten. "
                "Type another --out."
            )
        for entry in sorted(path.iterdir()):
            if not directory.owns(entry):
                raise RunError(
                    f"{path} also holds {entry.name}, which is not part of a run, so it is not "
                    "overwritten. Move it, or type another --out."
                )
        with files.locked(path):
            # run.json goes last: until then a run that was deleted in part can be overwritten again.
            for entry in sorted(path.iterdir(), key=lambda entry: entry == directory.run_json):
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry)
                else:
                    entry.unlink()
    files.make_directory(path)
