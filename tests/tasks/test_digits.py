from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from naturals import complementary_naturals, divisions, naturals, near_naturals
from torch import Tensor

from abacist.tasks import digits
from abacist.tasks.problems import Problems


def integers(digits_BW: Tensor) -> list[int]:
    return [int("".join(map(str, reversed(row)))) for row in digits_BW.tolist()]


def operands(pairs: list[tuple[int, int]]) -> tuple[Tensor, Tensor]:
    """Digits of the first and of the second numbers, equally wide."""
    problems = Problems.from_integers(list(pairs))
    return problems.operand(0).digits_BW, problems.operand(1).digits_BW


def divide(pairs: list[tuple[int, int]]) -> digits.LongDivision:
    """The division of dividends by divisors that are only as wide as the longest of them."""
    dividends, divisors = operands(pairs)
    return digits.divide(dividends, divisors[:, : max(len(str(b)) for _, b in pairs)])


def add(pairs: list[tuple[int, int]]) -> tuple[Tensor, Tensor]:
    return digits.add(*operands(pairs))


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.tuples(naturals(), naturals()) | complementary_naturals(), min_size=1, max_size=4)
)
def test_sums_equal_python_integers_at_any_length(pairs: list[tuple[int, int]]) -> None:
    sums, _ = add(pairs)
    assert integers(sums) == [a + b for a, b in pairs]


@settings(deadline=None, max_examples=60)
@given(st.tuples(naturals(longest=60), naturals(longest=60)) | complementary_naturals())
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
    a, b = problems.operand(0).digits_BW, problems.operand(1).digits_BW
    for calculate in (digits.add, digits.subtract, digits.multiply, digits.divide):
        calculate(a, b)
        assert torch.equal(problems.digits_BNW, before), calculate.__name__


@pytest.mark.parametrize("calculate", [digits.add, digits.subtract, digits.subtract_modulo])
def test_operands_of_unequal_shapes_are_refused_with_both_shapes(
    calculate: Callable[[Tensor, Tensor], object],
) -> None:
    a, b = torch.zeros(2, 3, dtype=torch.uint8), torch.zeros(2, 4, dtype=torch.uint8)
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(2, 4\)"):
        calculate(a, b)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(naturals(), naturals()) | near_naturals(), min_size=1, max_size=4))
def test_differences_are_absolute_and_say_which_are_negative(pairs: list[tuple[int, int]]) -> None:
    differences, negative = digits.subtract(*operands(pairs))
    assert integers(differences) == [abs(a - b) for a, b in pairs]
    assert negative.tolist() == [a < b for a, b in pairs]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(naturals(longest=60), naturals(longest=60)), min_size=1, max_size=4))
def test_differences_modulo_a_power_of_ten_are_those_of_python(
    pairs: list[tuple[int, int]],
) -> None:
    a, b = operands(pairs)
    differences, negative = digits.subtract_modulo(a, b)
    assert integers(differences) == [(x - y) % 10 ** a.shape[1] for x, y in pairs]
    assert negative.tolist() == [x < y for x, y in pairs]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(naturals(longest=300), naturals(longest=300)), min_size=1, max_size=4))
def test_products_equal_python_integers_at_any_length(pairs: list[tuple[int, int]]) -> None:
    assert integers(digits.multiply(*operands(pairs))) == [a * b for a, b in pairs]


@pytest.mark.parametrize(("first", "second"), [(1, 9), (9, 1), (4, 4), (0, 3)])
def test_a_product_has_the_columns_of_both_operands(first: int, second: int) -> None:
    a, b = (torch.full((2, width), 9, dtype=torch.uint8) for width in (first, second))
    product = digits.multiply(a, b)
    assert product.shape == (2, first + second)
    assert product.dtype == torch.uint8


def test_columns_of_a_product_hold_the_digit_products_that_fall_into_them() -> None:
    totals = digits.column_totals(*operands([(123, 45)]))
    assert totals.tolist() == [[3 * 5, 3 * 4 + 2 * 5, 2 * 4 + 1 * 5, 1 * 4, 0, 0]]


def test_propagating_carries_leaves_a_digit_and_adds_the_rest_to_the_next_column() -> None:
    written, carries = digits.propagate_carries(
        torch.tensor([[15, 22, 13, 4, 0]], dtype=torch.int32)
    )
    assert written.tolist() == [[5, 3, 5, 5, 0]]
    assert carries.tolist() == [[1, 2, 1, 0, 0]]


