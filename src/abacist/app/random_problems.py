"""Random problems to start from, with the number of digits that a user asks for."""

import torch

from abacist.app.shown_runs import ShownRun
from abacist.errors import AbacistError, UserError
from abacist.scoring.composed import FUNCTIONS, read_call
from abacist.tasks.config import ArithmeticConfig, SortingConfig
from abacist.tasks.problems import OPERATIONS, Problems, Shapes

_LONGEST_DRAWN = 100
"""Largest number of digits on the slider; longer problems can be typed."""
_FEW_NUMBERS, _MANY_NUMBERS = 4, 10
"""Number of numbers to sort at first, and in the longer example."""
_LONG_EXAMPLE = 60
"""Number of digits of the long example."""
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


def examples(shown_run: ShownRun) -> dict[str, str]:
    """Problems worth trying, by a short label; those that the page cannot answer are left out."""
    task = shown_run.trained_model.task
    generator = torch.Generator().manual_seed(1)
    problems: dict[str, str] = {}
    if isinstance(task.config, SortingConfig):
        for count in (_FEW_NUMBERS, _MANY_NUMBERS):
            problem = _numbers_to_sort(shown_run, count, None, generator)
            problems[f"{count} numbers"] = task.expressions(problem)[0]
        problems["equal numbers"] = "31,7,31,7"
    elif isinstance(task.config, ArithmeticConfig):
        for operation in task.operations if task.config.min_operands == 2 else ():
            problems |= _EXAMPLES[operation]
        for name, function in FUNCTIONS.items():
            if set(function.operations) <= set(task.operations):
                problems |= _FUNCTION_EXAMPLES[name]
        longest = longest_drawn(shown_run) or 1
        digits = min(_LONG_EXAMPLE, longest)
        problems[f"{digits} digits"] = drawn(shown_run, digits, generator)
    else:
        problems["example"] = task.example
    return {label: text for label, text in problems.items() if _is_accepted(shown_run, text)}


_EXAMPLES = {
    "+": {"99…9 + 1": "9999999999+1"},
    "-": {"10…0 - 1": "10000000000-1", "below 0": "12345-67890"},
    "*": {"99 × 99": "99*99"},
    "//": {"one digit at a time": "987654//8"},
    "%": {"a remainder": "987654%8"},
}

_FUNCTION_EXAMPLES = {
    "gcd": {"a common divisor": "gcd(1071,462)"},
    "pow": {"a power": "pow(3,100,7)"},
}


def _is_accepted(shown_run: ShownRun, text: str) -> bool:
    try:
        if read_call(shown_run.trained_model.task, text) is not None:
            return True
        problem = shown_run.parse(text)
        shown_run.trained_model.format.write(problem, shown_run.trained_model.task.answer(problem))
    except AbacistError:
        return False
    return True


def is_sorting(shown_run: ShownRun) -> bool:
    """Whether the run sorts numbers."""
    return isinstance(shown_run.trained_model.task.config, SortingConfig)


def _draw(shown_run: ShownRun, digits: int | None, generator: torch.Generator) -> Problems:
    task = shown_run.trained_model.task
    if isinstance(task.config, SortingConfig):
        return _numbers_to_sort(shown_run, _FEW_NUMBERS, digits, generator)
    shapes = task.draw_shapes(1, generator)
    if digits is None:
        return task.draw(shapes, generator)
    lengths = torch.where(shapes.lengths_BN > 0, digits, 0)
    if int(shapes.operation_B[0]) in _DIVISIONS:
        lengths[:, 1] = (digits + 1) // 2
    return task.draw(Shapes(lengths, shapes.operation_B), generator)


def _numbers_to_sort(
    shown_run: ShownRun, count: int, digits: int | None, generator: torch.Generator
) -> Problems:
    task = shown_run.trained_model.task
    config = task.config
    assert isinstance(config, SortingConfig)
    count = max(config.min_numbers, min(count, config.max_numbers))
    lengths = torch.randint(
        config.min_digits, config.max_digits + 1, (1, count), generator=generator
    )
    if digits is not None:
        lengths = torch.full_like(lengths, digits)
    return task.draw(Shapes.of(lengths, "sort"), generator)


def _can_be_written(shown_run: ShownRun, digits: int) -> bool:
    """Whether the format and the page have room for such problems."""
    problem = _draw(shown_run, digits, torch.Generator().manual_seed(0))
    try:
        shown_run.check_length(problem)
        shown_run.trained_model.format.write(problem, shown_run.trained_model.task.answer(problem))
    except AbacistError:
        return False
    return True
