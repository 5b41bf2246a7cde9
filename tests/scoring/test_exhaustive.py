"""The suite `exhaustive`: every problem, no more and no less."""

from dataclasses import replace

import pytest
from trained_models import ignored, random_model

from abacist.scoring import exhaustive as module
from abacist.scoring.exhaustive import EXHAUSTIVE
from abacist.scoring.solving import solve
from abacist.tasks.config import TASKS, ArithmeticConfig, ModularAdditionConfig


def test_all_problems_are_scored_as_generation_answers_them(half_right, monkeypatch):
    monkeypatch.setattr(module, "PROBLEMS_PER_CHUNK", 400)
    small = replace(half_right, task=ArithmeticConfig(operand_digits=(2, 1)).build())
    section = EXHAUSTIVE.run(small, ignored)
    everything = small.task.parse([f"{a}+{b}" for a in range(10, 100) for b in range(10)])
    solved = solve(small, everything)
    wrong = [solution.problem for solution in solved if not solution.correct]
    row = section.rows[0]
    assert (row.name, row.proportion.n, row.proportion.errors) == (
        "all problems",
        900,
        len(wrong),
    )
    assert section.errors == len(wrong) > 0
    assert section.details["wrong"] == wrong[:1_000]


def test_operations_and_the_test_split_have_rows_of_their_own():
    task = ArithmeticConfig(operations=("+", "//"), max_digits=1)
    section = EXHAUSTIVE.run(random_model(task), ignored)
    rows = {row.name: row.proportion.n for row in section.rows}
    assert (rows["all problems"], rows["operation +"], rows["operation //"]) == (190, 100, 90)
    assert 0 < rows["of the test split"] < 60


@pytest.mark.parametrize(
    "task",
    [
        ArithmeticConfig(operations=("+", "%"), max_digits=6),
        ArithmeticConfig(operations=("+", "%"), min_digits=3, max_digits=6),
        ArithmeticConfig(operations=("+", "%"), operand_digits=(2, 3)),
    ],
)
def test_all_problems_of_other_lengths_than_in_training(task):
    one_digit = random_model(task, scoring={"exhaustive_digits": 1})
    assert EXHAUSTIVE.obstacle(one_digit) is None
    section = EXHAUSTIVE.run(one_digit, ignored)
    rows = {row.name: row.proportion.n for row in section.rows}
    assert (rows["operation +"], rows["operation %"]) == (100, 90)


def test_other_lengths_are_for_numbers_that_have_lengths():
    residues = random_model(
        ModularAdditionConfig(modulus=7),
        "residues",
        "index-relative",
        scoring={"exhaustive_digits": 2},
    )
    assert "is for arithmetic, got 2 with the task" in EXHAUSTIVE.obstacle(residues)


def test_all_sums_modulo_a_prime():
    trained_model = random_model(ModularAdditionConfig(modulus=7), "residues", "index-relative")
    section = EXHAUSTIVE.run(trained_model, ignored)
    assert section.rows[0].proportion.n == 49


def test_a_large_space_is_refused_with_what_to_type():
    six = EXHAUSTIVE.obstacle(random_model(ArithmeticConfig(max_digits=6)))
    assert "1,000,000,000,000 problems, and this suite scores at most 20,000,000" in six
    assert six.endswith("Try --suite counterexamples, --exhaustive-digits 3.")
    three = random_model(scoring={"largest_space": 999_999})
    assert "or --largest-space 1000000." in EXHAUSTIVE.obstacle(three)
    assert EXHAUSTIVE.obstacle(random_model()) is None


@pytest.mark.parametrize("task", ["sort", "add-many"])
def test_spaces_that_cannot_be_enumerated_are_refused(task):
    format = "labels" if task == "sort" else "reversed"
    trained_model = random_model(TASKS[task], format, positions="index-relative")
    assert "cannot be enumerated" in EXHAUSTIVE.obstacle(trained_model)
