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
from abacist.training.metrics import Beginning, Metrics, Repair
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

    def on_beginning_step(self, number: int, step: int, loss: float) -> None:
        """Called after every step of one of several beginnings; like `on_step`, before `on_start`."""

    def on_beginning(self, beginning: Beginning) -> None:
        """Called when one of several beginnings is measured."""

    def on_step(self, step: int, loss: float) -> None:
        """Called after every step, with the number of steps done and the loss in nats per token."""

    def on_metrics(self, metrics: Metrics) -> None:
        """Called before the first step and after every validation."""

    def on_checkpoint(self, step: int) -> None:
        """Called before the first step and at every checkpoint; the model has the weights saved there."""

    def on_check(self, repair: Repair) -> None:
        """Called after each check that decides whether a round of repairs follows."""

    def on_divergence(self, step: int, batch: AnnotatedTokens) -> None:
        """Called with the batch on which the loss is not finite, and the number of its step from 1."""


class Forwarding(Observer):
    """Passes every event on to another observer. Subclasses add what they do with some of them."""

    def __init__(self, inner: Observer) -> None:
        self.inner = inner

    def on_start(self, parameters: int, threads: int, step: int) -> None:
        self.inner.on_start(parameters, threads, step)

    def on_beginning_step(self, number: int, step: int, loss: float) -> None:
        self.inner.on_beginning_step(number, step, loss)

    def on_beginning(self, beginning: Beginning) -> None:
        self.inner.on_beginning(beginning)

    def on_step(self, step: int, loss: float) -> None:
        self.inner.on_step(step, loss)

    def on_metrics(self, metrics: Metrics) -> None:
        self.inner.on_metrics(metrics)

    def on_checkpoint(self, step: int) -> None:
        self.inner.on_checkpoint(step)

    def on_check(self, repair: Repair) -> None:
        self.inner.on_check(repair)

    def on_divergence(self, step: int, batch: AnnotatedTokens) -> None:
        self.inner.on_divergence(step, batch)


class TrainingStopped(Exception):
    """An observer has stopped the training for good, and says why."""


class TrainingInterrupted(Exception):
    """Ctrl-C was pressed, and the state has been saved."""


