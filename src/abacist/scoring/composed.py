"""Greatest common divisors and powers modulo m, composed of problems that a model solves.

`gcd(1071,462)` is not written by the model in one line. A short program asks the model for one remainder
or product after the other, as a person with a pocket calculator does:

    gcd(a,b)      Euclid's algorithm: a % b, then b % (that remainder), until a remainder is 0
    pow(a,e,m)    a to the power of e modulo m, by the digits of e from the left (Knuth, "The Art of
                  Computer Programming", volume 2, section 4.6.3, with 10 in the place of 2)

The program calculates nothing itself: it passes on numbers that the model wrote, reads digits, and asks
whether a number is 0. If all remainders and products of the model are right, as a certificate shows, so
are these results, for numbers of every length.
"""

import math
import re
from collections.abc import Callable, Generator
from dataclasses import dataclass

from abacist.errors import ProblemError
from abacist.scoring.records import Solution
from abacist.scoring.trained_model import TrainedModel
from abacist.scoring.typed import solve_typed
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.reading import quoted, whole_number
from abacist.tasks.task import Task

Steps = Generator[str, str, str]
"""A calculation, which yields problems, is sent their answers, and returns its result."""

_MOST_DIGITS = 4_000
"""Python compares the results with its own, and reads no longer numbers without being asked to."""


def gcd(*numbers: str) -> Steps:
    """Return the greatest common divisor of whole numbers, by Euclid's algorithm."""
    divisor, *others = numbers
    for other in others:
        while other != "0":
            divisor, other = other, (yield f"{divisor}%{other}")
    return divisor


def power(base: str, exponent: str, modulus: str) -> Steps:
    """Return `base` to the power of `exponent`, modulo `modulus`."""

    def product(a: str, b: str) -> Steps:
        whole = yield f"{a}*{b}"
        return (yield f"{whole}%{modulus}")

    one = yield f"1%{modulus}"
    powers = [one, (yield f"{base}%{modulus}")]
    while len(powers) <= int(max(exponent)):
        powers.append((yield from product(powers[-1], powers[1])))
    result = powers[int(exponent[0])]
    for digit in exponent[1:]:
        square = yield from product(result, result)
        fourth = yield from product(square, square)
        fifth = yield from product(fourth, result)
        result = yield from product(fifth, fifth)
        if digit != "0":
            result = yield from product(result, powers[int(digit)])
    return result


@dataclass(frozen=True)
class Function:
    """A function that is composed of a model's answers."""

    steps: Callable[..., Steps]
    value: Callable[..., int]
    """Returns the same function of Python's integers, for comparison."""
    operations: tuple[str, ...]
    """What the model has to calculate."""
    takes: str
    example: str


FUNCTIONS = {
    "gcd": Function(gcd, math.gcd, ("%",), "two or more non-negative whole numbers", "gcd(12,18)"),
    "pow": Function(
        power,
        pow,
        ("*", "%"),
        "a base, an exponent and a modulus, all non-negative whole numbers",
        "pow(3,100,7)",
    ),
}


def solve_composed(
    trained_model: TrainedModel,
    expressions: list[str],
    on_step: Callable[[int, int], None] | None = None,
) -> list[Solution]:
    """Let the model solve problems as they were typed, and those such as `gcd(12,18)` step by step.

    All of them take their steps at the same time, so that the model solves many problems at once. A
    calculation stops at the first step that the model gets wrong, and has no answer then.

    Args:
        trained_model: the model.
        expressions: the problems.
        on_step: see `solving.solve`; problems count when they are finished.

    Raises `ProblemError` where an expression is no problem of the task, or too long for the model.
    """
    calls = {row: read_call(trained_model.task, text) for row, text in enumerate(expressions)}
    calculations = {row: Calculation(call) for row, call in calls.items() if call is not None}
    others = [row for row in calls if row not in calculations]
    solutions: dict[int, Solution] = {}
    if others:
        solved = solve_typed(trained_model, [expressions[row] for row in others], on_step)
        solutions = dict(zip(others, solved, strict=True))
    while True:
        solutions |= {row: c.solution for row, c in calculations.items() if c.solution is not None}
        going_on = [c for c in calculations.values() if c.solution is None]
        if not going_on:
            return [solutions[row] for row in range(len(expressions))]
        questions = [calculation.question for calculation in going_on]
        answers = solve_typed(trained_model, questions, _after(len(solutions), on_step))
        for calculation, answer in zip(going_on, answers, strict=True):
            calculation.go_on(answer)


