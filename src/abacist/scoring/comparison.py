"""Runs compared in groups: the rows of the scorecard that all groups have, and how their means differ.

A group is all seeds of one recipe, one line of a sweep's table, or a single run.
"""

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from abacist.intervals import (
    Difference,
    Proportion,
    difference,
    difference_of_means,
    mean_interval,
)
from abacist.scoring.records import Scorecard

_WITH_STATED_LENGTHS = {
    "lengths": r"^(?!.* to ).*\d digit",
    "grid": r"\d digit",
    "recurrences": r"\d digit",
    "sample": r"\d digit",
    "probes": r"single digits|\d digits, random",
}
"""Patterns of the names of rows that state the lengths of all operands, by suite.

Other probes are chosen, or split into two rows, by the lengths of training. Other suites draw problems as in training.
"""


@dataclass(frozen=True)
class RowKey:
    """Which row of a scorecard. Rows with the same suite, name and measure can be compared."""

    suite: str
    name: str
    measure: str
    kind: str = field(default="", compare=False)
    """Group within the section; empty for the outcome of a seed, which does not record it."""
    digits: int = field(default=0, compare=False)
    """Length of the longest operand; 0 if the row is about something else, and for the outcome of a seed."""

    @property
    def label(self) -> str:
        """The name, with the measure if it is not exact match."""
        return self.name if self.measure == "exact match" else f"{self.name} ({self.measure})"

    @property
    def states_length(self) -> bool:
        """Whether the lengths of the operands are in the name, so that they do not depend on training."""
        pattern = _WITH_STATED_LENGTHS.get(self.suite)
        return pattern is not None and re.search(pattern, self.name) is not None


Shares = Mapping[RowKey, Sequence[Proportion]]
"""Right answers of each run of a group by row, without rows that have no problems."""


@dataclass(frozen=True)
class ComparedGroup:
    """Some runs that differ in their seeds only, and what they answered."""

    name: str
    certified: Proportion
    """Runs that are certified, among all of the group."""
    shares: Shares


@dataclass(frozen=True)
class GroupScore:
    """How the runs of one group answered one row."""

    runs: int
    """Number of runs."""
    mean: float
    """Mean share of right answers over the runs."""
    interval: tuple[float, float]
    """The 95 % interval of the mean.

    It covers the chance of the problems, as if the runs were one model, and where there are several
    runs that of the seeds as well.
    """
    smallest: float
    largest: float


@dataclass(frozen=True)
class ComparedRow:
    """One row of the scorecard that all groups have."""

    key: RowKey
    shares: list[Sequence[Proportion]]
    """Right answers of each run, for each group."""

    @property
    def proportions(self) -> list[Proportion]:
        """Right answers of each group, where all groups are single runs."""
        return [run for (run,) in self.shares]

    @cached_property
    def groups(self) -> list[GroupScore]:
        """The score of each group."""
        return [_score(runs) for runs in self.shares]

    @cached_property
    def differences(self) -> list[Difference]:
        """How much better the mean of every further group is than that of the first.

        The interval covers the chance of the problems, as if the runs of a group were one model, and
        where both groups have several runs that of the seeds as well.
        """
        first, *others = self.shares
        return [_difference(other, first) for other in others]


def shares_of(card: Scorecard) -> Shares:
    """Return the shares of a single run, which is a group of one."""
    return {
        RowKey(suite, row.name, row.measure, row.kind, row.digits): [row.proportion]
        for suite, section in card.sections.items()
        for row in section.rows
        if row.proportion is not None and row.proportion.n
    }


def common_rows(groups: Sequence[Shares], trained_alike: bool = True) -> list[ComparedRow]:
    """Return the rows that all groups have, in the order of the first.

    Unless the groups were `trained_alike`, only rows that state a length are about the same problems.
    """
    first, *others = groups
    return [
        ComparedRow(key, [shares[key] for shares in groups])
        for key in first
        if all(key in other for other in others) and (trained_alike or key.states_length)
    ]


def _values(runs: Sequence[Proportion]) -> list[float]:
    return [run.successes / run.n for run in runs]


def _pooled(runs: Sequence[Proportion]) -> Proportion:
    return sum(runs, Proportion(0, 0))


def _score(runs: Sequence[Proportion]) -> GroupScore:
    values, over_problems = _values(runs), _pooled(runs).interval
    assert over_problems is not None
    over_seeds = mean_interval(values) or over_problems
    interval = min(over_problems[0], over_seeds[0]), max(over_problems[1], over_seeds[1])
    return GroupScore(len(runs), statistics.mean(values), interval, min(values), max(values))


def _difference(better: Sequence[Proportion], worse: Sequence[Proportion]) -> Difference:
    over_problems = difference(_pooled(better), _pooled(worse))
    assert over_problems is not None
    over_seeds = difference_of_means(_values(better), _values(worse))
    if over_seeds is None:
        return over_problems
    low = min(over_problems.interval[0], over_seeds.interval[0])
    high = max(over_problems.interval[1], over_seeds.interval[1])
    return Difference(over_seeds.value, (low, high))
