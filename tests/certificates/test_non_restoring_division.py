"""The enumeration of what the rows of a division see, against problems that are really written."""

from itertools import product

import pytest
import torch
from contexts_in_lines import Seen, drawn, each_once, listed_in, looks, rows_of, seen_in

from abacist.certificates.non_restoring_division import NonRestoringDivisionEnumeration
from abacist.configuration import override
from abacist.formats.non_restoring_division import NonRestoringDivisionFormat
from abacist.recipes import find
from abacist.runs.run import build_model, build_problems
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.problems import Problems, Shapes

RECIPE = override(find("divide"), {"model.width": 8, "model.mlp_width": 8})
TASK, FORMAT = build_problems(RECIPE)
MODEL = build_model(RECIPE)

TRAINED_MODEL = TrainedModel(MODEL, TASK, FORMAT)


def seen_in_all(operands: list[list[str]], operations: tuple[str, ...] = ("//", "%")) -> Seen:
    """In problems of any shapes, each once."""
    by_length: dict[tuple[int, int], list[list[str]]] = {}
    for row in operands:
        by_length.setdefault((len(row[0]), len(row[1])), []).append(row)
    return set().union(
        *(
            seen_in(TRAINED_MODEL, Problems.from_texts(some, [operation] * len(some)))
            for rows in by_length.values()
            for some in (rows[i : i + 200] for i in range(0, len(rows), 200))
            for operation in operations
        )
    )


@pytest.fixture(scope="module")
def enumeration() -> NonRestoringDivisionEnumeration:
    assert isinstance(TASK, Arithmetic)
    assert isinstance(FORMAT, NonRestoringDivisionFormat)
    return NonRestoringDivisionEnumeration(MODEL, TASK, FORMAT)


@pytest.fixture(scope="module")
def listed(enumeration: NonRestoringDivisionEnumeration) -> Seen:
    return listed_in(enumeration)


def test_all_divisions_of_short_numbers_show_nothing_that_is_not_listed(listed):
    found = seen_in_all([[str(a), str(b)] for a in range(100) for b in range(1, 100)], ("//",))
    assert len(found) > 10_000
    assert found <= listed


def test_thousands_of_random_divisions_show_every_pattern_and_nothing_that_is_not_listed(listed):
    """Half of them are rich in nines, as the recipe draws them; divisors may be the longer number."""
    found: Seen = set()
    for k, operation in product(range(36), ("//", "%")):
        lengths = (1 + 5 * k % 8, 1 + 7 * k % 9)
        found |= seen_in(TRAINED_MODEL, drawn(TASK, operation, lengths, 50, k))
    assert len(found) > 30_000
    assert found <= listed
    assert looks(found) == looks(listed)


EXTREMES = [
    *(["0", divisor] for divisor in ("1", "7", "10", "99", "123456")),
    *([dividend, "1"] for dividend in ("1", "9", "10", "98765", "9" * 12, "1" + "0" * 9)),
    *([number, number] for number in ("1", "9", "47", "999", "1000", "86420864")),
    *(["9" * n, "1" * m] for n, m in product((3, 6, 9), (1, 2, 3))),
    *(["9" * n, "9" * m] for n, m in product((1, 6, 9), (1, 2, 6, 8))),
    *(["1" + "0" * n, "9" * m] for n, m in product((1, 6), (1, 3, 8))),
    *(["1" + "0" * n, "1" + "0" * m] for n, m in product((1, 6), (1, 3, 8))),
    *([str(q * d + r), str(d)] for d in (8, 97, 54321) for q in (999, 9090, 1000) for r in (0, 1, d - 1)),
    ["123456789" * 4, "7"],
    ["3", "123456789" * 4],
    ["987654321" * 4, "987654321" * 3 + "98765432"],
]  # fmt: skip


def test_extreme_divisions_show_nothing_that_is_not_listed(listed):
    """Quotients of nothing but 9 or 0, one digit, equal numbers, longer divisors, very long numbers."""
    assert seen_in_all(EXTREMES) <= listed


def test_longer_numbers_show_no_further_pattern(listed):
    known = looks(listed)
    for number, lengths in enumerate(product((1, 2, 6, 10), repeat=2)):
        assert looks(seen_in(TRAINED_MODEL, drawn(TASK, "//", lengths, 2, number))) <= known


def test_what_is_listed_is_shown_by_the_problem_made_from_it(enumeration):
    """Some of each kind of row and column; docs/log.md tells of all."""
    chance = torch.Generator().manual_seed(0)
    for part, _ in enumeration.parts():
        for context in part:
            cases = torch.randint(len(context.target), (30,), generator=chance).tolist()
            found = seen_in_all([context.operands(case) for case in cases])
            assert each_once([rows_of(context)[cases]]) <= found


