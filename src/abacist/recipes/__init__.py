"""Named, complete training configurations, each with its cost and its promise. Imports no torch.

The docstring of a recipe states both in fixed words, which a test compares with the record in results/:

    Cost: 13,676 parameters, about 5 seconds of training on one core.
    Promise: certified in 10 of 10 seeds (results/add.json).

The training time is the median of the processor seconds of all seeds, or of the seconds of the clock
where the record has no others, in whole seconds up to 100 and in whole minutes above. `5 of 1,000 sums
wrong` counts errors; with several seeds, `0, 2 and 0 of 1,000` has one number for each.
"""

import inspect
from collections.abc import Callable

from abacist.errors import ConfigurationError, nearest
from abacist.extensions import Registry, check_name
from abacist.recipes import (
    addition,
    calculator,
    division,
    five_operations,
    multiplication,
    parallel,
    published,
    sorting,
    spaced,
    three_digit,
)
from abacist.recipes.recipe import Recipe

RECIPES: Registry[Callable[[], Recipe]] = Registry(
    "recipe",
    {
        "add": addition.add,
        "add-tiny": addition.add_tiny,
        "add-tiny-relu": addition.add_tiny_relu,
        "add-many": addition.add_many,
        "subtract": addition.subtract,
        "multiply": multiplication.multiply,
        "divide": division.divide,
        "modulo": division.modulo,
        "calculator": calculator.calculator,
        "signed-calculator": calculator.signed_calculator,
        "sort": sorting.sort,
        "three-digit": three_digit.three_digit,
        "spaced": spaced.spaced,
        "parallel": parallel.parallel,
        "five-operations": five_operations.five_operations,
        "three-digit-grokking": published.three_digit_grokking,
        "parallel-encoder": published.parallel_encoder,
        "parallel-encoder-torch": published.parallel_encoder_torch,
        "spaced-gpt2": published.spaced_gpt2,
        "five-operations-10m": published.five_operations_10m,
        "looped-abacus-post": published.looped_abacus_post,
        "looped-abacus-1x16": published.looped_abacus_1x16,
        "looped-abacus-8x2": published.looped_abacus_8x2,
        "looped-abacus-16x1": published.looped_abacus_16x1,
        "looped-abacus-small": published.looped_abacus_small,
    },
)
"""Every recipe by name; the default comes first."""


def find(name: str) -> Recipe:
    """Return the recipe with that name.

    Raises `ConfigurationError`, which suggests the nearest name, if there is none.
    """
    if name not in RECIPES:
        raise ConfigurationError(f"unknown recipe {name!r}: {nearest(name, RECIPES)}")
    built_recipe = RECIPES[name]()
    if not isinstance(built_recipe, Recipe):
        raise ConfigurationError(
            f"the recipe {name!r} must return a Recipe, got {type(built_recipe).__name__}. "
            "Try return own_recipe(...)."
        )
    return built_recipe


def recipe(name: str) -> Callable[[Callable[[], Recipe]], Callable[[], Recipe]]:
    """Register the decorated function as a recipe; its docstring says what it trains."""
    check_name("recipe", name)

    def register(function: Callable[[], Recipe]) -> Callable[[], Recipe]:
        RECIPES.register(name, function)
        return function

    return register


def promise(name: str) -> tuple[str, str]:
    """Return the first line of a recipe's docstring, and the rest of it: cost, promise and reasons."""
    summary, _, rest = inspect.cleandoc(RECIPES[name].__doc__ or "").partition("\n\n")
    return summary, rest
