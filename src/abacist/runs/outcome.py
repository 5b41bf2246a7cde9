"""The outcome of one seed: what it cost, how it learned, how it scored, and whether it is certified.

One record, written to `outcome.json` in the directory of each trial of a sweep, and as an entry of
`seeds` in the committed `results/RECIPE.json`. Imports no torch.
"""

import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from abacist import files
from abacist.configuration import from_json
from abacist.errors import ConfigurationError
from abacist.intervals import Proportion


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of one seed."""

    seed: int
    seconds: float
    """Training time in seconds of the clock, validation and checkpoints included."""
    processor_seconds: float | None
    """Training time in seconds of the processor, without that of other programs; None if training was resumed."""
    steps: int
    """Number of optimiser steps."""
    batch_size: int
    threads: int
    peak_memory_mib: int | None
    """Peak memory of the training process in MiB."""
    parameters: int
    """Number of trained parameters."""
    steps_to_target: int | None
    """First recorded step with an exact match on validation of `training.stop_at` (1 without one); None if never."""
    curve: list[dict[str, Any]]
    """Records of `metrics.jsonl`, fewer than 2 × `CURVE_POINTS`: step, losses, seconds, shares of right answers."""
    rows: list[dict[str, Any]]
    """Every count of the scorecard: suite, name, measure, errors, n and smallest margin."""
    certificate: dict[str, Any] | None
    """Whether the model is certified, with neighbourhoods, wrong ones and smallest margin; None if never tried."""
    circumstances: dict[str, Any]
    validation: float | None = None
    """Exact match on validation problems at the end of training."""
    validation_loss: float | None = None
    """Loss on validation problems at the end of training, in nats per token."""
    failure: str | None = None
    """Why training stopped before its end; None if it did not."""

    @property
    def exact_match(self) -> Proportion:
        """Exact match in the first row of the scorecard, or that of no problems if training failed."""
        if not self.rows:
            return Proportion(0, 0)
        return Proportion(self.rows[0]["n"] - self.rows[0]["errors"], self.rows[0]["n"])

    @property
    def errors(self) -> int:
        """Number of errors, summed over all rows."""
        return sum(row["errors"] for row in self.rows)

    @property
    def is_right(self) -> bool:
        """Whether training reached its end and no row has an error."""
        return self.errors == 0 and self.failure is None

    @property
    def certified(self) -> bool:
        return self.certificate is not None and bool(self.certificate["certified"])

    def summary(self) -> dict[str, Any]:
        """Return what `abacist train --seeds --json` prints about one seed."""
        return {
            "seed": self.seed,
            "steps": self.steps,
            "seconds": self.seconds,
            "steps_to_target": self.steps_to_target,
            "right": self.exact_match.successes,
            "n": self.exact_match.n,
            "errors": self.errors,
            "certified": self.certified,
            "smallest_margin": self.certificate and self.certificate["smallest_margin"],
            "failure": self.failure,
        }

    def to_json(self) -> dict[str, Any]:
        """Return the record, without `failure` if there is none."""
        record = asdict(self)
        if self.failure is None:
            del record["failure"]
        return record


CURVE_POINTS = 60
"""A training curve of at least twice as many points is thinned out."""


def read(path: Path) -> Outcome | None:
    """Return the outcome that a file holds; None if there is no such file or it is damaged."""
    try:
        outcome: Outcome = from_json(Outcome, files.parse_json(path.read_bytes()), "outcome")
        _check(outcome)
    except (OSError, ValueError, KeyError, TypeError, ConfigurationError):
        return None
    return outcome


def _check(outcome: Outcome) -> None:
    """Raise `TypeError`, `KeyError` or `ValueError` unless the parts of an outcome can be counted and shown."""
    for row in outcome.rows:
        kinds = [type(row[name]) for name in ("suite", "name", "measure", "errors", "n")]
        if kinds != [str, str, str, int, int] or not 0 <= row["errors"] <= row["n"]:
            raise ValueError("a row counts the errors of problems")
    for point in outcome.curve:
        if type(point["step"]) is not int or point["step"] < 0:
            raise ValueError("a point of a curve has a step")
        _check_number(point["exact_match"])
    if outcome.certificate is not None:
        _check_number(outcome.certificate["smallest_margin"])
        if type(outcome.certificate["certified"]) is not bool:
            raise TypeError("a model is certified or not")


def _check_number(value: Any) -> None:
    if value is not None and type(value) not in (int, float):
        raise TypeError("a value is a number or missing")


@dataclass(frozen=True)
class Distribution:
    """The outcomes of all seeds of one recipe."""

    outcomes: list[Outcome]

    @property
    def without_error(self) -> Proportion:
        """Proportion of seeds that made no error on their scorecards."""
        return Proportion(sum(o.is_right for o in self.outcomes), len(self.outcomes))

    @property
    def certified(self) -> Proportion:
        """Proportion of seeds that are certified."""
        return Proportion(sum(o.certified for o in self.outcomes), len(self.outcomes))

    def median(self, measure: Callable[[Outcome], float | None]) -> float | None:
        """Return the median of a measure; a seed without a value counts as the worst.

        None if the median itself falls on a seed without a value.
        """
        values = [measure(outcome) for outcome in self.outcomes]
        known = sorted(value for value in values if value is not None)
        middle = [(len(values) - 1) // 2, len(values) // 2]
        if not values or middle[1] >= len(known):
            return None
        return statistics.mean(known[number] for number in middle)

    def to_json(self) -> dict[str, Any]:
        exact = [o.exact_match.value for o in self.outcomes if o.exact_match.value is not None]
        return {
            "outcomes": [outcome.summary() for outcome in self.outcomes],
            "without_error": self.without_error.to_json(),
            "certified": self.certified.to_json(),
            "median_exact_match": statistics.median(exact) if exact else None,
            "worst_exact_match": min(exact, default=None),
            "median_steps_to_target": self.median(lambda o: o.steps_to_target),
            "median_seconds": self.median(lambda o: o.seconds),
        }
