"""The suite `strata`, against Python integers and generation."""

import math

import pytest
from trained_models import ignored, random_model

from abacist.intervals import Proportion
from abacist.models.teacher_forcing import coordinates_of
from abacist.scoring import strata
from abacist.scoring.measures import ALL, measure
from abacist.scoring.samples import as_in_training
from abacist.scoring.solving import solve
from abacist.scoring.strata import STRATA
from abacist.scoring.value_ranges import value_ranges
from abacist.tasks.config import TASKS


def longest_chain(a: int, b: int) -> int:
    """Number of consecutive columns that receive a carry, by schoolbook addition."""
    carry = run = longest = 0
    while a or b or carry:
        run = run + 1 if carry else 0
        longest = max(longest, run)
        carry = (a % 10 + b % 10 + carry) // 10
        a, b = a // 10, b // 10
    return longest


@pytest.fixture
def section(half_right):
    return STRATA.run(half_right, ignored)


@pytest.fixture
def solutions(half_right):
    """Operands and generated answer of every problem of the sample."""
    problems = as_in_training(half_right, 400, "strata")
    solved = solve(half_right, problems)
    return [(tuple(map(int, solution.problem.split("+"))), solution.answer) for solution in solved]


def _rows(section, kind):
    return {row.name: row.proportion for row in section.rows if row.kind == kind}


def test_exact_answer_is_reported_beside_the_exact_line(section, half_right):
    line, answer = section.rows[:2]
    assert (line.measure, answer.measure) == ("exact match", "exact answer")
    # Without scratch work they are the same.
    assert answer.proportion == line.proportion
    traced = random_model(TASKS["five-operations"], "carry-trace", "index-relative")
    rows = STRATA.run(traced, ignored).rows
    problems = as_in_training(traced, 100, "strata")
    assert rows[1].proportion == measure(traced, problems)[ALL].exact_answer


def test_each_way_to_split_the_sample_counts_every_problem_once(section):
    whole = _rows(section, "all")["as in training"]
    assert whole.n > 300
    assert 0 < whole.successes < whole.n
    for kind in ("longest operand", "longest carry chain"):
        assert sum(_rows(section, kind).values(), Proportion(0, 0)) == whole, kind


@pytest.mark.parametrize(
    ("kind", "label", "measure"),
    [
        ("longest operand", "longest operand: {} digit{}", lambda a, b: len(str(max(a, b)))),
        ("longest carry chain", "longest carry chain: {}", longest_chain),
    ],
)
def test_strata_agree_with_generation_and_python_integers(section, solutions, kind, label, measure):
    expected: dict[str, Proportion] = {}
    for (a, b), answer in solutions:
        value = measure(a, b)
        name = label.format(value, "s" * (value > 1))
        right = Proportion(int(answer == str(a + b)), 1)
        expected[name] = expected.get(name, Proportion(0, 0)) + right
    assert _rows(section, kind) == expected


def test_long_carry_chains_are_drawn(section):
    drawn = _rows(section, "drawn by carry chain")
    assert list(drawn) == [f"drawn by carry chain: {chain}" for chain in range(4)]
    assert all(proportion.n >= 40 for proportion in drawn.values())


def test_token_accuracy_and_perplexity_agree_with_one_line_at_a_time(half_right, section):
    problems = as_in_training(half_right, 400, "strata")
    model, format = half_right.model, half_right.format
    right: dict[int, Proportion] = {}
    perplexities, total, tokens = [], 0.0, 0
    for row in range(len(problems)):
        one = problems[row : row + 1]
        line = format.write(one, half_right.task.answer(one))
        logits = model(line.ids, coordinates_of(line))[0].detach().double().log_softmax(dim=-1)
        targets = line.target[0].nonzero().squeeze(1).tolist()
        logs = [float(logits[t - 1, line.ids[0, t]]) for t in targets]
        for t in targets:
            place = int(line.place[0, t])
            hit = int(logits[t - 1].argmax()) == int(line.ids[0, t])
            right[place] = right.get(place, Proportion(0, 0)) + Proportion(int(hit), 1)
        perplexities.append(math.exp(-sum(logs) / len(logs)))
        total, tokens = total + sum(logs), tokens + len(logs)
    rows = _rows(section, "tokens")
    assert rows.pop("all answer tokens") == sum(right.values(), Proportion(0, 0))
    assert rows == {f"tokens at place {place}": right[place] for place in sorted(right)}
    perplexity = section.details["perplexity"]
    assert perplexity["all tokens"] == pytest.approx(math.exp(-total / tokens), rel=1e-4)
    assert perplexity["worst problem"] == pytest.approx(max(perplexities), rel=1e-4)
    assert perplexity["median problem"] == pytest.approx(
        sorted(perplexities)[(len(perplexities) - 1) // 2], rel=1e-4
    )


def test_operations_have_rows_that_add_up():
    section = STRATA.run(random_model(TASKS["five-operations"]), ignored)
    rows = _rows(section, "operation")
    assert list(rows) == [f"operation: {o}" for o in ("+", "-", "*", "//", "%")]
    assert sum(row.n for row in rows.values()) == _rows(section, "all")["as in training"].n
    assert not _rows(section, "drawn by carry chain")
    chains = _rows(section, "longest carry chain")
    assert sum(row.n for row in chains.values()) == rows["operation: +"].n


def test_value_ranges_have_no_gap_or_overlap():
    assert strata.value_ranges is value_ranges
    assert value_ranges(3) == [(0, 0), (1, 1), (2, 2), (3, 3)]
    for largest in (25, 33, 100, 1_000):
        values = [v for low, high in value_ranges(largest) for v in range(low, high + 1)]
        assert values == list(range(largest + 1))
        assert len(value_ranges(largest)) < 20
