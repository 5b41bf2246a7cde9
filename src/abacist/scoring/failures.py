"""Problems answered wrongly: what was written, where it first went wrong, what they have in common.

A model that fails on sums with long carries only has 99 % and one cause. A `Tally` counts, over all
problems of a suite, how often each feature is seen, and how often among the failures.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.intervals import Proportion
from abacist.scoring.groups import groups, shown
from abacist.scoring.solving import Solution
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.problems import OPERATIONS, Problems
from abacist.tasks.task import Task

MAX_FAILURES = 100
"""So many problems answered wrongly are kept in a section."""

_FEWEST_FAILURES = 5
"""What fewer failures share is left to chance."""
_CLEARLY_MORE = 1.25
"""A feature is worth telling from this ratio of shares on."""


@dataclass(frozen=True)
class Failure:
    """One problem answered wrongly."""

    row: str
    """Of the section, where it was found, such as `20 digits`; empty where it is in no single one."""
    prompt: str
    """What the model was given, token by token."""
    solution: Solution
    first_wrong_place: int | None
    """The significance of the first digit written wrongly, 1 for units; None where it has none."""
    carry_chain: int | None
    """The longest span of columns that receive a carry; None where the task has no such measure."""
    margin: float
    """Over the tokens of the right answer, the smallest: its logit minus the best other one."""

    def to_json(self) -> dict[str, object]:
        """The solution's keys, and where and how far it went wrong."""
        return self.solution.to_json() | {
            "row": self.row,
            "prompt": self.prompt,
            "first_wrong_place": self.first_wrong_place,
            "carry_chain": self.carry_chain,
            "margin": self.margin,
        }


@dataclass(frozen=True)
class Feature:
    """Something that is more frequent among failures than elsewhere."""

    name: str
    """Such as `longest carry chain`."""
    value: str
    among_failures: Proportion
    expected: float
    """The share among all problems; for a place, the share if an error hit any token of a line alike."""

    def to_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "value": self.value,
            "among_failures": self.among_failures.to_json(),
            "expected": self.expected,
        }


def carry_chains(task: Task, problems: Problems) -> Tensor | None:
    """int64 (B,): the longest chain of carries of every sum, -1 for other problems; None without sums."""
    if not isinstance(task, Arithmetic) or "+" not in task.operations:
        return None
    if task.operations == ("+",):
        return task.longest_carry_chain(problems)
    sums = problems.operation_B == OPERATIONS.index("+")
    chains = torch.full((len(problems),), -1)
    if bool(sums.any()):
        chains[sums] = task.longest_carry_chain(problems[sums])
    return chains


def first_wrong_places(places_BA: Tensor, margins_BA: Tensor) -> Tensor:
    """int64 (B,): the place of every line's first wrong token; -1 where it has none or all is right."""
    wrong = margins_BA <= 0
    found = places_BA.gather(1, wrong.long().argmax(dim=1, keepdim=True)).squeeze(1)
    return torch.where(wrong.any(dim=1), found, -1).clamp(min=-1)


class Tally:
    """Counts of features among failures, beside how often they are to be expected."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.failures = 0
        """Problems answered wrongly so far."""
        self._counts: dict[str, Tensor] = {}
        """By feature: float64 (2, values), how often each is expected and found among failures."""

    def add(self, problems: Problems, correct: Tensor) -> None:
        """Count a batch; `correct` is bool (B,)."""
        self.failures += int((~correct).sum())
        features = {
            "operation": problems.operation_B.long(),
            "operands": problems.counts_B,
            "digits of longest operand": problems.lengths_BN.amax(dim=1),
        }
        chains = carry_chains(self.task, problems)
        if chains is not None:
            features["longest carry chain"] = chains
        for name, values in features.items():
            told = values >= 0
            self._count(name, values[told], values[told & ~correct])

    def add_places(self, places_BA: Tensor, predicted_BA: Tensor, first_wrong: Tensor) -> None:
        """Count where lines first go wrong, beside where the answer tokens of these lines stand."""
        failed = first_wrong >= 0
        if not bool(failed.any()):
            return
        places, predicted = places_BA[failed], predicted_BA[failed] & (places_BA[failed] >= 0)
        weights = predicted / predicted.sum(dim=1, keepdim=True).clamp(min=1)
        self._count("first wrong place", places[predicted], first_wrong[failed], weights[predicted])

    def common(self) -> list[Feature]:
        """What failures have in common: what is clearly more frequent among them, the clearest first."""
        found = []
        for name, counts in self._counts.items():
            total, failed = counts.sum(dim=1).tolist()
            if not failed:
                continue
            ranges = groups(counts.shape[1] - 1) if name != "operation" else _each(counts.shape[1])
            for low, high in ranges:
                expected, count = counts[:, low : high + 1].sum(dim=1).tolist()
                among_failures = Proportion(int(count), int(failed))
                if _is_clear(among_failures, expected / total):
                    value = OPERATIONS[low] if name == "operation" else shown(low, high)
                    found.append(Feature(name, value, among_failures, expected / total))
        return sorted(found, key=_ratio, reverse=True)

    def _count(
        self, name: str, values: Tensor, failed: Tensor, weights: Tensor | None = None
    ) -> None:
        """Add `values`, each 1 or its weight, to what is expected, and `failed` to what is found."""
        old = self._counts.get(name, torch.zeros(2, 1, dtype=torch.float64))
        height = max([old.shape[1], *(int(v.max()) + 1 for v in (values, failed) if v.numel())])
        new = torch.zeros(2, height, dtype=torch.float64)
        new[0] = torch.bincount(values, weights, minlength=height)
        new[1] = torch.bincount(failed, minlength=height)
        new[:, : old.shape[1]] += old
        self._counts[name] = new


def _each(count: int) -> list[tuple[int, int]]:
    return [(value, value) for value in range(count)]


def _ratio(feature: Feature) -> float:
    return (feature.among_failures.value or 0.0) / feature.expected


def _is_clear(among_failures: Proportion, expected: float) -> bool:
    """Whether the shares differ by more than chance, and by enough to matter."""
    share, interval = among_failures.value, among_failures.interval
    if share is None or interval is None or not expected:
        return False
    return (
        among_failures.successes >= _FEWEST_FAILURES
        and interval[0] > expected
        and share >= _CLEARLY_MORE * expected
    )
