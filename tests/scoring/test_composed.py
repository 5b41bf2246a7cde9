"""Greatest common divisors and powers modulo m, composed of a model's answers."""

import math
import random
import re

import pytest
from trained_models import random_model

from abacist.errors import ProblemError
from abacist.scoring import composed
from abacist.scoring.composed import gcd, power, solve_composed
from abacist.scoring.records import Solution
from abacist.tasks.config import ArithmeticConfig

PYTHON = {"%": int.__mod__, "*": int.__mul__, "+": int.__add__}


def right_answer(problem):
    """Return what Python says to a problem of two whole numbers."""
    first, symbol, second = re.fullmatch(r"(\d+)([%*+])(\d+)", problem).groups()
    return str(PYTHON[symbol](int(first), int(second)))


def result_of(steps):
    """Answer all questions of a calculation rightly, and return its result."""
    answer = None
    while True:
        try:
            question = next(steps) if answer is None else steps.send(answer)
            answer = right_answer(question)
        except StopIteration as end:
            return end.value


@pytest.fixture
def calculator():
    """Return a model of + * % with random weights."""
    task = ArithmeticConfig(operations=("+", "*", "%"), weights=(1.0, 1.0, 1.0), max_digits=3)
    return random_model(task, "usual", "gpt2")


@pytest.fixture
def right(monkeypatch):
    """Let every model answer rightly, but for the answers that are set here; return what was asked."""
    asked, wrong = [], {}

    def solve(_, problems, on_step=None):
        if on_step is not None:
            on_step(0, 1)
        asked.append(problems)
        answers = {problem: right_answer(problem) for problem in problems}
        return [
            Solution(p, wrong.get(p, answer), answer, margin=float(len(p)))
            for p, answer in answers.items()
        ]

    monkeypatch.setattr(composed, "solve_typed", solve)
    return asked, wrong


def test_greatest_common_divisors_are_those_of_python():
    draw = random.Random(0)
    for _ in range(500):
        common = draw.randrange(10 ** draw.randrange(8))
        numbers = [
            common * draw.randrange(10 ** draw.randrange(1, 20)) for _ in range(draw.choice([2, 3]))
        ]
        assert result_of(gcd(*map(str, numbers))) == str(math.gcd(*numbers)), numbers


def test_powers_are_those_of_python():
    draw = random.Random(0)
    for _ in range(500):
        base, exponent = (draw.randrange(10 ** draw.randrange(1, 9)) for _ in range(2))
        modulus = draw.randrange(1, 10 ** draw.randrange(1, 9) + 1)
        numbers = base, exponent, modulus
        assert result_of(power(*map(str, numbers))) == str(pow(*numbers)), numbers
    for numbers in [(0, 0, 1), (0, 0, 5), (5, 0, 1), (7, 1, 7), (2, 10, 1000), (9, 99, 10)]:
        assert result_of(power(*map(str, numbers))) == str(pow(*numbers)), numbers


def test_problems_of_both_kinds_are_answered_in_their_order_and_side_by_side(calculator, right):
    asked, _ = right
    typed = ["gcd(1071, 462)", "12+34", "pow(3,2,7)", " gcd(5,0) =", "gcd(12,18,27)"]
    progress = []
    solutions = solve_composed(calculator, typed, lambda *done: progress.append(done))
    assert [str(solution) for solution in solutions] == [
        "gcd(1071,462)=21 ✓",
        "12+34=46 ✓",
        "pow(3,2,7)=2 ✓",
        "gcd(5,0)=5 ✓",
        "gcd(12,18,27)=3 ✓",
    ]
    assert solutions[0].text == "1071%462=147 462%147=21 147%21=0"
    assert solutions[0].margin == 6
    assert solutions[2].text == "1%7=1 3%7=3 3*3=9 9%7=2"
    assert asked[:2] == [["12+34"], ["1071%462", "1%7", "12%18"]]
    assert [done for done, _ in progress] == sorted(done for done, _ in progress)


def test_a_calculation_ends_at_the_first_wrong_step(calculator, right):
    _, wrong = right
    wrong["462%147"] = "22"
    solution, other = solve_composed(calculator, ["gcd(1071,462)", "gcd(4,6)"])
    assert (solution.answer, solution.expected, solution.correct) == (None, "21", False)
    assert str(solution) == (
        "gcd(1071,462)=(no answer) ✗ expected 21, wrote 1071%462=147 462%147=22"
    )
    assert other.correct
    wrong["462%147"] = None
    assert solve_composed(calculator, ["gcd(1071,462)"])[0].text.endswith(" 462%147=(no answer)")


def test_an_untrained_model_is_asked_for_one_step_only(calculator):
    solution, other = solve_composed(calculator, ["gcd(12,18)", "12+34"])
    assert not solution.correct
    assert solution.text.startswith("12%18=")
    assert solution.text.count("=") == 1
    assert other.problem == "12+34"


@pytest.mark.parametrize(
    ("typed", "complaint"),
    [
        ("gcd(12)", "gcd takes two or more non-negative whole numbers. Type them such as gcd"),
        ("gcd()", "gcd takes two or more"),
        ("gcd(12,)", "gcd takes two or more"),
        ("gcd(12,-18)", "gcd takes two or more"),
        ("gcd(1.5,2)", "gcd takes two or more"),
        ("pow(3,4)", "pow takes a base, an exponent and a modulus"),
        ("pow(3,4,5,6)", "pow takes a base, an exponent and a modulus"),
        ("pow(3,4,0)", r"divides by zero; type a modulus from 1 up, such as pow\(3,100,7\)"),
        (f"gcd({'9' * 4_001},3)", "4,001 digits; at most 4,000 are accepted"),
        (
            "lcm(4,6)",
            "there is no function lcm. The functions are gcd and pow. Type one such as gcd",
        ),
        ("gcd(4,6)+1", "cannot read 'gcd"),
    ],
)
def test_what_cannot_be_composed_is_refused_in_one_line(calculator, typed, complaint):
    with pytest.raises(ProblemError, match=complaint) as error:
        solve_composed(calculator, [typed])
    assert "\n" not in str(error.value)


def test_a_model_without_the_operations_says_which_are_missing():
    with pytest.raises(
        ProblemError, match=r"gcd needs a model of %, and this one is a model of \+\."
    ):
        solve_composed(random_model(), ["gcd(4,6)"])
    divider = random_model(ArithmeticConfig(operations=("%",), max_digits=3), "usual", "gpt2")
    with pytest.raises(
        ProblemError, match=r"pow needs a model of \* and %, and this one is a model of %"
    ):
        solve_composed(divider, ["pow(4,6,5)"])
    assert solve_composed(divider, ["gcd(0,0)"])[0].answer == "0"
