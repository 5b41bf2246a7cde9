"""Settings of training. Imports no torch."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from abacist.config_base import Config, setting

_MOST_STEPS = 100_000_000


@dataclass(frozen=True, kw_only=True)
class Stage(Config):
    """One stage of a curriculum: some steps on an easier task."""

    section: ClassVar = "training.curriculum.0"

    num_steps: int = setting(500, low=1, high=_MOST_STEPS)
    """Number of optimiser steps in the stage."""
    task: tuple[str, ...] = ()
    """Changed settings of the task during the stage, each as in `max_digits=3`."""

    def conflicts(self, path: str) -> Iterator[str]:
        for text in self.task:
            if "=" not in text:
                yield (
                    f"{path}.task must be settings of the task with their values, got {text!r}. "
                    f"Try --{path}.task max_digits=3."
                )

    @property
    def changes(self) -> dict[str, str]:
        """New values of the task's settings, as text, by name."""
        return {name: value for name, _, value in (text.partition("=") for text in self.task)}


@dataclass(frozen=True, kw_only=True)
class TrainingConfig(Config):
    """Problems, loss, optimiser and schedule of a training, and when it validates and saves."""

    section: ClassVar = "training"

    num_steps: int = setting(1_500, low=0, high=_MOST_STEPS)
    """Number of optimiser steps; 0 keeps the untrained model."""
    batch_size: int = setting(128, low=1, high=1_000_000)
    """Number of problems in each optimiser step."""
    num_examples: int | None = setting(None, low=1, high=_MOST_STEPS, suggestion=50_000)
    """Number of fixed training problems, through which training cycles; none draws fresh problems forever."""
    examples: tuple[str, ...] = ()
    """Problems to train on instead of drawn ones, through which training cycles; --examples reads them from a file."""
    balanced_examples: bool = False
    """With `num_examples`: the same number of problems of each combination of lengths, with repeats, instead of distinct ones."""  # noqa: E501
    keep_partial_batches: bool = False
    """With `num_examples` or `examples`: end each epoch with a smaller batch of the problems that do not fill one, instead of leaving them out."""  # noqa: E501
    mixed_lengths: bool = False
    """Draw the lengths of each problem of a batch independently, and pad; otherwise all problems of a batch have the same lengths where the format allows."""  # noqa: E501
    num_beginnings: int = setting(1, low=1, high=1_000, suggestion=3)
    """Number of beginnings, each with initial weights of its own; the one that is best on validation is trained to the end."""  # noqa: E501
    beginning_steps: int = setting(2_000, low=1, high=_MOST_STEPS)
    """With `num_beginnings`: number of steps, at most `num_steps`, after which beginnings are compared."""
    repair_rounds: int = setting(0, low=0, high=1_000, suggestion=4)
    """Largest number of rounds after the last step in which training continues with problems for wrong neighbourhoods, or with the wrong ones of a sample where nothing can be proved; rounds end when nothing is wrong."""  # noqa: E501
    repair_steps: int = setting(500, low=1, high=_MOST_STEPS)
    """Number of optimiser steps in each of these rounds."""
    repair_rate: float = setting(0.1, low=1e-6, high=1)
    """Learning rate at the beginning of each of these rounds, as a fraction of the largest; it falls as a cosine."""
    curriculum: tuple[Stage, ...] = ()
    """Stages at the beginning of training, each with a changed task; --training.curriculum.0.task adds the first."""
    loss_on: Literal["answer", "all"] = "answer"
    """Tokens that the loss covers: those of the answer and its scratch work, or all, as in language models."""
    optimizer: Literal["adamw", "muon"] = "adamw"
    """AdamW for all weights, or Muon for the matrices inside the layers and AdamW for the rest."""
    learning_rate: float = setting(1e-2, low=1e-9, high=10)
    """Largest learning rate, reached at the end of the warm-up."""
    relative_bias_rate: float = setting(1.0, low=1e-3, high=1_000, suggestion=8)
    """AdamW: learning rate of relative position biases, as a multiple of that of all other weights; larger ones let biases grow large within few steps."""  # noqa: E501
    schedule: Literal["cosine", "linear", "trapezoid", "constant"] = "cosine"
    """How the learning rate falls after the warm-up; a trapezoid stays constant, then falls linearly at the end."""
    decay_from: Literal["start", "warmup"] = "start"
    """Where the cosine begins: at the first step, so that the warm-up is multiplied by it, or after the warm-up."""
    num_cycles: int = setting(1, low=1, high=1_000, suggestion=2)
    """How many times the cosine falls; after each time but the last, it starts again from the top (warm restarts, arXiv 1608.03983)."""  # noqa: E501
    warmup_steps: int = setting(100, low=0, high="num_steps")
    """Number of steps over which the learning rate rises from 0."""
    decay_steps: int | None = setting(None, low=0, high="num_steps")
    """Number of steps over which a trapezoid falls; none means the last tenth of training."""
    final_fraction: float = setting(0.05, low=0, high=1)
    """Final learning rate as a fraction of the largest."""
    beta1: float = setting(0.9, low=0, high=0.9999)
    """AdamW: decay per step of the mean gradient."""
    beta2: float = setting(0.98, low=0, high=0.999999)
    """AdamW: decay per step of the mean squared gradient."""
    momentum: float = setting(0.95, low=0, high=0.9999)
    """Muon: decay per step of the mean gradient."""
    weight_decay: float = setting(0.01, low=0, high=10)
    """Decoupled weight decay (arXiv 1711.05101)."""
    ema_decay: float = setting(0.0, low=0, high=0.999999, suggestion=0.999)
    """Decay per step of an exponential moving average of the weights, which is then validated and saved; 0 averages nothing."""  # noqa: E501
    clip_norm: float | None = setting(1.0, low=1e-9, high=1e9)
    """Largest norm of the gradients, to which larger ones are scaled down; none never scales them."""
    micro_batches: int | None = setting(None, low=1, high="batch_size", suggestion=2)
    """Number of parts of a batch that are computed one after the other, accumulating gradients; none chooses by the processor's cache."""  # noqa: E501
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    """Number format of matrix products and activations; weights, losses and statistics are float32."""
    progressive_loss: Literal["none", "fewer", "detached"] = "none"
    """Looped models: add the loss after a random number of recurrences, from one to all, or after recurrences of which the first ones pass on no gradient."""  # noqa: E501
    progressive_weight: float = setting(0.5, low=0, high=1)
    """Share of the progressive loss in the total."""
    validate_every: int = setting(250, low=1, high=_MOST_STEPS)
    """Number of steps between exact-match checks on the validation split."""
    validation_problems: int = setting(1_000, low=1, high=10_000_000)
    """Number of problems in each of those checks."""
    sample_problems: int = setting(200, low=1, high=10_000_000)
    """Number of training problems on which each of those checks measures the same."""
    stop_at: float | None = setting(None, low=0, high=1, suggestion=1.0)
    """Exact match on the validation split at which training stops early; none always makes all steps."""
    stop_on: Literal["target", "answer"] = "target"
    """What has to match: every token that the model writes, or the answer alone, whatever its scratch work."""
    stop_after: int = setting(3, low=1, high=1_000_000)
    """Number of consecutive checks that must reach it."""
    stop_from: int = setting(0, low=0, high=_MOST_STEPS)
    """First step at which training may stop early."""
    checkpoint_every: int = setting(250, low=1, high=_MOST_STEPS)
    """Number of steps between checkpoints."""
    checkpoint_seconds: float | None = setting(None, low=0.1, high=1e6, suggestion=300)
    """Longest time between checkpoints in seconds, in addition to the limit in steps; none sets no limit."""
    keep_checkpoints: int | None = setting(2, low=1, high=1_000_000, named_values={"all": None})
    """Number of checkpoints to keep, counted from the newest, or all of them."""
    keep_best: bool = True
    """Keep the checkpoint that is best on validation as well: most exact matches, then the smallest loss."""
    record_loss_every: int | None = setting(None, low=1, high=_MOST_STEPS, suggestion=100)
    """Number of steps between records of the loss of one batch in losses.jsonl; none records none."""
    watch: tuple[str, ...] = ()
    """Problems that are solved before training, at every checkpoint and after it, in watched.jsonl."""
    record_embeddings_every: int | None = setting(None, low=1, high=_MOST_STEPS, suggestion=100)
    """Number of steps between recorded copies of the embeddings, which show how they evolve; none records no copies."""

    def conflicts(self, path: str) -> Iterator[str]:
        if self.decay_steps is not None and self.schedule != "trapezoid":
            yield (
                f"{path}.decay_steps applies to a trapezoid only, got schedule {self.schedule}. "
                f"Try --{path}.schedule trapezoid, or --{path}.decay_steps none."
            )
        if self.decay_from == "warmup" and self.schedule != "cosine":
            yield (
                f"{path}.decay_from warmup applies to the cosine only, got schedule {self.schedule}. "
                f"Try --{path}.schedule cosine, or --{path}.decay_from start."
            )
        if self.num_cycles > 1 and self.schedule != "cosine":
            yield (
                f"{path}.num_cycles {self.num_cycles} applies to the cosine only, got schedule "
                f"{self.schedule}. Try --{path}.schedule cosine, or --{path}.num_cycles 1."
            )
        if self.examples and self.num_examples is not None:
            yield (
                f"{path}.num_examples draws problems and {path}.examples lists them, got both. "
                f"Try --{path}.num_examples none."
            )
        for name, is_possible in (
            ("balanced_examples", self.num_examples is not None),
            ("keep_partial_batches", self.num_examples is not None or bool(self.examples)),
        ):
            if getattr(self, name) and not is_possible:
                yield (
                    f"{path}.{name} is about a fixed number of problems, got {path}.num_examples none. "
                    f"Try --{path}.num_examples 50000, or --{path}.{name} false."
                )
        if self.repair_rounds and self.stop_at is not None:
            yield (
                f"{path}.repair_rounds begin after the last step, which {path}.stop_at can leave out; got "
                f"{self.repair_rounds} and {self.stop_at:g}. Try --{path}.stop_at none."
            )
        if self.repair_rounds and (self.examples or self.num_examples is not None):
            yield (
                f"{path}.repair_rounds add problems to those of training, whose number is fixed here. "
                f"Try --{path}.repair_rounds 0."
            )
        staged = sum(stage.num_steps for stage in self.curriculum)
        if staged and staged >= self.num_steps:
            yield (
                f"the stages of {path}.curriculum take {staged:,} steps and leave none of the "
                f"{self.num_steps:,} for the task itself. Try --{path}.num_steps {2 * staged}."
            )

    @property
    def most_steps(self) -> int:
        """Number of steps that a training takes at most, with those of its rounds of repairs.

        An untrained model stays untrained.
        """
        return self.num_steps and self.num_steps + self.repair_rounds * self.repair_steps

    def end_after(self, step: int) -> int:
        """Return the step with which the training, or the round of repairs that `step` belongs to, ends."""
        num_rounds = max(0, math.ceil((step - self.num_steps) / self.repair_steps))
        return self.num_steps + num_rounds * self.repair_steps
