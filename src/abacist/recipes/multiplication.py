"""Recipes that multiply."""

from abacist.data.config import SplitConfig
from abacist.evaluation.config import EvaluationConfig
from abacist.formats.config import FORMATS
from abacist.models.config import POSITIONS, ModelConfig
from abacist.recipes.recipe import Recipe
from abacist.tasks.config import ArithmeticConfig
from abacist.training.config import TrainingConfig


def multiply() -> Recipe:
    """Multiplies numbers of any length, after training on at most 4 digits.

    Cost: 57,944 parameters, about 7 minutes of training on a shared core.
    Promise: 2 seeds so far (results/multiply.json). Seed 0 made no error up to 100 × 100 digits;
    seed 1 has one case of carrying wrong: 99.87 % right at 7 × 7 digits, 97.4 % at 20 × 20.

    Each token is a function of the at most six that its one layer sees (formats/long_multiplication.py),
    so length is no obstacle, and products of 4 digits show every case. What remains is to learn the
    rarest: a carry as large as the multiplier's digit.
    """
    return Recipe(
        name="multiply",
        task=ArithmeticConfig(operations=("*",), max_digits=4, sampling="nines"),
        format=FORMATS["long-multiplication"],
        split=SplitConfig(),
        model=ModelConfig(
            width=64,
            num_heads=4,
            mlp_width=256,
            positions=POSITIONS["cell-relative"],
        ),
        training=TrainingConfig(num_steps=2_500, batch_size=256, learning_rate=5e-3),
        evaluation=EvaluationConfig(longest=20),
    )
