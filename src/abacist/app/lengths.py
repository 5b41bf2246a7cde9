"""The grid of operand lengths, and what goes wrong in one of its cells.

>>> grid = stored_grid(shown_run) or scored_grid(shown_run)
>>> failures(shown_run, 12, 7).proportion
Proportion(successes=100, n=100)
"""

import time
from dataclasses import dataclass
from typing import Any

import torch

from abacist import generators
from abacist.app.shown_runs import ShownRun
from abacist.errors import ConfigurationError, UserError
from abacist.inspection.finding import Finding
from abacist.intervals import Proportion
from abacist.scoring.exact_match import exact_match
from abacist.scoring.grid import GRID, by_both_lengths, draw_of_lengths
from abacist.scoring.solving import solve

_SECONDS = 8.0
"""A grid that has been scored for so long is left as small as it is by then."""
_GRID_PROBLEMS = 20
_CELL_PROBLEMS = 100
_MOST_FAILURES = 10
"""Problem of a cell, written out."""
_LONGEST_OPERAND = 200
"""Size of a cell, in digits."""


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


def obstacle(shown_run: ShownRun) -> str | None:
    """Why a run has no grid; None where it has one."""
    found = GRID.obstacle(shown_run.trained_model)
    return found and found.partition(". ")[0].removesuffix(".") + "."


def stored_grid(shown_run: ShownRun) -> LengthGrid | None:
    """The grid of the scorecard; None where none was scored."""
    section = shown_run.records.sections.get("grid")
    if section is None:
        return None
    return LengthGrid(section.details["right"], section.details["count"], True, section.complete)


def scored_grid(shown_run: ShownRun) -> LengthGrid:
    """A grid of few problems, scored now. Raises `UserError` where a run has none."""
    _check(shown_run)
    end = time.perf_counter() + _SECONDS

    def report(described: str, done: int, total: int) -> None:
        if time.perf_counter() > end:
            raise _Enough

    section = by_both_lengths(shown_run.run.trained_model(grid_problems=_GRID_PROBLEMS), report)
    details: dict[str, Any] = section.details
    return LengthGrid(details["right"], details["count"], False, section.complete)


def failures(shown_run: ShownRun, first: int, second: int) -> CellFailures:
    """Score test problems of two lengths and write out some that are wrong.

    Raises `UserError` where a run has no such problems.
    """
    _check(shown_run)
    for digits in (first, second):
        if (
            isinstance(digits, bool)
            or not isinstance(digits, int)
            or not 1 <= digits <= _LONGEST_OPERAND
        ):
            raise ConfigurationError(
                f"an operand of a cell has 1 to {_LONGEST_OPERAND} digits, got {digits!r}."
            )
    trained_model = shown_run.trained_model
    generator = generators.generator(trained_model.seed, "play", "cell", first, second)
    lengths = torch.tensor([[first, second]]).repeat(_CELL_PROBLEMS, 1)
    problems = draw_of_lengths(trained_model, lengths, generator)
    shown_run.check_length(problems)
    verdicts = exact_match(trained_model, problems)
    wrong = problems[(~verdicts.correct).nonzero().squeeze(1)[:_MOST_FAILURES]]
    solutions = solve(trained_model, wrong) if len(wrong) else []
    return CellFailures(
        first,
        second,
        verdicts.proportion,
        [Failed(found.problem, found.answer, found.expected) for found in solutions],
    )


def _check(shown_run: ShownRun) -> None:
    found = obstacle(shown_run)
    if found is not None:
        raise UserError(found)
