"""The enumeration of what a token of a sorting sees, against problems that are really written.

What a query sees is described here by coordinates alone, as the model is told them.
"""

import random
from itertools import product

import pytest
import torch

from abacist.certificates import certificate, receptive_fields
from abacist.certificates.insertion_sort import InsertionSortEnumeration
from abacist.configuration import override
from abacist.formats.annotated import EVERYWHERE
from abacist.formats.insertion_sort import InsertionSortFormat
from abacist.recipes import find
from abacist.runs.run import build_model, build_problems
from abacist.tasks.sorting import Sorting

Seen = set[tuple[tuple[int, ...], int]]
"""The tokens in a reach, and the one that follows."""


def setting(most: int) -> tuple[Sorting, InsertionSortFormat]:
    task, format = build_problems(recipe(most))
    assert isinstance(task, Sorting)
    assert isinstance(format, InsertionSortFormat)
    return task, format


def recipe(most: int):
    small = {"model.width": 8, "model.mlp_width": 8, "training.curriculum": ()}
    return override(find("sort"), {**small, "task.max_numbers": most})


def seen_in(most: int, rows: list[list[int]]) -> Seen:
    """What every query of these problems sees, and what follows.

    It sees itself, the first token, which is everywhere, and what stands in its row and place.
    """
    task, format = setting(most)
    seen: Seen = set()
    for row in rows:
        problems = task.parse([",".join(map(str, row))])
        line = format.write(problems, task.answer(problems))
        ids, rows_T, places, steps = (
            tensor[0].tolist() for tensor in (line.ids, line.row, line.place, line.step)
        )
        first = line.target[0].tolist().index(True)
        where = list(zip(rows_T, places, strict=True))
        # The prompt stands in every step, and no two of its tokens in one row and place.
        assert set(steps[:first]) == {EVERYWHERE}
        assert steps[first:] == list(range(1, len(steps) - first + 1))
        standing = {at: token for token, at in enumerate(where[:first]) if -1 not in at}
        assert len(standing) == sum(-1 not in at for at in where[:first])
        for target in range(first, len(ids)):
            query = target - 1
            assert -1 not in where[query]
            pointed_to = standing.get(where[query])
            tokens = sorted({0, query} | ({pointed_to} - {None}))
            seen.add((tuple(ids[token] for token in tokens), ids[target]))
    return seen


def listed_for(most: int) -> Seen:
    return {
        (tuple(ids), target)
        for part, _ in enumeration_for(most).parts()
        for context in part
        for ids, target in zip(context.ids.tolist(), context.target.tolist(), strict=True)
    }


def enumeration_for(most: int) -> InsertionSortEnumeration:
    return InsertionSortEnumeration(build_model(recipe(most)), *setting(most))


def shown_by_their_problems(most: int) -> Seen:
    """What is seen in the problems that are made from all that is listed."""
    rows = set()
    for part, _ in enumeration_for(most).parts():
        _, _, origin = certificate._distinct(part)
        for row in origin.tolist():
            context, case = certificate._locate(part, row)
            rows.add(tuple(map(int, context.operands(case))))
    return seen_in(most, [list(row) for row in rows])


@pytest.mark.parametrize("most", [2, 3, 4])
def test_all_sortings_of_few_short_numbers_show_nothing_that_is_not_listed(most):
    """Numbers of one and two digits, of which some begin with every digit."""
    numbers = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 21, 32, 43, 54, 65, 76, 87, 98, 99]
    few = numbers if most == 2 else [0, 1, 9, 10, 11, 90] if most == 3 else [0, 1, 10]
    counts = range(2, most + 1)
    rows = [list(row) for count in counts for row in product(few, repeat=count)]
    found = seen_in(most, rows)
    assert found <= listed_for(most)


@pytest.mark.parametrize("most", [2, 3, 4, 9])
def test_everything_that_is_listed_is_shown_by_the_problem_made_from_it(most):
    """Together with the other tests: the enumeration holds all that can occur, and nothing else."""
    assert shown_by_their_problems(most) == listed_for(most)


def test_random_sortings_show_nothing_that_is_not_listed():
    chance = random.Random(0)
    rows = [
        [chance.randrange(10 ** chance.randint(1, most)) for _ in range(chance.randint(2, 52))]
        for most in (1, 2, 3, 10) * 3
    ]
    found = seen_in(52, rows)
    assert len(found) > 1_000
    assert found <= listed_for(52)


@pytest.mark.parametrize("most", [3, 10, 52])
def test_the_neighbourhoods_are_those_counted_by_hand(most):
    """Counts by the token that is written; a label that may stand in a list before is one of all but the last."""
    in_list = most - 1
    behind_equals = 1
    # The digits of the first in the list, or nothing.
    behind_commas = 10 + 1
    # The last label but one cannot precede a 0: the two would be equal, and the other comes first.
    digits_behind_labels = 10 * in_list - 1 + in_list
    labels_behind_labels = most * (most - 1)
    ends_of_lists = in_list + most
    # Two digits, or a leading one and nothing.
    comparisons = 100 + 9
    behind_comparisons = 3 * in_list + 10
    by_hand = (
        behind_equals + behind_commas + digits_behind_labels + labels_behind_labels
        + ends_of_lists + comparisons + behind_comparisons
    )  # fmt: skip
    assert len(listed_for(most)) == by_hand
    if most == 52:
        assert by_hand == 3_599
    assert len({len(ids) for ids, _ in listed_for(most)}) == 2


def test_longer_and_more_numbers_show_no_further_pattern():
    enumeration = enumeration_for(52)
    known = {pattern.key for pattern in enumeration.patterns}
    assert len(known) == 10
    model = build_model(recipe(52))
    for ids, skeletons in enumeration.long_lines():
        visibility = receptive_fields.visibility_in(model, skeletons[0].line)
        assert ids.shape[1] > 100
        for skeleton in skeletons[::40]:
            found = receptive_fields.pattern_of(skeleton, visibility, skeleton.queries[0])
            assert found.key in known


def test_what_is_seen_is_never_followed_by_two_different_tokens():
    reached = [ids for ids, _ in listed_for(52)]
    assert len(set(reached)) == len(reached)
    assert torch.tensor([len(ids) for ids in reached]).max() == 3
