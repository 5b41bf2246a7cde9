"""The numbers of this process among those that torchrun has started, from environment variables.

The module imports no torch, so the command line can use it before anything else.
"""

import os
from dataclasses import dataclass

from abacist.errors import ConfigurationError


@dataclass(frozen=True)
class Launched:
    """Numbers that torchrun passes to each of its processes; the defaults are those of a single process."""

    rank: int = 0
    """Number of this process among all, starting at 0."""
    count: int = 1
    """Number of all processes."""
    local_rank: int = 0
    """Number of this process among those of its machine, starting at 0."""
    local_count: int = 1
    """Number of processes on this machine."""

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and reports progress."""
        return self.rank == 0

    @property
    def is_first_of_machine(self) -> bool:
        """Whether this process reports mistakes, which all processes meet alike."""
        return self.local_rank == 0


def launched() -> Launched:
    """Return the numbers of this process.

    Raises `ConfigurationError` if a variable of the environment that torchrun sets is no number.
    """
    count = _number("WORLD_SIZE", 1)
    if count == 1 or "RANK" not in os.environ:
        return Launched()
    local_rank = _number("LOCAL_RANK", 0)
    # Other programs that start processes, such as srun scripts, may leave LOCAL_WORLD_SIZE out.
    local_count = _number("LOCAL_WORLD_SIZE", local_rank + 1)
    return Launched(_number("RANK", 0), count, local_rank, local_count)


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, str(default))
    if not (text.isascii() and text.isdecimal()):
        raise ConfigurationError(
            f"the environment variable {name} must be a whole number, as torchrun sets it, got "
            f"{text!r:.40}. Type unset {name}, or start the training with torchrun."
        )
    return int(text)
