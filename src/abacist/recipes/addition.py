"""Recipes that add."""

from dataclasses import replace

from abacist.data.config import SplitConfig
from abacist.evaluation.config import EvaluationConfig
from abacist.formats.config import FORMATS
from abacist.models.config import POSITIONS, ModelConfig
from abacist.recipes.recipe import Recipe
from abacist.tasks.config import ArithmeticConfig
from abacist.training.config import TrainingConfig


def add() -> Recipe:
    """Adds numbers of every length, certified, after training on at most 10 digits.

    Cost: 13,676 parameters, about 12 seconds of training on one core.
    Promise: certified in 10 of 10 seeds (results/add.json).
    """
    return Recipe(
        name="add",
        task=ArithmeticConfig(max_digits=10),
        format=FORMATS["reversed"],
        split=SplitConfig(),
        model=ModelConfig(
            width=32, num_heads=4, mlp_width=128, positions=POSITIONS["place-relative"]
        ),
        training=TrainingConfig(num_steps=1_500, batch_size=128, learning_rate=1e-2),
        evaluation=EvaluationConfig(),
    )


def add_tiny() -> Recipe:
    """The smallest transformer here that earns the certificate.

    Cost: 338 parameters, about 2 minutes of training on one core.
    Promise: certified in 9 of 10 seeds (results/add-tiny.json).

    Trained on at most 5 digits: a reach of two columns shows itself whole in sums of 4 digits,
    and shorter lines make more steps a second.
    """
    base = add()
    return replace(
        base,
        name="add-tiny",
        task=ArithmeticConfig(max_digits=5),
        model=ModelConfig(
            width=4,
            num_heads=2,
            head_width=2,
            mlp_width=16,
            norm="rms",
            biases=("mlp-hidden",),
            positions=POSITIONS["place-relative"],
        ),
        training=TrainingConfig(
            num_steps=12_000,
            batch_size=256,
            learning_rate=2e-2,
            weight_decay=0.0,
            validate_every=1_000,
            checkpoint_every=1_000,
        ),
    )
