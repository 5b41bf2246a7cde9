"""The executor on a Ray cluster: each trial is a task, which is repeated on another node if its node dies.

The extra `cluster` installs Ray. Every node needs the same version of abacist. A task trains in a
temporary directory of its node and returns all files of the run, so the nodes need no shared file system.
"""

import importlib
import logging
import math
import os
import socket
import tempfile
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from abacist import __version__, extensions, files
from abacist.errors import UserError
from abacist.runs import outcome
from abacist.sweeps import execution
from abacist.sweeps.execution import SECONDS_BETWEEN_LOOKS, Finished, description, reason_of
from abacist.sweeps.plan import Trial
from abacist.training.loop import Observer, TrainingStopped
from abacist.training.metrics import Metrics

_PREFIX = "ray://"
_SECONDS_TO_ANSWER = 10.0
_REDUCTION = 3
"""Reduction factor of ASHA: at each decision, one of this many trials is continued, the best."""
_DECISIONS = 2


class RayTasks:
    """Carries out each trial as a task of a Ray cluster."""

    def __init__(
        self,
        address: str,
        cpus_per_trial: float | None = None,
        gpus_per_trial: float = 0,
        retries: int = 3,
        threads: int = 1,
        asha: bool = False,
    ) -> None:
        """Connect to a cluster.

        Args:
            address: `ray` joins the cluster of RAY_ADDRESS or the one that runs on this machine, and
                starts one of this machine alone if there is none; `ray://HOST:PORT` is the address of
                a cluster's client server.
            cpus_per_trial: processors that a trial reserves; None means one for each thread.
            gpus_per_trial: GPUs that a trial reserves; fractions share one.
            retries: number of times that a trial is repeated after its node or its process has died.
            threads: number of threads of each trial.
            asha: whether trials with a large validation loss are stopped early.

        Raises `UserError` if Ray is not installed or the cluster does not answer.
        """
        self._ray: Any = _imported("ray")
        self._schedulers: Any = _imported("ray.tune.schedulers") if asha else None
        self._resources: dict[str, Any] = {
            "num_cpus": threads if cpus_per_trial is None else cpus_per_trial,
            "num_gpus": gpus_per_trial,
            "max_retries": retries,
            # A process that has trained one trial ends, as on one machine.
            "max_calls": 1,
        }
        self._connect(address)
        self._check_resources()

    def _connect(self, address: str) -> None:
        if self._ray.is_initialized():
            # A process has one connection, which the sweeps of a script or a notebook share.
            return
        named = address if address.startswith(_PREFIX) else os.environ.get("RAY_ADDRESS", "")
        if named not in ("", "auto", "local"):
            _check_reachable(named)
        options: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
        try:
            self._ray.init(address=address if address.startswith(_PREFIX) else None, **options)
        except (OSError, RuntimeError, ValueError) as error:
            raise UserError(
                f"--on {address} cannot connect: {' '.join(str(error).split()):.300}. Start a cluster "
                "with ray start --head, or type --on local."
            ) from error

    def _check_resources(self) -> None:
        """Refuse trials that no node of the cluster can hold; they would wait forever."""
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        cpus, gpus = self._resources["num_cpus"], self._resources["num_gpus"]
        if not any(n.get("CPU", 0) >= cpus and n.get("GPU", 0) >= gpus for n in nodes):
            largest = ", ".join(
                f"{n.get('CPU', 0):g} CPUs and {n.get('GPU', 0):g} GPUs" for n in nodes
            )
            raise UserError(
                f"no node of the cluster has {cpus:g} CPUs and {gpus:g} GPUs for a trial; its nodes "
                f"have {largest}. Try a smaller --cpus-per-trial or --gpus-per-trial."
            )

    def carry_out(
        self, trials: Sequence[Trial], path: Path
    ) -> Generator[Finished | None, None, None]:
        """Yield every trial once its files have arrived."""
        task = self._ray.remote(**self._resources)(_carry_out)
        sources = self._ray.put(_extension_files())
        judge = self._judge(trials)
        pending = {
            task.remote(
                description(trial, Path(trial.directory)),
                sources,
                __version__,
                judge if _may_stop(trial) else None,
            ): trial
            for trial in trials
        }
        try:
            while pending:
                ready, _ = self._ray.wait(list(pending), timeout=SECONDS_BETWEEN_LOOKS)
                for reference in ready:
                    yield self._finished(pending.pop(reference), reference, path)
                yield None
        finally:
            for reference in pending:
                self._ray.cancel(reference, force=True)

    def steps_made(self) -> int:
        """Return 0: running trials report nothing before their end."""
        return 0

    def _finished(self, trial: Trial, reference: Any, path: Path) -> Finished:
        try:
            result = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            return Finished(trial, None, f"after all retries: {_cause(error)}")
        if isinstance(result, str):
            return Finished(trial, None, result)
        directory = trial.run_directory(path)
        files.make_directory(directory.path.parent)
        files.write_directory(directory.path, result)
        return Finished(trial, outcome.read(directory.outcome), "its outcome is damaged")

    def _judge(self, trials: Sequence[Trial]) -> Any:
        """Return an actor that decides which trials are stopped early; None without ASHA."""
        judged = [trial for trial in trials if _may_stop(trial)]
        if self._schedulers is None or not judged:
            return None
        most = max(trial.plan.recipe_of(trial.group).training.num_steps for trial in judged)
        scheduler = self._schedulers.ASHAScheduler(
            time_attr="step",
            metric="validation_loss",
            mode="min",
            max_t=max(1, most),
            grace_period=max(1, most // _REDUCTION**_DECISIONS),
            reduction_factor=_REDUCTION,
            stop_last_trials=False,
        )
        # It needs no processor of its own. If its node dies, it begins anew on another one.
        actor = self._ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(_Judge)
        return actor.remote(scheduler)


def _check_reachable(address: str) -> None:
    """Raise `UserError` unless a program listens at an address; Ray itself would try for minutes."""
    host, _, port = address.removeprefix(_PREFIX).rpartition(":")
    if not host or not port.isdecimal():
        name = "--on" if address.startswith(_PREFIX) else "RAY_ADDRESS"
        example = "ray://HOST:10001" if name == "--on" else "HOST:6379"
        raise UserError(f"{name} must name a host and a port, got {address!r}. Try {example}.")
    try:
        with socket.create_connection((host, int(port)), _SECONDS_TO_ANSWER):
            return
    except (OSError, OverflowError) as error:
        raise UserError(
            f"the Ray cluster {address} does not answer: {error}. Start it with ray start --head, "
            "type --on ray://HOST:10001 or set RAY_ADDRESS to HOST:6379, or type --on local."
        ) from error


def _may_stop(trial: Trial) -> bool:
    """Whether ASHA may stop a trial: where something is tuned, the trials that are compared all end."""
    return trial.is_tuning or not trial.plan.tuning_seeds


def _imported(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UserError(
            '--on ray needs Ray, which is not installed. Type pip install --editable ".[cluster]" in '
            "the clone of abacist, or --on local."
        ) from error


def _extension_files() -> dict[str, bytes | None]:
    """Return the loaded extensions: the content of those that are files, None for modules."""
    return {
        source: Path(source).read_bytes() if source.endswith(".py") else None
        for source in extensions.loaded()
    }


def _cause(error: BaseException) -> str:
    """Return one line of an error of Ray: the last one of a traceback, the first one of any other message."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return f"{lines[-1] if type(error).__name__.startswith('RayTaskError') else lines[0]:.300}"


# On the node of a trial ---------------------------------------------------------------------


@dataclass(frozen=True)
class _ScheduledTrial:
    """What the scheduler of Ray Tune knows of a trial."""

    trial_id: str


class _Judge:
    """Decides which trials are stopped early; an actor that all of them report to."""

    def __init__(self, scheduler: Any) -> None:
        self.scheduler = scheduler
        self.trials: dict[str, _ScheduledTrial] = {}

    def is_stopped(self, name: str, step: int, validation_loss: float) -> bool:
        """Return whether a trial with this loss on validation problems is stopped."""
        if name not in self.trials:
            self.trials[name] = _ScheduledTrial(name)
            self.scheduler.on_trial_add(None, self.trials[name])
        result = {"step": step, "validation_loss": validation_loss}
        verdict = self.scheduler.on_trial_result(None, self.trials[name], result)
        return bool(verdict == self.scheduler.STOP)


class _Reporting(Observer):
    """Reports every validation to the judge, and stops the training if it says so."""

    def __init__(self, judge: Any, name: str) -> None:
        self.judge, self.name = judge, name
        self.ray = _imported("ray")

    def on_metrics(self, metrics: Metrics) -> None:
        # Exact match is 0 for most trials when the first decisions are due, the loss is not.
        loss = metrics.validation_loss
        if loss is None or not math.isfinite(loss):
            return
        if self.ray.get(self.judge.is_stopped.remote(self.name, metrics.step, loss)):
            raise TrainingStopped(
                f"stopped early by ASHA at step {metrics.step:,}, where other trials had a smaller "
                "validation loss"
            )


def _carry_out(
    trial: dict[str, Any],
    sources: dict[str, bytes | None],
    version: str,
    judge: Any,
) -> dict[str, bytes] | str:
    """Carry out one trial; return the files of the run by relative path, or why it failed."""
    if version != __version__:
        return (
            f"its node has abacist {__version__} and the sweep was started by {version}. "
            "Install the same version on every node."
        )
    with tempfile.TemporaryDirectory(prefix="abacist-") as directory:
        try:
            for source, content in sources.items():
                extensions.load(_written(Path(directory), source, content))
            run = Path(directory) / "run"
            observer = None if judge is None else _Reporting(judge, trial["path"])
            execution.carry_out(trial | {"path": str(run)}, observer)
            return {
                str(file.relative_to(run)): file.read_bytes()
                for file in sorted(run.rglob("*"))
                if file.is_file()
            }
        except Exception as error:
            return reason_of(error)


def _written(directory: Path, source: str, content: bytes | None) -> str:
    """Write an extension that is a file into `directory`, and return what loads it."""
    if content is None:
        return source
    file = directory / Path(source).name
    file.write_bytes(content)
    return str(file)
