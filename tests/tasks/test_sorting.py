import string

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from abacist.errors import ProblemError
from abacist.tasks.config import SortingConfig
from abacist.tasks.problems import Problems
from abacist.tasks.sorting import Sorting

TASK = Sorting(SortingConfig())
LABELS = string.ascii_letters
MOST = Sorting(SortingConfig(min_numbers=1, max_numbers=52))
numbers = st.integers(0, 3) | st.integers(0, 10**6) | st.integers(0, 10**40 - 1)
close = st.integers(10**39, 10**39 + 2) | st.integers(0, 1).map(lambda n: 10**30 + n)


def in_order(row: list[int]) -> str:
    """The labels as Python's stable sort orders the numbers."""
    return "".join(LABELS[i] for i in sorted(range(len(row)), key=row.__getitem__))


def problems_of(rows: list[list[int]]) -> Problems:
    return Problems.from_integers([tuple(row) for row in rows], "sort")


def draw(task: Sorting, num_problems: int, seed: int = 0) -> Problems:
    generator = torch.Generator().manual_seed(seed)
    return task.draw(task.draw_shapes(num_problems, generator), generator)


# Answers ---------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=100)
@given(st.lists(st.lists(numbers | close, min_size=1, max_size=52), min_size=1, max_size=6))
def test_labels_are_in_the_order_of_pythons_stable_sort(rows: list[list[int]]) -> None:
    assert TASK.answer(problems_of(rows)).texts() == [in_order(row) for row in rows]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=52), min_size=1, max_size=6))
def test_equal_numbers_keep_their_order(rows: list[list[int]]) -> None:
    assert TASK.answer(problems_of(rows)).texts() == [in_order(row) for row in rows]


def test_all_orders_of_three_numbers_from_0_to_4_are_pythons() -> None:
    rows = [[a, b, c] for a in range(5) for b in range(5) for c in range(5)]
    assert TASK.answer(problems_of(rows)).texts() == [in_order(row) for row in rows]


@pytest.mark.parametrize(
    "row",
    [
        [7],
        [5] * 52,
        list(range(52)),
        list(range(51, -1, -1)),
        [10**k for k in range(25, -1, -1)],
        [10**40 - 1, 10**40 - 2, 10**39, 0],
    ],
    ids=str,
)
def test_extreme_rows_are_sorted(row: list[int]) -> None:
    assert TASK.answer(problems_of([row])).texts() == [in_order(row)]


@pytest.mark.parametrize("column", [0, 14, 15, 16, 29, 30, 31, 39])
def test_a_difference_in_any_one_column_of_40_decides(column: int) -> None:
    base = int("5" * 40)
    assert TASK.answer(problems_of([[base + 10**column, base, base]])).texts() == ["bca"]


def test_numbers_of_1_000_digits_are_sorted() -> None:
    row = [10**999 + 1, 10**999, 10**998, 7**1_180]
    assert TASK.answer(problems_of([row])).texts() == [in_order(row)]


def test_a_row_is_sorted_the_same_beside_longer_ones() -> None:
    rows = [[2, 1], list(range(52, 0, -1)), [3], [10**40, 0, 10**40]]
    assert TASK.answer(problems_of(rows)).texts() == [in_order(row) for row in rows]


def test_every_number_has_one_rank() -> None:
    answer = TASK.answer(problems_of([[2, 1], [1, 1, 1, 1, 0]]))
    assert answer.ranked_BN.sort(dim=1).values.tolist() == [list(range(5))] * 2
    assert answer.counts_B.tolist() == [2, 5]


def test_an_empty_batch_is_sorted() -> None:
    assert TASK.answer(TASK.parse([])).texts() == []


def test_problems_are_left_unchanged() -> None:
    problems = problems_of([[3, 1, 2]])
    before = problems.digits_BNW.clone()
    TASK.answer(problems)
    assert torch.equal(problems.digits_BNW, before)


def test_measures_are_how_many_and_how_long() -> None:
    measured = TASK.measures(problems_of([[5, 123, 7], [0, 1]]))
    assert {name: values.tolist() for name, values in measured.items()} == {
        "numbers to sort": [3, 2],
        "digits of the longest number": [3, 1],
    }


