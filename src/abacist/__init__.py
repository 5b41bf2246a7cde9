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
import sys
from typing import TYPE_CHECKING, Any

if sys.platform == "win32":
    raise ImportError(
        "abacist runs on Linux and macOS. On Windows, install it in WSL (type wsl --install)."
    )

if TYPE_CHECKING:
    from abacist.api import resume as resume
    from abacist.api import train as train
    from abacist.errors import AbacistError as AbacistError
    from abacist.extensions import load as load_extension
    from abacist.formats.config import FORMATS as FORMATS
    from abacist.formats.config import FormatConfig as FormatConfig
    from abacist.formats.config import TextFormatConfig as TextFormatConfig
    from abacist.models.config import POSITIONS as POSITIONS
    from abacist.models.config import PositionScheme as PositionScheme
    from abacist.models.encodings import CoordinateBias as CoordinateBias
    from abacist.models.encodings import DifferenceBias as DifferenceBias
    from abacist.models.encodings import VectorEncoding as VectorEncoding
    from abacist.models.encodings import position_encoding as position_encoding
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
    "POSITIONS",
    "RECIPES",
    "AbacistError",
    "CoordinateBias",
    "DifferenceBias",
    "FormatConfig",
    "OwnTaskConfig",
    "PositionScheme",
    "Run",
    "TextFormatConfig",
    "VectorEncoding",
    "column_task",
    "in_base",
    "load",
    "load_extension",
    "own_recipe",
    "position_encoding",
    "recipe",
    "resume",
    "train",
]

_MODULES = {
    "AbacistError": "abacist.errors",
    "CoordinateBias": "abacist.models.encodings",
    "DifferenceBias": "abacist.models.encodings",
    "FORMATS": "abacist.formats.config",
    "FormatConfig": "abacist.formats.config",
    "OwnTaskConfig": "abacist.tasks.config",
    "POSITIONS": "abacist.models.config",
    "PositionScheme": "abacist.models.config",
    "RECIPES": "abacist.recipes",
    "Run": "abacist.runs.run",
    "TextFormatConfig": "abacist.formats.config",
    "VectorEncoding": "abacist.models.encodings",
    "column_task": "abacist.recipes.column_tasks",
    "in_base": "abacist.tasks.column_task",
    "load": "abacist.runs.run",
    "own_recipe": "abacist.recipes.own_tasks",
    "position_encoding": "abacist.models.encodings",
    "recipe": "abacist.recipes",
    "resume": "abacist.api",
    "train": "abacist.api",
}


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])


def __getattr__(name: str) -> Any:
    if name == "load_extension":
        return importlib.import_module("abacist.extensions").load
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'abacist' has no attribute {name!r}")
