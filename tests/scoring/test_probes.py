"""The suite `probes`: problems that people try first."""

from trained_models import ignored, random_model

from abacist.scoring.probes import PROBES
from abacist.tasks.config import TASKS, SortingConfig


def _rows(section):
    return {row.name: row for row in section.rows}


def test_a_certified_model_passes_every_probe(certified):
    rows = _rows(PROBES.run(certified.trained_model(), ignored))
    assert all(row.proportion.errors == 0 for row in rows.values())
    assert rows["single digits, 0+0 to 9+9"].proportion.n == 100
    assert rows["99…9+1 and 1+99…9"].proportion.n == 20
    assert rows["99…9+1 and 1+99…9, beyond training"].digits == 20
    assert rows["21–30 digits, random"].proportion.n == 100
    assert rows["edge cases of 3 digits"].proportion.n == 6
    assert rows["a+b and b+a answered alike"].measure == "same answer"


def test_single_digits_and_edge_cases_agree_with_generation(half_trained):
    rows = _rows(PROBES.run(half_trained.trained_model(), ignored))
    asked = {
        "single digits, 0+0 to 9+9": [f"{a}+{b}" for a in range(10) for b in range(10)],
        "edge cases of 3 digits": ["123+456", "999+1", "0+0", "999+999", "500+500", "111+222"],
        "patterns of up to 16 digits, beyond training": [
            "999999+1",
            "1+999999",
            "999999999999999+1",
            "1000000000000000+1000000000000000",
            "123456789+987654321",
        ],
    }
    for name, expressions in asked.items():
        right = sum(solution.correct for solution in half_trained.solve(expressions))
        assert (rows[name].proportion.successes, rows[name].proportion.n) == (
            right,
            len(expressions),
        )


def test_both_orders_of_single_digits_are_counted_as_the_notebook_does(half_trained):
    section = PROBES.run(half_trained.trained_model(), ignored)
    by_measure = {row.measure: row.proportion for row in section.rows if row.kind == "commuted"}
    right = {
        (a, b): half_trained.solve(f"{a}+{b}")[0].correct for a in range(10) for b in range(10)
    }
    both = [right[a, b] and right[b, a] for a in range(10) for b in range(a + 1, 10)]
    assert (by_measure["both right"].successes, by_measure["both right"].n) == (sum(both), 45)
    answers = [right[pair] for a in range(10) for b in range(a, 10) for pair in ((a, b), (b, a))]
    assert by_measure["answers right"].successes == sum(answers)
    assert by_measure["answers right"].n == len(answers) == 110


def test_both_orders_are_compared_by_the_written_answers(half_trained):
    from abacist.scoring.samples import as_in_training

    trained_model = half_trained.trained_model()
    row = _rows(PROBES.run(trained_model, ignored))["a+b and b+a answered alike"]
    pairs = trained_model.task.expressions(as_in_training(trained_model, 400, "commuted")[:100])
    swapped = ["+".join(reversed(pair.split("+"))) for pair in pairs]
    answers = zip(half_trained.solve(pairs), half_trained.solve(swapped), strict=True)
    assert row.proportion.successes == sum(a.answer == b.answer for a, b in answers)
    assert row.proportion.n == 100


def test_every_operation_is_probed_and_nothing_is_divided_by_zero():
    rows = _rows(PROBES.run(random_model(TASKS["five-operations"]), ignored))
    assert rows["+: single digits, 0+0 to 9+9"].proportion.n == 100
    assert rows["//: single digits, 0//0 to 9//9"].proportion.n == 90
    assert "-: 10…0-1 and 1-10…0" in rows
    assert "a*b and b*a answered alike" in rows


def test_problems_that_a_notation_cannot_write_get_a_note():
    rows = _rows(PROBES.run(random_model(format="zero-padded"), ignored))
    assert rows["21–30 digits, random"].proportion is None
    assert "pads to 3" in rows["21–30 digits, random"].note


def test_probes_of_sorting_are_lists_in_order_or_with_equal_numbers():
    config = SortingConfig(max_numbers=12, max_digits=3)
    trained_model = random_model(config, "labels", positions="index-relative")
    assert PROBES.obstacle(trained_model) is None
    rows = _rows(PROBES.run(trained_model, ignored))
    # 2, 10 and 12 numbers; of 30 digits no more than 10.
    assert rows["all equal, 1 digit"].proportion.n == 3
    assert rows["in reverse order, 10 digits, beyond training"].proportion.n == 3
    assert rows["99…9 and 10…0, 30 digits, beyond training"].proportion.n == 2
    assert len(rows) == 24


def test_other_tasks_are_refused():
    trained_model = random_model(TASKS["add-modulo"], "residues", positions="index-relative")
    assert "probes for calculations and sorting only" in PROBES.obstacle(trained_model)
