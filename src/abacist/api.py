"""The Python interface's own functions; the rest of it is the rooms' public names."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from abacist import recipes
from abacist.configuration import override
from abacist.recipes.recipe import Recipe
from abacist.runs import training
from abacist.runs.directory import new_path
from abacist.runs.run import Run
from abacist.training.loop import Observer


def train(
    recipe: str | Recipe = "add",
    *,
    out: str | Path | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    threads: int | None = None,
    overwrite: bool = False,
    observer: Observer | None = None,
) -> Run:
    """Train a recipe, by name or made at hand, and return its run.

    `settings` replaces any of the recipe's by dotted name, as in `{"model.width": 64}`. The run
    is kept in `out`, or in a new directory under `runs/`.
    """
    chosen = recipes.find(recipe) if isinstance(recipe, str) else recipe
    chosen = override(chosen, settings or {})
    path = Path(out) if out is not None else new_path(chosen.name)
    return training.start(chosen, path, seed, threads, overwrite, observer)


def resume(path: str | Path, observer: Observer | None = None) -> Run:
    """Go on with an interrupted run, to the same bits as if it had never stopped."""
    return training.resume(Path(path), observer)