def test_the_neighbourhoods_are_those_counted_by_hand(enumeration, listed):
    """Counts by the kind of row and of column; what adds is counted by what subtracts."""
    # Digits i of the rows y and z, z = y - t with t = b + borrow from 0 to 10. The mark on y tells
    # whether y + b + another borrow reaches 10, which both is possible where y + t is 9 or 10.
    below = 10 * 11 + 20
    # Digit i of the rest, u, and z of the row below, by their marks. Without both marks or
    # with both everything goes; with one of them, u + z ≤ 8, or u + z ≥ 10.
    begins = 100 + 100 + 45 + 45
    # The row that returns subtracts what the one above added, so that both have a mark or none.
    returns = 10 * 11
    inside = {
        "in a step, or returning": (18 * below + returns) * 10 * 10,
        "beginning a later step": 2 * begins * 10,
        "beginning the first": 10 * 10 * 2 * 10,
        "beginning it, without anything above": 10 * 2 * 10,
    }
    # In the divisor's highest column a rest has a mark. Two operators.
    highest_that_begins = 2 * 2 * (100 + 45)
    highest_of_the_first = 2 * (9 + 10)
    # After the last column: y ≤ 9 - c before the row that counts c, and z ≤ 8 - c after it.
    beyond = 2 * (sum(19 - 2 * c for c in range(1, 9)) + 1) + 1
    beyond_that_begins = 2 * 10
    beyond_of_the_first = 2
    # The first digit of a row: 10 · 10 digits, after every count and below a row that began or did not.
    colons = 100 * (18 + 2 + 2) + 100 * (1 + 4)
    # What is done now and what was before; and `=`.
    says = 2 * (9 + 10) + 1
    by_hand = (
        sum(inside.values())
        + highest_that_begins
        + highest_of_the_first
        + beyond
        + beyond_that_begins
        + beyond_of_the_first
        + colons
        + says
        + 100
    )
    highest_in_a_step = 2 * 2 * highest_of_divisors_of_three_digits() + 2 * 55
    assert by_hand + highest_in_a_step == len(listed) == 269_796
    assert len(enumeration.patterns) == 18


def highest_of_divisors_of_three_digits() -> int:
    """What rows that count 1 to 9 show in the highest column of all divisors of three digits.

    Three are enough: the two below the highest leave room for every borrow with every other digit.
    """
    fewest: dict[int, int] = {}
    for divisor in range(100, 1000):
        left = torch.arange(9 * divisor)
        borrows = left % 1000 < divisor
        borrowed_above = left % 1000 + divisor >= 1000
        code = left // 100 * 100 + (left - divisor) // 100 % 10 * 10 + 2 * borrowed_above + borrows
        # What is less than k + 1 divisors is left before all rows that count up to 9 - k.
        for times in range(9):
            for content in code[left // divisor == times].unique().tolist():
                fewest[content] = min(times, fewest.get(content, times))
    return sum(9 - times for times in fewest.values())


@pytest.mark.parametrize("sampling", ["lengths", "nines"])
def test_rows_are_within_the_bounds_that_contents_are_left_out_by(sampling):
    """In lines that are really written: before the row that counts c, less than 10 - c divisors are left."""
    task, _ = build_problems(override(find("divide"), {"task.sampling": sampling}))
    most = 0.0
    for lengths in ((5, 3), (7, 1), (4, 2), (2, 4), (9, 5)):
        shapes = Shapes.of(torch.tensor([lengths]).expand(60, 2), "//")
        problems = task.draw(shapes, torch.Generator().manual_seed(1))
        lines = FORMAT.write(problems, task.answer(problems))
        width, work = lengths[1] + 3, int(lines.target[0].nonzero()[0])
        for ids, divisor in zip(lines.ids.tolist(), problems.operand(1).texts(), strict=True):
            tokens = [
                FORMAT.vocabulary.tokens[token] for token in ids[work : ids.index(FORMAT.end_id)]
            ]
            for begin in range(0, len(tokens) - 2, width):
                says, _, *digits = tokens[begin : begin + width]
                value = int("".join(digit[0] for digit in reversed(digits)))
                ends_step, adds = "'" in digits[-1], says[0] == "+"
                # What is below 0 is written as its complement.
                behind = value - 10 ** len(digits) * (ends_step != adds)
                before = -1 - (behind - int(divisor)) if adds else behind + int(divisor)
                count = 9 - int(says[1]) if adds else int(says[1])
                assert 0 <= before < (10 - count) * int(divisor)
                most = max(most, before / int(divisor))
    assert most > 9.9
