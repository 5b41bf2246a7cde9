"""The learning rate as a function of the step."""

import math

from abacist.training.config import TrainingConfig


def learning_rate(config: TrainingConfig, step: int) -> float:
    """Linear warm-up from 0, then half a cosine down to `final_fraction`. Steps count from 0."""
    warmup = min(1.0, (step + 1) / config.warmup_steps) if config.warmup_steps else 1.0
    cosine = 0.5 * (1 + math.cos(math.pi * step / config.num_steps))
    return (
        config.learning_rate
        * warmup
        * (config.final_fraction + (1 - config.final_fraction) * cosine)
    )
