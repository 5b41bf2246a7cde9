"""The paths of checkpoints. Imports no torch."""

import re
from pathlib import Path

from abacist import files


def all_in(directory: Path) -> list[Path]:
    """Return the paths of all checkpoints under `directory`, oldest first.

    Raises `RunError` if the directory cannot be read.
    """
    if not directory.is_dir():
        return []
    with files.os_errors_as_run_errors("read", directory):
        paths = [p for p in directory.iterdir() if re.fullmatch(r"step-[0-9]{6,}", p.name)]
    return sorted(paths, key=step_of)


def path_of(directory: Path, step: int) -> Path:
    """Return the path of the checkpoint of a training step under `directory`."""
    return directory / f"step-{step:06d}"


def step_of(path: Path) -> int:
    """Return the training step of a checkpoint."""
    return int(path.name.removeprefix("step-"))