@settings(deadline=None, max_examples=60)
@given(divisions())
def test_quotients_and_remainders_equal_python_integers(pairs: list[tuple[int, int]]) -> None:
    division = divide(pairs)
    assert integers(division.quotient_SB.t().flip(1)) == [a // b for a, b in pairs]
    assert integers(division.remainder_BW) == [a % b for a, b in pairs]


def test_a_division_of_300_by_150_digits_equals_python_integers() -> None:
    pairs = [(10**299 + 7**300, 7**177), (10**300 - 1, 10**149), (3**628, 3**314 + 1)]
    division = divide(pairs)
    assert integers(division.quotient_SB.t().flip(1)) == [a // b for a, b in pairs]
    assert integers(division.remainder_BW) == [a % b for a, b in pairs]


def test_dividend_and_divisor_may_have_different_widths() -> None:
    a, b = torch.tensor([[7, 6, 5, 4]], dtype=torch.uint8), torch.tensor([[3, 2]]).byte()
    for x, y, quotient, remainder in ((a, b, 4567 // 23, 4567 % 23), (b, a, 0, 23)):
        division = digits.divide(x, y)
        assert integers(division.quotient_SB.t().flip(1)) == [quotient]
        assert integers(division.remainder_BW) == [remainder]


@settings(deadline=None, max_examples=30)
@given(divisions())
def test_each_step_of_a_division_brings_down_one_digit_more(pairs: list[tuple[int, int]]) -> None:
    division = divide(pairs)
    num_steps = len(division.quotient_SB)
    for step in range(num_steps):
        column = num_steps - 1 - step
        expected = [(x // 10**column) - 10 * y * (x // 10 ** (column + 1) // y) for x, y in pairs]
        assert integers(division.brought_down_SBW[step]) == expected, step


def test_a_division_knows_the_multiples_of_its_divisors_up_to_ten() -> None:
    multiples = divide([(5, 99), (5, 5), (5, 0)]).multiples
    assert multiples.shape == (11, 3, 3)
    assert [integers(row) for row in multiples] == [[99 * k, 5 * k, 0] for k in range(11)]


@pytest.mark.parametrize("width", [1, 254, 255, 256, 257, 1_000])
def test_significant_digits_are_those_without_leading_zeros_and_one_for_zero(width: int) -> None:
    numbers = torch.zeros(3, width, dtype=torch.uint8)
    numbers[1, 0] = numbers[2, 0] = numbers[2, -1] = 7
    assert digits.significant(numbers).tolist() == [1, 1, width]
    assert digits.significant(numbers).dtype == torch.int64


def test_digits_of_values_are_right_up_to_the_largest_integer() -> None:
    values = torch.tensor([[0, 7], [1_230, 2**63 - 1]])
    written = digits.of_values(values, 20)
    assert written.shape == (2, 2, 20)
    assert integers(written.flatten(0, 1)) == values.flatten().tolist()


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(st.integers(0, 1), min_size=9, max_size=9), min_size=1, max_size=5))
def test_the_longest_chain_is_the_longest_run_of_carries(rows: list[list[int]]) -> None:
    expected = [max(map(len, "".join(map(str, row)).split("0"))) for row in rows]
    assert digits.longest_chain(torch.tensor(rows, dtype=torch.uint8)).tolist() == expected


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


def test_draw_has_a_column_of_digits_for_every_length() -> None:
    lengths = torch.tensor([[1, 2], [3, 4], [5, 6]])
    drawn = digits.draw(lengths, 6, generator())
    assert drawn.shape == (3, 2, 6)
    assert drawn.dtype == torch.uint8


def test_draw_is_a_function_of_the_generator() -> None:
    lengths = torch.full((10,), 8)
    first, again = (digits.draw(lengths, 8, generator(3)) for _ in range(2))
    assert torch.equal(first, again)
    assert not torch.equal(first, digits.draw(lengths, 8, generator(4)))


def test_one_digit_numbers_that_may_not_be_zero_take_the_other_nine_values_equally_often() -> None:
    lengths = torch.ones(18_000, dtype=torch.int64)
    drawn = digits.draw(lengths, 1, generator(), lengths > 0).squeeze(1)
    counts = torch.bincount(drawn.long(), minlength=10)
    assert counts[0] == 0
    assert ((counts[1:] - 2_000).abs() < 250).all(), counts


def test_only_the_numbers_that_must_not_be_zero_are_nonzero() -> None:
    nonzero = torch.tensor([True, False]).repeat(2_000)
    drawn = digits.draw(torch.ones(4_000, dtype=torch.int64), 3, generator(), nonzero)
    is_zero = (drawn == 0).all(dim=1)
    assert not is_zero[nonzero].any()
    assert is_zero[~nonzero].any()


def test_a_number_of_no_digits_is_all_zeros() -> None:
    assert not digits.draw(torch.tensor([[0, 3], [2, 0]]), 3, generator())[[0, 1], [0, 1]].any()


def test_one_is_taken_away_where_it_shall_be_modulo_a_power_of_ten() -> None:
    numbers = Problems.from_integers([(5, 0), (100, 0), (0, 0), (7, 0)]).operand(0).digits_BW
    less = digits.less_one_where(torch.tensor([True, True, True, False]), numbers)
    assert less.tolist() == [[4, 0, 0], [9, 9, 0], [9, 9, 9], [7, 0, 0]]
