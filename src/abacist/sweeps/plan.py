"""The plan of a sweep: its trials, and the examination of each model once it is trained.

A trial is one training of one group with one seed. All trials of a group have the same settings.

runs/sweep-20261121-153012/
  plan.json                         the recipe, the groups with their settings, the seeds
  width=16,learning_rate=0.003/
    seed-0/ …                       a run directory each, with outcome.json once it is scored and proved
  tuning/ …                         the trials that only choose the best value of a tuned setting
  sweep.json, sweep.html            the table of results

Seeds of a recipe without any changed setting are a sweep of one group, whose trials are `seed-0`,
`seed-1` and so on without a directory of their group.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from abacist import extensions, files
from abacist.config_base import Config, setting
from abacist.configuration import from_json, override, to_json
from abacist.devices import check_device_name
from abacist.errors import AbacistError, ConfigurationError, RunError, check_between, nearest
from abacist.recipes import examinations
from abacist.recipes.examinations import ArithmeticSample, Examination
from abacist.recipes.recipe import Recipe
from abacist.runs.circumstances import circumstances
from abacist.runs.directory import (
    FORMAT_VERSION,
    MAX_SEED,
    MAX_THREADS,
    PLAN,
    RunDirectory,
    read_versioned,
)
from abacist.scoring.scorecard import SUITES

TABLE = "sweep.json"
PAGE = "sweep.html"
MOST_TRIALS = 10_000
"""Largest number of trials that a sweep has unless its user insists."""

_NAME = re.compile(r"[\w.,=+-]{1,120}")
"""Names that are safe as directories."""
_LONGEST_DIGITS = 100_000


@dataclass(frozen=True, kw_only=True)
class Score(Config):
    """What the trained models are asked, and whether they are to be proved right."""

    section: ClassVar = "score"

    suites: tuple[str, ...] = ("lengths",)
    """Suites of `abacist score`."""
    digits: tuple[int, ...] = setting((), low=1, high=_LONGEST_DIGITS, suggestion=20)
    """Lengths of operands; for each, test problems whose two operands both have it."""
    carry_chains: tuple[int, ...] = setting((), low=1, high=_LONGEST_DIGITS, suggestion=20)
    """Lengths of carry chains; for each, sums of operands of that length with a carry through every digit."""
    num_problems: int = setting(1_000, low=1, high=10_000_000)
    """Number of problems for each of these lengths."""
    proved: bool = True
    """Whether every neighbourhood is checked where the model's receptive field is finite."""

    def examination(self, operation: str = "+") -> Examination:
        """Return the examination of models that calculate with `operation`."""
        return Examination(
            suites={suite: {} for suite in self.suites},
            samples=(
                *(ArithmeticSample(operation, (d, d), self.num_problems) for d in self.digits),
                *(
                    ArithmeticSample(operation, (d, d), self.num_problems, "carry-chains")
                    for d in self.carry_chains
                ),
            ),
            proved=self.proved,
        )

    def check(self) -> None:
        """Raise `ConfigurationError` for a suite that does not exist."""
        for suite in self.suites:
            if suite not in SUITES:
                raise ConfigurationError(f"unknown suite {suite!r}: {nearest(suite, SUITES)}")


def examination_of(recipe: Recipe, name: str | None, score: Score | None) -> Examination:
    """Return what a model of `recipe` is asked: `score`, or else the examination called `name`.

    Raises `ConfigurationError` if `score` has lengths and the task more than one operation.
    """
    if score is None:
        return examinations.find(name)
    operations = getattr(recipe.task, "operations", ())
    if (score.digits or score.carry_chains) and len(operations) != 1:
        raise ConfigurationError(
            "score.digits and score.carry_chains are for tasks with one operation, got "
            f"{','.join(operations) or recipe.task.kind}. Leave them out, and name suites."
        )
    return score.examination(*operations[:1])


