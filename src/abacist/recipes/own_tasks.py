"""A recipe to begin with for tasks that extensions define. Imports no torch."""

from typing import Any

from abacist.configuration import override
from abacist.data.config import SplitConfig
from abacist.formats.config import FORMATS
from abacist.models.config import POSITIONS, ModelConfig
from abacist.recipes.recipe import Recipe
from abacist.scoring.config import ScoringConfig
from abacist.tasks.config import OwnTaskConfig
from abacist.training.config import TrainingConfig


def own_recipe(name: str, task: OwnTaskConfig, **settings: Any) -> Recipe:
    """Return a recipe that trains a two-layer transformer on a task in the format text.

    Args:
        name: name of the recipe.
        task: the task, and the lengths of its training operands.
        settings: settings to replace, with two underscores for the dot, as in
            `training__num_steps=3_000` or `format="my-format"`.

    Raises `ConfigurationError` if a setting is unknown or outside its range.
    """
    recipe = Recipe(
        name=name,
        task=task,
        format=FORMATS["text"],
        split=SplitConfig(exempt_digits=1),
        model=ModelConfig(
            width=64, num_heads=4, mlp_width=256, num_layers=2, positions=POSITIONS["t5"]
        ),
        training=TrainingConfig(num_steps=2_000, batch_size=128, learning_rate=3e-3),
        scoring=ScoringConfig(),
    )
    return override(recipe, {key.replace("__", "."): value for key, value in settings.items()})
