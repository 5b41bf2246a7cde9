"""One optimiser step."""

import math

from torch import nn

from abacist import seeds
from abacist.formats.annotated import AnnotatedTokens
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
    random_offsets = any(scheme.offset != "none" for scheme in model.config.positions)
    forced = teacher_forced(
        model,
        lines,
        equal_lengths=aligned,
        offset_seed=seeds.generator(seed, "offset", step) if random_offsets else None,
    )
    logits_VTB, labels_TB = forced.logits.permute(2, 1, 0), forced.labels.t()
    loss = nn.functional.cross_entropy(
        logits_VTB.unsqueeze(0), labels_TB.unsqueeze(0), ignore_index=IGNORED
    )
    optimizer.zero_gradient()
    loss.backward()  # type: ignore[no-untyped-call]
    finite = optimizer.step(learning_rate(config, step))
    return loss.item() if finite else math.nan
