"""The training loop.

Step by step: read the batch of this step, make the step, and at their times validate, record
and checkpoint. The loop knows neither tasks nor directories' layouts; it is given what it needs.
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
from abacist.intervals import Proportion
from abacist.models.transformer import Transformer
from abacist.training import checkpoint
from abacist.training.checkpoint import Progress
from abacist.training.config import TrainingConfig
from abacist.training.optimizer import Optimizer
from abacist.training.schedule import learning_rate
from abacist.training.step import training_step


@dataclass(frozen=True)
class Record:
    """One line of `metrics.jsonl`."""

    step: int
    """Steps done."""
    loss: float
    """Mean loss since the last record, in nats a token."""
    exact_match: Proportion
    """On the validation split."""
    learning_rate: float
    problems_per_second: float
    """Problems trained on, a second, since the last record."""
    seconds: float
    """Time spent training so far, validation and checkpoints included."""


class Observer:
    """Told what happens; the base class ignores it."""

    def on_start(self, parameters: int, threads: int, step: int) -> None:
        """Before the first step: trained numbers, threads, and the step begun at."""

    def on_step(self, step: int, loss: float) -> None:
        """After every step."""

    def on_record(self, record: Record) -> None:
        """After every validation."""


class TrainingInterrupted(Exception):
    """Ctrl-C was pressed; the state has been saved."""


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
    """Train from `start` to the end, leaving a checkpoint of the last step under `checkpoints`.

    Raises `TrainingDiverged` when the loss or a gradient is not finite, leaving the last good
    checkpoint in place, and `TrainingInterrupted` after saving when Ctrl-C was pressed.
    """
    observer.on_start(model.num_parameters, torch.get_num_threads(), start.step)
    begin = time.perf_counter() - start.seconds
    model.train()
    losses: list[float] = []
    record_begin, step = time.perf_counter(), start.step
    saved, successes = record_begin, start.successes
    with _ctrl_c() as asked_to_stop:
        while step < config.num_steps and not start.finished:
            batch = stream.batch(step)
            loss = training_step(model, optimizer, batch, config, step, stream.aligned, stream.seed)
            if not math.isfinite(loss):
                raise TrainingDiverged(_diverged(step + 1, config, checkpoints))
            step += 1
            losses.append(loss)
            observer.on_step(step, loss)
            finished = step == config.num_steps
            if step % config.validate_every == 0 or finished:
                with optimizer.averaged():
                    exact_match = validate()
                successes = successes + 1 if _is_reached(config, exact_match) else 0
                enough = successes >= config.stop_after and step >= config.stop_from
                finished = finished or enough
                now = time.perf_counter()
                observer.on_record(
                    Record(
                        step=step,
                        loss=sum(losses) / len(losses),
                        exact_match=exact_match,
                        learning_rate=learning_rate(config, step - 1),
                        problems_per_second=len(losses) * config.batch_size / (now - record_begin),
                        seconds=now - begin,
                    )
                )
                losses, record_begin = [], now
            due = step % config.checkpoint_every == 0 or asked_to_stop()
            if config.checkpoint_seconds is not None:
                due = due or time.perf_counter() - saved >= config.checkpoint_seconds
            if due or finished:
                progress = Progress(step, time.perf_counter() - begin, successes, finished)
                if not all(bool(torch.isfinite(p).all()) for p in model.parameters()):
                    raise TrainingDiverged(_diverged(step, config, checkpoints))
                checkpoint.save(checkpoints, model, optimizer, progress)
                checkpoint.keep_newest(checkpoints, config.keep_checkpoints)
                saved = time.perf_counter()
            if finished:
                break
            if asked_to_stop():
                raise TrainingInterrupted(f"stopped after step {step} of {config.num_steps}")
    return Progress(step, time.perf_counter() - begin, successes, True)


def _is_reached(config: TrainingConfig, exact_match: Proportion) -> bool:
    """Whether a check on validation is good enough to stop early, if a few are in a row."""
    value = exact_match.value
    return config.stop_at is not None and value is not None and value >= config.stop_at


def _diverged(step: int, config: TrainingConfig, checkpoints: Path) -> str:
    good = checkpoint.all_in(checkpoints)
    kept = f"the last good checkpoint is {good[-1]}" if good else "no checkpoint was written yet"
    return (
        f"the loss is not finite at step {step}; {kept}. Try a lower rate, such as "
        f"--training.learning_rate {config.learning_rate / 3:.2g}, or --training.clip_norm 0.5."
    )


@contextmanager
def _ctrl_c() -> Iterator[Callable[[], bool]]:
    """Turns the first Ctrl-C into a request that the loop answers between two steps.

    An exception in the middle of an optimiser step would leave half of the weights updated.
    The second Ctrl-C interrupts at once.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return
    previous = signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: Any) -> None:
        asked.set()
        signal.signal(signal.SIGINT, previous)

    signal.signal(signal.SIGINT, handle)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, previous)
