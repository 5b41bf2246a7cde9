import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from abacist.errors import ConfigurationError, ProblemError
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.config import ArithmeticConfig
from abacist.tasks.problems import Problems, Shapes

TASK = Arithmetic(ArithmeticConfig())
NATURALS = st.integers(0, 20) | st.integers(0, 10**60) | st.integers(1, 60).map(lambda n: 10**n - 1)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(NATURALS, NATURALS), min_size=1, max_size=5))
def test_answers_equal_python_integers(rows: list[tuple[int, int]]) -> None:
    answers = TASK.answer(Problems.from_integers(list(rows)))
    assert answers.texts() == [str(a + b) for a, b in rows]


def test_answer_has_a_further_digit_only_where_the_last_column_overflows() -> None:
    answers = TASK.answer(Problems.from_integers([(99, 1), (98, 1), (1, 99), (5, 5), (0, 0)]))
    assert answers.lengths_B.tolist() == [3, 2, 3, 2, 1]


def test_column_rule_is_addition_with_a_carry_in_every_case() -> None:
    rule = TASK.column_rule()
    cases = [(c, a, b) for c in range(2) for a in range(10) for b in range(10)]
    cases_n = torch.tensor(cases)
    digit, state = rule.step(cases_n[:, 0], cases_n[:, 1:])
    assert list(zip(state.tolist(), digit.tolist(), strict=True)) == [
        divmod(sum(case), 10) for case in cases
    ]


def test_the_column_rule_of_differences_borrows_in_every_case() -> None:
    rule = Arithmetic(ArithmeticConfig(operations=("-",))).column_rule()
    cases = [(borrow, a, b) for borrow in range(2) for a in range(10) for b in range(10)]
    cases_n = torch.tensor(cases)
    digit, state = rule.step(cases_n[:, 0], cases_n[:, 1:])
    expected = [divmod(a - b - borrow, 10) for borrow, a, b in cases]
    assert list(zip((-state).tolist(), digit.tolist(), strict=True)) == expected
    assert rule.left_over == "sign"


def test_lengths_are_drawn_from_every_pair_within_the_training_range_equally() -> None:
    task = Arithmetic(ArithmeticConfig(min_digits=2, max_digits=4))
    lengths = task.draw_shapes(9_000, torch.Generator().manual_seed(0)).lengths_BN
    assert lengths.shape == (9_000, 2)
    pairs, counts = lengths.unique(dim=0, return_counts=True)
    assert pairs.tolist() == [[a, b] for a in (2, 3, 4) for b in (2, 3, 4)]
    assert ((counts - 1_000).abs() < 150).all(), counts


def test_drawn_operands_have_the_required_lengths() -> None:
    lengths = torch.tensor([[1, 5], [7, 2], [3, 3]])
    problems = TASK.draw(Shapes.of(lengths, "+"), torch.Generator().manual_seed(0))
    written = [[len(text) for text in problems.operand(n).texts()] for n in (0, 1)]
    significant = [[len(str(int(text))) for text in problems.operand(n).texts()] for n in (0, 1)]
    assert written == significant == lengths.T.tolist()


def test_an_empty_batch_can_be_drawn() -> None:
    lengths = torch.zeros(0, 2, dtype=torch.int64)
    assert len(TASK.draw(Shapes.of(lengths, "+"), torch.Generator())) == 0


@pytest.mark.parametrize(
    ("typed", "understood"),
    [
        ("12+34", "12+34"),
        (" 12 + 34 ", "12+34"),
        ("12+34=", "12+34"),
        ("12 + 34 =", "12+34"),
        ("\t7+8\n", "7+8"),
        ("007+08", "7+8"),
        ("0+0", "0+0"),
        ("000+0", "0+0"),
        ("9+123456789012345678901234567890", "9+123456789012345678901234567890"),
    ],
)
def test_a_typed_sum_is_understood(typed: str, understood: str) -> None:
    assert TASK.expressions(TASK.parse([typed])) == [understood]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(NATURALS, NATURALS), max_size=5))
def test_expressions_parse_back_to_the_same_problems(rows: list[tuple[int, int]]) -> None:
    problems = Problems.from_integers(list(rows))
    again = TASK.parse(TASK.expressions(problems))
    assert torch.equal(again.digits_BNW, problems.digits_BNW)
    assert torch.equal(again.lengths_BN, problems.lengths_BN)


