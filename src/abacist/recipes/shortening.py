"""A recipe with a fraction of its steps, for a first impression of a long training."""

from dataclasses import replace

from abacist.errors import check_between
from abacist.recipes.recipe import Recipe


def shortened(recipe: Recipe, fraction: float) -> Recipe:
    """Return a recipe whose steps, warm-up, decay and curriculum are shortened together.

    Each count of steps keeps at least 1, and the task itself keeps a step after the curriculum.
    What the recipe promises does not hold for it.

    Raises:
        ConfigurationError: `fraction` is not between 0.001 and 1.
    """
    check_between("quick", fraction, 0.001, 1, 0.1)
    training = recipe.training

    def scaled(steps: int) -> int:
        return max(1, round(fraction * steps)) if steps else 0

    curriculum = tuple(
        replace(stage, num_steps=scaled(stage.num_steps)) for stage in training.curriculum
    )
    staged = sum(stage.num_steps for stage in curriculum)
    num_steps = max(scaled(training.num_steps), staged + 1 if staged else 0)
    decay_steps = training.decay_steps
    return replace(
        recipe,
        training=replace(
            training,
            num_steps=num_steps,
            warmup_steps=min(scaled(training.warmup_steps), num_steps),
            decay_steps=None if decay_steps is None else min(scaled(decay_steps), num_steps),
            stop_from=scaled(training.stop_from),
            beginning_steps=scaled(training.beginning_steps),
            repair_steps=scaled(training.repair_steps),
            curriculum=curriculum,
        ),
    )
