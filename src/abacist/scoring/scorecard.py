"""The scorecard: what a run is worth, a section for each suite that scored it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from abacist.errors import ConfigurationError, nearest
from abacist.scoring import (
    counterexamples,
    exhaustive,
    grid,
    lengths,
    notation,
    probes,
    recurrence_counts,
    splits,
    strata,
)
from abacist.scoring.failures import Failure
from abacist.scoring.suite import Progress, Row, Section, Suite
from abacist.scoring.trained_model import TrainedModel

SUITES: dict[str, Suite] = {
    "lengths": lengths.LENGTHS,
    "strata": strata.STRATA,
    "splits": splits.SPLITS,
    "probes": probes.PROBES,
    "grid": grid.GRID,
    "recurrences": recurrence_counts.RECURRENCES,
    "notation": notation.NOTATION,
    "exhaustive": exhaustive.EXHAUSTIVE,
    "counterexamples": counterexamples.COUNTEREXAMPLES,
}
"""Every way to score a model, by name."""

DEFAULT_SUITES = ("lengths",)
"""What scores a run where nothing else is asked for."""

ALL = "all"
"""In place of names: every suite that has a use for the model."""


@dataclass(frozen=True)
class Scorecard:
    """What a run is worth."""

    sections: dict[str, Section]
    """By the name of the suite."""
    exempt_digits: int = 0
    """Problems with no longer operand belong to all splits, so that training may have seen them."""

    @property
    def rows(self) -> list[Row]:
        """Of all sections."""
        return [row for section in self.sections.values() for row in section.rows]

    @property
    def failures(self) -> list[Failure]:
        """Some of the problems answered wrongly, of all sections."""
        return [failure for section in self.sections.values() for failure in section.failures]

    @property
    def errors(self) -> int:
        """Wrong answers of all sections."""
        return sum(section.errors for section in self.sections.values())

    @property
    def complete(self) -> bool:
        """False where Ctrl-C was pressed before all suites had been scored."""
        return all(section.complete for section in self.sections.values())

    def to_json(self) -> dict[str, Any]:
        return {
            "sections": {name: section.to_json() for name, section in self.sections.items()},
            "errors": self.errors,
            "exempt_digits": self.exempt_digits,
        }

    def failures_to_json(self) -> list[dict[str, object]]:
        """Every kept failure, with the suite that found it."""
        return [
            {"suite": name} | failure.to_json()
            for name, section in self.sections.items()
            for failure in section.failures
        ]


def chosen(names: Sequence[str], trained_model: TrainedModel) -> list[str]:
    """The suites that are meant, each once; `all` means those that have a use for the trained_model.

    Raises `ConfigurationError` where one is unknown or has no use.
    """
    for name in names:
        if name not in SUITES and name != ALL:
            raise ConfigurationError(f"unknown suite {name!r}: {nearest(name, [*SUITES, ALL])}")
    if ALL in names:
        return [name for name, suite in SUITES.items() if suite.obstacle(trained_model) is None]
    for name in names:
        obstacle = SUITES[name].obstacle(trained_model)
        if obstacle is not None:
            raise ConfigurationError(f"the suite {name} has no use here: {obstacle}")
    return list(dict.fromkeys(names))


def score(
    trained_model: TrainedModel,
    suites: Sequence[str] = DEFAULT_SUITES,
    on_progress: Progress | None = None,
    on_section: Callable[[Scorecard], None] | None = None,
) -> Scorecard:
    """Score a model by some suites. Raises `ConfigurationError` where one has no use for it.

    `on_section` is given all there is after every suite. An interrupted suite is the last.
    """
    ignored: Progress = lambda name, done, total: None  # noqa: E731
    card = Scorecard({}, trained_model.split.exempt_digits)
    for name in chosen(suites, trained_model):
        card.sections[name] = SUITES[name].run(trained_model, on_progress or ignored)
        if on_section is not None:
            on_section(card)
        if not card.complete:
            break
    return card


def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """A stored scorecard with the sections of a new one put in, as JSON values.

    Raises `ValueError` where the old one is none, or is one of an older version.
    """
    try:
        sections = {**old["sections"], **new["sections"]}
        errors = sum(int(section["errors"]) for section in sections.values())
    except (KeyError, TypeError) as error:
        raise ValueError("it has no sections with their errors") from error
    return {**new, "sections": sections, "errors": errors}