@pytest.mark.parametrize(
    ("typed", "complaint"),
    [
        ("12+", "an operand is missing"),
        ("+12", "a number has no plus sign"),
        ("1++2", "a number has no plus sign"),
        ("1−2", "type - instead of −"),
        ("3×4", "type * instead of ×"),
        ("(-1)+2", "operands are whole numbers from 0 up"),
        ("abc", "cannot read 'abc'"),
        ("12", "cannot read '12'"),
        ("=", "cannot read '='"),
        ("1 2+3", "cannot read '1 2+3'"),
        ("12+34==", "cannot read"),
        ("1+x", "cannot read '1+x'"),
        ("1.5+2", "without points or commas"),
        ("1,500+2", "without points or commas"),
        ("-3+4", "minus sign"),
        ("3-4", "knows + only"),
        ("1+2+3", "it has 3 numbers and this task takes 2 numbers"),
        ("7*8", "this task knows + only"),
        ("8/4", "this task knows + only"),
        ("8%3", "this task knows + only"),
        ("", "empty problem"),
        ("   ", "empty problem"),
        ("١+٢", "cannot read '١+٢'"),
        ("²+1", "cannot read '²+1'"),
        ("1\n+x", "cannot read"),
        ("1_000+2", "cannot read '1_000+2'"),
    ],
)
def test_what_is_not_a_sum_is_refused_in_one_line_that_shows_what_to_type(
    typed: str, complaint: str
) -> None:
    with pytest.raises(ProblemError) as caught:
        TASK.parse(["1+1", typed])
    message = str(caught.value)
    assert complaint in message
    assert "12+34" in message
    assert "\n" not in message


def test_an_operand_beyond_the_limit_is_refused_with_its_length_and_the_limit() -> None:
    with pytest.raises(ProblemError, match="operand of 1,001 digits; at most 1,000") as caught:
        TASK.parse(["1+" + "7" * 1_001], max_digits=1_000)
    assert len(str(caught.value)) < 200


def test_leading_zeros_do_not_count_towards_the_limit() -> None:
    problems = TASK.parse(["0" * 50 + "123+1"], max_digits=3)
    assert TASK.expressions(problems) == ["123+1"]


@pytest.mark.parametrize(
    ("lengths", "complaint"),
    [
        ({"max_digits": 0}, "task.max_digits must be 1 to 1,000,000, got 0"),
        ({"max_digits": 1_000_001}, "got 1000001"),
        ({"min_digits": 0}, "task.min_digits must be 1 to 10, got 0"),
        ({"min_digits": 5, "max_digits": 4}, "task.min_digits must be 1 to 4, got 5"),
    ],
)
def test_training_lengths_out_of_range_are_refused(lengths: dict[str, int], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        ArithmeticConfig(**lengths)


@pytest.mark.parametrize("num_operands", [3, 7, 25])
def test_sums_of_many_operands_equal_python_integers(num_operands: int) -> None:
    task = Arithmetic(
        ArithmeticConfig(min_operands=num_operands, max_operands=num_operands, max_digits=40)
    )
    generator = torch.Generator().manual_seed(num_operands)
    problems = task.draw(task.draw_shapes(200, generator), generator)
    expected = [str(sum(map(int, text.split("+")))) for text in task.expressions(problems)]
    assert task.answer(problems).texts() == expected
    nines = task.parse(["+".join(["9" * 40] * num_operands), "+".join(["0"] * num_operands)])
    assert task.answer(nines).texts() == [str(int("9" * 40) * num_operands), "0"]


def test_a_sum_of_three_asks_for_three() -> None:
    task = Arithmetic(ArithmeticConfig(min_operands=3, max_operands=3))
    assert task.expressions(task.parse(["1+2+3"])) == ["1+2+3"]
    with pytest.raises(
        ProblemError, match=r"takes 3 numbers\. Type 3 numbers, such as 12\+34\+56\."
    ):
        task.parse(["1+2"])
    assert task.claim == "adds any 3 non-negative integers"


@pytest.mark.parametrize("num_operands", [2, 3, 12])
def test_the_column_rule_of_many_operands_carries_the_rest(num_operands: int) -> None:
    step = (
        Arithmetic(ArithmeticConfig(min_operands=num_operands, max_operands=num_operands))
        .column_rule()
        .step
    )
    state, digits = torch.tensor([num_operands - 1]), torch.full((1, num_operands), 9)
    digit, carry = step(state, digits)
    assert 10 * int(carry) + int(digit) == 9 * num_operands + num_operands - 1
