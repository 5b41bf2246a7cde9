"""The grid of operand lengths, and what goes wrong in one of its cells.

>>> grid = stored_grid(exhibit) or scored_grid(exhibit)
>>> failures(exhibit, 12, 7).proportion
Proportion(successes=100, n=100)
"""

import time
from dataclasses import dataclass
from typing import Any

import torch

from abacist import seeds
from abacist.app.exhibits import Exhibit
from abacist.errors import ConfigurationError, UserError
from abacist.evaluation.exact_match import exact_match
from abacist.evaluation.grid import GRID, by_both_lengths, draw_of_lengths
from abacist.evaluation.solving import solve
from abacist.inspection.finding import Finding
from abacist.intervals import Proportion

_SECONDS = 8.0
"""A grid that has been scored for so long is left as small as it is by then."""
_GRID_PROBLEMS = 20
_CELL_PROBLEMS = 100
_MOST_FAILURES = 10
"""Of a cell, written out."""
_LONGEST_OPERAND = 200
"""Of a cell, in digits."""


@dataclass(frozen=True)
class LengthGrid(Finding):
    """Right answers and problems asked; row i and column j are operands of i + 1 and j + 1 digits."""

    right: list[list[int]]
    count: list[list[int]]
    stored: bool
    """Whether it is that of the scorecard, and not scored for the page."""
    complete: bool
    """False where scoring was stopped before the whole grid was scored."""


@dataclass(frozen=True)
class Failed(Finding):
    """A problem answered wrongly."""

    problem: str
    answer: str | None
    expected: str


@dataclass(frozen=True)
class CellFailures(Finding):
    """Test problems of one pair of lengths."""

    first: int
    second: int
    proportion: Proportion
    failures: list[Failed]
    """Some of them."""


class _Enough(KeyboardInterrupt):
    """Ends a grid as Ctrl-C does, which keeps what has been scored."""


def obstacle(exhibit: Exhibit) -> str | None:
    """Why a run has no grid; None where it has one."""
    found = GRID.obstacle(exhibit.subject)
    return found and found.partition(". ")[0].removesuffix(".") + "."


def stored_grid(exhibit: Exhibit) -> LengthGrid | None:
    """The grid of the scorecard; None where none was scored."""
    section = exhibit.records.sections.get("grid")
    if section is None or section.grid is None:
        return None
    return LengthGrid(section.grid.right, section.grid.count, True, section.complete)


def scored_grid(exhibit: Exhibit) -> LengthGrid:
    """A grid of few problems, scored now. Raises `UserError` where a run has none."""
    _check(exhibit)
    end = time.perf_counter() + _SECONDS

    def report(told: str, done: int, total: int) -> None:
        if time.perf_counter() > end:
            raise _Enough

    section = by_both_lengths(exhibit.run.subject(grid_problems=_GRID_PROBLEMS), report)
    details: dict[str, Any] = section.details
    return LengthGrid(details["right"], details["count"], False, section.complete)


def failures(exhibit: Exhibit, first: int, second: int) -> CellFailures:
    """Score test problems of two lengths and write out some that are wrong.

    Raises `UserError` where a run has no such problems.
    """
    _check(exhibit)
    for digits in (first, second):
        if (
            isinstance(digits, bool)
            or not isinstance(digits, int)
            or not 1 <= digits <= _LONGEST_OPERAND
        ):
            raise ConfigurationError(
                f"an operand of a cell has 1 to {_LONGEST_OPERAND} digits, got {digits!r}."
            )
    subject = exhibit.subject
    generator = seeds.generator(subject.seed, "play", "cell", first, second)
    lengths = torch.tensor([[first, second]]).repeat(_CELL_PROBLEMS, 1)
    problems = draw_of_lengths(subject, lengths, generator)
    exhibit.check_length(problems)
    verdicts = exact_match(subject.model, subject.task, subject.format, problems)
    wrong = problems[(~verdicts.correct).nonzero().squeeze(1)[:_MOST_FAILURES]]
    solutions = solve(subject.model, subject.task, subject.format, wrong) if len(wrong) else []
    return CellFailures(
        first,
        second,
        verdicts.proportion,
        [Failed(found.problem, found.answer, found.expected) for found in solutions],
    )


def _check(exhibit: Exhibit) -> None:
    found = obstacle(exhibit)
    if found is not None:
        raise UserError(found)
