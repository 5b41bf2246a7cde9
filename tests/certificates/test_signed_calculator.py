"""The enumeration of the calculator's neighbourhoods for signed operands, against written problems."""

import random

import pytest
import torch
from contexts_in_lines import (
    Seen,
    counts_of,
    drawn,
    each_once,
    enumeration_for,
    listed_in,
    rows_of,
    seen_in,
)

from abacist.certificates import certificate
from abacist.certificates.joint_enumeration import JointEnumeration
from abacist.configuration import override
from abacist.formats import non_restoring_division
from abacist.recipes import find
from abacist.runs.run import build_model, build_problems
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.config import ArithmeticConfig
from abacist.tasks.problems import Problems

RECIPE = override(
    find("calculator"),
    {"model.width": 8, "model.mlp_width": 8, "task.signed": "true"},
)
TASK, FORMAT = build_problems(RECIPE)
MODEL = build_model(RECIPE)
TRAINED_MODEL = TrainedModel(MODEL, TASK, FORMAT)

COUNTS = {("+",): 20_906, ("-",): 20_906, ("*",): 67_560, ("//", "%"): 272_837}
"""Neighbourhoods of each notation, as docs/certificate-calculator.md counts them."""


@pytest.fixture(scope="module")
def enumeration() -> JointEnumeration:
    return enumeration_for(TRAINED_MODEL)


@pytest.fixture(scope="module")
def listed(enumeration: JointEnumeration) -> Seen:
    return listed_in(enumeration)


def test_the_neighbourhoods_are_as_many_as_the_documentation_counts(enumeration, listed):
    assert counts_of(enumeration) == COUNTS
    assert len(listed) == sum(COUNTS.values()) == 382_209


@pytest.mark.parametrize("operation", TASK.operations)
def test_all_problems_of_short_numbers_show_nothing_that_is_not_listed(listed, operation):
    config = ArithmeticConfig(operations=(operation,), signed=True, max_digits=2)
    space = Arithmetic(config).space()
    assert space is not None
    found = seen_in(TRAINED_MODEL, space.problems(torch.arange(0, len(space), 17)))
    assert len(found) > 100
    assert found <= listed


@pytest.mark.parametrize("operation", TASK.operations)
def test_longer_problems_show_nothing_that_is_not_listed(listed, operation):
    """Half of them are rich in nines, as the recipe draws them; either number may be the longer one."""
    for k in range(16):
        problems = drawn(TASK, operation, (1 + 5 * k % 12, 1 + 7 * k % 9), 20, k)
        assert seen_in(TRAINED_MODEL, problems) <= listed


def test_every_neighbourhood_occurs_in_the_problem_that_is_made_from_it(enumeration):
    sample = random.Random(0)
    for part, _ in enumeration.parts():
        for context in part:
            rows = rows_of(context)
            for case in sample.sample(range(len(rows)), min(2, len(rows))):
                # A neighbourhood of divisions may show which of the two operators the problem has.
                operations = list(context.operations)
                rows_of_operands = [context.operands(case)] * len(operations)
                problems = Problems.from_texts(rows_of_operands, operations)
                assert each_once([rows[case : case + 1]]) <= seen_in(TRAINED_MODEL, problems)


def test_long_lines_show_the_same_contexts_to_the_model_as_receptive_fields_alone(enumeration):
    exact = certificate._double_copy(MODEL)
    with torch.no_grad():
        assert certificate._locality_error(exact, enumeration) < 1e-9


def test_the_claim_is_about_all_integers(enumeration):
    assert enumeration.claim.endswith(
        "of all pairs of integers of every length, except divisions by 0."
    )


def test_signs_that_no_model_can_distinguish_are_refused(monkeypatch):
    monkeypatch.setattr(non_restoring_division, "_DIVIDEND_SIGN_PLACE", 0)
    outcome = certificate.prove(TRAINED_MODEL)
    assert not outcome.certified
    assert "several tokens the same coordinates" in outcome.reason
