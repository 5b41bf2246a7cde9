"""The scorecard: what a run is worth, a section for each suite that scored it."""

from collections.abc import Sequence
from dataclasses import dataclass

from abacist.errors import ConfigurationError, nearest
from abacist.evaluation import lengths
from abacist.evaluation.solving import Solution
from abacist.evaluation.suite import Progress, Row, Section, Subject, Suite

SUITES: dict[str, Suite] = {
    "lengths": lengths.LENGTHS,
}
"""Every way to score a model, by name."""

DEFAULT_SUITES = ("lengths",)
"""What scores a run where nothing else is asked for."""


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
    def failures(self) -> list[Solution]:
        """Some of the problems answered wrongly, of all sections."""
        return [failure for section in self.sections.values() for failure in section.failures]

    @property
    def errors(self) -> int:
        """Wrong answers of all rows that count answers."""
        judged = [row.proportion for row in self.rows if row.measure == "exact match"]
        return sum(proportion.errors for proportion in judged if proportion)

    def to_json(self) -> dict[str, object]:
        return {
            "sections": {name: section.to_json() for name, section in self.sections.items()},
            "errors": self.errors,
            "exempt_digits": self.exempt_digits,
        }


def score(
    subject: Subject,
    suites: Sequence[str] = DEFAULT_SUITES,
    on_progress: Progress | None = None,
) -> Scorecard:
    """Score a model by some suites. Raises `ConfigurationError` where one has no use for it."""
    for name in suites:
        if name not in SUITES:
            raise ConfigurationError(f"unknown suite {name!r}: {nearest(name, SUITES)}")
        obstacle = SUITES[name].obstacle(subject)
        if obstacle is not None:
            raise ConfigurationError(f"the suite {name} has no use here: {obstacle}")
    ignored: Progress = lambda name, done, total: None  # noqa: E731
    sections = {name: SUITES[name].run(subject, on_progress or ignored) for name in suites}
    return Scorecard(sections, subject.split.exempt_digits)
