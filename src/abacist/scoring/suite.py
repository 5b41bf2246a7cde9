"""What a suite is: one way to score a model, and what it gives.

A suite is given a `TrainedModel`, says whether it has any use for it, and returns a `Section` of the
scorecard. `scoring/scorecard.py` holds the table of all suites.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from abacist.intervals import Proportion
from abacist.scoring.failures import Failure, Feature
from abacist.scoring.trained_model import TrainedModel

Progress = Callable[[str, int, int], None]
"""Told what is being done, how many problems are done, and how many there are in all."""


@dataclass(frozen=True)
class Row:
    """One line of a section."""

    name: str
    kind: str
    """Rows of one kind stand together, such as `trained`, `beyond` or `probe`."""
    digits: int
    """Of the longest operand; 0 where the row is about something else."""
    proportion: Proportion | None
    """Of problems answered rightly, or of what `measure` says; None where `note` says why not."""
    smallest_margin: float | None = None
    """Over all answer tokens of all problems of the row, in logits."""
    note: str = ""
    measure: str = "exact match"
    """What is counted, such as `exact match` or `token accuracy`."""

    def to_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "kind": self.kind,
            "digits": self.digits,
            "measure": self.measure,
            "proportion": self.proportion and self.proportion.to_json(),
            "smallest_margin": self.smallest_margin,
            "note": self.note,
        }


@dataclass(frozen=True)
class Section:
    """What one suite found."""

    title: str
    rows: list[Row]
    failures: list[Failure] = field(default_factory=list)
    """Some of the problems answered wrongly, with what the model wrote."""
    features: list[Feature] = field(default_factory=list)
    """What the problems answered wrongly have in common, of all of them."""
    errors: int = 0
    """Problems answered wrongly, each counted once however many rows speak of it."""
    details: dict[str, Any] = field(default_factory=dict)
    """Whatever else a suite has to say, as JSON values."""
    complete: bool = True
    """False where Ctrl-C was pressed and this is what had been scored by then."""

    def to_json(self) -> dict[str, object]:
        return {
            "title": self.title,
            "rows": [row.to_json() for row in self.rows],
            "errors": self.errors,
            "features": [feature.to_json() for feature in self.features],
            "details": self.details,
            "complete": self.complete,
        }


@dataclass(frozen=True)
class Suite:
    """One way to score a model."""

    summary: str
    """For the command's help, in one line."""
    obstacle: Callable[[TrainedModel], str | None]
    """Why the suite has no use for such a trained_model, and what to do; None where it has."""
    run: Callable[[TrainedModel, Progress], Section]
