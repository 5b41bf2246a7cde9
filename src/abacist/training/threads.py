"""How many threads to train with: the number that is fastest here and now.

More is not always faster: with small tensors the threads wait for each other, and with another
program on the second core two of them can be ten times slower than one.
"""

import copy
import os
import time

import torch

from abacist.formats.annotated import AnnotatedTokens
from abacist.models.transformer import Transformer
from abacist.training.config import TrainingConfig
from abacist.training.optimizer import Optimizer
from abacist.training.step import training_step

_WARM_STEPS = 3
_TIMED_STEPS = 8


def fastest_threads(
    model: Transformer, batch: AnnotatedTokens, aligned: bool, config: TrainingConfig
) -> tuple[int, dict[int, float]]:
    """The fastest number of threads, and the median seconds of a step with each tried.

    Steps are made on a copy; the model, its optimiser and its data stream are left as they are.
    """
    seconds = {}
    before = torch.get_num_threads()
    for count in _candidates():
        torch.set_num_threads(count)
        trial = copy.deepcopy(model)
        optimizer = Optimizer(trial, config)
        times = []
        for _ in range(_WARM_STEPS + _TIMED_STEPS):
            begin = time.perf_counter()
            training_step(trial, optimizer, batch, config, 0, aligned)
            times.append(time.perf_counter() - begin)
        seconds[count] = sorted(times[_WARM_STEPS:])[_TIMED_STEPS // 2]
    torch.set_num_threads(before)
    return min(seconds, key=lambda count: seconds[count]), seconds


def _candidates() -> list[int]:
    """1, 2, 4, … up to the processors this process may use."""
    return [count for count in (1, 2, 4, 8, 16, 32) if count <= usable_processors()]


def usable_processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
