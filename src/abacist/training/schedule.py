"""The learning rate as a function of the step."""

import math

from abacist.training.config import TrainingConfig


def learning_rate(config: TrainingConfig, step: int) -> float:
    """Linear warm-up from 0, then down to `final_fraction` as the schedule says. Steps count from 0."""
    warmup = min(1.0, (step + 1) / config.warmup_steps) if config.warmup_steps else 1.0
    height = _height(config, step)
    return (
        config.learning_rate
        * warmup
        * (config.final_fraction + (1 - config.final_fraction) * height)
    )


def _height(config: TrainingConfig, step: int) -> float:
    """How much of the fall is still ahead, 1…0."""
    if config.schedule == "constant":
        return 1.0
    if config.schedule == "cosine":
        return 0.5 * (1 + math.cos(math.pi * step / config.num_steps))
    falling = config.num_steps - config.warmup_steps
    if config.schedule == "trapezoid":
        falling = config.num_steps // 10 if config.decay_steps is None else config.decay_steps
    return min(1.0, (config.num_steps - step) / max(1, falling))
