"""A race against plain Python: both read the problem, calculate, and write the answer.

Python is faster by a factor of about ten thousand, and the page says so.

>>> race(shown_run, "12+34").times_as_fast
61000.0
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from abacist.app.shown_runs import ShownRun, time_limit
from abacist.errors import ProblemError
from abacist.inspection.finding import Finding
from abacist.scoring.composed import read_call, solve_composed
from abacist.scoring.records import Solution
from abacist.scoring.solving import solve
from abacist.tasks.config import (
    LABELS,
    ArithmeticConfig,
    ModularAdditionConfig,
    OwnTaskConfig,
    TaskConfig,
)
from abacist.tasks.problems import OPERATIONS, Problems

_LONGEST_OPERAND = 300
"""Maximum number of digits of an operand, since the model answers several times."""
_MODEL_REPEATS = 3
"""Number of times that the model answers, if there is time."""
_SECONDS = 5.0
"""Time after which the model does not answer again."""
_PYTHON_REPEATS = 5
_PYTHON_CALLS = 100
"""Number of calls per measurement, because one call is too short to be timed."""


@dataclass(frozen=True)
class Race(Finding):
    """The times of both for one problem."""

    problem: str
    model_seconds: float
    """Median time of the model."""
    python_seconds: float
    """Median time of Python."""
    model_correct: bool
    digits: int
    """Number of digits of the longest operand."""

    @property
    def times_as_fast(self) -> float:
        """The model's time divided by Python's; below 1 if the model wins."""
        return self.model_seconds / max(self.python_seconds, 1e-9)

    def to_json(self) -> dict[str, Any]:
        """Return the fields by name, and `times_as_fast`."""
        return super().to_json() | {"times_as_fast": self.times_as_fast}


def race(shown_run: ShownRun, text: str) -> Race:
    """Time both.

    Raises `UserError` for invalid problems, for those that are too long, and if the task has none that
    plain Python can calculate.
    """
    if not is_possible(shown_run):
        raise ProblemError(
            "a race needs a task that plain Python can calculate, such as sums. "
            "This run has a task of its own."
        )
    shown_run.check_text(text)
    call = read_call(shown_run.trained_model.task, text)
    if call is not None:
        return _race(
            str(call),
            max(map(len, call.arguments)),
            lambda: solve_composed(shown_run.trained_model, [text], time_limit())[0],
            call.value,
        )
    trained_model, problem = shown_run.trained_model, shown_run.parse(text)
    shown_run.check_time(problem)
    python = plain_python(trained_model.task.config, problem)
    assert python() == trained_model.task.answer(problem).texts()[0]
    return _race(
        trained_model.task.expressions(problem)[0],
        int(problem.lengths_BN.max()),
        lambda: solve(trained_model, problem)[0],
        python,
    )


def is_possible(shown_run: ShownRun) -> bool:
    """Whether plain Python can calculate what the model does; it cannot for tasks of extensions."""
    return not isinstance(shown_run.trained_model.task.config, OwnTaskConfig)


def _race(
    problem: str, digits: int, model: Callable[[], Solution], python: Callable[[], str]
) -> Race:
    if digits > _LONGEST_OPERAND:
        raise ProblemError(
            f"a race accepts operands of at most {_LONGEST_OPERAND} digits, got {digits:,}. "
            "Type a shorter problem."
        )
    seconds: list[float] = []
    correct = False
    while len(seconds) < _MODEL_REPEATS and sum(seconds) < _SECONDS:
        start = time.perf_counter()
        solution = model()
        seconds.append(time.perf_counter() - start)
        correct = solution.correct
    return Race(problem, statistics.median(seconds), _seconds_a_call(python), correct, digits)


def plain_python(config: TaskConfig, problem: Problems) -> Callable[[], str]:
    """Return a function that calculates the answer's digits from the operands' digits, in plain Python."""
    count = int(problem.counts_B[0])
    operands = [problem.operand(i).texts()[0] for i in range(count)]
    operation = OPERATIONS[int(problem.operation_B[0])]
    if isinstance(config, ModularAdditionConfig):
        modulus = config.modulus
        return lambda: str(sum(map(int, operands)) % modulus)
    if not isinstance(config, ArithmeticConfig):
        labels = LABELS[:count]
        return lambda: "".join(
            label for _, label in sorted(zip(map(int, operands), labels, strict=True))
        )
    if operation == "+":
        return lambda: str(sum(map(int, operands)))
    a, b = operands
    calculations: dict[str, Callable[[], str]] = {
        "-": lambda: str(int(a) - int(b)),
        "*": lambda: str(int(a) * int(b)),
        "//": lambda: str(int(a) // int(b)),
        "%": lambda: str(int(a) % int(b)),
    }
    return calculations[operation]


def _seconds_a_call(calculate: Callable[[], str]) -> float:
    seconds = []
    for _ in range(_PYTHON_REPEATS):
        start = time.perf_counter()
        for _ in range(_PYTHON_CALLS):
            calculate()
        seconds.append((time.perf_counter() - start) / _PYTHON_CALLS)
    return statistics.median(seconds)
