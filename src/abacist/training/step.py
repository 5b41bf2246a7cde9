"""One optimiser step."""

import torch
from torch import nn

from abacist import seeds
from abacist.formats.annotated import AnnotatedTokens
from abacist.models.teacher_forcing import IGNORED, teacher_forced
from abacist.models.transformer import Transformer
from abacist.training.config import TrainingConfig
from abacist.training.schedule import learning_rate


def training_step(
    model: Transformer,
    optimizer: torch.optim.Optimizer,
    lines: AnnotatedTokens,
    config: TrainingConfig,
    step: int,
    seed: int = 0,
) -> float:
    """Loss before the step, in nats a token. The weights stay as they are if it is not finite."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(config, step)
    random_offsets = any(scheme.offset != "none" for scheme in model.config.positions)
    forced = teacher_forced(
        model,
        lines,
        equal_lengths=True,
        offset_seed=seeds.generator(seed, "offset", step) if random_offsets else None,
    )
    by_class = forced.logits.flatten(0, 1).t().unsqueeze(0)
    loss = nn.functional.cross_entropy(
        by_class, forced.labels.flatten().unsqueeze(0), ignore_index=IGNORED
    )
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    norm = nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
    value = loss.item()
    if not torch.isfinite(norm):
        return float("nan")
    optimizer.step()
    return value
