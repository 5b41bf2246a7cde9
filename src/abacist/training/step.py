"""One optimiser step: the loss of a batch, its gradient, and the update of the weights."""

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import torch
from torch import Tensor, nn

from abacist import generators
from abacist.formats.annotated import AnnotatedTokens, Field
from abacist.models.config import ModelConfig
from abacist.models.teacher_forcing import IGNORED, teacher_forced
from abacist.models.transformer import Transformer
from abacist.training.config import TrainingConfig
from abacist.training.optimizer import Optimizer
from abacist.training.processes import ALONE, Processes
from abacist.training.schedule import learning_rate

_CACHED_BYTES = 1 << 23
"""Largest size of one layer's activations that fits into a processor's cache."""


def training_step(
    model: Transformer,
    optimizer: Optimizer,
    lines: AnnotatedTokens,
    config: TrainingConfig,
    step: int,
    aligned: bool,
    seed: int = 0,
    processes: Processes = ALONE,
) -> float:
    """Make one step, and return the loss before it, in nats per token.

    The result is NaN, and the weights stay as they are, where the gradient is not finite.

    Args:
        model: the model that `optimizer` updates.
        optimizer: updates the weights.
        lines: the batch, (B, T).
        config: settings of the training.
        step: number of the step, starting at 0; decides learning rate and random numbers.
        aligned: whether all lines have the same coordinates.
        seed: seed of the training.
        processes: those that share the batch. What a model draws at random for single lines, as in
            dropout, differs from the draws of one process, and so between numbers of processes.
    """
    optimizer.zero_gradient()
    own = () if processes.is_first else (processes.rank,)
    if model.config.dropout:
        torch.manual_seed(generators.generator(seed, "dropout", step, *own).initial_seed())
    generator = None
    if _draws_random_numbers(model.config):
        generator = generators.generator(seed, "offset", step, *own)
    other_pass = None
    if config.progressive_loss != "none":
        # The purpose "loops" decides the random numbers, so renaming it would change trainings.
        other_pass = _other_pass(model.config, config, generators.generator(seed, "loops", step))
    scale = 1.0 if optimizer.loss_scale is None else optimizer.loss_scale.value
    if config.loss_on == "all":
        lines = replace(lines, target=(lines.field != Field.PADDING) & (lines.index > 0))
    total = torch.zeros((), device=model.device)
    lines, share = processes.share(lines)
    micro_batches = _micro_batches(model, lines, config.micro_batches) if share else []
    for micro_batch, weight in micro_batches:
        with _precision(config, model.device):
            loss = _loss(model, micro_batch, config, aligned, other_pass, generator)
            loss = loss * (weight * share)
        (loss * scale).backward()  # type: ignore[no-untyped-call]
        total = total + loss.detach()
    processes.add_up(optimizer.gradient, total)
    is_finite = optimizer.step(learning_rate(config, step))
    return total.item() if is_finite else math.nan


def _precision(config: TrainingConfig, device: torch.device) -> AbstractContextManager[object]:
    """Return a context in which matrix products and activations have the configured precision."""
    if config.precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, getattr(torch, config.precision))


def _micro_batches(
    model: Transformer, lines: AnnotatedTokens, num_micro_batches: int | None
) -> list[tuple[AnnotatedTokens, float]]:
    """Split a batch into micro-batches, each with its weight in the loss: its share of the targets.

    Their gradients are summed, so the step is the same up to rounding. With None, a CPU gets as
    many micro-batches as keep one layer's activations in its cache, which is faster for large
    batches. Batches for which the model draws random numbers then stay whole, since it would
    draw them again for every micro-batch.
    """
    config, count = model.config, min(num_micro_batches or 1, len(lines.ids))
    is_automatic = num_micro_batches is None and model.device.type == "cpu"
    if is_automatic and not _draws_random_numbers(config):
        num_bytes = 4 * lines.ids.numel() * config.mlp_width
        count = min(len(lines.ids), num_bytes // _CACHED_BYTES)
    if count < 2:
        return [(lines, 1.0)]
    num_targets = int(lines.target.sum())
    chunks = torch.arange(len(lines.ids)).chunk(count)
    parts = [lines[slice(int(chunk[0]), int(chunk[-1]) + 1)] for chunk in chunks]
    return [(part, int(part.target.sum()) / num_targets) for part in parts]


def _other_pass(
    config: ModelConfig, training: TrainingConfig, generator: torch.Generator
) -> tuple[int, int]:
    """Draw the recurrences of the progressive loss's pass, and how many of them are detached.

    `fewer` draws any number of recurrences up to all, as a blog post describes the progressive
    loss of McLeish et al. `detached` is their own (arXiv 2405.17399 §A.4): n recurrences without
    gradient, then k with gradient, where k is at most half of all recurrences. Their code also
    detaches half of the full pass; this one does not.
    """

    def between(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (), generator=generator))

    if training.progressive_loss == "fewer":
        return between(1, config.recurrences), 0
    num_detached = between(0, config.recurrences - 1)
    most_attached = min(config.recurrences - num_detached, max(1, config.recurrences // 2))
    return num_detached + between(1, most_attached), num_detached


def _loss(
    model: Transformer,
    lines: AnnotatedTokens,
    config: TrainingConfig,
    aligned: bool,
    other_pass: tuple[int, int] | None,
    generator: torch.Generator | None,
) -> Tensor:
    """Return the mean cross entropy of the targets, in nats per token.

    With `other_pass` (recurrences, detached ones), it is mixed with the loss of that pass.
    """

    def cross_entropy(recurrences: int | None = None, num_detached: int = 0) -> Tensor:
        predictions = teacher_forced(
            model,
            lines,
            equal_lengths=aligned,
            generator=generator,
            recurrences=recurrences,
            num_detached=num_detached,
            only_targets=True,
        )
        logits_VAB, labels_AB = predictions.logits.permute(2, 1, 0), predictions.labels.t()
        return nn.functional.cross_entropy(
            logits_VAB.unsqueeze(0), labels_AB.unsqueeze(0), ignore_index=IGNORED
        )

    if other_pass is None:
        return cross_entropy()
    weight = config.progressive_weight
    return (1 - weight) * cross_entropy() + weight * cross_entropy(*other_pass)


def _draws_random_numbers(config: ModelConfig) -> bool:
    """Whether a training pass of such a model draws random numbers (other than for dropout)."""
    randomised = any(scheme.offset != "none" or scheme.subset_of for scheme in config.positions)
    return randomised or config.initial_state == "noise"
