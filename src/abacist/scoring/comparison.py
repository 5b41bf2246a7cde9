"""Several runs compared: the rows that their scorecards share, and by how much they differ."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from abacist.intervals import Difference, Proportion, difference

_OF_STATED_LENGTH = ("lengths", "grid", "probes")
"""Suites whose rows with a length are about the same problems, however the runs were trained."""


@dataclass(frozen=True)
class ComparedRow:
    """One row of the scorecard that all runs have."""

    suite: str
    name: str
    kind: str
    digits: int
    measure: str
    proportions: list[Proportion]
    """One proportion per run, in the order of the runs."""

    @property
    def differences(self) -> list[Difference | None]:
        """How much better each further run is than the first; None where that cannot be computed."""
        first, *others = self.proportions
        return [difference(other, first) for other in others]

    def to_json(self) -> dict[str, object]:
        return {
            "suite": self.suite,
            "name": self.name,
            "kind": self.kind,
            "digits": self.digits,
            "measure": self.measure,
            "proportions": [proportion.to_json() for proportion in self.proportions],
            "differences": [gap and gap.to_json() for gap in self.differences],
        }


def common_rows(
    cards: Sequence[Mapping[str, Any]], trained_alike: bool = True
) -> list[ComparedRow]:
    """Return the rows that all scorecards have, in the order of the first.

    Args:
        cards: scorecards as JSON values.
        trained_alike: whether all runs were trained on the same problems. If not, rows that are
            about a run's own training problems are left out.
    """
    indexed = [dict(_rows(card)) for card in cards]
    common = []
    for key, first in indexed[0].items():
        suite, name, measure = key
        if not all(key in rows for rows in indexed):
            continue
        if not trained_alike and (suite not in _OF_STATED_LENGTH or not _names_a_length(first)):
            continue
        proportions = [Proportion.from_json(rows[key]["proportion"]) for rows in indexed]
        common.append(
            ComparedRow(suite, name, first["kind"], first["digits"], measure, proportions)
        )
    return common


def _names_a_length(row: Mapping[str, Any]) -> bool:
    return row["digits"] > 0 and any(character.isdigit() for character in row["name"])


def _rows(card: Mapping[str, Any]) -> list[tuple[tuple[str, str, str], Mapping[str, Any]]]:
    """Return all rows that have a proportion, keyed by suite, name and measure."""
    return [
        ((suite, row["name"], row["measure"]), row)
        for suite, section in card["sections"].items()
        for row in section["rows"]
        if row["proportion"]
    ]
