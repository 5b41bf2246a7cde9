"""Results of functions such as gcd(1071,462): their steps, as data and as a card."""

import math

import pytest
from test_cards import words

from abacist.app import composed_answers, race, shown_runs
from abacist.app.answers import Answer
from abacist.app.composed_answers import any_answer
from abacist.app.composed_card import any_card
from abacist.app.random_problems import examples
from abacist.errors import ProblemError
from abacist.scoring.records import Solution


class Written:
    """A generated answer, as far as it is read here."""

    def __init__(self, answer: str) -> None:
        self.answer, self.ids = answer, list(answer)


@pytest.fixture
def right(calculator, monkeypatch):
    """Let the run answer rightly, but for the answers that are set here; return those and the hooks."""
    task, wrong, given = calculator.trained_model.task, {}, []

    def write(shown_run, problem, hooks_for, on_step):
        given.append(hooks_for)
        text = task.expressions(problem)[0]
        return Written(wrong.get(text, task.answer(problem).texts()[0]))

    monkeypatch.setattr(composed_answers, "written_answer", write)
    return wrong, given


def test_every_step_of_a_function_is_reported(calculator, right):
    result = any_answer(calculator, " gcd( 1071 , 462 )")
    assert (result.problem, result.answer, result.correct) == ("gcd(1071,462)", "21", True)
    assert [(step.problem, step.answer) for step in result.steps] == [
        ("1071%462", "147"),
        ("462%147", "21"),
        ("147%21", "0"),
    ]
    assert result.num_tokens == len("147210")
    assert words(any_card(result)).startswith(
        "calculator What the model wrote, and what is right Problem gcd(1071,462) Result 21 "
        "✓ Right. 3 problems, 6 tokens in"
    )
    assert any_card(result).count("data-problem") == 3


def test_the_card_shows_where_a_function_fails(calculator, right):
    right[0]["462%147"] = "20"
    result = any_answer(calculator, "gcd(1071,462)")
    assert (result.answer, result.expected, result.correct) == (None, "21", False)
    text = words(any_card(result))
    assert "(no answer)" in text
    assert "✗ Wrong." in text
    assert text.endswith("462%147 = 20 ✗ right is 21")


def test_of_many_steps_the_first_and_the_last_are_shown(calculator, right):
    result = any_answer(calculator, f"pow(3,{10**20},7)")
    card = any_card(result)
    assert result.answer == str(pow(3, 10**20, 7))
    assert card.count("data-problem") == 40
    assert f"… {len(result.steps) - 40:,} more …" in card
    assert f'value="{len(result.steps)}"' in card


def test_the_steps_are_taken_with_parts_switched_off(calculator, right):
    assert any_answer(calculator, "gcd(1071,462)", ["head 0"]).off == ["head 0"]
    assert None not in right[1]


def test_other_problems_are_answered_in_one_line(calculator):
    result = any_answer(calculator, "12%5")
    assert isinstance(result, Answer)
    assert words(any_card(result)).startswith("calculator")


def test_a_model_without_the_operations_is_refused(shown_run):
    with pytest.raises(ProblemError, match="gcd needs a model of %"):
        any_answer(shown_run, "gcd(12,18)")


def test_a_function_that_takes_too_long_is_stopped(calculator, monkeypatch):
    monkeypatch.setattr(shown_runs, "MAX_SECONDS", 0.0)
    with pytest.raises(ProblemError, match="not finished after 0 s"):
        any_answer(calculator, "gcd(1071,462)")


def test_functions_are_among_the_examples_of_models_that_can_take_them(calculator, shown_run):
    assert {"gcd(1071,462)", "pow(3,100,7)"} <= set(examples(calculator).values())
    assert not any("(" in text for text in examples(shown_run).values())


def test_a_function_races_against_plain_python(calculator, monkeypatch):
    solution = Solution("gcd(1071,462)", "21", "21")
    monkeypatch.setattr(race, "solve_composed", lambda *given: [solution])
    result = race.race(calculator, "gcd(1071,462)")
    assert (result.problem, result.model_correct, result.digits) == ("gcd(1071,462)", True, 4)
    assert math.isfinite(result.python_seconds)
    with pytest.raises(ProblemError, match="at most 300 digits, got 301"):
        race.race(calculator, f"gcd({'1' * 301},3)")
