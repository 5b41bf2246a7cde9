"""abacist trains small transformers on arithmetic, proves how well they calculate, and shows how.

    >>> import abacist
    >>> run = abacist.train("add", seed=0)
    >>> run.solve(["12+34"])[0].answer
    '46'
    >>> run.prove().certified
    True

Names are loaded when they are first used, so importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from abacist.api import resume as resume
    from abacist.api import train as train
    from abacist.errors import AbacistError as AbacistError
    from abacist.extensions import load as load_extension
    from abacist.formats.config import FORMATS as FORMATS
    from abacist.formats.config import FormatConfig as FormatConfig
    from abacist.formats.config import TextFormatConfig as TextFormatConfig
    from abacist.recipes import RECIPES as RECIPES
    from abacist.recipes import recipe as recipe
    from abacist.recipes.column_tasks import column_task as column_task
    from abacist.recipes.own_tasks import own_recipe as own_recipe
    from abacist.runs.run import Run as Run
    from abacist.runs.run import load as load
    from abacist.tasks.column_task import in_base as in_base
    from abacist.tasks.config import OwnTaskConfig as OwnTaskConfig

__version__ = "0.1.0"
__all__ = [
    "FORMATS",
    "RECIPES",
    "AbacistError",
    "FormatConfig",
    "OwnTaskConfig",
    "Run",
    "TextFormatConfig",
    "column_task",
    "in_base",
    "load",
    "load_extension",
    "own_recipe",
    "recipe",
    "resume",
    "train",
]

_MODULES = {
    "AbacistError": "abacist.errors",
    "FORMATS": "abacist.formats.config",
    "FormatConfig": "abacist.formats.config",
    "OwnTaskConfig": "abacist.tasks.config",
    "TextFormatConfig": "abacist.formats.config",
    "column_task": "abacist.recipes.column_tasks",
    "in_base": "abacist.tasks.column_task",
    "RECIPES": "abacist.recipes",
    "Run": "abacist.runs.run",
    "load": "abacist.runs.run",
    "own_recipe": "abacist.recipes.own_tasks",
    "recipe": "abacist.recipes",
    "resume": "abacist.api",
    "train": "abacist.api",
}


def __getattr__(name: str) -> Any:
    if name == "load_extension":
        return importlib.import_module("abacist.extensions").load
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'abacist' has no attribute {name!r}")
