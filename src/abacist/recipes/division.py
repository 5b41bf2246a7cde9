"""Recipes that divide."""

from abacist.data.config import SplitConfig
from abacist.formats.config import FORMATS
from abacist.models.config import POSITIONS, ModelConfig
from abacist.recipes.recipe import Recipe
from abacist.scoring.config import ScoringConfig
from abacist.tasks.config import ArithmeticConfig, Operation
from abacist.training.config import TrainingConfig


def divide() -> Recipe:
    """Divides numbers of every length and takes remainders, certified, after training on at most 6 digits.

    Cost: 47,760 parameters, about 7 minutes of training on one core.
    Promise: certified in 2 of 2 seeds (results/divide.json): none of the 269,796 contents of a reach is wrong.

    Each token is a function of the at most six that its one layer sees
    (formats/non_restoring_division.py). Lines of `//` and `%` are alike but for the operator. Numbers of
    6 digits show more different contents than those of 4, for as many tokens.
    """
    return _worked_row_by_row("divide", ("//", "%"))


def modulo() -> Recipe:
    """Takes remainders of numbers of every length, certified, after training on at most 6 digits.

    Cost: 47,632 parameters, about 7 minutes of training on one core.
    Promise: certified in one seed of one (results/modulo.json): none of the 262,910 contents of a reach is wrong.

    The work is that of a division: what is left over at its end is the answer.
    """
    return _worked_row_by_row("modulo", ("%",))


def _worked_row_by_row(name: str, operations: tuple[Operation, ...]) -> Recipe:
    return Recipe(
        name=name,
        task=ArithmeticConfig(operations=operations, max_digits=6, sampling="nines"),
        format=FORMATS["non-restoring-division"],
        split=SplitConfig(),
        model=ModelConfig(
            width=64,
            num_heads=4,
            head_width=8,
            mlp_width=256,
            positions=POSITIONS["row-place-step-relative"],
        ),
        training=TrainingConfig(num_steps=2_000, batch_size=128, learning_rate=5e-3),
        scoring=ScoringConfig(longest=20),
    )
