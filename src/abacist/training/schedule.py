"""The learning rate as a function of the step."""

import math

from abacist.training.config import TrainingConfig


def learning_rate(config: TrainingConfig, step: int) -> float:
    """Return the learning rate of a step; steps count from 0.

    It rises linearly from 0 during the warm-up, then falls to `final_fraction` of the largest
    learning rate in the shape of the schedule. In every round of repairs, it falls from `repair_rate`
    times the largest learning rate to `final_fraction` of that, as a cosine.
    """
    if config.repair_rounds and step >= config.num_steps:
        done = (step - config.num_steps) % config.repair_steps / config.repair_steps
        fall = config.final_fraction + (1 - config.final_fraction) * _cosine(done)
        return config.learning_rate * config.repair_rate * fall
    warmup = min(1.0, (step + 1) / config.warmup_steps) if config.warmup_steps else 1.0
    decay = config.final_fraction + (1 - config.final_fraction) * _height(config, step)
    return config.learning_rate * warmup * decay


def _height(config: TrainingConfig, step: int) -> float:
    """Return the height of the schedule's curve, which falls from 1 to 0, a cosine `num_cycles` times."""
    if config.schedule == "constant":
        return 1.0
    if config.schedule == "cosine":
        begin = config.warmup_steps if config.decay_from == "warmup" else 0
        num_steps = max(1, config.num_steps - begin)
        if step >= config.num_steps:
            return 0.0
        # In integers, so that a cycle begins exactly at its first step.
        done = max(0, step - begin) * config.num_cycles % num_steps / num_steps
        return _cosine(done)
    decay_steps = config.num_steps - config.warmup_steps
    if config.schedule == "trapezoid":
        decay_steps = config.num_steps // 10 if config.decay_steps is None else config.decay_steps
    return min(1.0, (config.num_steps - step) / max(1, decay_steps))


def _cosine(done: float) -> float:
    """Return the height of half a cosine that falls from 1 to 0."""
    return 0.5 * (1 + math.cos(math.pi * done))
