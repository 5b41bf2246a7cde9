"""The processes that train one model together, each on a share of every batch.

    torchrun --nproc-per-node 2 -m abacist.cli train add --out runs/add

Every process draws the whole batch, which is a function of the seed and the step, and computes the
gradient of its share of the lines. The gradients are added up, so all processes make the same step. It is
data parallelism as in torch's DistributedDataParallel; since the gradient is one vector (`optimizer.py`),
it needs a single sum per step and no wrapper around the model. The first process alone writes files.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Tensor, distributed

from abacist.errors import ConfigurationError, ProcessLost
from abacist.formats.annotated import AnnotatedTokens

_SECONDS_WITHOUT_ANSWER = 600
"""Time after which a process that does not answer counts as lost."""


@dataclass(frozen=True)
class Processes:
    """This process and the number of all."""

    rank: int = 0
    """Number of this process, starting at 0."""
    count: int = 1
    """Number of processes."""

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and reports progress."""
        return self.rank == 0

    def share(self, lines: AnnotatedTokens) -> tuple[AnnotatedTokens, float]:
        """Return the lines of this process, and their share of the batch's targets."""
        if self.count == 1:
            return lines, 1.0
        rows = torch.arange(len(lines.ids)).tensor_split(self.count)[self.rank]
        part = lines[slice(int(rows[0]), int(rows[-1]) + 1)] if len(rows) else lines[:0]
        return part, int(part.target.sum()) / int(lines.target.sum())

    def add_up(self, *tensors: Tensor) -> None:
        """Replace tensors by their sums over all processes.

        Raises `ProcessLost` where a process has ended.
        """
        if self.count == 1:
            return
        try:
            for tensor in tensors:
                distributed.all_reduce(tensor)
        except RuntimeError as error:
            raise self._lost() from error

    def is_any(self, flag: bool) -> bool:
        """Whether the flag of any process is set.

        Raises `ProcessLost` where a process has ended.
        """
        return self._sum(int(flag)) > 0

    def check_batch_size(self, batch_size: int) -> None:
        """Raise `ConfigurationError` if a batch has fewer lines than there are processes."""
        if batch_size < self.count:
            raise ConfigurationError(
                f"training.batch_size must be at least the number of processes, {self.count}, got "
                f"{batch_size}. Try torchrun --nproc-per-node {batch_size}."
            )

    def agree(self, number: int = 0) -> int:
        """Return the number of the first process, once all processes have asked for it.

        Raises `ProcessLost` where a process has ended.
        """
        return self._sum(number if self.is_first else 0)

    def _sum(self, number: int) -> int:
        if self.count == 1:
            return number
        device = "cuda" if distributed.get_backend() == "nccl" else "cpu"
        total = torch.tensor(number, device=device)
        self.add_up(total)
        return int(total)

    def _lost(self) -> ProcessLost:
        return ProcessLost(
            f"one of the {self.count} processes that train together has ended. "
            "Type the same command with --resume to continue from the newest checkpoint; "
            "the number of processes may be another."
        )


ALONE = Processes()
"""A training in one process."""


@contextmanager
def joined(device: torch.device) -> Iterator[tuple[Processes, torch.device]]:
    """Join the processes that torchrun has started, within a `with` block.

    Yields the processes, and the device of this one. Without torchrun it is `ALONE`.

    Raises `ConfigurationError` where there are more processes than GPUs.
    """
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1 or "RANK" not in os.environ:
        yield ALONE, device
        return
    if device.type == "cuda":
        number = int(os.environ.get("LOCAL_RANK", "0"))
        if number >= torch.cuda.device_count():
            raise ConfigurationError(
                f"each process needs a GPU of its own, and this machine has "
                f"{torch.cuda.device_count()}, got process number {number}. "
                f"Try torchrun --nproc-per-node {torch.cuda.device_count()}."
            )
        device = torch.device("cuda", number)
        torch.cuda.set_device(device)
    backend = "nccl" if device.type == "cuda" else "gloo"
    processes = Processes(int(os.environ["RANK"]), count)
    distributed.init_process_group(backend, timeout=timedelta(seconds=_SECONDS_WITHOUT_ANSWER))
    try:
        yield processes, device
    finally:
        distributed.destroy_process_group()
