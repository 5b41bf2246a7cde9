"""The training loop.

For every step, read its batch and update the weights; every few steps, validate, report metrics
and write a checkpoint. The loop knows neither tasks nor run directories: the caller passes what
it needs.
"""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from abacist.data.stream import Batches
from abacist.errors import TrainingDiverged
from abacist.formats.annotated import AnnotatedTokens
from abacist.intervals import Proportion
from abacist.models.transformer import Transformer
from abacist.scoring.measures import ALL
from abacist.scoring.records import Measures
from abacist.training import checkpoint
from abacist.training.checkpoint import Progress
from abacist.training.config import TrainingConfig
from abacist.training.metrics import Metrics
from abacist.training.optimizer import Optimizer
from abacist.training.processes import ALONE, Processes
from abacist.training.schedule import learning_rate
from abacist.training.step import training_step


@dataclass(frozen=True)
class Validation:
    """What one validation measured."""

    validation: dict[str, Measures]
    """On validation problems: of all problems under `ALL`, and by operation where there are several."""
    training_sample: Measures
    """On a fixed sample of training problems."""


class Observer:
    """Receives the events of a training. The methods of this base class do nothing."""

    def on_start(self, parameters: int, threads: int, step: int) -> None:
        """Called before the first step.

        Args:
            parameters: number of trained parameters.
            threads: number of threads.
            step: number of steps done before; 0 unless the training is resumed.
        """

    def on_step(self, step: int, loss: float) -> None:
        """Called after every step, with the number of steps done and the loss in nats per token."""

    def on_metrics(self, metrics: Metrics) -> None:
        """Called before the first step and after every validation."""

    def on_checkpoint(self, step: int) -> None:
        """Called before the first step and at every checkpoint; the model has the weights saved there."""

    def on_divergence(self, step: int, batch: AnnotatedTokens) -> None:
        """Called with the batch on which the loss is not finite, and the number of its step from 1."""


class TrainingStopped(Exception):
    """An observer has stopped the training for good, and says why."""


class TrainingInterrupted(Exception):
    """Ctrl-C was pressed, and the state has been saved."""


def train(
    model: Transformer,
    optimizer: Optimizer,
    stream: Batches,
    config: TrainingConfig,
    validate: Callable[[], Validation],
    checkpoints: Path,
    best: Path,
    observer: Observer,
    start: Progress,
    processes: Processes = ALONE,
) -> Progress:
    """Train from `start` to the end, and leave a checkpoint of the last step.

    Args:
        model: the model that `optimizer` updates.
        optimizer: updates the weights.
        stream: yields the batch of every step.
        config: settings of the training.
        validate: measures the model on validation problems and on a sample of training problems.
        checkpoints: directory of the checkpoints.
        best: directory of the checkpoint that is best on validation.
        observer: receives events.
        start: where to start; steps, seconds and successes are counted from there.
        processes: those that train the model together, of which the first writes checkpoints.

    Raises `TrainingDiverged` where the loss or a gradient is not finite, leaving the last good
    checkpoint in place, and `TrainingInterrupted` after saving where Ctrl-C was pressed.
    """
    observer.on_start(model.num_parameters, torch.get_num_threads(), start.step)
    begin = time.perf_counter() - start.seconds
    model.train()
    losses: list[float] = []
    step, successes, best_score = start.step, start.successes, start.best
    best_step = _last_step_up_to(best, start.step)
    if step == 0:
        with optimizer.averaged():
            observer.on_metrics(_metrics(validate(), 0, [], config, 0.0, 0.0))
            observer.on_checkpoint(0)
    if config.num_steps == 0 and processes.is_first:
        checkpoint.save(checkpoints, model, optimizer, Progress(0, 0.0, finished=True))
    # The validation before the first step does not count in the speed of the first steps.
    validated = saved = time.perf_counter()
    with _ctrl_c() as is_stop_requested:
        while step < config.num_steps and not start.finished:
            batch = stream.batch(step)
            loss = training_step(
                model, optimizer, batch, config, step, stream.aligned, stream.seed, processes
            )
            if not math.isfinite(loss):
                observer.on_divergence(step + 1, batch)
                raise _diverged(step + 1, config, checkpoints)
            step += 1
            losses.append(loss)
            observer.on_step(step, loss)
            finished = step == config.num_steps
            if step % config.validate_every == 0 or finished:
                with optimizer.averaged():
                    validation = validate()
                matched = _matched(config, validation)
                successes = successes + 1 if _is_reached(config, matched) else 0
                stops_early = successes >= config.stop_after and step >= config.stop_from
                finished = finished or stops_early
                now = time.perf_counter()
                speed = len(losses) * config.batch_size / (now - validated)
                metrics = _metrics(validation, step, losses, config, speed, now - begin)
                observer.on_metrics(metrics)
                losses, validated = [], now
                score = (matched.value or 0.0, -validation.validation[ALL].loss)
                is_best = best_score is None or score > best_score
                if config.keep_best and is_best and math.isfinite(score[1]):
                    best_score = score
                    progress = Progress(step, now - begin, successes, finished, best_score)
                    if processes.is_first:
                        checkpoint.save(best, model, optimizer, progress)
                    best_step = step
                # A resumed training may not have reached the best checkpoint again that it made
                # before it was stopped: that one stays until its step is validated again.
                if best_step is not None and processes.is_first:
                    checkpoint.keep_one(best, best_step, up_to=step)
            stops = processes.is_any(is_stop_requested())
            due = step % config.checkpoint_every == 0 or stops
            if config.checkpoint_seconds is not None:
                due = due or time.perf_counter() - saved >= config.checkpoint_seconds
            if due or finished:
                seconds = time.perf_counter() - begin
                progress = Progress(step, seconds, successes, finished, best_score)
                if not all(bool(torch.isfinite(p).all()) for p in model.parameters()):
                    observer.on_divergence(step, batch)
                    raise _diverged(step, config, checkpoints)
                if processes.is_first:
                    checkpoint.save(checkpoints, model, optimizer, progress)
                if config.keep_checkpoints is not None and processes.is_first:
                    checkpoint.keep_newest(checkpoints, config.keep_checkpoints)
                with optimizer.averaged():
                    observer.on_checkpoint(step)
                saved = time.perf_counter()
            if finished:
                break
            if stops:
                raise TrainingInterrupted(f"stopped after step {step} of {config.num_steps}")
    return Progress(step, time.perf_counter() - begin, successes, True)


