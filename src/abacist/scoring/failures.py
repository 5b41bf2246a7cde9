"""Problems answered wrongly: what the model wrote, where it first went wrong, what they share.

A model that fails only on sums with long carries scores 99 % and has one cause of failure. A
`Tally` finds such causes: it counts how often each feature occurs among all problems of a suite,
and how often among the failures.
"""

import torch
from torch import Tensor

from abacist.intervals import Proportion
from abacist.scoring.records import Feature
from abacist.scoring.value_ranges import range_text, value_ranges
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.problems import OPERATIONS, Problems
from abacist.tasks.task import Task

MAX_FAILURES = 100
"""Largest number of problems answered wrongly that a section keeps."""

_FEWEST_FAILURES = 5
"""Smallest number of failures with a feature that can be more than chance."""
_SMALLEST_RATIO = 1.25
"""A feature is reported if its share among failures is at least this many times the expected one."""


def carry_chains(task: Task, problems: Problems) -> Tensor | None:
    """Return the longest carry chain of every sum, int64 (B,); -1 for problems that are no sums.

    The result is None for tasks without sums, and for signed operands: which columns carry then
    depends on how numbers below 0 are written.
    """
    if not isinstance(task, Arithmetic) or "+" not in task.operations or task.config.signed:
        return None
    if task.operations == ("+",):
        return task.longest_carry_chain(problems)
    sums = problems.operation_B == OPERATIONS.index("+")
    chains = torch.full((len(problems),), -1)
    if bool(sums.any()):
        chains[sums] = task.longest_carry_chain(problems[sums])
    return chains


def first_wrong_places(places_BA: Tensor, margins_BA: Tensor) -> Tensor:
    """Return the place of every line's first wrong token, int64 (B,).

    It is -1 where that token has no place or all tokens are correct.
    """
    wrong = margins_BA <= 0
    places = places_BA.gather(1, wrong.long().argmax(dim=1, keepdim=True)).squeeze(1)
    return torch.where(wrong.any(dim=1), places, -1).clamp(min=-1)


class Tally:
    """Counts how often features occur among failures, and how often they are expected."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.failures = 0
        """Number of problems answered wrongly so far."""
        self._counts: dict[str, Tensor] = {}
        """For each feature, float64 (2, values): how often each value is expected, and among failures."""

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
            has_value = values >= 0
            self._count(name, values[has_value], values[has_value & ~correct])

    def add_places(self, places_BA: Tensor, is_target_BA: Tensor, first_wrong_B: Tensor) -> None:
        """Count the places where lines first go wrong.

        Args:
            places_BA: the place of every predicted token.
            is_target_BA: False where nothing is to be predicted.
            first_wrong_B: the place of the first wrong token; -1 where there is none.
        """
        failed = first_wrong_B >= 0
        if not bool(failed.any()):
            return
        places = places_BA[failed]
        counted = is_target_BA[failed] & (places >= 0)
        weights = counted / counted.sum(dim=1, keepdim=True).clamp(min=1)
        self._count("first wrong place", places[counted], first_wrong_B[failed], weights[counted])

    def common_features(self) -> list[Feature]:
        """Return the features that are clearly more frequent among failures, the clearest first."""
        features = []
        for name, counts in self._counts.items():
            total, failed = counts.sum(dim=1).tolist()
            if not failed:
                continue
            largest = counts.shape[1] - 1
            ranges = value_ranges(largest)
            if name == "operation":
                ranges = [(code, code) for code in range(largest + 1)]
            for low, high in ranges:
                expected, count = counts[:, low : high + 1].sum(dim=1).tolist()
                among_failures = Proportion(int(count), int(failed))
                if _is_clear(among_failures, expected / total):
                    value = OPERATIONS[low] if name == "operation" else range_text(low, high)
                    features.append(Feature(name, value, among_failures, expected / total))
        return sorted(features, key=_ratio, reverse=True)

    def _count(
        self, name: str, values: Tensor, failed: Tensor, weights: Tensor | None = None
    ) -> None:
        """Add `values`, with their weights, to the expected counts, and `failed` to those of failures."""
        old = self._counts.get(name, torch.zeros(2, 1, dtype=torch.float64))
        height = max([old.shape[1], *(int(v.max()) + 1 for v in (values, failed) if v.numel())])
        new = torch.zeros(2, height, dtype=torch.float64)
        new[0] = torch.bincount(values, weights, minlength=height)
        new[1] = torch.bincount(failed, minlength=height)
        new[:, : old.shape[1]] += old
        self._counts[name] = new


def _ratio(feature: Feature) -> float:
    return (feature.among_failures.value or 0.0) / feature.expected


def _is_clear(among_failures: Proportion, expected: float) -> bool:
    """Whether a share differs from the expected one by more than chance, and by enough to matter."""
    share, interval = among_failures.value, among_failures.interval
    if share is None or interval is None or not expected:
        return False
    return (
        among_failures.successes >= _FEWEST_FAILURES
        and interval[0] > expected
        and share >= _SMALLEST_RATIO * expected
    )
