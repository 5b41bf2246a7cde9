"""One optimiser step."""

import math

import torch
from torch import Tensor, nn

from abacist import seeds
from abacist.formats.annotated import AnnotatedTokens
from abacist.models.config import ModelConfig
from abacist.models.teacher_forcing import IGNORED, teacher_forced
from abacist.models.transformer import Transformer
from abacist.training.config import TrainingConfig
from abacist.training.optimizer import FlatAdamW
from abacist.training.schedule import learning_rate


def training_step(
    model: Transformer,
    optimizer: FlatAdamW,
    lines: AnnotatedTokens,
    config: TrainingConfig,
    step: int,
    aligned: bool,
    seed: int = 0,
) -> float:
    """Loss before the step, in nats a token. The weights stay as they are if it is not finite.

    `aligned` says that all lines have the same places.
    """
    loss = _loss(model, lines, config, aligned, step, seed)
    optimizer.zero_gradient()
    loss.backward()  # type: ignore[no-untyped-call]
    finite = optimizer.step(learning_rate(config, step))
    return loss.item() if finite else math.nan


def _loss(
    model: Transformer,
    lines: AnnotatedTokens,
    config: TrainingConfig,
    aligned: bool,
    step: int,
    seed: int,
) -> Tensor:
    """Mean cross entropy of the targets; for looped models perhaps mixed with that of fewer loops.

    `fewer` is McLeish et al.'s progressive loss as retold by a blog post: any smaller number of
    loops. `detached` is their own (arXiv 2405.17399 §A.4): n loops without gradient, then k with.
    """
    chance = seeds.generator(seed, "offset", step) if leaves_to_chance(model.config) else None
    if model.config.dropout:
        torch.manual_seed(seeds.generator(seed, "dropout", step).initial_seed())

    def loss_of(recurrences: int | None = None, detached: int = 0) -> Tensor:
        forced = teacher_forced(
            model,
            lines,
            equal_lengths=aligned,
            seed=chance,
            recurrences=recurrences,
            detached=detached,
        )
        logits_VTB, labels_TB = forced.logits.permute(2, 1, 0), forced.labels.t()
        return nn.functional.cross_entropy(
            logits_VTB.unsqueeze(0), labels_TB.unsqueeze(0), ignore_index=IGNORED
        )

    if config.progressive_loss == "none":
        return loss_of()
    loops = model.config.recurrences
    draw = seeds.generator(seed, "loops", step)

    def between(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (), generator=draw))

    detached, more = 0, between(1, loops)
    if config.progressive_loss == "detached":
        detached = between(0, loops - 1)
        more = between(1, min(loops - detached, max(1, loops // 2)))
    weight = config.progressive_weight
    return (1 - weight) * loss_of() + weight * loss_of(detached + more, detached)


def leaves_to_chance(config: ModelConfig) -> bool:
    """Whether a training pass of such a model draws random numbers of its own."""
    randomised = any(s.offset != "none" or s.subset_of for s in config.positions)
    return randomised or config.initial_state == "noise"
