"""Problems to start from: drawn at random, of as many digits as asked for."""

import torch

from abacist.app.exhibits import Exhibit
from abacist.errors import AbacistError, UserError
from abacist.tasks.config import ArithmeticConfig, SortingConfig
from abacist.tasks.problems import OPERATIONS, Problems, Shapes

_LONGEST_DRAWN = 100
"""Digits at the far end of the slider; longer problems can be typed."""
_DIVISIONS = [OPERATIONS.index("//"), OPERATIONS.index("%")]


def drawn(exhibit: Exhibit, digits: int | None, generator: torch.Generator) -> str:
    """A problem whose operands have so many digits, a divisor half as many; None leaves it to the task.

    Raises `UserError` where the run cannot be asked for that many.
    """
    longest = longest_drawn(exhibit)
    if digits is not None and (
        longest is None or not isinstance(digits, int) or not 1 <= digits <= longest
    ):
        range_ = "as many digits as it draws" if longest is None else f"1 to {longest} digits"
        raise UserError(f"problems of {exhibit.name} have {range_}, got {digits!r}.")
    return exhibit.subject.task.expressions(_draw(exhibit, digits, generator))[0]


def longest_drawn(exhibit: Exhibit) -> int | None:
    """How many digits can be asked for; None where digits are no measure of the task."""
    if not isinstance(exhibit.subject.task.config, ArithmeticConfig | SortingConfig):
        return None
    low, high = 1, _LONGEST_DRAWN
    while low < high:
        middle = (low + high + 1) // 2
        if _can_be_written(exhibit, middle):
            low = middle
        else:
            high = middle - 1
    return low


def trained_digits(exhibit: Exhibit) -> int | None:
    """Digits of the longest operand in training; None where digits are no measure of the task."""
    config = exhibit.subject.task.config
    if isinstance(config, ArithmeticConfig):
        return config.longest_operand
    return config.max_digits if isinstance(config, SortingConfig) else None


def _draw(exhibit: Exhibit, digits: int | None, generator: torch.Generator) -> Problems:
    task = exhibit.subject.task
    shapes = task.draw_shapes(1, generator)
    if digits is None:
        return task.draw(shapes, generator)
    lengths = torch.where(shapes.lengths_BN > 0, digits, 0)
    if int(shapes.operation_B[0]) in _DIVISIONS:
        lengths[:, 1] = (digits + 1) // 2
    return task.draw(Shapes(lengths, shapes.operation_B), generator)


def _can_be_written(exhibit: Exhibit, digits: int) -> bool:
    """Whether the format has room for it, and the page."""
    problem = _draw(exhibit, digits, torch.Generator().manual_seed(0))
    try:
        exhibit.check_length(problem)
        exhibit.subject.format.write(problem, exhibit.subject.task.answer(problem))
    except AbacistError:
        return False
    return True
