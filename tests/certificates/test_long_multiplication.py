"""The enumeration of what a cell of a long multiplication sees, against problems that are really written.

What a query sees is described here by coordinates alone, as the model is told them.
"""

from collections.abc import Iterator
from itertools import product

import pytest
import torch
from torch import Tensor

from abacist.certificates import certificate, receptive_fields
from abacist.certificates.long_multiplication import LongMultiplicationEnumeration
from abacist.configuration import override
from abacist.formats.long_multiplication import LongMultiplicationFormat
from abacist.models.coordinates import Coordinates
from abacist.recipes import find
from abacist.runs.run import build_model, build_problems
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.config import ArithmeticConfig
from abacist.tasks.problems import Problems, Shapes

RECIPE = override(find("multiply"), {"model.width": 8, "model.mlp_width": 8})
TASK, FORMAT = build_problems(RECIPE)
MODEL = build_model(RECIPE)

Look = tuple[tuple[int, int], ...]
"""Return place and row, relative to the query, of every token in a receptive field."""
Seen = dict[Look, Tensor]
"""Return, by pattern, the distinct contexts and next tokens, each as one number."""


def look(coordinates: Coordinates) -> Look:
    assert coordinates.row is not None
    place, row = (
        torch.where(c[0] >= 0, c[0] - c[0, -1], -100).tolist()
        for c in (coordinates.place, coordinates.row)
    )
    return tuple(zip(place, row, strict=True))


def each_once(found: list[tuple[Look, Tensor]]) -> Seen:
    by_look: dict[Look, list[Tensor]] = {}
    for seen, rows in found:
        powers = 64 ** torch.arange(rows.shape[1])
        by_look.setdefault(seen, []).append((rows * powers).sum(dim=1).unique())
    return {seen: torch.cat(numbers).unique() for seen, numbers in by_look.items()}


def seen_in(problems: Problems) -> Iterator[tuple[Look, Tensor]]:
    """What every query of these problems, all of one shape, sees, and what follows."""
    lines = FORMAT.write(problems, TASK.answer(problems))
    visibility = receptive_fields.visibility_in(MODEL, lines[:1])
    assert lines.row is not None
    for target in lines.target[0].nonzero()[:, 0].tolist():
        tokens = receptive_fields.receptive_field(visibility, target - 1)
        at = Coordinates(torch.tensor([tokens]), lines.place[:1, tokens], lines.row[:1, tokens])
        yield look(at), lines.ids[:, [*tokens, target]].long()


def seen_in_all(shapes: list[Problems]) -> Seen:
    return each_once([found for problems in shapes for found in seen_in(problems)])


@pytest.fixture(scope="module")
def enumeration() -> LongMultiplicationEnumeration:
    assert isinstance(TASK, Arithmetic)
    assert isinstance(FORMAT, LongMultiplicationFormat)
    return LongMultiplicationEnumeration(MODEL, TASK, FORMAT)


@pytest.fixture(scope="module")
def listed(enumeration: LongMultiplicationEnumeration) -> Seen:
    return each_once(
        [
            (look(context.pattern.coordinates), torch.cat([context.ids, context.target[:, None]], 1))
            for part, _ in enumeration.parts()
            for context in part
        ]
    )  # fmt: skip


def drawn(lengths: tuple[int, int], count: int, seed: int = 0) -> Problems:
    generator = torch.Generator().manual_seed(seed)
    return TASK.draw(Shapes.of(torch.tensor([lengths]).expand(count, 2), "*"), generator)


def assert_holds(whole: Seen, part: Seen) -> None:
    assert set(part) <= set(whole)
    for seen, context in part.items():
        assert bool(torch.isin(context, whole[seen]).all()), seen


def test_all_products_of_two_digits_show_every_pattern_and_nothing_that_is_not_listed(listed):
    numbers = {1: range(10), 2: range(10, 100)}
    shapes = [
        Problems.from_texts(rows, ["*"] * len(rows))
        for first, second in product((1, 2), repeat=2)
        for rows in [[[str(a), str(b)] for a in numbers[first] for b in numbers[second]]]
    ]
    found = seen_in_all(shapes)
    assert set(found) == set(listed)
    assert_holds(listed, found)


