"""Files that are written whole or not at all, and directories that one process writes at a time.

Content goes to a temporary neighbour, reaches the disk, and only then takes its final name.
"""

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from abacist.errors import RunError


def write_bytes(path: Path, content: bytes) -> None:
    """Replace `path` by `content`, atomically."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with _clear_errors(path), _removed_on_failure(temporary):
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_directory(path.parent)


def write_json(path: Path, data: Any) -> None:
    """Replace `path` by `data` as indented JSON, atomically."""
    write_bytes(path, (json.dumps(data, indent=2) + "\n").encode())


def write_directory(path: Path, contents: Mapping[str, bytes]) -> None:
    """Replace the directory `path` by one with the given files, by relative path, atomically."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with _clear_errors(path), _removed_on_failure(temporary):
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        for name, content in contents.items():
            (temporary / name).parent.mkdir(parents=True, exist_ok=True)
            write_bytes(temporary / name, content)
        if path.exists():
            shutil.rmtree(path)
        temporary.replace(path)
        _sync_directory(path.parent)


def make_directory(path: Path) -> None:
    """Create `path` and its parents."""
    with _clear_errors(path):
        path.mkdir(parents=True, exist_ok=True)


@contextlib.contextmanager
def held(directory: Path) -> Iterator[None]:
    """Keep all others who ask for it out of `directory`; refuses where somebody is in it.

    The lock goes with the process, however it ends. Where the file system knows no locks there is none.
    """
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RunError(
                f"{directory} is being written by another process. Wait until that is done, or stop it."
            ) from error
        except OSError:
            pass
        yield
    finally:
        os.close(descriptor)


def remove_leftovers(directory: Path) -> None:
    """Delete temporary files of processes that were killed while writing here."""
    for leftover in directory.glob(".*.tmp"):
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


@contextlib.contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}.") from error


@contextlib.contextmanager
def _removed_on_failure(temporary: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)
        raise


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
