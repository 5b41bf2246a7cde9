"""Standard streams and Ctrl-C: whatever is closed, full, undecodable or interrupted ends in one line."""

import contextlib
import io
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import IO

from abacist.errors import ProblemError

_LONGEST_WORD = 300
_LONGEST_MESSAGE = 1_500
"""Characters of an error message; values that a user typed can be far longer."""
_BLOCK_BYTES = 1 << 16
_MOST_LINES = 1_000
"""Largest number of lines that are handed on at once."""
_LONGEST_LINE_BYTES = 10_000_000


class _Unfailing(io.TextIOWrapper):
    """Standard error that loses what it cannot write, so that a closed or full one stops no training."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            super().flush()


def prepare() -> None:
    """Replace closed standard streams by the null device, and unknown characters by question marks."""
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != descriptor:
                os.dup2(null, descriptor)
                os.close(null)
            setattr(sys, name, open(descriptor, mode, closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if type(sys.stderr) is io.TextIOWrapper:
        raw = open(sys.stderr.fileno(), "wb", buffering=0, closefd=False)  # noqa: SIM115
        sys.stderr = _Unfailing(raw, sys.stderr.encoding, "replace", write_through=True)


def complain(message: object) -> None:
    """Print one line to standard error, with long words and long lines cut."""
    text = " ".join(str(message).splitlines())
    text = re.sub(rf"\S{{{_LONGEST_WORD},}}", lambda word: _cut(word[0], _LONGEST_WORD), text)
    text = _cut(text, _LONGEST_MESSAGE)
    print(f"abacist: {text}", file=sys.stderr, flush=True)


def note(message: str) -> None:
    """Print one line to standard error that is not an error."""
    print(message, file=sys.stderr, flush=True)


def _cut(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    return f"{text[: length - 80]}… ({len(text):,} characters) …{text[-40:]}"


def abandon_output() -> None:
    """Drop what standard output cannot take, so that Python does not try again when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def interruptible(is_whole_process: bool) -> Iterator[None]:
    """Raise `KeyboardInterrupt` at the first Ctrl-C, and end the process at once at the second.

    An import that is interrupted can raise anything, so the process ends at once there, too. Nothing is
    lost, because files are written whole or not at all. With `is_whole_process`, this holds until
    the process has ended.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    pressed = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed or _is_importing(frame):
            if not pressed:
                complain("interrupted")
            os._exit(130)
        pressed = True
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        if not is_whole_process:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def arriving_lines(stream: IO[bytes]) -> Iterator[list[str]]:
    """Yield the lines of a stream as they arrive, some at a time, without waiting for its end.

    Blank lines are left out, such as the one that many programs end their output with.

    Raises `ProblemError` for a line that is longer than any problem.
    """
    rest, is_open = b"", True
    while is_open:
        block: bytes = stream.read1(_BLOCK_BYTES)  # type: ignore[attr-defined]
        is_open = bool(block)
        *lines, rest = (rest + block).split(b"\n")
        if not is_open and rest:
            lines.append(rest)
        if len(rest) > _LONGEST_LINE_BYTES:
            raise ProblemError(
                f"a line of standard input has more than {_LONGEST_LINE_BYTES:,} bytes. "
                "Send one problem per line."
            )
        texts = [line.decode(errors="replace").removesuffix("\r") for line in lines if line.strip()]
        for first in range(0, len(texts), _MOST_LINES):
            yield texts[first : first + _MOST_LINES]
