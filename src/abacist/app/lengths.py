"""The grid of operand lengths, and the failures in one of its cells.

>>> grid = stored_grid(shown_run) or scored_grid(shown_run)
>>> failures(shown_run, 12, 7).proportion
Proportion(successes=100, n=100)
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from abacist import generators
from abacist.app.answers import LONGEST_SHOWN
from abacist.app.shown_runs import ShownRun
from abacist.errors import ConfigurationError, UserError
from abacist.inspection.ablation import HooksFor, correct_with
from abacist.inspection.finding import Finding
from abacist.inspection.generation import generate_answer
from abacist.intervals import Proportion
from abacist.scoring.exact_match import exact_match
from abacist.scoring.grid import GRID, by_both_lengths, draw_of_lengths
from abacist.scoring.solving import solve
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.problems import Problems

_SECONDS = 8.0
"""Time limit for scoring a grid, which is incomplete if it takes longer."""
_GRID_PROBLEMS = 20
_CELL_PROBLEMS = 100
_MOST_FAILURES = 10
"""Maximum number of failures that are shown for a cell."""
_LONGEST_OPERAND = 200
"""Maximum number of digits of an operand of a cell."""


@dataclass(frozen=True)
class LengthGrid(Finding):
    """Numbers of right answers and of problems, by the lengths of two operands.

    Row i and column j are for operands of i + 1 and j + 1 digits.
    """

    right: list[list[int]]
    count: list[list[int]]
    stored: bool
    """Whether the grid comes from the scorecard; if not, it was scored for the page."""
    complete: bool
    """Whether the whole grid was scored; False if the time limit was reached."""


@dataclass(frozen=True)
class Failed(Finding):
    """A problem with a wrong answer."""

    problem: str
    answer: str | None
    expected: str


@dataclass(frozen=True)
class CellFailures(Finding):
    """The score on test problems of one pair of lengths."""

    first: int
    second: int
    proportion: Proportion
    failures: list[Failed]
    """At most `_MOST_FAILURES` of the problems with wrong answers."""
    off: list[str] = field(default_factory=list)
    """Labels of the components that were switched off; empty if lines are too long for that."""


class _TimeIsUp(KeyboardInterrupt):
    """Ends the scoring of a grid as Ctrl-C does, which keeps the cells scored so far."""


def obstacle(shown_run: ShownRun) -> str | None:
    """Return why a run has no grid, in one sentence; None if it has one."""
    reason = GRID.obstacle(shown_run.trained_model)
    if reason is None:
        return None
    sentence = reason.partition(". ")[0].removesuffix(".")
    return f"{sentence[:1].upper()}{sentence[1:]}."


def stored_grid(shown_run: ShownRun) -> LengthGrid | None:
    """Return the grid of the scorecard; None if none was scored."""
    section = shown_run.records.sections.get("grid")
    if section is None:
        return None
    return LengthGrid(section.details["right"], section.details["count"], True, section.complete)


def scored_grid(shown_run: ShownRun) -> LengthGrid:
    """Score a grid with few problems per cell. Raises `UserError` if the task has no grid."""
    _check(shown_run)
    end = time.perf_counter() + _SECONDS

    def report(label: str, done: int, total: int) -> None:
        if time.perf_counter() > end:
            raise _TimeIsUp

    section = by_both_lengths(shown_run.run.trained_model(grid_problems=_GRID_PROBLEMS), report)
    details: dict[str, Any] = section.details
    return LengthGrid(details["right"], details["count"], False, section.complete)


def failures(
    shown_run: ShownRun, first: int, second: int, off: Sequence[str] = (), way: str = "zero"
) -> CellFailures:
    """Score test problems of two lengths, and return some with wrong answers.

    Args:
        off: labels of the components to switch off. In lines of more than `LONGEST_SHOWN` tokens,
            all are on.
        way: `zero` or `mean`, the value that replaces their output.

    Raises `UserError` if the task has no grid, or for invalid lengths.
    """
    _check(shown_run)
    hooks_for = shown_run.hooks(off, way)
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
    if shown_run.check_length(problems) > LONGEST_SHOWN:
        hooks_for = None
    if hooks_for is None:
        correct = exact_match(trained_model, problems).correct
    else:
        correct = correct_with(trained_model, problems, hooks_for)
    wrong = problems[(~correct).nonzero().squeeze(1)[:_MOST_FAILURES]]
    return CellFailures(
        first,
        second,
        Proportion(int(correct.sum()), len(problems)),
        _failed(trained_model, wrong, hooks_for),
        [] if hooks_for is None else list(off),
    )


def _failed(
    trained_model: TrainedModel, wrong: Problems, hooks_for: HooksFor | None
) -> list[Failed]:
    """Let the model write its answers to problems that it solves wrongly."""
    if not len(wrong):
        return []
    if hooks_for is None:
        return [Failed(s.problem, s.answer, s.expected) for s in solve(trained_model, wrong)]
    task = trained_model.task
    answers = (
        generate_answer(trained_model, wrong[i : i + 1], hooks_for).answer
        for i in range(len(wrong))
    )
    problems, expected = task.expressions(wrong), task.answer(wrong).texts()
    return [Failed(*row) for row in zip(problems, answers, expected, strict=True)]


def _check(shown_run: ShownRun) -> None:
    reason = obstacle(shown_run)
    if reason is not None:
        raise UserError(reason)
