"""The suite `counterexamples`: it finds wrong answers, and does not exceed its budget."""

import pytest
import torch
from extension_tasks import column_task
from trained_models import ignored, random_model

from abacist.scoring.counterexamples import COUNTEREXAMPLES, mutated
from abacist.tasks.config import TASKS, ArithmeticConfig, ModularAdditionConfig, SortingConfig


def test_the_known_failure_of_an_undertrained_model_is_found(half_trained):
    section = COUNTEREXAMPLES.run(half_trained.trained_model(), ignored)
    details = section.details
    assert details["found"] == section.errors > 0
    assert details["smallest_margin"] < 0
    assert details["tried"] <= details["budget"] == 600
    (solution,) = half_trained.solve([details["problem"]])
    assert solution.answer != str(sum(map(int, details["problem"].split("+"))))
    assert section.failures[0].solution.correct is False


def test_mutations_come_closer_to_a_tie_than_random_problems(certified):
    section = COUNTEREXAMPLES.run(certified.trained_model(budget=6_000), ignored)
    margins = {row.name: row.smallest_margin for row in section.rows}
    assert section.details["found"] == 0
    assert section.details["tried"] == 6_000
    assert 0 < margins["mutations of the least confident"] <= margins["random problems"]
    assert section.details["smallest_margin"] == min(margins.values())
    assert all(row.proportion is None for row in section.rows)


def test_a_budget_of_one_problem_is_kept():
    section = COUNTEREXAMPLES.run(random_model(scoring={"budget": 1}), ignored)
    assert section.details["tried"] == 1


def test_ctrl_c_keeps_what_has_been_tried(certified):
    def interrupt(name, done, total):
        raise KeyboardInterrupt

    section = COUNTEREXAMPLES.run(certified.trained_model(budget=100), interrupt)
    assert section.complete is False
    assert section.details["tried"] == 25


@pytest.mark.parametrize(
    "config",
    [
        TASKS["add"],
        TASKS["add-many"],
        TASKS["subtract"],
        TASKS["five-operations"],
        TASKS["sort"],
        SortingConfig(min_numbers=1, max_numbers=1),
        ModularAdditionConfig(modulus=97),
        ArithmeticConfig(operations=("//", "%"), operand_digits=(5, 2)),
        column_task("test-add-three"),
        column_task("test-add-hexadecimal"),
    ],
    ids=lambda config: config.kind,
)
def test_mutations_are_problems_of_the_task(config):
    task = config.build()
    generator = torch.Generator().manual_seed(0)
    parents = task.draw(task.draw_shapes(60, generator), generator)
    children = mutated(task, parents, 20, generator)
    assert len(children) == 1_200
    expressions = task.expressions(children)
    assert task.expressions(task.parse(expressions)) == expressions
    before = [text for text in task.expressions(parents) for _ in range(20)]
    changed = sum(a != b for a, b in zip(before, expressions, strict=True))
    assert changed > 600
    if isinstance(config, ArithmeticConfig) and config.operand_digits:
        assert bool((children.lengths_BN == torch.tensor([5, 2])).all())
