"""The results of a sweep as one table: a line for each group, with intervals over problems and seeds.

The table follows from the outcomes of the trials alone, so it can be made again at any time.
"""

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from abacist import files
from abacist.configuration import to_json
from abacist.intervals import Proportion, median_interval
from abacist.runs.outcome import Distribution, Outcome
from abacist.scoring.comparison import RowKey
from abacist.sweeps.plan import TABLE, Group, Plan, Trial


@dataclass(frozen=True)
class Row:
    """How the models of one group answered one kind of problems."""

    key: RowKey
    pooled: Proportion
    """Right answers of all seeds together; its interval is over problems, of these seeds."""
    shares: list[float]
    """Share of right answers of each seed."""

    @property
    def median(self) -> float:
        return statistics.median(self.shares)

    @property
    def median_interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the median over seeds; None for fewer than six seeds."""
        return median_interval(self.shares)

    def to_json(self) -> dict[str, Any]:
        interval = self.median_interval
        return {
            "suite": self.key.suite,
            "name": self.key.name,
            "measure": self.key.measure,
            "pooled": self.pooled.to_json(),
            "seeds": {
                "n": len(self.shares),
                "median": self.median,
                "interval": None if interval is None else list(interval),
                "smallest": min(self.shares),
                "largest": max(self.shares),
                "values": self.shares,
            },
        }


@dataclass(frozen=True)
class Candidate:
    """A group among those of a contender, of which the best on validation problems is compared."""

    group: Group
    num_seeds: int
    """Number of tuning trials that have ended."""
    validation: float
    """Mean exact match on validation problems; a trial that failed or diverged counts as 0."""
    loss: float | None
    """Mean loss on validation problems; None if a trial has none."""
    chosen: bool = False

    @property
    def rank(self) -> tuple[float, float]:
        """Sort key: larger is better."""
        return self.validation, float("-inf") if self.loss is None else -self.loss

    def to_json(self) -> dict[str, Any]:
        return {
            "contender": self.group.contender,
            "group": self.group.name,
            "settings": self.group.settings,
            "tuning_seeds": self.num_seeds,
            "validation": self.validation,
            "validation_loss": self.loss,
            "chosen": self.chosen,
        }


@dataclass(frozen=True)
class GroupResults:
    """The outcomes of one group, and what it cost and scored."""

    group: Group
    distribution: Distribution
    """Outcomes in the order of their seeds."""

    @property
    def outcomes(self) -> list[Outcome]:
        return self.distribution.outcomes

    @cached_property
    def shares(self) -> dict[RowKey, list[Proportion]]:
        """Right answers of each seed by row, in the order of the outcomes."""
        shares: dict[RowKey, list[Proportion]] = {}
        for outcome in self.outcomes:
            for row in outcome.rows:
                if row["n"]:
                    key = RowKey(row["suite"], row["name"], row["measure"])
                    share = Proportion(row["n"] - row["errors"], row["n"])
                    shares.setdefault(key, []).append(share)
        return shares

    @cached_property
    def rows(self) -> list[Row]:
        """A row for every count that the outcomes hold, in their order."""
        return [
            Row(key, sum(shares, Proportion(0, 0)), [s.successes / s.n for s in shares])
            for key, shares in self.shares.items()
        ]

    @property
    def reached(self) -> int:
        """Number of seeds that reached the target on validation problems."""
        return sum(outcome.steps_to_target is not None for outcome in self.outcomes)

    def to_json(self) -> dict[str, Any]:
        return {
            "group": self.group.name,
            "contender": self.group.contender,
            "settings": self.group.settings,
            "parameters": self.outcomes[0].parameters if self.outcomes else None,
            "seeds": [outcome.seed for outcome in self.outcomes],
            "without_error": self.distribution.without_error.to_json(),
            "certified": self.distribution.certified.to_json(),
            "reached_target": self.reached,
            "median_steps_to_target": self.distribution.median(lambda o: o.steps_to_target),
            "median_steps": self.distribution.median(lambda o: o.steps),
            "median_seconds": self.distribution.median(lambda o: o.seconds),
            "rows": [row.to_json() for row in self.rows],
        }


@dataclass(frozen=True)
class Results:
    """The outcomes of all trials that have ended."""

    plan: Plan
    groups: list[GroupResults]
    candidates: list[Candidate]
    """The groups that were tuned, with their validation; empty if nothing was tuned."""
    failures: dict[str, str]
    """Why a trial failed, by the path of its run directory; a sweep that is resumed tries it again."""
    unfinished: int
    """Number of trials that have neither an outcome nor a failure."""

    def to_json(self) -> dict[str, Any]:
        plan = self.plan
        return {
            "recipe": plan.recipe.name,
            "groups": [results.to_json() for results in self.groups],
            "tuning": [candidate.to_json() for candidate in self.candidates],
            "trials": [
                {"group": results.group.name} | outcome.summary()
                for results in self.groups
                for outcome in results.outcomes
            ],
            "failures": [{"run": run, "reason": why} for run, why in self.failures.items()],
            "unfinished": self.unfinished,
        }

    def write(self, path: Path) -> None:
        """Write `sweep.json` into the directory of the sweep."""
        files.write_json(path / TABLE, to_json(self.to_json()))


def chosen_groups(plan: Plan, tuning: Mapping[str, Outcome]) -> tuple[list[Group], list[Candidate]]:
    """Return the best group of every contender, and all groups among which one was chosen.

    Args:
        plan: the plan, all of whose tuning trials have ended.
        tuning: the outcomes of tuning trials by run directory; those that failed are missing.
    """
    of_group: dict[str, list[Trial]] = {}
    for trial in plan.tuning_trials():
        of_group.setdefault(trial.group.name, []).append(trial)
    groups, candidates = [], []
    for contender in plan.contenders.values():
        if len(contender) == 1 or not plan.tuning_seeds:
            groups += contender
            continue
        rivals = [_candidate(group, of_group[group.name], tuning) for group in contender]
        best = max(rivals, key=lambda candidate: candidate.rank)
        groups.append(best.group)
        candidates += [
            Candidate(c.group, c.num_seeds, c.validation, c.loss, chosen=c is best) for c in rivals
        ]
    return groups, candidates


def _candidate(group: Group, trials: list[Trial], tuning: Mapping[str, Outcome]) -> Candidate:
    outcomes = [tuning.get(trial.directory) for trial in trials]
    losses = [
        o.validation_loss
        for o in outcomes
        if o is not None and not o.failure and o.validation_loss is not None
    ]
    return Candidate(
        group,
        sum(outcome is not None for outcome in outcomes),
        statistics.mean(
            0.0 if o is None or o.failure or o.validation is None else o.validation
            for o in outcomes
        ),
        statistics.mean(losses) if len(losses) == len(outcomes) else None,
    )


def varying_settings(plan: Plan) -> Iterator[str]:
    """Yield the settings in which the groups differ, in the order of their first appearance."""
    names = dict.fromkeys(name for group in plan.groups for name in group.settings)
    for name in names:
        values = {str(group.settings.get(name, "–")) for group in plan.groups}
        if len(values) > 1:
            yield name
