"""The executor on this machine: one process per trial, and by default one trial per processor at a time."""

import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from abacist import extensions
from abacist.errors import check_between
from abacist.runs import outcome
from abacist.runs.directory import RunDirectory
from abacist.sweeps import execution
from abacist.sweeps.execution import SECONDS_BETWEEN_LOOKS, Finished, description, reason_of
from abacist.sweeps.plan import Trial
from abacist.training.loop import TrainingInterrupted
from abacist.training.threads import usable_processors

# On Linux, processes are forked from one that has imported torch and does nothing else, which saves
# each trial seconds. On other systems, forking can break system libraries.
_context: Any = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")


@dataclass
class _Running:
    trial: Trial
    directory: RunDirectory
    process: BaseProcess
    reason: Connection
    """Receives why the trial failed, if it does and its process still can say so."""


class LocalProcesses:
    """Carries out each trial in a process of its own."""

    def __init__(self, jobs: int | None = None, threads: int = 1) -> None:
        """Prepare to run at most `jobs` trials at a time, by default one per processor.

        Args:
            jobs: number of processes side by side.
            threads: number of threads of each trial.
        """
        processors = usable_processors()
        if jobs is not None:
            check_between("jobs", jobs, 1, processors, processors)
        check_between("threads", threads, 1, processors, 1)
        self.jobs = jobs or max(1, processors // threads)
        _context.set_forkserver_preload([__name__])
        self._running: list[_Running] = []

    def carry_out(
        self, trials: Sequence[Trial], path: Path
    ) -> Generator[Finished | None, None, None]:
        """Yield every trial once its process has ended."""
        waiting = list(reversed(trials))
        try:
            while waiting or self._running:
                while waiting and len(self._running) < self.jobs:
                    self._running.append(_start(waiting.pop(), path))
                sentinels = [running.process.sentinel for running in self._running]
                multiprocessing.connection.wait(sentinels, SECONDS_BETWEEN_LOOKS)
                ended = [running for running in self._running if not running.process.is_alive()]
                for running in ended:
                    self._running.remove(running)
                    yield _finished(running)
                yield None
        finally:
            self._stop()

    def steps_made(self) -> int:
        """Return the number of steps that the running trials have recorded."""
        return sum(_steps_made(running.directory) for running in self._running)

    def _stop(self) -> None:
        """Let the running trials save themselves, as after Ctrl-C, and wait for their end."""
        for running in self._running:
            if running.process.pid is not None and running.process.is_alive():
                os.kill(running.process.pid, signal.SIGINT)
        for running in self._running:
            running.process.join()
        self._running = []


def _start(trial: Trial, path: Path) -> _Running:
    directory = trial.run_directory(path)
    ours, theirs = _context.Pipe(duplex=False)
    arguments = (description(trial, directory.path), extensions.loaded(), theirs)
    process = _context.Process(target=_run, args=arguments)
    process.start()
    theirs.close()
    return _Running(trial, directory, process, ours)


def _finished(running: _Running) -> Finished:
    """Return how a trial ended whose process has ended."""
    running.process.join()
    reason = ""
    with running.reason:
        if running.reason.poll():
            # End of file: the process has ended without a word.
            try:
                reason = running.reason.recv()
            except EOFError:
                reason = ""
    code = running.process.exitcode
    result = outcome.read(running.directory.outcome) if code == 0 else None
    if result is None and not reason:
        reason = f"its process ended with code {code}"
        if code is not None and code < 0:
            reason = f"its process was ended by {signal.Signals(-code).name}"
            reason += ", perhaps for lack of memory" * (-code == signal.SIGKILL)
    return Finished(running.trial, result, reason)


def _steps_made(directory: RunDirectory) -> int:
    metrics = directory.read_metrics()
    return int(metrics[-1]["step"]) if metrics else 0


# In the process of a trial ------------------------------------------------------------------


def _run(trial: dict[str, Any], sources: list[str], reason: Connection) -> None:
    """Carry out one trial; exit with 0 if it has an outcome."""
    # Ctrl-C in a terminal reaches the parent alone, which then stops every trial once.
    os.setpgrp()
    _end_with_parent()
    try:
        extensions.load_all(sources)
        execution.carry_out(trial)
    except (KeyboardInterrupt, TrainingInterrupted):
        sys.exit(130)
    except Exception as error:
        reason.send(reason_of(error))
        sys.exit(1)


def _end_with_parent() -> None:
    """End this process as soon as its parent has ended, whatever ended it, including kill -9.

    The parent's sentinel is a pipe whose other end only the parent holds, so the operating system
    closes it. The last checkpoint stays, from which the trial resumes.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        multiprocessing.connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
