"""What a suite is: one way to score a model, and what it gives.

A suite is given a `Subject`, says whether it has any use for it, and returns a `Section` of the
scorecard. `evaluation/scorecard.py` holds the table of all suites.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from abacist.data.config import SplitConfig
from abacist.evaluation.config import EvaluationConfig
from abacist.evaluation.solving import Solution
from abacist.formats.format import Format
from abacist.intervals import Proportion
from abacist.models.transformer import Transformer
from abacist.tasks.task import Task

MAX_FAILURES = 100
"""So many problems answered wrongly are kept in a section."""

Progress = Callable[[str, int, int], None]
"""Told what is being done, how many problems are done, and how many there are in all."""


@dataclass(frozen=True)
class Subject:
    """What is scored."""

    model: Transformer
    task: Task
    format: Format
    split: SplitConfig
    config: EvaluationConfig
    seed: int


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
    failures: list[Solution] = field(default_factory=list)
    """Some of the problems answered wrongly, with what the model wrote."""
    details: dict[str, Any] = field(default_factory=dict)
    """Whatever else a suite has to say, as JSON values."""

    def to_json(self) -> dict[str, object]:
        return {
            "title": self.title,
            "rows": [row.to_json() for row in self.rows],
            "details": self.details,
        }


@dataclass(frozen=True)
class Suite:
    """One way to score a model."""

    summary: str
    """For the command's help, in one line."""
    obstacle: Callable[[Subject], str | None]
    """Why the suite has no use for such a subject, and what to do; None where it has."""
    run: Callable[[Subject, Progress], Section]
