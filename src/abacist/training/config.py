"""Settings of training. Imports no torch."""

from dataclasses import dataclass
from typing import Literal

from abacist.errors import ConfigurationError, check_between


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage of a curriculum: some steps on an easier task."""

    num_steps: int = 500
    """Optimiser steps of the stage."""
    task: tuple[str, ...] = ()
    """Settings of the task while it lasts, each as `max_digits=3`."""

    def __post_init__(self) -> None:
        check_between("training.curriculum.0.num_steps", self.num_steps, 1, 100_000_000, 500)
        for text in self.task:
            if "=" not in text:
                raise ConfigurationError(
                    "training.curriculum.0.task must be settings of the task with their values, "
                    f"got {text!r}. Try --training.curriculum.0.task max_digits=3."
                )

    @property
    def changes(self) -> dict[str, str]:
        """The settings of the task by name."""
        return {name: value for name, _, value in (text.partition("=") for text in self.task)}


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """What is minimised, by which steps, on which problems, and how often that is checked."""

    num_steps: int = 1_500
    """Optimiser steps."""
    batch_size: int = 128
    """Problems a step."""
    num_examples: int | None = None
    """Train on the first so many problems of the training split again and again; none: on fresh ones for ever."""
    curriculum: tuple[Stage, ...] = ()
    """Stages to begin with, each some of the steps on a changed task; --training.curriculum.0.task adds the first."""
    loss_on: Literal["answer", "all"] = "answer"
    """Which tokens are to be predicted: those of the answer (and its working), or all, as language models are trained."""  # noqa: E501
    optimizer: Literal["adamw", "muon"] = "adamw"
    """AdamW for all weights, or Muon for the matrices inside the layers and AdamW for the rest."""
    learning_rate: float = 1e-2
    """Largest step size, reached after the warm-up."""
    schedule: Literal["cosine", "linear", "trapezoid", "constant"] = "cosine"
    """How the rate falls after the warm-up; a trapezoid stays level and falls in a straight line at the end."""
    warmup_steps: int = 100
    """Steps over which the rate rises from 0."""
    decay_steps: int | None = None
    """Steps over which a trapezoid falls; none: the last tenth."""
    final_fraction: float = 0.05
    """Where the schedule ends, as a fraction of the largest rate."""
    beta1: float = 0.9
    """AdamW's decay of the mean gradient."""
    beta2: float = 0.98
    """AdamW's decay of the mean square gradient."""
    momentum: float = 0.95
    """Muon's decay of the mean gradient."""
    weight_decay: float = 0.01
    """Decoupled weight decay (arXiv 1711.05101)."""
    ema_decay: float = 0.0
    """Keep a running mean of the weights with this decay a step, which is what is validated and saved; 0 keeps none."""
    clip_norm: float | None = 1.0
    """Gradients are scaled down to at most this norm; none leaves them."""
    micro_batches: int | None = None
    """Parts in which a batch is computed, their gradients added; none: as many as the processor's cache wants."""
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    """Of matrix products and activations; weights, losses and statistics are float32."""
    progressive_loss: Literal["none", "fewer", "detached"] = "none"
    """Looped models: mix in the loss after a random, smaller number of loops, or of some loops without gradient."""
    progressive_weight: float = 0.5
    """Share of that loss, 0…1."""
    validate_every: int = 250
    """Steps between exact-match checks on the validation split."""
    validation_problems: int = 1_000
    """Problems in each of those checks."""
    stop_at: float | None = None
    """Stop early when validation's exact match is at least this, 0…1; none: make all steps."""
    stop_after: int = 3
    """Checks in a row that must reach it."""
    stop_from: int = 0
    """Steps before which training does not stop early."""
    checkpoint_every: int = 250
    """Steps between checkpoints."""
    checkpoint_seconds: float | None = None
    """Write a checkpoint also when so many seconds have passed since the last."""
    keep_checkpoints: int = 2
    """How many of the newest checkpoints are kept."""
    record_embeddings_every: int | None = None
    """Steps between copies of the embeddings, kept to show how they evolve; none keeps no copies."""

    def __post_init__(self) -> None:
        check_between("training.num_steps", self.num_steps, 1, 100_000_000, 1500)
        check_between("training.batch_size", self.batch_size, 1, 1_000_000, 128)
        if self.num_examples is not None:
            check_between("training.num_examples", self.num_examples, 1, 100_000_000, 50_000)
        check_between("training.learning_rate", self.learning_rate, 1e-9, 10, 0.01)
        steps = self.num_steps
        check_between("training.warmup_steps", self.warmup_steps, 0, steps, min(100, steps // 10))
        if self.decay_steps is not None:
            check_between("training.decay_steps", self.decay_steps, 0, steps, steps // 10)
        check_between("training.final_fraction", self.final_fraction, 0, 1, 0.05)
        check_between("training.beta1", self.beta1, 0, 0.9999, 0.9)
        check_between("training.beta2", self.beta2, 0, 0.999999, 0.98)
        check_between("training.momentum", self.momentum, 0, 0.9999, 0.95)
        check_between("training.ema_decay", self.ema_decay, 0, 0.999999, 0.999)
        check_between("training.progressive_weight", self.progressive_weight, 0, 1, 0.5)
        check_between("training.weight_decay", self.weight_decay, 0, 10, 0.01)
        if self.micro_batches is not None:
            check_between("training.micro_batches", self.micro_batches, 1, self.batch_size, 2)
        check_between("training.validate_every", self.validate_every, 1, 100_000_000, 250)
        check_between("training.validation_problems", self.validation_problems, 1, 10_000_000, 1000)
        if self.stop_at is not None:
            check_between("training.stop_at", self.stop_at, 0, 1, 1.0)
        check_between("training.stop_from", self.stop_from, 0, 100_000_000, 0)
        check_between("training.stop_after", self.stop_after, 1, 1_000_000, 3)
        check_between("training.checkpoint_every", self.checkpoint_every, 1, 100_000_000, 250)
        if self.checkpoint_seconds is not None:
            check_between("training.checkpoint_seconds", self.checkpoint_seconds, 0.1, 1e6, 300)
        check_between("training.keep_checkpoints", self.keep_checkpoints, 1, 1_000_000, 2)
        every = self.record_embeddings_every
        if every is not None:
            check_between("training.record_embeddings_every", every, 1, 100_000_000, 100)
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise ConfigurationError(
                f"training.clip_norm must be above 0, got {self.clip_norm}. "
                "Try --training.clip_norm 1.0."
            )
        if self.decay_steps is not None and self.schedule != "trapezoid":
            raise ConfigurationError(
                f"decay_steps belongs to a trapezoid, got schedule {self.schedule}. "
                "Try --training.schedule trapezoid, or --training.decay_steps none."
            )
        staged = sum(stage.num_steps for stage in self.curriculum)
        if staged >= self.num_steps:
            raise ConfigurationError(
                f"the stages of training.curriculum take {staged:,} steps and leave none of the "
                f"{self.num_steps:,} for the task itself. Try --training.num_steps {2 * staged}."
            )
