"""The enumeration of the calculator's neighbourhoods, against problems that are really written."""

from itertools import product

import pytest
import torch
from contexts_in_lines import Seen, counts_of, drawn, enumeration_for, listed_in, seen_in

from abacist.certificates import certificate
from abacist.certificates.joint_enumeration import JointEnumeration
from abacist.configuration import override
from abacist.formats.calculator import CalculatorFormat
from abacist.recipes import find
from abacist.runs.run import build_model, build_problems
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.problems import Problems

RECIPE = override(find("calculator"), {"model.width": 8, "model.mlp_width": 8})
TASK, FORMAT = build_problems(RECIPE)
MODEL = build_model(RECIPE)
TRAINED_MODEL = TrainedModel(MODEL, TASK, FORMAT)

COUNTS = {("+",): 24_518, ("-",): 24_518, ("*",): 67_555, ("//", "%"): 269_796}
"""Neighbourhoods of each notation, as they are counted by hand for the formats that have only one."""


@pytest.fixture(scope="module")
def enumeration() -> JointEnumeration:
    return enumeration_for(TRAINED_MODEL)


@pytest.fixture(scope="module")
def listed(enumeration: JointEnumeration) -> Seen:
    return listed_in(enumeration)


def test_the_neighbourhoods_are_those_of_the_four_notations_and_no_others(enumeration, listed):
    assert counts_of(enumeration) == COUNTS
    assert len(listed) == sum(COUNTS.values()) == 386_387


def test_no_pattern_belongs_to_two_notations(enumeration):
    keys = [pattern.key for pattern in enumeration.patterns]
    assert len(set(keys)) == len(keys) == 48


def test_all_problems_of_short_numbers_show_nothing_that_is_not_listed(listed):
    for operation in TASK.operations:
        rows = [[str(a), str(b)] for a, b in product(range(0, 100, 3), range(1, 100, 2))]
        found = seen_in(TRAINED_MODEL, Problems.from_texts(rows, [operation] * len(rows)))
        assert len(found) > 100
        assert found <= listed


@pytest.mark.parametrize("operation", TASK.operations)
def test_random_problems_show_nothing_that_is_not_listed(listed, operation):
    """Half of them are rich in nines, as the recipe draws them; either number may be the longer one."""
    for k in range(16):
        assert (
            seen_in(TRAINED_MODEL, drawn(TASK, operation, (1 + 5 * k % 12, 1 + 7 * k % 9), 20, k))
            <= listed
        )


def test_training_batches_show_nothing_that_is_not_listed(listed):
    generator = torch.Generator().manual_seed(0)
    problems = TASK.draw(TASK.draw_shapes(400, generator), generator)
    found = seen_in(TRAINED_MODEL, problems)
    assert len(found) > 5_000
    assert found <= listed


def test_a_task_of_two_operations_has_only_their_neighbourhoods():
    recipe = override(RECIPE, {"task.operations": "+,*", "task.weights": ""})
    task, format = build_problems(recipe)
    assert isinstance(format, CalculatorFormat)
    enumerated = certificate._enumeration(MODEL, task, format, 1e10)
    distinct = [certificate._distinct(part)[0] for part, _ in enumerated.parts()]
    assert sum(map(len, distinct)) == 24_518 + 67_555


def test_a_counterexample_is_a_problem_of_an_operation_that_the_wrong_neighbourhood_belongs_to(
    enumeration,
):
    """An untrained model is wrong everywhere; no problem made from a sum is asked as a division by 0."""
    for part, _ in enumeration.parts():
        lowest = [(-1.0, part[0], 0)]
        solution = certificate._counterexample(TRAINED_MODEL, lowest)
        assert solution is not None
        assert any(operation in solution.problem for operation in part[0].operations)
