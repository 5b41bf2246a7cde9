import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from abacist.tasks import digits
from abacist.tasks.problems import Problems


@st.composite
def operands(draw: st.DrawFn, longest: int = 1_000) -> int:
    """Integers of every length alike, digits often 0, 4, 5 or 9, so that carries run far."""
    length = draw(st.integers(1, 12) | st.integers(1, longest))
    alphabet = draw(st.sampled_from(["0123456789", "09", "045", "89", "9"]))
    return int(draw(st.text(alphabet, min_size=length, max_size=length)))


@st.composite
def complementary_operands(draw: st.DrawFn) -> tuple[int, int]:
    """Two numbers whose columns add up to 9 except for a few: the longest carry chains."""
    a = draw(operands(longest=200))
    width = len(str(a))
    b = 10**width - 1 - a
    changed = draw(st.lists(st.integers(0, width - 1), max_size=3))
    for column in changed:
        b = max(0, b + draw(st.sampled_from([-1, 1])) * 10**column)
    return a, b


def integers(digits_BW: Tensor) -> list[int]:
    return [int("".join(map(str, reversed(row)))) for row in digits_BW.tolist()]


def add(pairs: list[tuple[int, int]]) -> tuple[Tensor, Tensor]:
    problems = Problems.from_integers(list(pairs))
    return digits.add(problems.operand(0).digits_BW, problems.operand(1).digits_BW)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.tuples(operands(), operands()) | complementary_operands(), min_size=1, max_size=4)
)
def test_sums_equal_python_integers_at_any_length(pairs: list[tuple[int, int]]) -> None:
    sums, _ = add(pairs)
    assert integers(sums) == [a + b for a, b in pairs]


@settings(deadline=None, max_examples=60)
@given(st.tuples(operands(longest=60), operands(longest=60)) | complementary_operands())
def test_carry_into_a_column_is_what_the_columns_below_leave_over(pair: tuple[int, int]) -> None:
    a, b = pair
    _, carries = add([pair])
    expected = [
        int(a % 10**column + b % 10**column >= 10**column) for column in range(carries.shape[1])
    ]
    assert carries[0].tolist() == expected


def test_all_two_digit_sums_equal_python_integers() -> None:
    pairs = [(a, b) for a in range(100) for b in range(100)]
    sums, _ = add(pairs)
    assert integers(sums) == [a + b for a, b in pairs]


def test_one_carries_through_every_number_of_nines() -> None:
    pairs = [(10**length - 1, 1) for length in range(1, 81)]
    sums, carries = add(pairs)
    assert integers(sums) == [10**length for length in range(1, 81)]
    assert carries.sum(dim=1).tolist() == list(range(1, 81))


def test_nines_without_a_carry_from_below_pass_nothing_on() -> None:
    _, carries = add([(999_990, 9), (909_090, 90_909)])
    assert not carries.any()


def test_sums_and_carries_have_one_more_column_and_stay_bytes() -> None:
    sums, carries = add([(999, 1), (5, 5)])
    assert sums.shape == carries.shape == (2, 4)
    assert sums.dtype == carries.dtype == torch.uint8


def test_operands_are_left_unchanged() -> None:
    problems = Problems.from_integers([(999, 1), (12, 34)])
    before = problems.digits_BNW.clone()
    digits.add(problems.operand(0).digits_BW, problems.operand(1).digits_BW)
    assert torch.equal(problems.digits_BNW, before)


def test_operands_of_unequal_shapes_are_refused_with_both_shapes() -> None:
    a, b = torch.zeros(2, 3, dtype=torch.uint8), torch.zeros(2, 4, dtype=torch.uint8)
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(2, 4\)"):
        digits.add(a, b)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_leading_digit_is_not_zero_unless_it_is_the_only_one() -> None:
    lengths = torch.arange(2, 8).repeat(400)
    drawn = digits.draw(lengths, 7, generator())
    leading = drawn.gather(1, (lengths - 1).unsqueeze(1))
    assert (leading > 0).all()


def test_one_digit_numbers_take_all_ten_values_equally_often() -> None:
    drawn = digits.draw(torch.ones(20_000, dtype=torch.int64), 1, generator()).squeeze(1)
    counts = torch.bincount(drawn.long(), minlength=10)
    assert len(counts) == 10
    assert ((counts - 2_000).abs() < 250).all(), counts


def test_digits_beyond_the_length_are_zero() -> None:
    lengths = torch.arange(1, 6).repeat(50)
    drawn = digits.draw(lengths, 9, generator())
    beyond = torch.arange(9) >= lengths.unsqueeze(1)
    assert (drawn[beyond] == 0).all()


def test_leading_digits_one_to_nine_and_inner_digits_zero_to_nine_are_uniform() -> None:
    drawn = digits.draw(torch.full((20_000,), 3), 3, generator()).long()
    leading = torch.bincount(drawn[:, 2], minlength=10)
    assert leading[0] == 0
    assert ((leading[1:] - 20_000 / 9).abs() < 250).all(), leading
    for column in (0, 1):
        counts = torch.bincount(drawn[:, column], minlength=10)
        assert ((counts - 2_000).abs() < 250).all(), counts


def test_draw_has_a_column_of_digits_for_every_length_given() -> None:
    lengths = torch.tensor([[1, 2], [3, 4], [5, 6]])
    drawn = digits.draw(lengths, 6, generator())
    assert drawn.shape == (3, 2, 6)
    assert drawn.dtype == torch.uint8


def test_draw_is_a_function_of_the_generator() -> None:
    lengths = torch.full((10,), 8)
    first, again = (digits.draw(lengths, 8, generator(3)) for _ in range(2))
    assert torch.equal(first, again)
    assert not torch.equal(first, digits.draw(lengths, 8, generator(4)))
