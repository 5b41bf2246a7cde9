"""Progress of anything that takes longer than two seconds, on standard error.

On a terminal it is a bar. Elsewhere it is a plain line now and then, each after twice the time of
the one before, so that a long task does not print many.
"""

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

_PATIENCE_SECONDS = 2.0
_SECONDS_TO_FIRST_LINE = 10.0


class Ticker:
    """Shows the progress of a task once it has taken two seconds."""

    def __init__(self, title: str) -> None:
        self.title = title
        self._begin = self._last_line = time.monotonic()
        self._seconds_between_lines = _SECONDS_TO_FIRST_LINE
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> "Ticker":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, done: int, total: int, details: str = "") -> None:
        """Report that `done` of `total` steps are done, with details in words."""
        now = time.monotonic()
        if now - self._begin < _PATIENCE_SECONDS:
            return
        if sys.stderr.isatty():
            self._update_bar(done, total, details)
        elif now - self._last_line >= self._seconds_between_lines:
            self._last_line = now
            self._seconds_between_lines *= 2
            text = f"{self.title}: {done:,} of {total:,}, {details}".rstrip(", ")
            if done:
                text += f", {(now - self._begin) * (total - done) / done:.0f} s left"
            print(text, file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """Print a line that stays, above the bar if there is one."""
        self._last_line = time.monotonic()
        if self._bar is not None:
            self._bar.console.print(text, highlight=False)
        else:
            print(text, file=sys.stderr, flush=True)

    def _update_bar(self, done: int, total: int, details: str) -> None:
        if self._bar is None:
            self._bar = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed:,.0f}/{task.total:,.0f}"),
                TimeRemainingColumn(),
                TextColumn("{task.fields[details]}"),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task(self.title, total=total, details="")
            self._bar.start()
        assert self._task is not None
        self._bar.update(self._task, completed=done, total=total, details=details)
