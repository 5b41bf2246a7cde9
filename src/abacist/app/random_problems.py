"""Random problems to start from, with the number of digits that a user asks for."""

import torch

from abacist.app.shown_runs import ShownRun
from abacist.errors import AbacistError, UserError
from abacist.tasks.config import ArithmeticConfig, SortingConfig
from abacist.tasks.problems import OPERATIONS, Problems, Shapes

_LONGEST_DRAWN = 100
"""Largest number of digits on the slider; longer problems can be typed."""
_DIVISIONS = [OPERATIONS.index("//"), OPERATIONS.index("%")]


def drawn(shown_run: ShownRun, digits: int | None, generator: torch.Generator) -> str:
    """A random problem whose operands have `digits` digits, and a divisor half of that.

    With None, the task draws the lengths. Raises `UserError` if the run cannot write such problems.
    """
    longest = longest_drawn(shown_run)
    if digits is not None and (
        longest is None or not isinstance(digits, int) or not 1 <= digits <= longest
    ):
        range_ = "no number of digits to choose" if longest is None else f"1 to {longest} digits"
        raise UserError(f"problems of {shown_run.name} have {range_}, got {digits!r}.")
    return shown_run.trained_model.task.expressions(_draw(shown_run, digits, generator))[0]


def longest_drawn(shown_run: ShownRun) -> int | None:
    """Largest number of digits that can be asked for; None if digits do not describe the task."""
    if not isinstance(shown_run.trained_model.task.config, ArithmeticConfig | SortingConfig):
        return None
    low, high = 1, _LONGEST_DRAWN
    while low < high:
        middle = (low + high + 1) // 2
        if _can_be_written(shown_run, middle):
            low = middle
        else:
            high = middle - 1
    return low


def trained_digits(shown_run: ShownRun) -> int | None:
    """Digits of the longest operand in training; None if digits do not describe the task."""
    config = shown_run.trained_model.task.config
    if isinstance(config, ArithmeticConfig):
        return config.longest_operand
    return config.max_digits if isinstance(config, SortingConfig) else None


def _draw(shown_run: ShownRun, digits: int | None, generator: torch.Generator) -> Problems:
    task = shown_run.trained_model.task
    shapes = task.draw_shapes(1, generator)
    if digits is None:
        return task.draw(shapes, generator)
    lengths = torch.where(shapes.lengths_BN > 0, digits, 0)
    if int(shapes.operation_B[0]) in _DIVISIONS:
        lengths[:, 1] = (digits + 1) // 2
    return task.draw(Shapes(lengths, shapes.operation_B), generator)


def _can_be_written(shown_run: ShownRun, digits: int) -> bool:
    """Whether the format and the page have room for such problems."""
    problem = _draw(shown_run, digits, torch.Generator().manual_seed(0))
    try:
        shown_run.check_length(problem)
        shown_run.trained_model.format.write(problem, shown_run.trained_model.task.answer(problem))
    except AbacistError:
        return False
    return True
