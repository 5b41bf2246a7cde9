import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from abacist.tasks.problems import Numbers, Problems, Shapes

NATURALS = st.integers(0, 20) | st.integers(0, 10**40)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(NATURALS, NATURALS), min_size=1, max_size=6))
def test_integers_come_back_from_the_digits_of_a_batch(rows: list[tuple[int, int]]) -> None:
    problems = Problems.from_integers(list(rows))
    assert problems.operand(0).texts() == [str(a) for a, _ in rows]
    assert problems.operand(1).texts() == [str(b) for _, b in rows]


def test_digits_are_least_significant_first_and_zero_beyond_the_length() -> None:
    problems = Problems.from_integers([(123, 4)])
    assert problems.digits_BNW.tolist() == [[[3, 2, 1], [4, 0, 0]]]
    assert problems.lengths_BN.tolist() == [[3, 1]]
    assert problems.digits_BNW.dtype == torch.uint8


def test_zero_has_one_digit() -> None:
    zeros = Problems.from_integers([(0, 0)])
    assert zeros.lengths_BN.tolist() == [[1, 1]]
    assert zeros.operand(0).texts() == ["0"]


def test_no_expressions_make_an_empty_batch() -> None:
    empty = Problems.from_texts([], [])
    assert len(empty) == 0
    assert empty.operand(1).texts() == []


def test_rows_are_chosen_by_slice_and_by_number() -> None:
    problems = Problems.from_integers([(1, 2), (30, 4), (5, 600)])
    assert problems[1:].operand(0).texts() == ["30", "5"]
    assert problems[torch.tensor([2, 0])].operand(1).texts() == ["600", "2"]


def test_numbers_count_their_rows() -> None:
    assert len(Numbers(torch.zeros(3, 2, dtype=torch.uint8), torch.ones(3))) == 3


def test_digits_and_lengths_of_unequal_batches_are_refused_with_both_shapes() -> None:
    digits, lengths = torch.zeros(2, 2, 3, dtype=torch.uint8), torch.ones(3, 2)
    with pytest.raises(ValueError, match=r"\(2, 2, 3\) and lengths \(3, 2\)"):
        Problems(digits, Shapes.of(lengths, "+"))
