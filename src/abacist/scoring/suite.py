"""What a suite is: one way to score a trained model, and the section of the scorecard it returns.

A suite says whether it applies to a `TrainedModel`, and scores it. `scorecard.py` holds the table
of all suites.
"""

from collections.abc import Callable
from dataclasses import dataclass

from abacist.scoring.records import Section
from abacist.scoring.trained_model import TrainedModel

Progress = Callable[[str, int, int], None]
"""Called with the name of what is being scored, the amount of work done, and the whole amount.

Each suite has a unit of its own, such as problems, or tokens where some lines are far longer than others.
"""


@dataclass(frozen=True)
class Suite:
    """One way to score a trained model."""

    summary: str
    """One line for the command's help."""
    obstacle: Callable[[TrainedModel], str | None]
    """Returns why the suite does not apply to a model, and what to type; None where it applies."""
    run: Callable[[TrainedModel, Progress], Section]
    """Scores a model to which the suite applies."""
    settings: tuple[str, ...] = ()
    """Names of the settings of `ScoringConfig` that the suite follows."""


def always_applies(trained_model: TrainedModel) -> None:
    """Return None: the `obstacle` of suites that apply to every model."""
