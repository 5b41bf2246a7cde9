"""Several runs compared: the rows that their scorecards share, and by how much they differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from abacist.configuration import to_json
from abacist.intervals import Difference, Proportion, difference
from abacist.scoring.records import Row, Scorecard

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
    """One proportion for each run, in their order."""

    @property
    def differences(self) -> list[Difference | None]:
        """How much better every further run is than the first."""
        first, *others = self.proportions
        return [difference(other, first) for other in others]

    def to_json(self) -> dict[str, Any]:
        """Return all fields, and the differences."""
        return {name: to_json(value) for name, value in vars(self).items()} | {
            "differences": to_json(self.differences)
        }


def common_rows(cards: Sequence[Scorecard], trained_alike: bool = True) -> list[ComparedRow]:
    """Return the rows that all scorecards have, in the order of the first.

    Unless the runs were `trained_alike`, rows about each run's own training problems are left out.
    """
    indexed = [_rows(card) for card in cards]
    common = []
    for key, first in indexed[0].items():
        suite, name, measure = key
        if not all(key in rows for rows in indexed):
            continue
        if not trained_alike and (suite not in _OF_STATED_LENGTH or not _names_a_length(first)):
            continue
        proportions = [p for rows in indexed if (p := rows[key].proportion) is not None]
        common.append(ComparedRow(suite, name, first.kind, first.digits, measure, proportions))
    return common


def _names_a_length(row: Row) -> bool:
    return row.digits > 0 and any(character.isdigit() for character in row.name)


def _rows(card: Scorecard) -> dict[tuple[str, str, str], Row]:
    """Return every row that has a proportion, by its suite, name and measure."""
    return {
        (suite, row.name, row.measure): row
        for suite, section in card.sections.items()
        for row in section.rows
        if row.proportion is not None
    }