# Reading ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "understood"),
    [
        ("a:821,b:9", "a:821,b:9"),
        ("821,9", "a:821,b:9"),
        ("a:821,9,c:72", "a:821,b:9,c:72"),
        (" a : 821 , b:9 ", "a:821,b:9"),
        ("a:821,b:9=", "a:821,b:9"),
        ("a:007,b:0,c:00", "a:7,b:0,c:0"),
        ("\t3,\n1", "a:3,b:1"),
    ],
)
def test_typed_numbers_are_understood(typed: str, understood: str) -> None:
    assert TASK.expressions(TASK.parse([typed])) == [understood]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(numbers, min_size=1, max_size=52), max_size=5))
def test_expressions_parse_back_to_the_same_problems(rows: list[list[int]]) -> None:
    problems = problems_of(rows)
    again = MOST.parse(MOST.expressions(problems))
    assert torch.equal(again.lengths_BN, problems.lengths_BN)
    assert torch.equal(again.digits_BNW, problems.digits_BNW)
    assert torch.equal(again.operation_B, problems.operation_B)


REMEDY = "Type 2 to 10 numbers, such as a:821,b:9,c:72."


@pytest.mark.parametrize(
    ("typed", "complaint"),
    [
        ("", "empty problem."),
        ("  ", "empty problem."),
        (",".join("1" * 53), "the problem has 53 numbers and there are 52 labels."),
        (
            "1,2,3,4,5,6,7,8,9,10,11",
            "cannot read '1,2,3,4,5,6,7,8,9,10,11': it has 11 numbers and this task sorts 2 to 10.",
        ),
        ("b:1", "cannot read 'b:1': label 'b' must be 'a'."),
        ("a:1,c:2", "cannot read 'a:1,c:2': label 'c' must be 'b'."),
        ("a:1,a:2", "cannot read 'a:1,a:2': label 'a' must be 'b'."),
        ("A:1", "cannot read 'A:1': label 'A' must be 'a'."),
        (":1", "cannot read ':1': label '' must be 'a'."),
        ("a:x", "cannot read 'a:x': 'x' is not a whole number from 0 up."),
        ("a:", "cannot read 'a:': '' is not a whole number from 0 up."),
        ("1,,2", "cannot read '1,,2': '' is not a whole number from 0 up."),
        ("1,2,", "cannot read '1,2,': '' is not a whole number from 0 up."),
        ("=", "cannot read '=': '' is not a whole number from 0 up."),
        ("a:-3", "cannot read 'a:-3': '-3' is not a whole number from 0 up."),
        ("1.5,2", "cannot read '1.5,2': '1.5' is not a whole number from 0 up."),
        ("1 2", "cannot read '1 2': '1 2' is not a whole number from 0 up."),
        ("12+34", "cannot read '12+34': '12+34' is not a whole number from 0 up."),
        ("٣,1", "cannot read '٣,1': '٣' is not a whole number from 0 up."),
        ("😀", "cannot read '😀': '😀' is not a whole number from 0 up."),
        ("1\n2", r"cannot read '1\n2': '1\n2' is not a whole number from 0 up."),
    ],
)
def test_what_cannot_be_sorted_is_refused_in_one_line_that_shows_what_to_type(
    typed: str, complaint: str
) -> None:
    with pytest.raises(ProblemError) as caught:
        TASK.parse(["2,1", typed])
    assert str(caught.value) == f"{complaint} {REMEDY}"


@pytest.mark.parametrize(
    ("low", "high", "typed", "complaint"),
    [
        (3, 5, "1,2", "it has 2 numbers and this task sorts 3 to 5. Type 3 to 5 numbers"),
        (3, 5, "1,2,3,4,5,6", "it has 6 numbers and this task sorts 3 to 5"),
        (4, 4, "1,2,3", "sorts 4. Type 4 numbers, such as a:821,b:9,c:72,d:5."),
        (1, 1, "1,2", "it has 2 numbers and this task sorts 1."),
        (2, 2, "1", "sorts 2. Type 2 numbers, such as a:821,b:9."),
    ],
)
def test_too_few_and_too_many_numbers_are_refused_with_the_counts(
    low: int, high: int, typed: str, complaint: str
) -> None:
    task = Sorting(SortingConfig(min_numbers=low, max_numbers=high))
    with pytest.raises(ProblemError) as caught:
        task.parse([typed])
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("low", "high"), [(a, b) for a in (1, 2, 3, 4, 52) for b in (1, 2, 3, 10, 52) if a <= b]
)
def test_the_example_can_be_typed(low: int, high: int) -> None:
    task = Sorting(SortingConfig(min_numbers=low, max_numbers=high))
    assert task.expressions(task.parse([task.example])) == [task.example]


