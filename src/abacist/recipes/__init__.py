"""Named, complete training configurations, with what each costs and promises. Imports no torch."""

import inspect
from collections.abc import Callable

from abacist.errors import ConfigurationError, nearest
from abacist.recipes import addition, division, multiplication
from abacist.recipes.recipe import Recipe

RECIPES: dict[str, Callable[[], Recipe]] = {
    "add": addition.add,
    "add-tiny": addition.add_tiny,
    "multiply": multiplication.multiply,
    "divide": division.divide,
}
"""Every recipe by name; the default comes first."""


def find(name: str) -> Recipe:
    """The recipe of that name; `ConfigurationError` with the nearest one otherwise."""
    if name not in RECIPES:
        raise ConfigurationError(f"unknown recipe {name!r}: {nearest(name, RECIPES)}")
    return RECIPES[name]()


def promise(name: str) -> tuple[str, str]:
    """A recipe's first line and the rest of what it states: cost and promise."""
    summary, _, rest = inspect.cleandoc(RECIPES[name].__doc__ or "").partition("\n\n")
    return summary, rest
