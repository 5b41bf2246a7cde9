"""The study of chosen examples: its list, its sweep, and the record and table that follow from it."""

import json

import pytest
from pretended import Pretended, outcome

from abacist.data.examples import listed_problems
from abacist.recipes import find
from abacist.sweeps import sweep


@pytest.fixture(scope="module")
def study(load_study):
    return load_study("chosen_examples")


@pytest.fixture(scope="module")
def listed(study):
    return study.LIST.read_text().split()


@pytest.fixture(scope="module")
def plan(study, listed):
    return study.choices(listed).plan()


def proved(trial):
    """Return the outcome of a trial that is certified from 125 chosen sums on."""
    is_certified = trial.group.contender in ("chosen-125", "chosen-150")
    wrong = 0 if is_certified else 1_000 + trial.seed
    result = outcome(trial.seed)
    result.certificate.update(
        certified=is_certified, wrong=wrong, neighbourhoods=24_518, smallest_margin=1.5
    )
    return result


def test_the_list_holds_training_problems_and_begins_with_varied_ones(study, listed):
    recipe = find("add")
    problems = listed_problems(recipe.task.build(), recipe.split, tuple(listed))
    assert len(problems) == max(study.COUNTS)
    assert listed[:20] == ["+".join(numbers) for numbers in study.choose(20)]


def test_a_column_shows_what_it_adds_and_what_it_carries(study):
    assert list(study.situations(("5", "17"))) == [
        ("adds", ("5", "7"), 0, True),
        ("carries", None, [False, False]),
        ("adds", (" ", "1"), 1, False),
        ("carries", (("5", "7"), 2), [True, False]),
        ("adds", (" ", " "), 0, False),
        ("carries", ((" ", "1"), 2), [True, True]),
    ]


def test_the_most_varied_sums_repeat_no_situation_that_can_be_avoided(study):
    pool = [("12", "34"), ("12", "35"), ("67", "89")]
    assert study.most_varied(pool, [("12", "34")], 2) == [("67", "89"), ("12", "35")]
    assert study.most_varied(pool[:1], [], 5) == pool[:1]


def test_a_sum_that_is_trained_on_and_still_wrong_is_not_listed_again(study):
    assert study.most_varied([("12", "34")], [("12", "34")], 1) == []


def test_what_a_model_gets_wrong_is_added(study, monkeypatch):
    asked = []
    monkeypatch.setattr(study, "NUM_FIRST", 3)
    monkeypatch.setattr(study, "NUM_ADDED", 2)
    monkeypatch.setattr(study, "POOL_SIZE", 20)
    wrong = [("1", "99"), ("5", "95"), ("2", "2")]
    monkeypatch.setattr(study, "mistakes", lambda chosen, seed: asked.append(seed) or wrong)
    chosen = study.choose(6)
    assert len(chosen) == 6
    assert asked == [100, 101]
    assert set(chosen[3:]) <= set(wrong)


def test_chosen_and_random_sums_are_compared_with_seeds_that_chose_nothing(study, plan, listed):
    assert not set(plan.seeds) & set(study.CHOOSING_SEEDS)
    for group in plan.groups:
        name, _, count = group.contender.partition("-")
        training = plan.recipe_of(group).training
        examples = training.examples if name == "chosen" else ()
        assert examples == tuple(listed[: len(examples)])
        assert int(count) == len(examples) or training.num_examples == int(count)


def test_the_record_and_the_table_follow_from_the_sweep(study, plan, tmp_path):
    sweep.start(plan, tmp_path / "sweep", Pretended(proved))
    record = study.record_of(tmp_path / "sweep")
    names = [(group["contender"], group["num_examples"]) for group in record["groups"]]
    assert names == [(name, count) for name in ("chosen", "random") for count in study.COUNTS]
    page = study.page("<!-- chosen -->\n<!-- end of chosen -->", record)
    assert "Every trial is finished." in page
    assert "| `chosen` | 125 | 10 of 10 (72–100 %) |" in page
    assert "| `random` | 150 | 0 of 10 (0–28 %) | 1,000, 1,001," in page


def test_the_table_of_the_page_is_that_of_the_committed_record(study):
    text = study.data_efficiency.PAGE.read_text()
    assert study.page(text, json.loads(study.RECORD.read_text())) == text
