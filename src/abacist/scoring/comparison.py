"""Several runs side by side: the rows their scorecards share, and how surely they differ."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from abacist.intervals import Difference, Proportion, difference

_OF_STATED_LENGTH = ("lengths", "grid", "probes")
"""Suites whose rows speak of the same problems, however the runs were trained, where they name a length."""


@dataclass(frozen=True)
class ComparedRow:
    """One row that all runs have."""

    suite: str
    name: str
    kind: str
    digits: int
    measure: str
    proportions: list[Proportion]
    """One for each run, in their order."""

    @property
    def differences(self) -> list[Difference | None]:
        """Of every further run: how much better it is than the first."""
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
            "differences": [found and found.to_json() for found in self.differences],
        }


def common_rows(
    cards: Sequence[Mapping[str, Any]], trained_alike: bool = True
) -> list[ComparedRow]:
    """The rows that all scorecards have, as JSON values, in the order of the first.

    Where the runs were not `trained_alike`, rows about each one's own training problems are left out.
    """
    indexed = [dict(_rows(card)) for card in cards]
    found = []
    for key, first in indexed[0].items():
        suite, name, measure = key
        if not all(key in rows for rows in indexed):
            continue
        if not trained_alike and (suite not in _OF_STATED_LENGTH or not _names_a_length(first)):
            continue
        proportions = [Proportion.from_json(rows[key]["proportion"]) for rows in indexed]
        found.append(ComparedRow(suite, name, first["kind"], first["digits"], measure, proportions))
    return found


def _names_a_length(row: Mapping[str, Any]) -> bool:
    return row["digits"] > 0 and any(character.isdigit() for character in row["name"])


def _rows(card: Mapping[str, Any]) -> list[tuple[tuple[str, str, str], Mapping[str, Any]]]:
    """Every row that has a proportion, by what tells it from others."""
    return [
        ((suite, row["name"], row["measure"]), row)
        for suite, section in card["sections"].items()
        for row in section["rows"]
        if row["proportion"]
    ]