def _metrics(
    validation: Validation,
    step: int,
    losses: list[float],
    config: TrainingConfig,
    problems_per_second: float,
    seconds: float,
) -> Metrics:
    """Return the record of a validation; `losses` are those of the steps since the last one."""
    measures, sample = validation.validation[ALL], validation.training_sample
    return Metrics(
        step=step,
        loss=sum(losses) / len(losses) if losses else sample.loss,
        exact_match=measures.exact_match,
        learning_rate=learning_rate(config, max(0, step - 1)),
        problems_per_second=problems_per_second,
        seconds=seconds,
        validation_loss=measures.loss,
        token_accuracy=measures.token_accuracy,
        exact_answer=measures.exact_answer,
        operations={name: m for name, m in validation.validation.items() if name != ALL},
        training_sample=sample,
    )


def _matched(config: TrainingConfig, validation: Validation) -> Proportion:
    """Return the share that `stop_on` names."""
    measures = validation.validation[ALL]
    return measures.exact_answer if config.stop_on == "answer" else measures.exact_match


def _is_reached(config: TrainingConfig, exact_match: Proportion) -> bool:
    """Whether a validation reaches `stop_at`, so that enough of them in a row stop the training."""
    value = exact_match.value
    return config.stop_at is not None and value is not None and value >= config.stop_at


def _last_step_up_to(directory: Path, step: int) -> int | None:
    """Return the step of the newest checkpoint that is not newer than `step`; None without one."""
    steps = [checkpoint.step_of(path) for path in checkpoint.all_in(directory)]
    return max((s for s in steps if s <= step), default=None)


def _diverged(step: int, config: TrainingConfig, checkpoints: Path) -> TrainingDiverged:
    paths = checkpoint.all_in(checkpoints)
    saved = f"the last good checkpoint is {paths[-1]}" if paths else "no checkpoint was written yet"
    return TrainingDiverged(
        f"the loss is not finite at step {step}; {saved}, and the lines of that batch are in "
        "nonfinite-batch.json. Try a lower learning rate, such as "
        f"--training.learning_rate {config.learning_rate / 3:.2g}, or --training.clip_norm 0.5."
    )


@contextmanager
def _ctrl_c() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C into a request to stop, which the yielded function reports.

    An exception in the middle of an optimiser step would leave half of the weights updated, so
    the loop stops between two steps. The second Ctrl-C interrupts at once.
    """
    requested = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield requested.is_set
        return
    previous = signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: Any) -> None:
        requested.set()
        signal.signal(signal.SIGINT, previous)

    signal.signal(signal.SIGINT, handle)
    try:
        yield requested.is_set
    finally:
        signal.signal(signal.SIGINT, previous)
