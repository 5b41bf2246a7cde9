"""The optimiser."""

import torch

from abacist.models.transformer import Transformer
from abacist.training.config import TrainingConfig


def make_optimizer(model: Transformer, config: TrainingConfig) -> torch.optim.AdamW:
    """AdamW (arXiv 1711.05101) over all parameters, in one fused kernel."""
    return torch.optim.AdamW(
        model.parameters(),
        lr=config.learning_rate,
        betas=(config.beta1, config.beta2),
        weight_decay=config.weight_decay,
        fused=True,
    )
