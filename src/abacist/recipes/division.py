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

    Cost: 47,760 parameters, about 2 minutes of training on one core.
    Promise: certified in 10 of 10 seeds, with all 269,796 neighbourhoods right (results/divide.json).

    Each token is a function of the tokens, at most six, that the single layer sees
    (formats/non_restoring_division.py). Lines of `//` and `%` differ only in the operator. Numbers of
    6 digits contain more different contexts than numbers of 4 digits, for the same number of tokens.
    """
    return _worked_row_by_row("divide", ("//", "%"), num_steps=1_500)


def modulo() -> Recipe:
    """Takes remainders of numbers of every length, certified, after training on at most 6 digits.

    Cost: 47,632 parameters, about 3 minutes of training on one core.
    Promise: certified in 9 of 10 seeds (results/modulo.json).

    The scratch work is that of a division; the remainder at its end is the answer. With 1,500 steps, which
    are enough for `divide`, seed 0 had 2 wrong neighbourhoods, and rounds of repairs left 1 (docs/log.md).
    """
    return _worked_row_by_row("modulo", ("%",), num_steps=2_000)


def _worked_row_by_row(name: str, operations: tuple[Operation, ...], num_steps: int) -> Recipe:
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
        training=TrainingConfig(num_steps=num_steps, batch_size=128, learning_rate=5e-3),
        scoring=ScoringConfig(longest=20),
    )
