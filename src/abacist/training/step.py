"""One optimiser step."""

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
from abacist.training.schedule import learning_rate

_CACHED_BYTES = 1 << 23
"""Largest activations of one layer that are worth keeping together."""


def training_step(
    model: Transformer,
    optimizer: Optimizer,
    lines: AnnotatedTokens,
    config: TrainingConfig,
    step: int,
    aligned: bool,
    seed: int = 0,
) -> float:
    """Loss before the step, in nats a token. The weights stay as they are if it is not finite.

    `aligned` says that all lines have the same places.
    """
    optimizer.zero_gradient()
    if model.config.dropout:
        torch.manual_seed(generators.generator(seed, "dropout", step).initial_seed())
    chance = generators.generator(seed, "offset", step) if leaves_to_chance(model.config) else None
    loops = None
    if config.progressive_loss != "none":
        loops = _loops(model.config, config, generators.generator(seed, "loops", step))
    scale = 1.0 if optimizer.loss_scale is None else optimizer.loss_scale.value
    if config.loss_on == "all":
        lines = replace(lines, target=(lines.field != Field.PADDING) & (lines.index > 0))
    total = torch.zeros((), device=model.device)
    for part, share in _micro_batches(model, lines, config.micro_batches):
        with _precision(config, model.device):
            loss = _loss(model, part, config, aligned, loops, chance) * share
        (loss * scale).backward()  # type: ignore[no-untyped-call]
        total = total + loss.detach()
    finite = optimizer.step(learning_rate(config, step))
    return total.item() if finite else math.nan


def _precision(config: TrainingConfig, device: torch.device) -> AbstractContextManager[object]:
    """Within, matrix products and activations have the configured precision."""
    if config.precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, getattr(torch, config.precision))


def _micro_batches(
    model: Transformer, lines: AnnotatedTokens, wanted: int | None
) -> list[tuple[AnnotatedTokens, float]]:
    """The batch in parts, and their shares of the loss.

    Gradients are summed, so that the step is the same up to rounding. Unless told how many, as
    many as keep activations in a processor's cache, which is faster for large ones. What is drawn
    once a batch is not drawn for each part then: such batches stay whole.
    """
    config, count = model.config, min(wanted or 1, len(lines.ids))
    if wanted is None and model.device.type == "cpu" and not leaves_to_chance(config):
        size = 4 * lines.ids.numel() * config.mlp_width
        count = min(len(lines.ids), size // _CACHED_BYTES)
    if count < 2:
        return [(lines, 1.0)]
    targets = int(lines.target.sum())
    rows = torch.arange(len(lines.ids)).chunk(count)
    parts = [lines[slice(int(row[0]), int(row[-1]) + 1)] for row in rows]
    return [(part, int(part.target.sum()) / targets) for part in parts]


def _loops(
    config: ModelConfig, training: TrainingConfig, generator: torch.Generator
) -> tuple[int, int]:
    """How often the layers are run for the progressive loss, and how many of these are detached.

    `fewer` is McLeish et al.'s progressive loss as retold by a blog post: any number of loops up
    to all. `detached` is their own (arXiv 2405.17399 §A.4): n loops without gradient, then k with,
    k at most half of all; their code detaches half of the full pass as well, ours does not.
    """

    def between(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (), generator=generator))

    if training.progressive_loss == "fewer":
        return between(1, config.recurrences), 0
    detached = between(0, config.recurrences - 1)
    more = between(1, min(config.recurrences - detached, max(1, config.recurrences // 2)))
    return detached + more, detached


def _loss(
    model: Transformer,
    lines: AnnotatedTokens,
    config: TrainingConfig,
    aligned: bool,
    loops: tuple[int, int] | None,
    chance: torch.Generator | None,
) -> Tensor:
    """Mean cross entropy of the targets; for looped models perhaps mixed with that of other loops."""

    def loss_of(recurrences: int | None = None, detached: int = 0) -> Tensor:
        forced = teacher_forced(
            model,
            lines,
            equal_lengths=aligned,
            generator=chance,
            recurrences=recurrences,
            detached=detached,
        )
        logits_VTB, labels_TB = forced.logits.permute(2, 1, 0), forced.labels.t()
        return nn.functional.cross_entropy(
            logits_VTB.unsqueeze(0), labels_TB.unsqueeze(0), ignore_index=IGNORED
        )

    if loops is None:
        return loss_of()
    weight = config.progressive_weight
    return (1 - weight) * loss_of() + weight * loss_of(*loops)


def leaves_to_chance(config: ModelConfig) -> bool:
    """Whether a training pass of such a model draws random numbers of its own."""
    randomised = any(s.offset != "none" or s.subset_of for s in config.positions)
    return randomised or config.initial_state == "noise"
