"""Which rows of scorecards are compared, and which ask the same problems whatever the training."""

from dataclasses import replace

import pytest

from abacist.intervals import Proportion
from abacist.recipes import RECIPES
from abacist.scoring.comparison import RowKey, common_rows, shares_of
from abacist.scoring.probes import _probes
from abacist.scoring.records import Row, Scorecard, Section
from abacist.scoring.trained_model import TrainedModel

SAME_LENGTHS = [
    ("lengths", "1 digit"),
    ("lengths", "≤ 10 digits, all pairs"),
    ("lengths", "10,000 digits, unequal"),
    ("lengths", "99…9+1, 20 digits"),
    ("grid", "both ≤ 10 digits"),
    ("recurrences", "20 digits, 4 recurrences"),
    ("sample", "100 + 100 digits"),
    ("sample", "2–10 numbers of 1–10 digits"),
    ("probes", "single digits, 0+0 to 9+9"),
    ("probes", "+: 21–30 digits, random"),
]
OTHER_LENGTHS = [
    ("lengths", "as in training"),
    ("lengths", "5 to 10 digits, all pairs"),
    ("grid", "all cells, 8 recurrences"),
    ("grid", "equal lengths"),
    ("recurrences", "trained lengths, 4 recurrences"),
    ("probes", "99…9+1 and 1+99…9"),
    ("probes", "patterns of up to 16 digits, beyond training"),
    ("strata", "longest carry chain: 3"),
    ("strata", "tokens at place 1"),
    ("notation", "none: 12345+678="),
    ("splits", "test problems"),
    ("exhaustive", "all problems"),
]


@pytest.mark.parametrize(("suite", "name"), SAME_LENGTHS + OTHER_LENGTHS, ids=" ".join)
def test_only_rows_of_a_stated_length_are_compared_after_other_training(suite, name):
    shares = {RowKey(suite, name, "exact match"): [Proportion(1, 2)]}
    assert len(common_rows([shares, shares])) == 1
    expected = 1 if (suite, name) in SAME_LENGTHS else 0
    assert len(common_rows([shares, shares], trained_alike=False)) == expected


def test_probes_of_a_stated_length_are_the_same_whatever_the_training():
    recipe = RECIPES["add"]()
    asked: dict[str, set[tuple[str, ...]]] = {}
    for max_digits in (1, 2, 5, 10, 20):
        task = replace(recipe.task, max_digits=max_digits).build()
        model = TrainedModel(None, task, recipe.format.build(recipe.task))
        for probe in _probes(model, "+"):
            if RowKey("probes", probe.name, "exact match").states_length:
                asked.setdefault(probe.name, set()).add(tuple(task.expressions(probe.problems)))
    assert asked.keys() == {"single digits, 0+0 to 9+9", "21–30 digits, random"}
    assert all(len(problems) == 1 for problems in asked.values())


def test_a_row_without_problems_is_not_compared():
    def card(n: int) -> Scorecard:
        rows = [Row("1 digit", "trained", 1, Proportion(0, n)), Row("2 digits", "trained", 2, None)]
        return Scorecard({"lengths": Section("by length", rows)})

    assert len(common_rows([shares_of(card(3)), shares_of(card(4))])) == 1
    assert common_rows([shares_of(card(3)), shares_of(card(0))]) == []
