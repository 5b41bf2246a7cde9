"""What the problems of a recipe are like, and that the splits do not overlap."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

import torch
from torch import Tensor

from abacist import generators
from abacist.data.config import SplitConfig, SplitName
from abacist.data.split import draw_from_split, hash_problems, is_exempt
from abacist.tasks.task import Task

SPLITS: tuple[SplitName, ...] = get_args(SplitName)
_PROBLEMS_PER_BLOCK = 65_536


@dataclass(frozen=True)
class DataCheck:
    """Counts over a sample of every split."""

    num_problems: int
    """Problems drawn from each split."""
    distinct: dict[str, int]
    """Different problems among them, commuted ones counted once; those in all splits left out."""
    overlap: dict[str, int]
    """Problems found in both of two splits, by `a & b`."""
    histograms: dict[str, dict[int, int]]
    """Training problems by each of the task's measures."""


def check(
    task: Task,
    config: SplitConfig,
    num_problems: int,
    seed: int,
    on_progress: Callable[[int, int], None],
) -> DataCheck:
    """Draw `num_problems` from each split and compare. Problems are told apart by 64-bit hashes.

    A collision would show as an overlap that is none; among ten million it has a chance of 1 in
    200,000.
    """
    hashes: dict[str, Tensor] = {}
    counts: dict[str, Tensor] = {}
    done = 0
    for split in SPLITS:
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
            on_progress(done, num_problems * len(SPLITS))
        hashes[split] = torch.unique(torch.cat(parts))
    pairs = [("train", "validation"), ("train", "test"), ("validation", "test")]
    return DataCheck(
        num_problems,
        {split: len(found) for split, found in hashes.items()},
        {f"{a} & {b}": int(torch.isin(hashes[a], hashes[b]).sum()) for a, b in pairs},
        {name: _histogram(count) for name, count in counts.items()},
    )


def _count(counts: dict[str, Tensor], name: str, values: Tensor) -> None:
    new = torch.bincount(values)
    old = counts.get(name, new.new_zeros(0))
    width = max(len(new), len(old))
    pad = torch.nn.functional.pad
    counts[name] = pad(old, (0, width - len(old))) + pad(new, (0, width - len(new)))


def _histogram(count: Tensor) -> dict[int, int]:
    return {value: number for value, number in enumerate(count.tolist()) if number}
