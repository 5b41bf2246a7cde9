"""Carrying out trials: a single one in its own process, and the interface of executors, which run many.

There are two executors, `local.LocalProcesses` and `ray_cluster.RayTasks`. Both call `carry_out` for
each trial, in a process that does nothing else, so a trial ends with the same bits wherever it runs.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from abacist import files
from abacist.configuration import from_json, to_json
from abacist.errors import AbacistError, memory_complaint
from abacist.recipes.examinations import Examination
from abacist.recipes.recipe import Recipe
from abacist.runs.directory import RunDirectory
from abacist.runs.examination import train_and_examine
from abacist.runs.outcome import Outcome
from abacist.sweeps.plan import Score, Trial, examination_of
from abacist.training.loop import Observer

SECONDS_BETWEEN_LOOKS = 0.5
"""Longest time in seconds after which an executor yields."""

_ONLY_VALIDATED = Examination(suites={})
"""The examination of trials that choose a tuned setting: test problems are kept for the others."""


@dataclass(frozen=True)
class Finished:
    """A trial that has ended."""

    trial: Trial
    outcome: Outcome | None
    """None if the trial failed."""
    reason: str = ""
    """Why it failed."""


class Executor(Protocol):
    """Carries out trials, several at a time."""

    def carry_out(
        self, trials: Sequence[Trial], path: Path
    ) -> Generator[Finished | None, None, None]:
        """Yield every trial once it has ended, and None at least every `SECONDS_BETWEEN_LOOKS`.

        The run directories and their `outcome.json` lie under `path` when a trial is yielded. If the
        iterator is closed early, unfinished trials are stopped and can be resumed.
        """
        ...

    def steps_made(self) -> int:
        """Return the number of training steps that the running trials have made, as far as it is known."""
        ...


def description(trial: Trial, path: Path) -> dict[str, Any]:
    """Return a trial as JSON, for the process that carries it out in the run directory `path`."""
    plan = trial.plan
    return {
        "recipe": to_json(plan.recipe_of(trial.group)),
        "seed": trial.seed,
        "path": str(path),
        "is_tuning": trial.is_tuning,
        "accept_changed_extension": trial.accept_changed_extension,
        "examination": plan.examination,
        "score": to_json(plan.score),
        "threads": plan.threads,
        "device": plan.device,
    }


def carry_out(trial: dict[str, Any], observer: Observer | None = None) -> Outcome:
    """Train and examine the trial that `description` describes, and write its outcome.

    `observer` receives the events of the training.
    """
    recipe = from_json(Recipe, trial["recipe"])
    path = Path(trial["path"])
    files.make_directory(path.parent)
    outcome = train_and_examine(
        recipe,
        path,
        trial["seed"],
        _examination(trial, recipe),
        trial["threads"],
        trial["device"],
        observer,
        trial["accept_changed_extension"],
    )
    files.write_json(RunDirectory(path).outcome, outcome.to_json())
    return outcome


def _examination(trial: dict[str, Any], recipe: Recipe) -> Examination:
    if trial["is_tuning"]:
        return _ONLY_VALIDATED
    score = None if trial["score"] is None else from_json(Score, trial["score"])
    return examination_of(recipe, trial["examination"], score)


def reason_of(error: BaseException) -> str:
    """Return one line that says why a trial failed, and what to type where that is known."""
    text = " ".join(str(error).split())
    if isinstance(error, AbacistError):
        return text
    if complaint := memory_complaint(error):
        return complaint
    return f"{type(error).__name__}: {text:.500}"
