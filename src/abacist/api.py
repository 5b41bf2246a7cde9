"""The functions of the Python interface; its classes are the public names of the packages."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from abacist import extensions, recipes
from abacist.configuration import override
from abacist.recipes.recipe import Recipe
from abacist.recipes.shortening import shortened
from abacist.reports.notebook_progress import NotebookProgress, is_notebook
from abacist.runs import directory, training
from abacist.runs.directory import new_path, read_recipe
from abacist.runs.run import Run
from abacist.training.loop import Observer


def train(
    recipe: str | Recipe = "add",
    *,
    out: str | Path | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    quick: float | None = None,
    threads: int | Literal["auto"] = 1,
    overwrite: bool = False,
    observer: Observer | None = None,
    progress: bool = True,
) -> Run:
    """Train a recipe and return its run.

    Args:
        recipe: the name of a recipe, or a recipe of your own.
        out: the run directory; None makes a new one under `runs/`.
        seed: determines the initial weights and the training problems.
        settings: settings of the recipe to replace, by dotted name, as in `{"model.width": 64}`.
        quick: a fraction 0.001…1 to which the steps of the recipe are shortened, with warm-up, decay and
            curriculum, before `settings` are replaced. What the recipe promises does not hold then.
        threads: number of threads, or `auto` for the number that is fastest in a few timed steps.
        overwrite: whether a run in `out` is replaced.
        observer: receives every step and every record.
        progress: whether a notebook shows a bar with loss and accuracy; elsewhere nothing is shown.

    Raises `UserError` for whatever cannot be trained, and `TrainingDiverged` if the loss is not finite.
    """
    extensions.load_installed()
    whole = recipes.find(recipe) if isinstance(recipe, str) else recipe
    if quick is not None:
        whole = shortened(whole, quick)
    whole = override(whole, settings or {})
    path = Path(out) if out is not None else new_path(whole.name)
    if progress and is_notebook():
        observer = NotebookProgress(whole.training, observer or Observer())
    return training.start(whole, path, seed, threads, overwrite, observer)


def resume(path: str | Path, observer: Observer | None = None, progress: bool = True) -> Run:
    """Resume an interrupted run. It ends with the same bits as if it had never stopped.

    `path` is a run directory, or `latest` for the newest one under `runs/`. `progress` shows a bar in
    notebooks, as it does for `train`.
    """
    extensions.load_installed()
    run_directory = directory.find(str(path))
    if progress and is_notebook():
        recipe, _ = read_recipe(run_directory)
        observer = NotebookProgress(recipe.training, observer or Observer())
    return training.resume(run_directory.path, observer)
