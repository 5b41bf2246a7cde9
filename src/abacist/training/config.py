"""Settings of training. Imports no torch."""

from dataclasses import dataclass
from typing import Literal

from abacist.errors import ConfigurationError, check_between


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """AdamW with warm-up and a cosine, loss on the answer only."""

    num_steps: int = 1_500
    """Optimiser steps."""
    batch_size: int = 128
    """Problems a step."""
    num_examples: int | None = None
    """Train on the first so many problems of the training split again and again; none: on fresh ones for ever."""
    learning_rate: float = 1e-2
    """Largest step size, reached after the warm-up."""
    warmup_steps: int = 100
    """Steps over which the rate rises from 0."""
    final_fraction: float = 0.05
    """Where the cosine ends, as a fraction of the largest rate."""
    beta1: float = 0.9
    """AdamW's decay of the mean gradient."""
    beta2: float = 0.98
    """AdamW's decay of the mean square gradient."""
    weight_decay: float = 0.01
    """Decoupled weight decay (arXiv 1711.05101)."""
    progressive_loss: Literal["none", "fewer", "detached"] = "none"
    """Looped models: mix in the loss after a random, smaller number of loops, or of some loops without gradient."""
    progressive_weight: float = 0.5
    """Share of that loss, 0…1."""
    clip_norm: float = 1.0
    """Gradients are scaled down to at most this norm."""
    validate_every: int = 250
    """Steps between exact-match checks on the validation split."""
    validation_problems: int = 1_000
    """Problems in each of those checks."""
    checkpoint_every: int = 250
    """Steps between checkpoints."""
    keep_checkpoints: int = 2
    """How many of the newest checkpoints are kept."""

    def __post_init__(self) -> None:
        check_between("training.num_steps", self.num_steps, 1, 100_000_000, 1500)
        check_between("training.batch_size", self.batch_size, 1, 1_000_000, 128)
        if self.num_examples is not None:
            check_between("training.num_examples", self.num_examples, 1, 100_000_000, 50_000)
        check_between("training.learning_rate", self.learning_rate, 1e-9, 10, 0.01)
        steps = self.num_steps
        check_between("training.warmup_steps", self.warmup_steps, 0, steps, min(100, steps // 10))
        check_between("training.final_fraction", self.final_fraction, 0, 1, 0.05)
        check_between("training.beta1", self.beta1, 0, 0.9999, 0.9)
        check_between("training.beta2", self.beta2, 0, 0.999999, 0.98)
        check_between("training.progressive_weight", self.progressive_weight, 0, 1, 0.5)
        check_between("training.weight_decay", self.weight_decay, 0, 10, 0.01)
        check_between("training.validate_every", self.validate_every, 1, 100_000_000, 250)
        check_between("training.validation_problems", self.validation_problems, 1, 10_000_000, 1000)
        check_between("training.checkpoint_every", self.checkpoint_every, 1, 100_000_000, 250)
        check_between("training.keep_checkpoints", self.keep_checkpoints, 1, 1_000_000, 2)
        if not self.clip_norm > 0:
            raise ConfigurationError(
                f"training.clip_norm must be above 0, got {self.clip_norm}. "
                "Try --training.clip_norm 1.0."
            )
