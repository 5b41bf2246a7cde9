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
from pathlib import Path
from typing import Any

import torch

from abacist.data.stream import Batches
from abacist.errors import TrainingDiverged
from abacist.intervals import Proportion
from abacist.models.transformer import Transformer
from abacist.training import checkpoint
from abacist.training.checkpoint import Progress
from abacist.training.config import TrainingConfig
from abacist.training.metrics import Metrics
from abacist.training.optimizer import Optimizer
from abacist.training.schedule import learning_rate
from abacist.training.step import training_step


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
        """Called after every validation."""


class TrainingInterrupted(Exception):
    """Ctrl-C was pressed, and the state has been saved."""


def train(
    model: Transformer,
    optimizer: Optimizer,
    stream: Batches,
    config: TrainingConfig,
    validate: Callable[[], Proportion],
    checkpoints: Path,
    observer: Observer,
    start: Progress,
) -> Progress:
    """Train from `start` to the end, and leave a checkpoint of the last step.

    Args:
        model: the model that `optimizer` updates.
        optimizer: updates the weights.
        stream: yields the batch of every step.
        config: settings of the training.
        validate: returns the model's exact match on the validation split.
        checkpoints: directory of the checkpoints.
        observer: receives events.
        start: where to start; steps, seconds and successes are counted from there.

    Raises `TrainingDiverged` where the loss or a gradient is not finite, leaving the last good
    checkpoint in place, and `TrainingInterrupted` after saving where Ctrl-C was pressed.
    """
    observer.on_start(model.num_parameters, torch.get_num_threads(), start.step)
    begin = time.perf_counter() - start.seconds
    model.train()
    losses: list[float] = []
    validated, step = time.perf_counter(), start.step
    saved, successes = validated, start.successes
    with _ctrl_c() as is_stop_requested:
        while step < config.num_steps and not start.finished:
            batch = stream.batch(step)
            loss = training_step(model, optimizer, batch, config, step, stream.aligned, stream.seed)
            if not math.isfinite(loss):
                raise _diverged(step + 1, config, checkpoints)
            step += 1
            losses.append(loss)
            observer.on_step(step, loss)
            finished = step == config.num_steps
            if step % config.validate_every == 0 or finished:
                with optimizer.averaged():
                    exact_match = validate()
                successes = successes + 1 if _is_reached(config, exact_match) else 0
                stops_early = successes >= config.stop_after and step >= config.stop_from
                finished = finished or stops_early
                now = time.perf_counter()
                observer.on_metrics(
                    Metrics(
                        step=step,
                        loss=sum(losses) / len(losses),
                        exact_match=exact_match,
                        learning_rate=learning_rate(config, step - 1),
                        problems_per_second=len(losses) * config.batch_size / (now - validated),
                        seconds=now - begin,
                    )
                )
                losses, validated = [], now
            due = step % config.checkpoint_every == 0 or is_stop_requested()
            if config.checkpoint_seconds is not None:
                due = due or time.perf_counter() - saved >= config.checkpoint_seconds
            if due or finished:
                progress = Progress(step, time.perf_counter() - begin, successes, finished)
                if not all(bool(torch.isfinite(p).all()) for p in model.parameters()):
                    raise _diverged(step, config, checkpoints)
                checkpoint.save(checkpoints, model, optimizer, progress)
                checkpoint.keep_newest(checkpoints, config.keep_checkpoints)
                saved = time.perf_counter()
            if finished:
                break
            if is_stop_requested():
                raise TrainingInterrupted(f"stopped after step {step} of {config.num_steps}")
    return Progress(step, time.perf_counter() - begin, successes, True)


def _is_reached(config: TrainingConfig, exact_match: Proportion) -> bool:
    """Whether a validation reaches `stop_at`, so that enough of them in a row stop the training."""
    value = exact_match.value
    return config.stop_at is not None and value is not None and value >= config.stop_at


def _diverged(step: int, config: TrainingConfig, checkpoints: Path) -> TrainingDiverged:
    paths = checkpoint.all_in(checkpoints)
    saved = f"the last good checkpoint is {paths[-1]}" if paths else "no checkpoint was written yet"
    return TrainingDiverged(
        f"the loss is not finite at step {step}; {saved}. Try a lower learning rate, such as "
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
