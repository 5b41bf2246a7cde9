"""Files that are written whole or not at all, and directories that one process writes at a time.

Content is written to a temporary file in the same directory, flushed to the disk, and only then
renamed.
"""

import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from abacist.errors import NotSaved, RunError

_MOST_DIGITS = 20
"""Characters of the longest integer that is read: that of 64 bits, with its sign."""


def write_bytes(path: Path, content: bytes) -> None:
    """Replace the file `path` atomically by one with the given content.

    Raises:
        RunError: the file cannot be written.
    """
    with new_file(path) as file:
        file.write(content)


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces the file `path` atomically once the block has ended.

    If the block raises an exception, the temporary file is deleted and `path` stays as it is.

    Raises:
        RunError: the file cannot be written.
    """
    temporary = _beside(path, "tmp")
    with os_errors_as_run_errors("write", path), _removed_on_failure(temporary):
        with open(temporary, "wb") as file:
            yield file
            _flush_to_disk(file)
        temporary.replace(path)
        _sync_directory(path.parent)


def check_writable(path: Path) -> None:
    """Raise `RunError` if a file could not be written, before the work whose result it shall hold."""
    parent = path.parent
    with os_errors_as_run_errors("write", path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        parent.stat()
        if not parent.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(parent, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def write_json(path: Path, data: Any) -> None:
    """Replace the file `path` atomically by `data` as indented JSON."""
    write_bytes(path, (json.dumps(data, indent=2) + "\n").encode())


def write_directory(path: Path, contents: Mapping[str, bytes]) -> None:
    """Replace the directory `path` by one with the given files, which is complete when it gets its name.

    Args:
        path: the directory.
        contents: content of each file by its path relative to the directory.

    Raises:
        RunError: a file cannot be written.
    """
    temporary = _beside(path, "tmp")
    with os_errors_as_run_errors("write", path), _removed_on_failure(temporary):
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        for name, content in contents.items():
            (temporary / name).parent.mkdir(parents=True, exist_ok=True)
            _write_to_disk(temporary / name, content)
        for directory in {temporary, *((temporary / name).parent for name in contents)}:
            _sync_directory(directory)
        if not path.exists():
            temporary.replace(path)
        else:
            # No system call that Python offers exchanges two directories. A kill between the two
            # lines loses nothing: the old directory keeps its content under another name, and
            # `remove_leftovers` gives it its own back.
            old = _beside(path, "old")
            path.replace(old)
            try:
                temporary.replace(path)
            except OSError:
                old.replace(path)
                raise
            shutil.rmtree(old)
        _sync_directory(path.parent)


def make_directory(path: Path) -> None:
    """Create `path` and its parents."""
    with os_errors_as_run_errors("write", path):
        path.mkdir(parents=True, exist_ok=True)


def parse_json(text: bytes | str) -> Any:
    """Return the value that JSON text describes.

    Raises `ValueError`, with one line, if the text is not JSON or not UTF-8, is nested too deeply, or
    holds an integer or a character that no record of this package holds: they would fail later, in
    arithmetic or when they are written.
    """
    try:
        value = json.loads(text, parse_int=_integer)
        json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("it holds half of a surrogate pair, which is no character") from None
    return value


def _integer(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"it holds an integer of {len(digits):,} digits")
    return int(digits)


@contextlib.contextmanager
def os_errors_as_run_errors(verb: str, path: Path) -> Iterator[None]:
    """Turn an `OSError` into a `RunError`, as in `cannot write PATH: No space left on device.`"""
    try:
        yield
    except OSError as error:
        raise RunError(f"cannot {verb} {path}: {error.strerror or error}.") from error


@contextlib.contextmanager
def not_saved_as_warning(result: str) -> Iterator[None]:
    """Turn a `RunError` about writing into the warning `NotSaved`, so that a result is not lost with it."""
    try:
        yield
    except RunError as error:
        warnings.warn(f"{error} {result} is not saved.", NotSaved, stacklevel=3)


@contextlib.contextmanager
def locked(directory: Path, wait: bool = False) -> Iterator[None]:
    """Lock `directory` against other processes that lock it.

    The lock ends with the process, even if it is killed. File systems without locks are not locked.

    Args:
        directory: a directory that exists.
        wait: whether to wait until the lock is free, for work that takes a moment.

    Raises:
        RunError: another process holds the lock, and `wait` is not set.
    """
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError as error:
            raise RunError(
                f"{directory} is being written by another process. Wait until it ends, or stop it."
            ) from error
        except OSError:
            pass
        yield
    finally:
        os.close(descriptor)


def remove_leftovers(directory: Path) -> None:
    """Delete temporary files that killed processes have left in `directory`.

    A directory that was about to be replaced gets its name back.

    Raises:
        RunError: its name cannot be given back.
    """
    for old in directory.glob(".*.old"):
        if (match := re.fullmatch(r"\.(.+)\.\d+\.old", old.name)) is None:
            continue
        path = directory / match[1]
        if path.exists():
            _remove(old)
        else:
            with os_errors_as_run_errors("write", path):
                old.replace(path)
    for leftover in directory.glob(".*.tmp"):
        _remove(leftover)


def _remove(path: Path) -> None:
    """Delete a file or directory if it exists."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _beside(path: Path, suffix: str) -> Path:
    """Return a hidden path of this process beside `path`; raise `RunError` if `path` has no name."""
    if not path.name:
        raise RunError(f"cannot write {path}: it has no name. Type the name of a new one.")
    return path.with_name(f".{path.name}.{os.getpid()}.{suffix}")


@contextlib.contextmanager
def _removed_on_failure(temporary: Path) -> Iterator[None]:
    """Delete the file or directory `temporary` if an exception is raised."""
    try:
        yield
    except BaseException:
        _remove(temporary)
        raise


def _write_to_disk(path: Path, content: bytes) -> None:
    """Write a file that has no reader yet, and wait until its content is on the disk."""
    with open(path, "wb") as file:
        file.write(content)
        _flush_to_disk(file)


def _flush_to_disk(file: IO[bytes]) -> None:
    """Wait until everything that was written to a file is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def _sync_directory(path: Path) -> None:
    """Flush the entries of a directory to the disk, so that a renaming survives a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