def _after(
    num_solved: int, on_step: Callable[[int, int], None] | None
) -> Callable[[int, int], None]:
    """Return a report of the progress within one step, after `num_solved` problems are finished."""

    def report(_: int, written: int) -> None:
        if on_step is not None:
            on_step(num_solved, written)

    return report


@dataclass(frozen=True)
class Call:
    """A function and its arguments."""

    name: str
    arguments: list[str]

    def __str__(self) -> str:
        return f"{self.name}({','.join(self.arguments)})"

    def value(self) -> str:
        """Return what Python says it is."""
        return str(FUNCTIONS[self.name].value(*map(int, self.arguments)))


class Calculation:
    """The steps of one call up to now, and the problem that is next.

    >>> calculation = Calculation(Call("gcd", ["12", "18"]))
    >>> while calculation.solution is None:
    ...     calculation.go_on(answer_of_the_model(calculation.question))
    """

    def __init__(self, call: Call) -> None:
        self.call = call
        self.question = ""
        """What the model is asked next."""
        self.answers: list[Solution] = []
        """The model's answers up to now."""
        self.solution: Solution | None = None
        """None while there are more steps."""
        self._steps = FUNCTIONS[call.name].steps(*call.arguments)
        self._take_step(None)

    def go_on(self, answer: Solution) -> None:
        """Take the next step with the model's answer to the question; end if that is wrong."""
        self.answers.append(answer)
        if answer.correct:
            self._take_step(answer.answer)
        else:
            self._end(None)

    def _take_step(self, answer: str | None) -> None:
        try:
            self.question = next(self._steps) if answer is None else self._steps.send(answer)
        except StopIteration as end:
            self._end(end.value)

    def _end(self, result: str | None) -> None:
        self.solution = Solution(
            str(self.call),
            result,
            self.call.value(),
            min((answer.margin for answer in self.answers), default=math.inf),
            " ".join(f"{answer.problem}={answer.answer_text}" for answer in self.answers),
        )


def read_call(task: Task, expression: str) -> Call | None:
    """Read a call of a function; None for an expression that is none, or a task of other things.

    Raises `ProblemError` for the wrong arguments, or if the model does not calculate what is needed.
    """
    match = re.fullmatch(r"\s*([a-z]+)\s*\((.*)\)\s*=?\s*", expression, re.DOTALL)
    if not isinstance(task, Arithmetic) or match is None:
        return None
    name = match[1]
    function = FUNCTIONS.get(name)
    if function is None:
        raise ProblemError(
            f"cannot read {quoted(expression)}: there is no function {name}. The functions are "
            f"{' and '.join(FUNCTIONS)}. Type one such as {FUNCTIONS['gcd'].example}."
        )
    if not set(function.operations) <= set(task.operations):
        raise ProblemError(
            f"{name} needs a model of {' and '.join(function.operations)}, and this one is a model of "
            f"{' and '.join(task.operations)}. Type abacist train calculator for one, which takes about 15 minutes."
        )
    arguments = [
        whole_number(argument.strip(), expression, _MOST_DIGITS) for argument in match[2].split(",")
    ]
    numbers = [number for number in arguments if number is not None]
    is_counted = len(numbers) == 3 if name == "pow" else len(numbers) >= 2
    if len(numbers) < len(arguments) or not is_counted:
        raise ProblemError(
            f"cannot read {quoted(expression)}: {name} takes {function.takes}. Type them such as {function.example}."
        )
    if name == "pow" and numbers[2] == "0":
        raise ProblemError(
            f"{quoted(expression)} divides by zero; type a modulus from 1 up, such as {function.example}."
        )
    return Call(name, numbers)
