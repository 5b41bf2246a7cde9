"""Sums, differences, products, quotients and remainders of numbers up to 999, by one small model."""

from dataclasses import replace

from abacist.data.config import SplitConfig
from abacist.evaluation.config import EvaluationConfig
from abacist.formats.config import FORMATS
from abacist.models.config import ModelConfig, PositionScheme
from abacist.recipes.recipe import Recipe
from abacist.tasks.config import TASKS, ArithmeticConfig
from abacist.training.config import TrainingConfig


def five_operations() -> Recipe:
    """Calculates + - * // % of numbers up to 999, the work of each operation written out.

    Cost: 59,032 parameters, about 8 minutes of training on one core.
    Promise: none yet, which is why this recipe is not in the table of recipes. With operands drawn by
    value and seed 100, 3,000 steps leave 8 % of quotients and 9 % of remainders wrong, all but a few
    where a second digit is brought down (docs/log.md).

    A published model of 10,650,624 parameters, with carries as its only work, is right on all sums,
    differences and products, 99.48 % of quotients and 96.90 % of remainders: it has to divide three
    digits by three in its head. Here nothing is done in the head that a schoolbook would write down,
    each token follows from about five near ones, and windows in place, row and step show just these.
    """
    task = TASKS["five-operations"]
    assert isinstance(task, ArithmeticConfig)
    return Recipe(
        name="five-operations",
        # Of uniform values few make a quotient of two digits or three, which is the harder work.
        task=replace(task, weights=(0.15, 0.15, 0.25, 0.2, 0.25), sampling="lengths"),
        format=FORMATS["worked"],
        split=SplitConfig(),
        model=ModelConfig(
            width=64,
            num_heads=8,
            mlp_width=256,
            # Heads that begin alike take a thousand steps to find what to look at.
            positions=(
                PositionScheme(encoding="relative", coordinate="place", window=(0, 1), spread=2.0),
                PositionScheme(encoding="relative", coordinate="row", window=(-2, 1), spread=2.0),
                PositionScheme(encoding="relative", coordinate="step", window=(-1, 0), spread=2.0),
            ),
        ),
        training=TrainingConfig(
            num_steps=3_000,
            batch_size=128,
            learning_rate=8e-3,
            validate_every=500,
            checkpoint_every=500,
        ),
        evaluation=EvaluationConfig(longest=3),
    )