class Training:
    """A training: the numbers that change with its steps, and what is done after a step."""

    def __init__(
        self,
        model: Transformer,
        optimizer: Optimizer,
        config: TrainingConfig,
        validate: Callable[[], Validation],
        checkpoints: Path,
        best: Path,
        observer: Observer,
        start: Progress,
        processes: Processes = ALONE,
        needs_repair: Callable[[int], bool] = lambda step: False,
    ) -> None:
        """Prepare a training without taking a step.

        Args:
            model: the model that `optimizer` updates.
            optimizer: updates the weights.
            config: settings of the training.
            validate: measures the model on validation problems and on a sample of training problems.
            checkpoints: directory of the checkpoints.
            best: directory of the checkpoint that is best on validation.
            observer: receives events.
            start: where to start; steps, seconds and successes are counted from there.
            processes: those that train the model together, of which the first writes checkpoints.
            needs_repair: says whether another round of repairs is needed after a number of steps.
        """
        self.step = start.step
        """Number of steps done."""
        self.finished = start.finished or start.step >= config.most_steps
        self._model, self._optimizer, self._config = model, optimizer, config
        self._validate, self._observer, self._processes = validate, observer, processes
        self._checkpoints, self._best, self._needs_repair = checkpoints, best, needs_repair
        self._successes, self._best_score = start.successes, start.best
        self._best_step = _last_step_up_to(best, start.step)
        self._losses: list[float] = []
        """Losses of the steps since the last validation."""
        self._began = time.perf_counter() - start.seconds
        self._validated = self._saved = self._began
        """The times of the last validation and of the last checkpoint."""
        self._batch: AnnotatedTokens
        """The batch of the last step."""

    def run(self, stream: Batches) -> Progress:
        """Train to the end with the batches of `stream`, and leave a checkpoint of the last step.

        Raises `TrainingDiverged` where the loss or a gradient is not finite, leaving the last good
        checkpoint in place, and `TrainingInterrupted` after saving where Ctrl-C was pressed.
        """
        self._begin()
        with requests_to_stop() as is_stop_requested:
            while not self.finished:
                self._advance(stream)
                self._validate_if_due()
                stops = self._processes.is_any(is_stop_requested())
                self._save_if_due(stops)
                if stops and not self.finished:
                    raise TrainingInterrupted(
                        f"stopped after step {self.step} of {self._config.num_steps}"
                    )
        return self.progress()

    def progress(self) -> Progress:
        """Return how far the training has got by now."""
        seconds = time.perf_counter() - self._began
        return Progress(self.step, seconds, self._successes, self.finished, self._best_score)

    def _begin(self) -> None:
        """Report the start, and measure the model that has not been trained yet."""
        self._observer.on_start(self._model.num_parameters, torch.get_num_threads(), self.step)
        self._model.train()
        if self.step == 0:
            with self._optimizer.averaged():
                self._report(self._validate(), speed=0.0, seconds=0.0)
                self._observer.on_checkpoint(0)
            if self.finished and self._processes.is_first:
                progress = Progress(0, 0.0, finished=True)
                checkpoint.save(self._checkpoints, self._model, self._optimizer, progress)
        # The validation before the first step does not count in the speed of the first steps.
        self._validated = self._saved = time.perf_counter()

    def _advance(self, stream: Batches) -> None:
        """Take one step."""
        batch = stream.batch(self.step)
        loss = training_step(
            self._model,
            self._optimizer,
            batch,
            self._config,
            self.step,
            stream.aligned,
            stream.seed,
            self._processes,
        )
        self._batch = batch
        if not math.isfinite(loss):
            raise self._diverged(self.step + 1)
        self.step += 1
        self._losses.append(loss)
        self._observer.on_step(self.step, loss)
        self.finished = self._is_over()

    def _is_over(self) -> bool:
        """Whether no step follows: all are done, and the rounds of repairs are done or not needed."""
        config = self._config
        repairs = self.step - config.num_steps
        if repairs < 0 or repairs % config.repair_steps:
            return False
        if self.step == config.most_steps:
            return True
        with self._optimizer.averaged():
            return not self._needs_repair(self.step)

    def _validate_if_due(self) -> None:
        """Validate after the last step and every `validate_every` steps, and stop early where that suffices."""
        config = self._config
        if self.step % config.validate_every and not self.finished:
            return
        with self._optimizer.averaged():
            validation = self._validate()
        matched = _matched(config, validation)
        self._successes = self._successes + 1 if _is_reached(config, matched) else 0
        if self._successes >= config.stop_after and self.step >= config.stop_from:
            self.finished = True
        now = time.perf_counter()
        speed = len(self._losses) * config.batch_size / (now - self._validated)
        self._report(validation, speed, now - self._began)
        self._losses, self._validated = [], now
        self._keep_best((matched.value or 0.0, -validation.validation[ALL].loss))

    def _save_if_due(self, stops: bool) -> None:
        """Write a checkpoint where one is due, which it always is when the training ends or `stops`."""
        config = self._config
        due = self.step % config.checkpoint_every == 0 or stops or self.finished
        if config.checkpoint_seconds is not None:
            due = due or time.perf_counter() - self._saved >= config.checkpoint_seconds
        if not due:
            return
        if not all(bool(torch.isfinite(p).all()) for p in self._model.parameters()):
            raise self._diverged(self.step)
        if self._processes.is_first:
            checkpoint.save(self._checkpoints, self._model, self._optimizer, self.progress())
            if config.keep_checkpoints is not None:
                checkpoint.keep_newest(self._checkpoints, config.keep_checkpoints)
        with self._optimizer.averaged():
            self._observer.on_checkpoint(self.step)
        self._saved = time.perf_counter()

    def _report(self, validation: Validation, speed: float, seconds: float) -> None:
        """Report what a validation measured, and the losses since the last one."""
        self._observer.on_metrics(
            _metrics(validation, self.step, self._losses, self._config, speed, seconds)
        )

    def _keep_best(self, score: tuple[float, float]) -> None:
        """Keep the present weights beside the last ones if no validation had a better `score`."""
        is_best = self._best_score is None or score > self._best_score
        if self._config.keep_best and is_best and math.isfinite(score[1]):
            self._best_score, self._best_step = score, self.step
            if self._processes.is_first:
                checkpoint.save(self._best, self._model, self._optimizer, self.progress())
        # A resumed training may not have reached the best checkpoint again that it made before it
        # was stopped: that one stays until its step is validated again.
        if self._best_step is not None and self._processes.is_first:
            checkpoint.keep_one(self._best, self._best_step, up_to=self.step)

    def _diverged(self, step: int) -> TrainingDiverged:
        """Report the batch of `step`, and return the error that names the last good checkpoint."""
        self._observer.on_divergence(step, self._batch)
        paths = checkpoint.all_in(self._checkpoints)
        saved = (
            f"the last good checkpoint is {paths[-1]}" if paths else "no checkpoint was written yet"
        )
        return TrainingDiverged(
            f"the loss is not finite at step {step}; {saved}, and the lines of that batch are in "
            "nonfinite-batch.json. Try a lower learning rate, such as "
            f"--training.learning_rate {self._config.learning_rate / 3:.2g}, or --training.clip_norm 0.5."
        )


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


@contextmanager
def requests_to_stop() -> Iterator[Callable[[], bool]]:
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
