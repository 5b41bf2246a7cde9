"""The functions `train` and `resume` of the Python interface."""

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
    """Train a recipe and return its run.

    Args:
        recipe: a recipe, or the name of one.
        out: the run directory; None makes a new one under `runs/`.
        seed: seed of the weights, the problems and their order.
        settings: new values of settings by dotted name, as in `{"model.width": 64}`.
        threads: number of threads; None chooses the fastest by timing.
        overwrite: whether to replace a run that exists in `out`.
        observer: follows the training; it is called at its start, after every step and validation.

    Raises:
        ConfigurationError: a setting is unknown, outside its range, or conflicts with another.
        RunError: the run directory exists already or cannot be written.
        TrainingDiverged: the loss became infinite or NaN.
    """
    base = recipes.find(recipe) if isinstance(recipe, str) else recipe
    changed = override(base, settings or {})
    path = Path(out) if out is not None else new_path(changed.name)
    return training.start(changed, path, seed, threads, overwrite, observer)


def resume(path: str | Path, observer: Observer | None = None) -> Run:
    """Continue an interrupted run; it ends with the same weights, bit for bit, as without interruption."""
    return training.resume(Path(path), observer)
