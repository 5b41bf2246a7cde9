"""Memorising one batch: a model that cannot do that is not wired correctly."""

import torch
from torch import nn

from abacist.formats.annotated import AnnotatedTokens
from abacist.models.teacher_forcing import IGNORED, teacher_forced
from abacist.models.transformer import Transformer


def steps_to_learn(
    model: Transformer,
    lines: AnnotatedTokens,
    *,
    loss_below: float,
    max_steps: int,
    learning_rate: float = 1e-2,
    generator: torch.Generator | None = None,
) -> int | None:
    """Number of steps until the loss of the batch is below `loss_below`; None if it never is."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.98))
    model.train()
    for step in range(max_steps):
        predictions = teacher_forced(model, lines, generator=generator)
        loss = nn.functional.cross_entropy(
            predictions.logits.flatten(0, 1), predictions.labels.flatten(), ignore_index=IGNORED
        )
        if loss.item() < loss_below:
            return step
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return None