@dataclass(frozen=True, kw_only=True)
class Group:
    """Trials with the same settings, which differ in their seeds alone."""

    name: str
    """Name of the directory of its trials; empty if the sweep has no other group."""
    contender: str
    """What the group is a version of: groups of one contender differ in tuned settings alone."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Changed settings of the recipe, by dotted name."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything that decides the results of a sweep."""

    recipe: Recipe
    groups: list[Group]
    seeds: list[int]
    tuning_seeds: list[int] = field(default_factory=list)
    """Seeds of the trials that choose among the groups of a contender; none if nothing is tuned."""
    examination: str | None = None
    """Name of an examination in recipes/examinations.py."""
    score: Score | None = None
    """What the models are asked instead of a named examination."""
    threads: int = 1
    """Number of threads of each trial, on which its bits depend."""
    device: str = "auto"

    def __post_init__(self) -> None:
        check_between("seeds", len(self.seeds), 1, MAX_SEED, 10)
        check_between("threads", self.threads, 1, MAX_THREADS, 1)
        for seed in (*self.seeds, *self.tuning_seeds):
            check_between("seed", seed, 0, MAX_SEED, 0)
        for seeds in (self.seeds, self.tuning_seeds):
            # Two trials with one seed would train in one run directory.
            if len(set(seeds)) < len(seeds):
                repeated, _ = Counter(seeds).most_common(1)[0]
                raise ConfigurationError(
                    f"the seeds of a sweep must differ, got {repeated} twice. Leave one out."
                )
        if not self.groups:
            raise ConfigurationError("a sweep has at least one group of settings, got none.")
        names = [group.name for group in self.groups]
        for name in names:
            is_needed = bool(name) or len(names) > 1
            if (is_needed and not _NAME.fullmatch(name)) or name in (".", ".."):
                raise ConfigurationError(f"{name!r} is no name of a group.")
        if len(set(names)) < len(names):
            raise ConfigurationError("two groups have the same name.")
        if self.score is not None:
            self.score.check()
        examinations.find(self.examination)
        check_device_name(self.device)

    @property
    def contenders(self) -> dict[str, list[Group]]:
        """The groups of each contender."""
        groups: dict[str, list[Group]] = {}
        for group in self.groups:
            groups.setdefault(group.contender, []).append(group)
        return groups

    @property
    def num_trials(self) -> int:
        """Number of all trials, those that tune included."""
        tuned = sum(len(g) for g in self.contenders.values() if len(g) > 1)
        if not self.tuning_seeds:
            return len(self.groups) * len(self.seeds)
        return tuned * len(self.tuning_seeds) + len(self.contenders) * len(self.seeds)

    def recipe_of(self, group: Group) -> Recipe:
        """Return the recipe with the settings of a group."""
        return override(self.recipe, group.settings)

    def trials_of(self, groups: Sequence[Group]) -> list["Trial"]:
        """Return the trials of some groups, seed by seed, so that all groups have results early."""
        return [self._trial(group, seed) for seed in self.seeds for group in groups]

    def tuning_trials(self) -> list["Trial"]:
        """Return the trials that choose among the groups of each contender that has several."""
        return [
            self._trial(group, seed, is_tuning=True)
            for seed in self.tuning_seeds
            for groups in self.contenders.values()
            for group in groups
            if len(groups) > 1
        ]

    def _trial(self, group: Group, seed: int, is_tuning: bool = False) -> "Trial":
        parts = [*(["tuning"] if is_tuning else []), *([group.name] if group.name else [])]
        return Trial(
            plan=self,
            group=group,
            seed=seed,
            directory="/".join([*parts, f"seed-{seed}"]),
            is_tuning=is_tuning,
        )

    @property
    def extensions(self) -> list[dict[str, Any]]:
        """Extensions that the sweep needs, as `plan.json` states them."""
        return extensions.needed([to_json(self.recipe), to_json(self.groups)])

    def write(self, path: Path) -> None:
        """Write `plan.json` into the directory of the sweep."""
        record = {
            "format_version": FORMAT_VERSION,
            "extensions": self.extensions,
            **to_json(self),
            **circumstances(),
        }
        files.write_json(path / PLAN, record)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One training of a sweep."""

    plan: Plan
    group: Group
    seed: int
    directory: str
    """Path of the run directory relative to that of the sweep."""
    is_tuning: bool = False
    """Whether the trial only chooses a tuned setting, on validation problems; it is not scored then."""
    accept_changed_extension: bool = False
    """Whether the trial is resumed although an extension has changed since it was started."""

    def run_directory(self, path: Path) -> RunDirectory:
        """Return the run directory within the directory of the sweep."""
        return RunDirectory(path / self.directory)


_FIELDS = ("recipe", "groups", "seeds", "tuning_seeds", "examination", "score", "threads", "device")


def read(path: Path, accept_changed_extension: bool = True) -> Plan:
    """Read `plan.json` in the directory of a sweep.

    Raises `RunError` if it is missing or damaged, its format version is not `FORMAT_VERSION`, or an
    extension that it needs is not loaded, or has changed and `accept_changed_extension` is not set.
    """
    if not (path / PLAN).is_file():
        raise RunError(
            f"there is no sweep to resume in {path}: it has no {PLAN}. "
            "Type --out with a directory that abacist sweep or abacist train --seeds made."
        )
    record = read_versioned(path / PLAN)
    extensions.check_loaded(record, path)
    if not accept_changed_extension:
        extensions.refuse_changes(record, path)
    try:
        plan: Plan = from_json(Plan, {name: record[name] for name in _FIELDS})
        for group in plan.groups:
            plan.recipe_of(group)
    except (ValueError, KeyError, TypeError, AbacistError) as error:
        raise RunError(f"{path / PLAN} is damaged: {error}") from error
    return plan
