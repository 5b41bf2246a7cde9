"""Failures: where they first go wrong, and what they have in common."""

import json

import torch
from trained_models import ignored

from abacist.scoring.failures import Tally, carry_chains
from abacist.scoring.strata import STRATA
from abacist.tasks.config import TASKS
from abacist.tasks.problems import Problems


def test_kept_failures_say_where_and_how_far_they_went_wrong(half_right):
    section = STRATA.run(half_right, ignored)
    assert 0 < len(section.failures) <= 100
    for failure in section.failures:
        record = json.loads(json.dumps(failure.to_json()))
        a, b = map(int, record["problem"].split("+"))
        assert record["prompt"] == f"<start>{str(a)[::-1]}+{str(b)[::-1]}="
        assert record["expected"] == str(a + b)
        assert record["margin"] < 0
        assert record["carry_chain"] == int(
            carry_chains(half_right.task, Problems.from_integers([(a, b)]))[0]
        )
        place = record["first_wrong_place"]
        right = record["expected"][::-1]
        if record["answer"] is not None:
            written = record["answer"][::-1]
            assert written[: place - 1] == right[: place - 1]
            assert written[place - 1 : place] != right[place - 1 : place]


def test_errors_count_each_problem_once_even_if_several_rows_include_it(half_right):
    section = STRATA.run(half_right, ignored)
    samples = [row for row in section.rows if row.kind in ("all", "drawn by carry chain")]
    assert section.errors == sum(row.proportion.errors for row in samples)


def test_common_features_are_what_failures_share_and_nothing_else():
    task = TASKS["add"].build()
    generator = torch.Generator().manual_seed(0)
    problems = task.draw(task.draw_shapes(4_000, generator), generator)
    tally = Tally(task)
    # A model that errs exactly on chains of 3, and always in the fourth column.
    wrong = task.longest_carry_chain(problems) == 3
    tally.add(problems, ~wrong)
    places = torch.arange(1, 11).expand(len(problems), -1)
    first_wrong = torch.where(wrong, 4, -1)
    tally.add_places(places, torch.ones_like(places, dtype=torch.bool), first_wrong)
    features = {(feature.name, feature.value): feature for feature in tally.common_features()}
    chain = features[("longest carry chain", "3")]
    assert chain.among_failures.value == 1
    assert chain.expected == float(wrong.double().mean())
    place = features[("first wrong place", "4")]
    assert (place.among_failures.value, round(place.expected, 6)) == (1, 0.1)
    assert not any(name == "operation" for name, _ in features)
    assert next(iter(features))[0] in ("longest carry chain", "first wrong place")


def test_a_model_without_failures_has_nothing_in_common():
    task = TASKS["add"].build()
    tally = Tally(task)
    tally.add(Problems.from_integers([(1, 2), (99, 1)]), torch.tensor([True, True]))
    assert tally.common_features() == []
    assert tally.failures == 0


def test_problems_without_a_measure_are_left_out_of_it():
    task = TASKS["five-operations"].build()
    tally = Tally(task)
    products = Problems.from_integers([(2, 3)] * 6, "*")
    tally.add(products, torch.zeros(6, dtype=torch.bool))
    assert tally.common_features() == []
