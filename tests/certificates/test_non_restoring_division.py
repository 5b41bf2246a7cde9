"""The enumeration of what the rows of a division see, against problems that are really written.

What a query sees is described here by coordinates alone, as the model is told them.
"""

from itertools import product

import pytest
import torch
from torch import Tensor

from abacist.certificates import receptive_fields
from abacist.certificates.non_restoring_division import NonRestoringDivisionEnumeration
from abacist.configuration import override
from abacist.formats.non_restoring_division import NonRestoringDivisionFormat
from abacist.models.teacher_forcing import coordinates_of
from abacist.recipes import find
from abacist.runs.run import build_model, build_problems
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.problems import Problems, Shapes

RECIPE = override(find("divide"), {"model.width": 8, "model.mlp_width": 8})
TASK, FORMAT = build_problems(RECIPE)
MODEL = build_model(RECIPE)

SLOTS = 7
"""Largest number of tokens that a query sees, with itself."""
FAR = 9
"""More than any difference of coordinates in a window; stands for a token that has none."""

Seen = set[tuple[int, ...]]
"""Every content once: for each token of the reach its id and where it stands, as seen from the query,
in one number; then the token that follows."""


def coded(ids: Tensor, differences: list[Tensor], following: Tensor) -> Tensor:
    """(n, SLOTS + 1) from ids (n, R), differences of coordinates (n, R) each, and what follows (n,)."""
    code = ids.long() + 1
    for difference in differences:
        code = 2 * FAR * code + difference.clamp(-FAR, FAR - 1) + FAR
    padded = torch.nn.functional.pad(code, (0, SLOTS - code.shape[1]))
    return torch.cat([padded, following.long().unsqueeze(1)], dim=1)


def each_once(rows: list[Tensor]) -> Seen:
    return set(map(tuple, torch.cat(rows).unique(dim=0).tolist()))


def looks(seen: Seen) -> Seen:
    """Where tokens stand, whatever they are."""
    size = (2 * FAR) ** 3
    return {tuple(code % size for code in row[:-1]) for row in seen}


def seen_in(problems: Problems) -> Tensor:
    """What every query of these problems sees, and what follows, (n, SLOTS + 1)."""
    lines = FORMAT.write(problems, TASK.answer(problems))
    visible = MODEL.visibility(coordinates_of(lines))[0]
    line, query = lines.target[:, 1:].nonzero().unbind(dim=1)
    seen = visible[line, query]
    assert int(seen.sum(dim=1).max()) <= SLOTS
    order = seen.byte().sort(dim=1, descending=True, stable=True).indices[:, :SLOTS]
    at = line.unsqueeze(1)
    differences = []
    for coordinate in (lines.place, lines.row, lines.step):
        assert coordinate is not None
        values, own = coordinate[at, order], coordinate[line, query].unsqueeze(1)
        differences.append(torch.where(values >= 0, values - own, -FAR).long())
    rows = coded(lines.ids[at, order], differences, lines.ids[line, query + 1])
    rows[:, :-1] *= seen.gather(1, order)
    return rows


def seen_in_all(operands: list[list[str]], operations: tuple[str, ...] = ("//", "%")) -> Seen:
    """In problems of any shapes, each once."""
    by_length: dict[tuple[int, int], list[list[str]]] = {}
    for row in operands:
        by_length.setdefault((len(row[0]), len(row[1])), []).append(row)
    return each_once(
        [
            seen_in(Problems.from_texts(rows[i : i + 200], [operation] * len(rows[i : i + 200])))
            for rows in by_length.values()
            for i in range(0, len(rows), 200)
            for operation in operations
        ]
    )


@pytest.fixture(scope="module")
def enumeration() -> NonRestoringDivisionEnumeration:
    assert isinstance(TASK, Arithmetic)
    assert isinstance(FORMAT, NonRestoringDivisionFormat)
    return NonRestoringDivisionEnumeration(MODEL, TASK, FORMAT)


def rows_of(context: receptive_fields.Context) -> Tensor:
    at = context.pattern.coordinates
    assert at.row is not None
    assert at.step is not None
    count = len(context.target)
    differences = [
        torch.where(c >= 0, c - c[:, -1:], -FAR).long().expand(count, -1)
        for c in (at.place, at.row, at.step)
    ]
    return coded(context.ids, differences, context.target)


@pytest.fixture(scope="module")
def listed(enumeration: NonRestoringDivisionEnumeration) -> Seen:
    return each_once([rows_of(context) for part, _ in enumeration.parts() for context in part])


def drawn(lengths: tuple[int, int], count: int, seed: int, operation: str = "//") -> Problems:
    shapes = Shapes.of(torch.tensor([lengths]).expand(count, 2), operation)
    return TASK.draw(shapes, torch.Generator().manual_seed(seed))


def test_all_divisions_of_short_numbers_show_nothing_that_is_not_listed(listed):
    found = seen_in_all([[str(a), str(b)] for a in range(100) for b in range(1, 100)], ("//",))
    assert len(found) > 10_000
    assert found <= listed


def test_thousands_of_random_divisions_show_every_pattern_and_nothing_that_is_not_listed(listed):
    """Half of them are rich in nines, as the recipe draws them; divisors may be the longer number."""
    found = each_once(
        [
            seen_in(drawn((1 + 5 * k % 8, 1 + 7 * k % 9), 50, seed=k, operation=operation))
            for k in range(36)
            for operation in ("//", "%")
        ]
    )
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
    for number, lengths in enumerate(product((1, 2, 6, 10), repeat=2)):
        found = each_once([seen_in(drawn(lengths, 2, seed=number))])
        assert looks(found) <= looks(listed)


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
