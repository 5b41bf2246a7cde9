"""The JSON interface: plain data, and one line for every mistake."""

import json

import pytest

from abacist.app import lengths
from abacist.app.questions import Questions
from abacist.app.race import plain_python
from abacist.app.random_problems import longest_drawn
from abacist.app.shown_runs import ShownRun
from abacist.tasks.config import TASKS


@pytest.fixture
def questions(gallery):
    return Questions(gallery)


def test_every_question_is_answered_with_json(questions):
    given = {"answer": ["12+34"], "race": ["12+34"], "failures": [3, 2], "draw": [5]}
    for name, question in questions.all().items():
        described = question(*given.get(name, []))
        assert "error" not in described, name
        json.dumps(described, allow_nan=False)


def test_mistakes_are_described_in_one_line(questions):
    for described in (
        questions.answer("12+"),
        questions.answer("1+2", run="nobody"),
        questions.answer("1+2", off=["head 77"]),
        questions.answer("1+2", off=7),
        questions.answer(None),
        questions.draw(0),
        questions.draw(1_000_000),
        questions.draw("many"),
        questions.failures(0, 3),
        questions.failures("a", 3),
        questions.failures(3, 10**9),
        questions.breakage(["heads"]),
        questions.race("1+" + "1" * 400),
    ):
        assert set(described) == {"error"}
        assert "\n" not in described["error"]


def test_drawn_problems_have_the_digits_asked_for(questions):
    for digits in (1, 7, 60):
        first, second = questions.draw(digits)["problem"].split("+")
        assert len(first) == len(second) == digits


def test_the_slider_ends_where_the_format_does(shown_run, tmp_path, quick_settings):
    import abacist

    assert longest_drawn(shown_run) == 100
    settings = quick_settings | {"format": "coupled", "model.positions": "coupling"}
    settings |= {"format.operand_padding": "fixed", "training.num_steps": 10}
    run = abacist.train("add", out=tmp_path / "run", settings=settings, threads=1)
    assert longest_drawn(ShownRun("padded", run)) == 3


def test_python_calculates_what_the_tasks_do():
    problems = {
        "add": "12+34",
        "add-many": "1+2+3",
        "subtract": "3-12",
        "multiply": "12*34",
        "divide": "97//8",
        "modulo": "97%8",
        "sort": "a:82,b:9,c:82",
        "add-modulo": "95+30",
    }
    for name, text in problems.items():
        task = TASKS[name].build()
        problem = task.parse([text])
        assert plain_python(task.config, problem)() == task.answer(problem).texts()[0]


def test_the_race_says_who_wins(questions):
    described = questions.race("123456789+987654321")
    assert described["times_as_fast"] == pytest.approx(
        described["model_seconds"] / described["python_seconds"]
    )
    assert described["times_as_fast"] > 10


def test_a_grid_is_that_of_the_scorecard_or_a_small_one(shown_run, looped, monkeypatch):
    assert lengths.stored_grid(looped) is None
    grid = lengths.scored_grid(looped)
    assert grid.complete
    assert len(grid.count) == 6
    assert all(count for line in grid.count for count in line)
    monkeypatch.setattr(lengths, "_SECONDS", 0.0)
    assert not lengths.scored_grid(looped).complete
    looped.run.score(["grid"], grid_size=3, grid_problems=4)
    stored = lengths.stored_grid(ShownRun("again", looped.run))
    assert stored.stored
    assert len(stored.right) == 3


def test_failures_of_a_cell_are_problems_of_these_lengths_answered_wrongly(looped, shown_run):
    found = lengths.failures(looped, 3, 2)
    assert found.failures
    assert found.proportion.errors >= len(found.failures)
    for failed in found.failures:
        first, second = failed.problem.split("+")
        assert (len(first), len(second)) == (3, 2)
        assert str(int(first) + int(second)) == failed.expected != failed.answer
    assert lengths.failures(shown_run, 4, 4).proportion.n > 50


def test_switching_all_heads_off_breaks_it(questions, shown_run):
    described = questions.breakage(shown_run.heads)
    assert described["whole"]["value"] > 0.5
    assert described["without"]["value"] < 0.2
    assert questions.breakage([])["without"] == described["whole"]


def test_vectors_are_described_for_every_step_kept(questions):
    described = questions.vectors()
    assert described["steps"] == [0, 100, 200, 300, 400, 500]
    assert len(described["points"]) == 6
    assert [len(step) for step in described["points"]] == [10] * 6
    assert 0 < described["explained"] <= 1
    assert questions.vectors("unlearned")["steps"] == [24]
