"""Choosing the number of threads for training by timing a few steps with each.

More threads are not always faster. With small tensors they wait for each other, and two threads
can be ten times slower than one while another program uses the second core.
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
    """Return the fastest number of threads, and the median seconds of a step for each number.

    All steps run on a copy of the model, which itself stays as it is.

    Args:
        model: the model to train.
        batch: a batch of lines, (B, T).
        aligned: whether all lines of the batch have the same coordinates.
        config: settings of the training.
    """
    seconds = {}
    previous = torch.get_num_threads()
    try:
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
    finally:
        torch.set_num_threads(previous)
    return min(seconds, key=lambda count: seconds[count]), seconds


def _candidates() -> list[int]:
    """Return the numbers of threads to try: 1, 2, 4, … up to the number of usable processors."""
    return [count for count in (1, 2, 4, 8, 16, 32) if count <= usable_processors()]


def usable_processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
