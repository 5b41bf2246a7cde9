"""What a suite is: one way to score a trained model, and the section of the scorecard it returns.

A suite says whether it applies to a `TrainedModel`, and scores it. `scorecard.py` holds the table
of all suites.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from abacist.intervals import Proportion
from abacist.scoring.failures import Failure, Feature
from abacist.scoring.trained_model import TrainedModel

Progress = Callable[[str, int, int], None]
"""Called with the name of what is being scored, the number of problems done, and their total."""


@dataclass(frozen=True)
class Row:
    """One row of a section."""

    name: str
    kind: str
    """Rows of one kind stand together, such as `trained`, `beyond` or `probe`."""
    digits: int
    """Number of digits of the longest operand; 0 where the row is not about lengths."""
    proportion: Proportion | None
    """Share of problems answered correctly, or of what `measure` names; None where `note` says why."""
    smallest_margin: float | None = None
    """Smallest margin over all answer tokens of all problems, in logits; None where not measured."""
    note: str = ""
    """Why there is no proportion, or a remark."""
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
    """The result of one suite."""

    title: str
    rows: list[Row]
    failures: list[Failure] = field(default_factory=list)
    """Some of the problems answered wrongly, with what the model wrote."""
    features: list[Feature] = field(default_factory=list)
    """What the problems answered wrongly have in common; it considers all of them."""
    errors: int = 0
    """Number of problems answered wrongly; each counts once, even if several rows include it."""
    details: dict[str, Any] = field(default_factory=dict)
    """Other results of the suite, as JSON values."""
    complete: bool = True
    """Whether the suite has finished; False where Ctrl-C stopped it."""

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
    """One way to score a trained model."""

    summary: str
    """One line for the command's help."""
    obstacle: Callable[[TrainedModel], str | None]
    """Returns why the suite does not apply to a model, and what to type; None where it applies."""
    run: Callable[[TrainedModel, Progress], Section]
    """Scores a model to which the suite applies."""


def always_applies(trained_model: TrainedModel) -> None:
    """The `obstacle` of suites that apply to every model."""
