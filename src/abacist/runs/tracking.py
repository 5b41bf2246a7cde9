"""Metrics sent to TensorBoard and trackio while a run is trained."""

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from abacist.errors import ConfigurationError
from abacist.training.loop import Forwarding, Observer
from abacist.training.metrics import Metrics


class _Tracker(Protocol):
    """A service that stores metrics by step."""

    def log(self, values: Mapping[str, float], step: int) -> None: ...

    def finish(self) -> None: ...


class _TensorBoard:
    """Event files under `tensorboard/` in the run directory."""

    def __init__(self, path: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer: Any = SummaryWriter(path / "tensorboard")

    def log(self, values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)
        self.writer.flush()

    def finish(self) -> None:
        self.writer.close()


class _Trackio:
    """A trackio project with the name of the run directory."""

    def __init__(self, path: Path) -> None:
        self.run: Any = importlib.import_module("trackio").init(project=path.name)

    def log(self, values: Mapping[str, float], step: int) -> None:
        self.run.log(dict(values), step=step)

    def finish(self) -> None:
        self.run.finish()


_TRACKERS: dict[str, Callable[[Path], _Tracker]] = {
    "tensorboard": _TensorBoard,
    "trackio": _Trackio,
}

TRACKERS = tuple(_TRACKERS)
"""Names of the trackers that metrics can be sent to."""


class Tracked(Forwarding):
    """An observer that sends all metrics to some trackers and passes every call to another observer."""

    def __init__(self, names: Sequence[str], path: Path, inner: Observer) -> None:
        """Prepare to track the run in the directory `path`; raise `ConfigurationError` as `check` does."""
        check(names)
        super().__init__(inner)
        self.names, self.path = names, path
        self.trackers: list[_Tracker] = []

    def on_start(self, parameters: int, threads: int, step: int) -> None:
        # Not earlier: until now there was no directory to write to.
        self.trackers = [_TRACKERS[name](self.path) for name in self.names]
        super().on_start(parameters, threads, step)

    def on_metrics(self, metrics: Metrics) -> None:
        values = {
            "loss": metrics.loss,
            "exact_match": metrics.exact_match.value,
            "validation_loss": metrics.validation_loss,
            "token_accuracy": metrics.token_accuracy.value if metrics.token_accuracy else None,
            "learning_rate": metrics.learning_rate,
            "problems_per_second": metrics.problems_per_second,
        }
        for tracker in self.trackers:
            tracker.log({k: v for k, v in values.items() if v is not None}, metrics.step)
        super().on_metrics(metrics)

    def __enter__(self) -> "Tracked":
        return self

    def __exit__(self, *_: object) -> None:
        """Close all trackers."""
        for tracker in self.trackers:
            tracker.finish()


def check(names: Sequence[str]) -> None:
    """Raise `ConfigurationError` for a tracker that is unknown or not installed."""
    for name in names:
        if name not in TRACKERS:
            raise ConfigurationError(f"track must be one of {', '.join(TRACKERS)}, got {name!r}.")
        if importlib.util.find_spec(name) is None:
            raise ConfigurationError(
                f"tracking with {name} needs the package {name}. "
                'Type pip install --editable ".[track]" in the clone of abacist.'
            )
