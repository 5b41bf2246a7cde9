"""Metrics sent on to TensorBoard, trackio and others, through accelerate's trackers."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from abacist.errors import ConfigurationError
from abacist.training.loop import Metrics, Observer

TRACKERS = ("tensorboard", "trackio")
"""Where metrics can be sent."""


class Tracked(Observer):
    """Sends every record on, and passes everything to another observer."""

    def __init__(self, names: Sequence[str], path: Path, inner: Observer) -> None:
        """`path` is the directory of the run. Raises `ConfigurationError` for trackers not there."""
        check(names)
        self.names, self.path, self.inner = names, path, inner
        self.trackers: list[Any] = []

    def on_start(self, parameters: int, threads: int, step: int) -> None:
        # Only now is there a directory to write to.
        self.trackers = [_tracker(name, self.path) for name in self.names]
        self.inner.on_start(parameters, threads, step)

    def on_step(self, step: int, loss: float) -> None:
        self.inner.on_step(step, loss)

    def on_metrics(self, metrics: Metrics) -> None:
        values = {
            "loss": metrics.loss,
            "exact_match": metrics.exact_match.value,
            "learning_rate": metrics.learning_rate,
            "problems_per_second": metrics.problems_per_second,
        }
        for tracker in self.trackers:
            tracker.log({k: v for k, v in values.items() if v is not None}, step=metrics.step)
        self.inner.on_metrics(metrics)

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
        for package in ("accelerate", name):
            if importlib.util.find_spec(package) is None:
                raise ConfigurationError(
                    f"tracking with {name} needs the package {package}. "
                    'Type pip install "abacist[track]".'
                )


def _tracker(name: str, path: Path) -> Any:
    # Importing accelerate takes seconds, so only where it is asked for.
    from accelerate import PartialState
    from accelerate.tracking import TensorBoardTracker, TrackioTracker

    PartialState(cpu=True)
    to_trackio = name == "trackio"
    tracker: Any = TrackioTracker(path.name) if to_trackio else TensorBoardTracker(name, path)
    tracker.start()
    return tracker