def test_random_products_up_to_twelve_digits_show_nothing_that_is_not_listed(listed):
    shapes = [drawn((1 + 5 * k % 12, 1 + 7 * k % 12), 20, seed=k) for k in range(24)]
    found = seen_in_all(shapes)
    assert sum(map(len, found.values())) > 15_000
    assert_holds(listed, found)


def test_products_rich_in_nines_show_nothing_that_is_not_listed(listed):
    """The largest carries there are."""
    rows = [["9" * 8, f"{middle}9" * 3 + "9"] for middle in range(1, 10)]
    assert_holds(listed, seen_in_all([Problems.from_texts(rows, ["*"] * len(rows))]))


def test_longer_numbers_show_no_further_pattern(listed):
    for lengths in product(range(1, 8), repeat=2):
        assert {seen for seen, _ in seen_in(drawn(lengths, 1))} <= set(listed)


def test_everything_that_is_listed_is_shown_by_the_problem_made_from_it(enumeration, listed):
    """Together with the tests above: the enumeration holds all that can occur, and nothing else."""
    by_shape: dict[tuple[int, int], set[tuple[str, str]]] = {}
    for part, _ in enumeration.parts():
        _, _, origin = certificate._distinct(part)
        for row in origin.tolist():
            context, case = certificate._locate(part, row)
            first, second = context.operands(case)
            by_shape.setdefault((len(first), len(second)), set()).add((first, second))
    shapes = [
        Problems.from_texts([list(row) for row in rows], ["*"] * len(rows))
        for rows in by_shape.values()
    ]
    found = seen_in_all(shapes)
    assert_holds(found, listed)
    assert_holds(listed, found)


def test_the_neighbourhoods_are_those_counted_by_hand(listed):
    """Counts by the token that is to be written, and whether there is a multiplicand's digit and a row above.

    A carry is at most the multiplier's digit m: 55 pairs of both. In the first row it is less, or
    both are 0: 46 pairs.
    """
    first_carry = 1
    products = 10 * 46 + 10 * 55 * 10
    digits = products
    last_digits = 55
    # Behind a digit stand the multiplicand's digit, carry, product and digit: for 1 to 9, the product
    # tells the multiplier, so there are 55 pairs of it and the carry; for 0 any carry.
    work = 9 * 55 * 10 + 10 * 10
    # In the last row the multiplier is not 0, unless it is 0 as a whole and all that is written is 0.
    work_of_the_last_row = 9 * (54 * 10 + 1) + 10 * 10
    carries = work * 10 + work_of_the_last_row
    row_ends = 10 * 10 + 10
    by_hand = first_carry + products + digits + last_digits + carries + row_ends
    assert sum(map(len, listed.values())) == by_hand == 67_555
    assert len(listed) == 10


@pytest.mark.parametrize("sampling", ["lengths", "nines"])
def test_a_carry_is_at_most_the_multipliers_digit_and_less_in_the_first_row(sampling):
    """The invariants that context are left out by, in lines that are really written."""
    task = Arithmetic(ArithmeticConfig(operations=("*",), max_digits=9, sampling=sampling))
    assert isinstance(FORMAT, LongMultiplicationFormat)
    largest_seen = 0
    for lengths in ((9, 9), (2, 5), (5, 2), (1, 9)):
        shapes = Shapes.of(torch.tensor([lengths]).expand(300, 2), "*")
        problems = task.draw(shapes, torch.Generator().manual_seed(1))
        lines = FORMAT.write(problems, task.answer(problems))
        first, second = lengths
        work = lines.ids[:, 3 + first + second : -1].view(300, second, 3 * first + 2)
        carry = (
            torch.cat([work[..., : 3 * first : 3], work[..., -2:-1]], dim=2) - FORMAT.first_carry
        )
        multiplier = problems.operand(1).digits_BW[:, :second].int().unsqueeze(2)
        assert bool((carry >= 0).all())
        assert bool((carry <= multiplier).all())
        below = (carry < multiplier) | (carry == 0)
        assert bool(below[:, 0].all())
        largest_seen += int((carry[:, 1:] == multiplier[:, 1:]).sum())
    assert largest_seen > 0