def test_all_52_labels_can_be_typed_and_sorted() -> None:
    typed = ",".join(f"{label}:{51 - i}" for i, label in enumerate(LABELS))
    assert MOST.answer(MOST.parse([typed])).texts() == [LABELS[::-1]]


def test_a_number_beyond_the_limit_is_refused_with_its_length_and_the_limit() -> None:
    with pytest.raises(ProblemError, match="operand of 1,001 digits; at most 1,000") as caught:
        TASK.parse(["1," + "7" * 1_001], max_digits=1_000)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("typed", ["x" * 100_000, "x" * 100_000 + ":1"], ids=["number", "label"])
def test_a_refusal_is_short_however_long_what_was_typed(typed: str) -> None:
    with pytest.raises(ProblemError) as caught:
        TASK.parse([typed])
    assert len(str(caught.value)) < 300


# Drawing ---------------------------------------------------------------------------------------


def test_every_count_of_numbers_is_equally_likely() -> None:
    task = Sorting(SortingConfig(min_numbers=3, max_numbers=7))
    counts = torch.bincount(draw(task, 20_000).counts_B, minlength=8)
    assert counts[:3].sum() == 0
    assert ((counts[3:] - 4_000).abs() < 300).all(), counts


def test_a_limit_of_digits_is_drawn_first_and_every_length_up_to_it_is_equally_likely() -> None:
    low, high = 2, 5
    task = Sorting(SortingConfig(min_numbers=4, max_numbers=4, min_digits=low, max_digits=high))
    lengths = draw(task, 20_000).lengths_BN
    limits = range(low, high + 1)
    for length in limits:
        share = sum(1 / (limit - low + 1) for limit in limits if length <= limit) / len(limits)
        frequency = float((lengths == length).float().mean())
        assert frequency == pytest.approx(share, abs=0.01), length
    # Lengths of one problem share a limit: all four are shortest far more often than if they were independent.
    shortest = sum((1 / (limit - low + 1)) ** 4 for limit in limits) / len(limits)
    assert float((lengths == low).all(dim=1).float().mean()) == pytest.approx(shortest, abs=0.01)


def test_drawn_numbers_have_the_lengths_of_their_shapes() -> None:
    problems = draw(Sorting(SortingConfig(max_digits=4)), 1_000)
    for position in range(problems.num_operands):
        texts = problems.operand(position).texts()
        written = [len(str(int(text))) if text else 0 for text in texts]
        assert written == problems.lengths_BN[:, position].tolist()


def test_numbers_that_are_not_there_come_last_and_have_no_digits() -> None:
    problems = draw(TASK, 500)
    present = problems.lengths_BN > 0
    assert (present == (torch.arange(10) < problems.counts_B.unsqueeze(1))).all()
    assert not problems.digits_BNW[~present].any()


def test_drawn_problems_are_sorted_like_python() -> None:
    problems = draw(Sorting(SortingConfig(max_numbers=52, max_digits=2)), 1_000)
    columns = [problems.operand(i).texts() for i in range(52)]
    rows = [[int(text) for text in row if text] for row in zip(*columns, strict=True)]
    assert TASK.answer(problems).texts() == [in_order(row) for row in rows]


def test_half_of_the_problems_drawn_with_ties_hold_two_digits_only() -> None:
    task = Sorting(SortingConfig(max_numbers=20, max_digits=4, sampling="ties"))
    problems = draw(task, 2_000)
    rows = [set(expression) & set(string.digits) for expression in task.expressions(problems)]
    long = [digits for digits, n in zip(rows, problems.counts_B.tolist(), strict=True) if n > 9]
    assert 0.45 < sum(digits <= {"1", "2"} for digits in long) / len(long) < 0.55
    same = draw(Sorting(SortingConfig(max_numbers=20, max_digits=4)), 2_000)
    assert torch.equal(problems.lengths_BN, same.lengths_BN)
    inside = torch.arange(problems.digits_BNW.shape[2]) < problems.lengths_BN.unsqueeze(2)
    assert not problems.digits_BNW[~inside].any()


def test_an_empty_batch_can_be_drawn() -> None:
    assert len(draw(TASK, 0)) == 0
