"""Statistics of a recipe's problems, and a check that the splits do not overlap."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist import generators
from abacist.data.config import SplitConfig, SplitName
from abacist.data.split import draw_from_split, hash_problems, in_split, is_exempt
from abacist.errors import ConfigurationError
from abacist.tasks.column_task import ColumnTask
from abacist.tasks.problems import OPERATIONS, Answer, Numbers, Problems, concatenate
from abacist.tasks.task import Task

_PROBLEMS_PER_BLOCK = 65_536
_MOST_FRUITLESS_BLOCKS = 20
"""Number of blocks in a row without a problem of a split after which the split counts as exhausted."""
_MOST_COMPARED = 10_000
"""Largest number of problems that are compared with a definition in plain Python."""
_MOST_DIGITS = 18
"""Digits of the longest answers that fit into 64 bits."""


@dataclass(frozen=True)
class AnswerStatistics:
    """Range, mean and standard deviation of answers."""

    smallest: int
    largest: int
    mean: float
    standard_deviation: float
    """Divided by n, as if the sample were the whole population."""


@dataclass(frozen=True)
class DataCheck:
    """Counts over a sample of every split."""

    num_problems: int
    """Number of problems to draw from each split; none is drawn from a split that seems to be empty."""
    distinct: dict[str, int]
    """Number of distinct problems by split. Commuted problems count once, exempt ones not at all."""
    overlap: dict[str, int]
    """Number of problems that two splits share, by `a & b`."""
    histograms: dict[str, dict[int, int]]
    """Number of training problems by value, for each of the task's measures."""
    operations: dict[str, dict[str, int]]
    """Number of problems drawn, by operation and split."""
    answers: dict[str, AnswerStatistics]
    """Statistics of the answers by non-empty split; none for answers that are no numbers of at most 18 digits."""
    compared: int = 0
    """Number of training problems whose answers were compared with the column task's own `answer` and agree."""


def check(
    task: Task,
    config: SplitConfig,
    num_problems: int,
    seed: int,
    on_progress: Callable[[int, int], None],
) -> DataCheck:
    """Draw problems from each split and compare the splits.

    Problems are identified by 64-bit hashes. A collision of hashes would be reported as an overlap;
    among ten million problems its probability is 1 in 370,000.

    Args:
        task: the task that draws the problems.
        config: the splits.
        num_problems: number of problems to draw from each split.
        seed: seed of the draws.
        on_progress: called with the number of problems drawn so far and in total.

    Raises `ConfigurationError`, naming the first problem, if a column task and its `answer` disagree.
    """
    hashes: dict[str, Tensor] = {}
    counts: dict[str, Tensor] = {}
    operations: dict[str, dict[str, int]] = {operation: {} for operation in task.operations}
    answers: dict[str, AnswerStatistics] = {}
    compared = 0
    for number, split in enumerate(config.splits):
        parts = []
        values: list[Tensor | None] = []
        for block, begin in enumerate(range(0, num_problems, _PROBLEMS_PER_BLOCK)):
            size = min(_PROBLEMS_PER_BLOCK, num_problems - begin)
            generator = generators.generator(seed, "check", split, block)
            problems = _draw(task, size, split, config, generator)
            parts.append(hash_problems(problems)[~is_exempt(problems, config)])
            for operation, by_split in operations.items():
                is_asked = problems.operation_B == OPERATIONS.index(operation)
                by_split[split] = by_split.get(split, 0) + int(is_asked.sum())
            on_progress(num_problems * number + begin + size, num_problems * len(config.splits))
            if not len(problems):
                break
            values.append(_values(task.answer(problems)))
            if split == "train":
                compared = compared or _compare(task, problems)
                for name, measured in task.measures(problems).items():
                    _count(counts, name, measured)
        hashes[split] = torch.unique(torch.cat(parts))
        known = [block for block in values if block is not None]
        if known and len(known) == len(values):
            answers[split] = _statistics(torch.cat(known))
    pairs = list(itertools.combinations(config.splits, 2))
    return DataCheck(
        num_problems,
        {split: len(distinct) for split, distinct in hashes.items()},
        {f"{a} & {b}": int(torch.isin(hashes[a], hashes[b]).sum()) for a, b in pairs},
        {name: _histogram(count) for name, count in counts.items()},
        operations,
        answers,
        compared,
    )


def _draw(
    task: Task, count: int, split: SplitName, config: SplitConfig, generator: torch.Generator
) -> Problems:
    """Draw problems of a split; combinations of lengths that it has no problem of are left out.

    The result is empty if `_MOST_FRUITLESS_BLOCKS` blocks hold no problem of the split.
    """
    shapes = task.draw_shapes(count, generator)
    try:
        return draw_from_split(task, shapes, split, config, generator)
    except ConfigurationError:
        parts: list[Problems] = []
        fruitless = 0
        while sum(map(len, parts)) < count and fruitless < _MOST_FRUITLESS_BLOCKS:
            problems = task.draw(task.draw_shapes(_PROBLEMS_PER_BLOCK, generator), generator)
            inside = in_split(problems, split, config)
            parts.append(problems[inside.nonzero().squeeze(1)])
            fruitless = 0 if inside.any() else fruitless + 1
        return concatenate(parts)[:count]


def _values(answer: Answer) -> Tensor | None:
    """Return answers as int64 (B,); None for texts, orders and numbers of more than 18 digits."""
    if not isinstance(answer, Numbers) or answer.digits_BW.shape[1] > _MOST_DIGITS:
        return None
    powers = 10 ** torch.arange(answer.digits_BW.shape[1])
    values = (answer.digits_BW.long() * powers).sum(dim=1)
    return values if answer.negative_B is None else torch.where(answer.negative_B, -values, values)


def _statistics(values: Tensor) -> AnswerStatistics:
    in_float = values.double()
    return AnswerStatistics(
        int(values.min()),
        int(values.max()),
        float(in_float.mean()),
        float(in_float.std(correction=0)),
    )


def _compare(task: Task, problems: Problems) -> int:
    """Compare answers with those of a column task's oracle; return the number of problems compared."""
    if not isinstance(task, ColumnTask):
        return 0
    return task.check_oracle(problems[:_MOST_COMPARED])


def _count(counts: dict[str, Tensor], name: str, values: Tensor) -> None:
    """Add the number of occurrences of each value to `counts[name]`."""
    new = torch.bincount(values)
    old = counts.get(name, new.new_zeros(0))
    width = max(len(new), len(old))
    pad = torch.nn.functional.pad
    counts[name] = pad(old, (0, width - len(old))) + pad(new, (0, width - len(new)))


def _histogram(count: Tensor) -> dict[int, int]:
    """Return the number of occurrences by value, for values that occur."""
    return {value: number for value, number in enumerate(count.tolist()) if number}
