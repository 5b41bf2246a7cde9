"""Statistics of a recipe's problems, and a check that the splits do not overlap."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist import generators
from abacist.data.config import SplitConfig
from abacist.data.split import draw_from_split, hash_problems, is_exempt
from abacist.tasks.task import Task

_PROBLEMS_PER_BLOCK = 65_536


@dataclass(frozen=True)
class DataCheck:
    """Counts over a sample of every split."""

    num_problems: int
    """Number of problems drawn from each split."""
    distinct: dict[str, int]
    """Number of distinct problems by split. Commuted problems count once, exempt ones not at all."""
    overlap: dict[str, int]
    """Number of problems that two splits share, by `a & b`."""
    histograms: dict[str, dict[int, int]]
    """Number of training problems by value, for each of the task's measures."""


def check(
    task: Task,
    config: SplitConfig,
    num_problems: int,
    seed: int,
    on_progress: Callable[[int, int], None],
) -> DataCheck:
    """Draw problems from each split and compare the splits.

    Problems are identified by 64-bit hashes. A collision of hashes would be reported as an overlap;
    among ten million problems its probability is 1 in 200,000.

    Args:
        task: the task that draws the problems.
        config: the splits.
        num_problems: number of problems to draw from each split.
        seed: seed of the draws.
        on_progress: called with the number of problems drawn so far and in total.
    """
    hashes: dict[str, Tensor] = {}
    counts: dict[str, Tensor] = {}
    done = 0
    for split in config.splits:
        parts = []
        for block, begin in enumerate(range(0, num_problems, _PROBLEMS_PER_BLOCK)):
            size = min(_PROBLEMS_PER_BLOCK, num_problems - begin)
            generator = generators.generator(seed, "check", split, block)
            shapes = task.draw_shapes(size, generator)
            problems = draw_from_split(task, shapes, split, config, generator)
            parts.append(hash_problems(problems)[~is_exempt(problems, config)])
            if split == "train":
                for name, values in task.measures(problems).items():
                    _count(counts, name, values)
            done += size
            on_progress(done, num_problems * len(config.splits))
        hashes[split] = torch.unique(torch.cat(parts))
    pairs = list(itertools.combinations(config.splits, 2))
    return DataCheck(
        num_problems,
        {split: len(distinct) for split, distinct in hashes.items()},
        {f"{a} & {b}": int(torch.isin(hashes[a], hashes[b]).sum()) for a, b in pairs},
        {name: _histogram(count) for name, count in counts.items()},
    )


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
