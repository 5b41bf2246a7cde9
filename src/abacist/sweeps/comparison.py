"""Comparing groups of runs: the scorecard rows that all groups have, and how their means over seeds differ.

A group is all seeds of one recipe, one line of a sweep's table, or a single run.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from abacist.intervals import (
    Difference,
    Proportion,
    difference,
    difference_of_means,
    mean_interval,
)
from abacist.scoring.records import Scorecard
from abacist.sweeps.results import GroupResults, Key


@dataclass(frozen=True)
class ComparedGroup:
    """Some runs that differ in their seeds only, and what they answered."""

    name: str
    certified: Proportion
    """Runs that are certified, among all of the group."""
    shares: dict[Key, list[Proportion]]
    """Right answers of each run by row."""


@dataclass(frozen=True)
class GroupRow:
    """One row of the scorecard that all groups have."""

    key: Key
    shares: list[list[Proportion]]
    """Right answers of each run, for each group."""

    @property
    def means(self) -> list[float]:
        """The mean share of right answers over the runs of each group."""
        return [statistics.mean(_values(runs)) for runs in self.shares]

    @property
    def intervals(self) -> list[tuple[float, float]]:
        """The 95 % interval of each mean.

        It covers the chance of the problems, as if the runs of a group were one model, and where a
        group has several runs that of the seeds as well.
        """
        return [_interval(runs) for runs in self.shares]

    @property
    def differences(self) -> list[Difference | None]:
        """How much better the mean of every further group is than that of the first.

        The interval covers the chance of the problems, as if the runs of a group were one model, and
        where both groups have several runs that of the seeds as well.
        """
        first, *others = self.shares
        return [_difference(other, first) for other in others]

    def to_json(self) -> dict[str, Any]:
        """Return the row with the mean, its interval, the range and the number of runs of each group."""
        suite, name, measure = self.key
        groups = [
            {
                "runs": len(runs),
                "mean": mean,
                "interval": list(interval),
                "smallest": min(_values(runs)),
                "largest": max(_values(runs)),
            }
            for runs, mean, interval in zip(self.shares, self.means, self.intervals, strict=True)
        ]
        differences = [None if d is None else d.to_json() for d in self.differences]
        return {
            "suite": suite,
            "name": name,
            "measure": measure,
            "groups": groups,
            "differences": differences,
        }


def of_results(name: str, results: GroupResults) -> ComparedGroup:
    """Return the group that one line of the table of a sweep stands for."""
    return ComparedGroup(name, results.distribution.certified, results.shares)


def of_scorecard(name: str, card: Scorecard, certified: bool) -> ComparedGroup:
    """Return a single run as a group."""
    shares = {
        (suite, row.name, row.measure): [row.proportion]
        for suite, section in card.sections.items()
        for row in section.rows
        if row.proportion is not None and row.proportion.n
    }
    return ComparedGroup(name, Proportion(int(certified), 1), shares)


def common_rows(groups: Sequence[ComparedGroup], trained_alike: bool = True) -> list[GroupRow]:
    """Return the rows that all groups have, in the order of the first.

    Unless the groups were `trained_alike`, rows that state no length are left out, because each is
    about other problems.
    """
    first, *others = groups
    return [
        GroupRow(key, [group.shares[key] for group in groups])
        for key in first.shares
        if all(key in other.shares for other in others)
        and (trained_alike or any(character.isdigit() for character in key[1]))
    ]


def _values(runs: Sequence[Proportion]) -> list[float]:
    return [run.successes / run.n for run in runs]


def _interval(runs: Sequence[Proportion]) -> tuple[float, float]:
    over_problems = reduce(Proportion.__add__, runs).interval
    assert over_problems is not None
    over_seeds = mean_interval(_values(runs)) or over_problems
    return min(over_problems[0], over_seeds[0]), max(over_problems[1], over_seeds[1])


def _difference(better: Sequence[Proportion], worse: Sequence[Proportion]) -> Difference | None:
    pooled = [reduce(Proportion.__add__, runs) for runs in (better, worse)]
    over_problems = difference(*pooled)
    over_seeds = difference_of_means(_values(better), _values(worse))
    if over_problems is None or over_seeds is None:
        return over_problems
    low = min(over_problems.interval[0], over_seeds.interval[0])
    high = max(over_problems.interval[1], over_seeds.interval[1])
    return Difference(over_seeds.value, (low, high))
