"""Carrying out a sweep: first the trials that tune, then those that are compared; resumable at any point.

>>> plan = of_seeds(recipes.find("add"), range(10))
>>> results = start(plan, Path("runs/ten-seeds"), LocalProcesses())
>>> results.groups[0].distribution.certified
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from abacist import files
from abacist.errors import RunError
from abacist.recipes.recipe import Recipe
from abacist.runs import outcome as outcomes_of_runs
from abacist.runs.directory import PLAN, is_unclaimed
from abacist.runs.examination import check_examination
from abacist.runs.outcome import Distribution, Outcome
from abacist.sweeps import plan as plans
from abacist.sweeps.execution import Executor
from abacist.sweeps.plan import Group, Plan, Trial, examination_of
from abacist.sweeps.results import GroupResults, Results, chosen_groups

_SECONDS_BETWEEN_TABLES = 60.0
"""Time after which the table is written again while trials are running."""


@dataclass(frozen=True)
class Progress:
    """How far a sweep is."""

    steps: int
    """Training steps made, of finished and running trials."""
    total_steps: int
    outcomes: list[Outcome]
    """Outcomes of the trials that are compared, in the order in which these were planned."""
    num_tuned: int
    """Number of finished trials that only choose a tuned setting."""
    num_failed: int


OnProgress = Callable[[Progress], None]
"""Called at least twice a second."""


def of_seeds(
    recipe: Recipe,
    seeds: Sequence[int],
    threads: int = 1,
    device: str = "auto",
    examination: str | None = None,
) -> Plan:
    """Return the plan of one recipe with many seeds.

    `examination` names a recipe of recipes/examinations.py; None stands for the default examination.
    """
    return Plan(
        recipe=recipe,
        groups=[Group(name="", contender=recipe.name)],
        seeds=list(seeds),
        examination=examination,
        threads=threads,
        device=device,
    )


def start(
    plan: Plan, path: Path, executor: Executor, on_progress: OnProgress | None = None
) -> Results:
    """Train, score and try to prove every trial of a plan, in run directories under `path`.

    Raises:
        RunError: `path` is in use or cannot be written.
        ConfigurationError: models of the plan cannot be examined as it says.
    """
    _check_unclaimed(path)
    _check_examinations(plan)
    files.make_directory(path)
    with files.locked(path):
        # Another process may have started a sweep here in the meantime.
        _check_unclaimed(path)
        plan.write(path)
        return _Sweep(plan, path, executor, on_progress).carry_out()


def _check_unclaimed(path: Path) -> None:
    """Raise `RunError` unless a sweep can be started in `path`."""
    if not path.exists():
        return
    if not path.is_dir():
        raise RunError(f"{path} is a file. Type --out with a directory that does not exist yet.")
    if not is_unclaimed(path, PLAN):
        if not (path / PLAN).is_file():
            raise RunError(f"{path} holds something other than a sweep. Type another --out.")
        raise RunError(
            f"{path} exists. Type --resume to finish its trials, or another --out to train new ones."
        )


def _check_examinations(plan: Plan) -> None:
    """Raise `ConfigurationError` for an examination that would fail after the training of a trial."""
    checked = set()
    for group in plan.groups:
        recipe = plan.recipe_of(group)
        parts = (recipe.task, recipe.format, recipe.model, recipe.split, recipe.scoring)
        # Groups mostly differ in settings of the training.
        if (key := repr(parts)) not in checked:
            checked.add(key)
            examination = examination_of(recipe, plan.examination, plan.score)
            check_examination(recipe, examination)


def resume(
    path: Path,
    executor: Executor,
    on_progress: OnProgress | None = None,
    accept_changed_extension: bool = False,
) -> Results:
    """Finish what `start` began.

    Finished trials stay as they are, and failed ones are tried again. The others end with the bits
    that they would have had without a break.

    Raises `RunError` if the plan is missing or damaged, or an extension that it needs is not loaded,
    or has changed and `accept_changed_extension` is not set.
    """
    plan = plans.read(path, accept_changed_extension)
    with files.locked(path):
        return _Sweep(plan, path, executor, on_progress, accept_changed_extension).carry_out()


def read(path: Path) -> Results:
    """Return the results of the trials in `path` that have ended, without carrying out any.

    Raises `RunError` if the plan is missing or damaged.
    """
    plan = plans.read(path)
    trials = [*plan.tuning_trials(), *plan.trials_of(plan.groups)]
    ended = {
        trial.directory: outcomes_of_runs.read(trial.run_directory(path).outcome)
        for trial in trials
    }
    return _results(plan, {name: o for name, o in ended.items() if o is not None}, {})


@dataclass
class _Sweep:
    """A sweep while it is carried out, in a directory that this process has locked."""

    plan: Plan
    path: Path
    executor: Executor
    on_progress: OnProgress | None
    accept_changed_extension: bool = False
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    """Outcomes by run directory."""
    failures: dict[str, str] = field(default_factory=dict)

    def carry_out(self) -> Results:
        tuning = self.plan.tuning_trials()
        for trial in tuning:
            self._read(trial)
        self.steps_of = {
            group.name: self.plan.recipe_of(group).training.num_steps for group in self.plan.groups
        }
        # Until the tuning has ended, these are the groups that it would choose now.
        self._plan_comparison()
        self._carry_out(tuning)
        for trial in self._plan_comparison():
            self._read(trial)
        self._carry_out(self.trials[len(tuning) :])
        return self._write_table()

    def _plan_comparison(self) -> list[Trial]:
        """Choose the groups to be compared, and return their trials."""
        groups, _ = chosen_groups(self.plan, self.outcomes)
        compared = self.plan.trials_of(groups)
        self.trials = [*self.plan.tuning_trials(), *compared]
        self.total_steps = sum(self.steps_of[trial.group.name] for trial in self.trials)
        return compared

    def _read(self, trial: Trial) -> None:
        outcome = outcomes_of_runs.read(trial.run_directory(self.path).outcome)
        if outcome is not None:
            self.outcomes[trial.directory] = outcome

    def _carry_out(self, trials: list[Trial]) -> None:
        """Carry out the trials that have no outcome yet."""
        waiting = [
            replace(trial, accept_changed_extension=self.accept_changed_extension)
            for trial in trials
            if trial.directory not in self.outcomes
        ]
        written = time.monotonic()
        try:
            with closing(self.executor.carry_out(waiting, self.path)) as events:
                for finished in events:
                    if finished is not None and finished.outcome is not None:
                        self.outcomes[finished.trial.directory] = finished.outcome
                    elif finished is not None:
                        self.failures[finished.trial.directory] = finished.reason
                    self._report()
                    if time.monotonic() - written > _SECONDS_BETWEEN_TABLES:
                        self._write_table()
                        written = time.monotonic()
        except BaseException:
            self._write_table()
            raise

    def _report(self) -> None:
        if self.on_progress is None:
            return
        ended = [
            trial
            for trial in self.trials
            if trial.directory in self.outcomes or trial.directory in self.failures
        ]
        steps = sum(self.steps_of[trial.group.name] for trial in ended)
        compared = [trial for trial in ended if not trial.is_tuning]
        self.on_progress(
            Progress(
                steps + self.executor.steps_made(),
                self.total_steps,
                [self.outcomes[t.directory] for t in compared if t.directory in self.outcomes],
                len(ended) - len(compared),
                len(self.failures),
            )
        )

    def _write_table(self) -> Results:
        """Write the table of all trials that have ended, and return it."""
        results = _results(self.plan, self.outcomes, self.failures)
        results.write(self.path)
        return results


def _results(plan: Plan, outcomes: Mapping[str, Outcome], failures: Mapping[str, str]) -> Results:
    """Return the table of all trials that have ended; `outcomes` and `failures` are by run directory."""
    groups, candidates = chosen_groups(plan, outcomes)
    trials = [*plan.tuning_trials(), *plan.trials_of(groups)]

    def results_of(group: Group) -> GroupResults:
        ended = (outcomes.get(trial.directory) for trial in plan.trials_of([group]))
        return GroupResults(group, Distribution([o for o in ended if o is not None]))

    return Results(
        plan,
        [results_of(group) for group in groups],
        candidates,
        dict(failures),
        len({trial.directory for trial in trials} - {*outcomes, *failures}),
    )
