"""The processes that train one model together, each on a share of every batch.

    torchrun --nproc-per-node 2 -m abacist train add --out runs/add

Every process draws the whole batch, which is a function of the seed and the step, and computes the
gradient of its share of the lines. The gradients are added up, so all processes make the same step. This
is data parallelism as in torch's DistributedDataParallel. Because the gradient is one vector
(`optimizer.py`), it needs a single sum per step and no wrapper around the model. Only the first process
writes files.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, distributed
from torch.distributed.rendezvous import rendezvous

from abacist.errors import ConfigurationError, ProcessLost
from abacist.formats.annotated import AnnotatedTokens
from abacist.training.torchrun import Launched, launched

_SECONDS_WITHOUT_ANSWER = 600
"""Time after which a process that does not answer counts as lost."""


@dataclass(frozen=True)
class Processes:
    """This process and the number of all."""

    rank: int = 0
    """Number of this process, starting at 0."""
    count: int = 1
    """Number of processes."""
    store: Any = None
    """The key-value store of torch that all processes share; None for a single one."""

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

    def _lost(self, reason: str = "") -> ProcessLost:
        reason = reason or f"one of the {self.count} processes that train together has ended"
        return ProcessLost(
            f"{reason}. Type the same command with --resume to continue from the newest checkpoint; "
            "the number of processes may be another.",
            is_noticed_first=self.claim_complaint(),
        )

    def claim_complaint(self) -> bool:
        """Whether this process is the first that ends with an error, and so the one that complains."""
        if self.store is None:
            return True
        try:
            claimant: bytes = self.store.compare_set("complains", "", str(self.rank))
        except RuntimeError:
            # Without torchrun, the store ends with the first process.
            return True
        return claimant == str(self.rank).encode()


ALONE = Processes()
"""A training in one process."""


@contextmanager
def joined(device: torch.device) -> Iterator[tuple[Processes, torch.device]]:
    """Join the processes that torchrun has started, within a `with` block.

    Yields the processes, and the device of this one. Without torchrun it is `ALONE`.

    Raises `ConfigurationError` where there are more processes than GPUs, and `ProcessLost` at SIGTERM,
    by which torchrun ends all processes once it sees that one has ended.
    """
    own = launched()
    if own.count == 1:
        yield ALONE, device
        return
    device = _own_device(device, own)
    timeout = timedelta(seconds=_SECONDS_WITHOUT_ANSWER)
    store, rank, count = next(rendezvous("env://", timeout=timeout))
    processes = Processes(rank, count, store)
    backend = "nccl" if device.type == "cuda" else "gloo"
    distributed.init_process_group(
        backend, store=store, rank=rank, world_size=count, timeout=timeout
    )
    try:
        with _lost_at_sigterm(processes):
            yield processes, device
    except BaseException:
        # The others will lose this process, and need not complain of that as well.
        processes.claim_complaint()
        raise
    finally:
        distributed.destroy_process_group()


def _own_device(device: torch.device, own: Launched) -> torch.device:
    """Return the device of this process: a GPU of its own, or the CPU."""
    if device.type != "cuda":
        return device
    if own.local_count > torch.cuda.device_count():
        raise ConfigurationError(
            f"each process needs a GPU of its own, and this machine has {torch.cuda.device_count()}, "
            f"got {own.local_count} processes. "
            f"Try torchrun --nproc-per-node {torch.cuda.device_count()}."
        )
    device = torch.device("cuda", own.local_rank)
    torch.cuda.set_device(device)
    return device


@contextmanager
def _lost_at_sigterm(processes: Processes) -> Iterator[None]:
    """Raise `ProcessLost` at SIGTERM, within a `with` block of the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: Any) -> None:
        raise processes._lost(
            f"the {processes.count} processes that train together were ended by SIGTERM, "
            "which torchrun sends them when one has ended"
        )

    previous = signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
