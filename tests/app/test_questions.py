"""The JSON interface: plain data, and one line for every mistake."""

import json
from dataclasses import replace

import pytest

import abacist
from abacist.app import lengths, page, race, vectors
from abacist.app.answer_card import answer_card
from abacist.app.answers import answer
from abacist.app.questions import Questions
from abacist.app.race import plain_python
from abacist.app.random_problems import examples, longest_drawn
from abacist.app.shown_runs import Gallery, ShownRun
from abacist.errors import UserError
from abacist.tasks.config import TASKS, SortingConfig


@pytest.fixture
def questions(gallery):
    return Questions(gallery)


def test_every_question_is_answered_with_json(questions):
    given = {"answer": ["12+34"], "race": ["12+34"], "failures": [3, 2], "draw": [5]}
    for name, question in questions.all().items():
        result = question(*given.get(name, []))
        assert "error" not in result, name
        json.dumps(result, allow_nan=False)


def test_mistakes_are_reported_in_one_line(questions):
    for result in (
        questions.answer("12+"),
        questions.answer("1+2", run="nobody"),
        questions.answer("1+2", off=["head 77"]),
        questions.answer("1+2", off=7),
        questions.answer(f"{'9' * 100}+1", off=["head 0"]),
        questions.answer(None),
        questions.draw(0),
        questions.draw(1_000_000),
        questions.draw("many"),
        questions.failures(0, 3),
        questions.failures("a", 3),
        questions.failures(3, 10**9),
        questions.ablation(["heads"]),
        questions.race("1+" + "1" * 400),
    ):
        assert set(result) == {"error"}
        assert "\n" not in result["error"]


@pytest.fixture
def hexadecimal(tmp_path, quick_settings, registries_as_before):
    """A run for a task of its own: sums in base 16."""

    @abacist.column_task("own-sum", base=16)
    def step(carry, digits):
        """Adds in base 16."""
        total = digits.sum(-1) + carry
        return total % 16, total // 16

    return ShownRun("own", abacist.train("own-sum", out=tmp_path / "own", settings=quick_settings))


def test_a_task_of_its_own_has_no_race(hexadecimal, shown_run):
    result = Questions(Gallery([hexadecimal])).race("a,f")
    assert result["error"].startswith("a race needs a task that plain Python can calculate, such")
    handlers = page._Handlers(Gallery([shown_run, hexadecimal]))
    title, button = handlers.change_run("own", "nothing")[-4:-2]
    assert (str(title), button.visible) == ("", False)


def test_the_vectors_are_those_of_all_digits_of_the_base(hexadecimal):
    result = vectors.vectors(hexadecimal)
    assert "".join(result.labels) == "0123456789abcdef"
    assert {len(points) for points in result.points} == {16}


def test_switching_parts_off_in_a_long_problem_is_refused_with_the_limit(questions):
    result = questions.answer("1" * 100 + "+" + "1" * 100, off=["head 0"])
    assert result["error"] == (
        "parts can be switched off for short problems only: this one needs up to 307 tokens, "
        "the limit is 200. Type fewer digits, or switch all parts on."
    )


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
    result = questions.race("123456789+987654321")
    assert result["times_as_fast"] == pytest.approx(
        result["model_seconds"] / result["python_seconds"]
    )
    assert result["times_as_fast"] > 10


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
    result = lengths.failures(looped, 3, 2)
    assert result.failures
    assert result.proportion.errors >= len(result.failures)
    for failed in result.failures:
        first, second = failed.problem.split("+")
        assert (len(first), len(second)) == (3, 2)
        assert str(int(first) + int(second)) == failed.expected != failed.answer
    assert lengths.failures(shown_run, 4, 4).proportion.n > 50


def test_failures_of_a_cell_are_those_of_the_model_without_its_parts(questions, shown_run):
    result = lengths.failures(shown_run, 4, 4, shown_run.heads)
    assert result.off == shown_run.heads
    assert result.proportion.errors > lengths.failures(shown_run, 4, 4).proportion.errors
    failed = result.failures[0]
    assert failed.answer == answer(shown_run, failed.problem, shown_run.heads).answer
    # In long lines no part can be switched off.
    assert lengths.failures(shown_run, 150, 150, shown_run.heads).off == []
    assert questions.failures(2, 2, off=["head 0"])["off"] == ["head 0"]


def test_switching_all_heads_off_breaks_it(questions, shown_run):
    result = questions.ablation(shown_run.heads)
    assert result["whole"]["value"] > 0.5
    assert result["without"]["value"] < 0.2
    assert questions.ablation([])["without"] == result["whole"]


def test_vectors_are_reported_for_every_step_kept(questions):
    result = questions.vectors()
    assert result["steps"] == [0, 100, 200, 300, 400, 500]
    assert len(result["points"]) == 6
    assert [len(step) for step in result["points"]] == [10] * 6
    assert 0 < result["explained"] <= 1
    assert questions.vectors("unlearned")["steps"] == [24]


_MANY = 52
"""Maximum number of numbers that can be sorted."""


@pytest.fixture(scope="module")
def sorting_run(tmp_path_factory, quick_settings) -> ShownRun:
    """A run that sorts more numbers than the alphabet has small letters, though not well."""
    import abacist

    settings = quick_settings | {
        "task": "sort",
        "task.max_numbers": 4,
        "task.max_digits": 2,
        "format": "insertion-sort",
    }
    out = tmp_path_factory.mktemp("sorting") / "run"
    shown_run = ShownRun("sorting", abacist.train("add", out=out, settings=settings, threads=1))
    # Training with lines of that length would take a minute.
    task = SortingConfig(max_numbers=_MANY, max_digits=2).build()
    shown_run.trained_model = replace(shown_run.trained_model, task=task)
    return shown_run


def test_sorting_begins_with_four_numbers(sorting_run):
    from abacist.app import page  # imports Gradio, which takes seconds

    assert page._first_problem(sorting_run).count(",") == 3
    assert [text.count(",") + 1 for text in examples(sorting_run).values()] == [4, 10, 4]


def test_a_race_sorts_more_numbers_than_the_alphabet_has_letters(sorting_run, monkeypatch):
    monkeypatch.setattr(race, "solve", lambda trained_model, problem: [Solved()])
    assert race.race(sorting_run, ",".join(map(str, range(_MANY, 0, -1)))).python_seconds > 0


class Solved:
    correct = True


def test_what_would_take_too_long_is_refused_at_once_with_a_proposal(sorting_run, monkeypatch):
    text = ",".join(map(str, range(_MANY, 0, -1)))
    monkeypatch.setattr(sorting_run, "seconds_per_token", 0.02)
    with pytest.raises(
        UserError, match=r"at most 20 s are allowed\. Type fewer numbers, for"
    ) as caught:
        answer(sorting_run, text)
    count = int(str(caught.value).rpartition("example ")[2].removesuffix("."))
    assert 10 < count < _MANY
    sorting_run.check_time(sorting_run.parse(",".join(text.split(",")[:count])))
    monkeypatch.setattr(sorting_run, "seconds_per_token", 0.001)
    sorting_run.check_time(sorting_run.parse(text))


def test_labels_are_shown_with_their_numbers(sorting_run):
    result = answer(sorting_run, "31,7,5,9")
    assert result.hints == {"a": "a is 31", "b": "b is 7", "c": "c is 5", "d": "d is 9"}
    card = answer_card(replace(result, answer="cbda", numbers=["5", "7", "9", "31"]))
    assert "5, 7, 9, 31" in card
    assert "a is 31" in card
