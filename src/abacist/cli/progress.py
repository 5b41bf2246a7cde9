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
)

_PATIENCE_SECONDS = 2.0
_SECONDS_TO_FIRST_LINE = 10.0


class Ticker:
    """Shows the progress of a task once it has taken two seconds."""

    def __init__(self, title: str, *, unit: str = "") -> None:
        """`unit` names what is counted; without a name, a percentage is shown."""
        self.title, self._unit = title, unit
        self._begin = self._started = self._last_line = self._last_change = time.monotonic()
        self._done = 0
        self._first: int | None = None
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
        if self._first is None:
            # An earlier process may have made these steps, before a training was resumed.
            self._first, self._started = done, now
        elif done < self._done:
            # The next of several tasks, such as another suite, counts from its own beginning.
            self._first, self._started = 0, self._last_change
        if done != self._done:
            self._done, self._last_change = done, now
        if now - self._begin < _PATIENCE_SECONDS:
            return
        amount = (
            f"{done:,} of {total:,} {self._unit}"
            if self._unit
            else f"{100 * done // max(total, 1)}%"
        )
        if sys.stderr.isatty():
            self._update_bar(done, total, [amount, self._time_left(now, total), details])
        elif now - self._last_line >= self._seconds_between_lines:
            self._last_line = now
            self._seconds_between_lines *= 2
            parts = filter(None, [amount, details, self._time_left(now, total)])
            print(f"{self.title}: {', '.join(parts)}", file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """Print a line that stays, above the bar if there is one."""
        self._last_line = time.monotonic()
        if self._bar is not None:
            # Lines are not broken, so that a command in them can be copied.
            self._bar.console.print(text, soft_wrap=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def _time_left(self, now: float, total: int) -> str:
        """Return an estimate that counts down between two reports; empty where there is none.

        A report may come long after the one before, as from seeds that are validated now and then, so
        the speed is that up to the last change.
        """
        new = self._done - (self._first or 0)
        if not new:
            return ""
        seconds_each = (self._last_change - self._started) / new
        return time_left((total - self._done) * seconds_each - (now - self._last_change))

    def _update_bar(self, done: int, total: int, texts: list[str]) -> None:
        if self._bar is None:
            self._bar = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=20),
                TextColumn("{task.fields[texts]}", markup=False),
                console=Console(stderr=True, highlight=False, markup=False, emoji=False),
                transient=True,
            )
            self._task = self._bar.add_task(self.title, total=total, texts="")
            self._bar.start()
        assert self._task is not None
        shown = ", ".join(filter(None, texts))
        self._bar.update(self._task, completed=done, total=total, texts=shown)


def time_left(seconds: float) -> str:
    """Return an estimate in words; empty if less than a second is left, or more time has passed."""
    if seconds < 1:
        return ""
    return f"{seconds:.0f} s left" if seconds < 120 else f"{seconds / 60:.0f} min left"
