import random
import sys
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from naturals import (
    DIVISIONS,
    OPERATIONS,
    complementary_naturals,
    divisions,
    naturals,
    near_naturals,
)

from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.config import TASKS, ArithmeticConfig
from abacist.tasks.problems import OPERATIONS as CODES
from abacist.tasks.problems import Problems, Shapes

ALL = tuple(OPERATIONS)
MIXED = Arithmetic(ArithmeticConfig(operations=ALL))
ADD_MANY = Arithmetic(ArithmeticConfig(max_operands=25))
each_operation = pytest.mark.parametrize("operation", ALL)


@pytest.fixture(autouse=True)
def _long_integers() -> Iterator[None]:
    """Python refuses to write products of 1,000 digits and more by default."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    yield
    sys.set_int_max_str_digits(limit)


def task_of(*operations: str, **settings: object) -> Arithmetic:
    return Arithmetic(ArithmeticConfig(operations=operations, **settings))


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def draw(task: Arithmetic, num_problems: int, seed: int = 0) -> Problems:
    source = generator(seed)
    return task.draw(task.draw_shapes(num_problems, source), source)


def operands(problems: Problems) -> list[tuple[int, ...]]:
    """Return the operands of each problem as Python integers."""
    columns = [problems.operand(i).texts() for i in range(problems.num_operands)]
    return [tuple(int(t) for t in row if t) for row in zip(*columns, strict=True)]


# Answers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["+", "-"])
@settings(deadline=None, max_examples=25)
@given(
    pairs=st.lists(
        st.tuples(naturals(), naturals()) | complementary_naturals() | near_naturals(),
        min_size=1,
        max_size=4,
    )
)
def test_sums_and_differences_equal_python_integers(
    operation: str, pairs: list[tuple[int, int]]
) -> None:
    answers = task_of(operation).answer(Problems.from_integers(list(pairs), operation))
    assert answers.texts() == [str(OPERATIONS[operation](a, b)) for a, b in pairs]


@settings(deadline=None, max_examples=12)
@given(st.lists(st.tuples(naturals(), naturals()), min_size=1, max_size=3))
def test_products_equal_python_integers(pairs: list[tuple[int, int]]) -> None:
    answers = task_of("*").answer(Problems.from_integers(list(pairs), "*"))
    assert answers.texts() == [str(a * b) for a, b in pairs]


def test_a_product_of_1_000_digits_each_equals_python_integers() -> None:
    pairs = [(10**1_000 - 1, 10**1_000 - 1), (7**1_183, 3**2_095), (10**999, 10**999)]
    answers = task_of("*").answer(Problems.from_integers(list(pairs), "*"))
    assert answers.texts() == [str(a * b) for a, b in pairs]


@pytest.mark.parametrize("operation", DIVISIONS)
@settings(deadline=None, max_examples=25)
@given(pairs=divisions(longest=80))
def test_quotients_and_remainders_equal_python_integers(
    operation: str, pairs: list[tuple[int, int]]
) -> None:
    answers = task_of(operation).answer(Problems.from_integers(list(pairs), operation))
    assert answers.texts() == [str(OPERATIONS[operation](a, b)) for a, b in pairs]


@each_operation
def test_all_problems_below_100_are_answered_like_python(operation: str) -> None:
    least = 1 if operation in DIVISIONS else 0
    pairs = [(a, b) for a in range(100) for b in range(least, 100)]
    answers = task_of(operation).answer(Problems.from_integers(list(pairs), operation))
    assert answers.texts() == [str(OPERATIONS[operation](a, b)) for a, b in pairs]


@each_operation
def test_small_batches_of_unequal_widths_are_answered_like_python(operation: str) -> None:
    chance, task = random.Random(0), task_of(operation)
    least = 1 if operation in DIVISIONS else 0
    for _ in range(60):
        pairs = [
            (
                chance.randrange(10 ** chance.randint(1, 12)),
                chance.randrange(least, 10 ** chance.randint(1, 12)),
            )
            for _ in range(chance.randint(1, 6))
        ]
        answers = task.answer(Problems.from_integers(list(pairs), operation))
        assert answers.texts() == [str(OPERATIONS[operation](a, b)) for a, b in pairs], pairs


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(st.sampled_from(ALL), naturals(longest=15), naturals(longest=15)),
        min_size=1,
        max_size=8,
    )
)
def test_a_batch_of_mixed_operations_is_answered_row_by_row(
    rows: list[tuple[str, int, int]],
) -> None:
    rows = [(o, a, max(b, 1) if o in DIVISIONS else b) for o, a, b in rows]
    problems = Problems.from_texts([[str(a), str(b)] for _, a, b in rows], [o for o, _, _ in rows])
    assert MIXED.answer(problems).texts() == [str(OPERATIONS[o](a, b)) for o, a, b in rows]


def test_only_differences_below_zero_are_negative() -> None:
    answers = MIXED.answer(MIXED.parse(["1-2", "1+2", "2-1", "2-2", "1*2", "1//2", "1%2", "0-0"]))
    assert answers.texts() == ["-1", "3", "1", "0", "2", "0", "1", "0"]
    assert answers.negative_B.tolist() == [True, *[False] * 7]


def test_a_mixed_batch_of_one_operation_is_answered_as_that_operation_alone() -> None:
    for operation in ALL:
        typed = [f"123{operation}45", f"9{operation}1000", f"0{operation}7"]
        alone = task_of(operation)
        assert MIXED.answer(MIXED.parse(typed)).texts() == alone.answer(alone.parse(typed)).texts()


def test_answers_of_an_empty_batch_are_empty() -> None:
    assert MIXED.answer(MIXED.parse([])).texts() == []
    for operation in ALL:
        assert task_of(operation).answer(task_of(operation).parse([])).texts() == []


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(naturals(longest=60), min_size=2, max_size=25), min_size=1, max_size=5))
def test_sums_of_varying_counts_of_operands_equal_python_integers(rows: list[list[int]]) -> None:
    problems = Problems.from_integers([tuple(row) for row in rows])
    assert ADD_MANY.answer(problems).texts() == [str(sum(row)) for row in rows]


def test_lengths_of_answers_are_those_of_their_digits() -> None:
    for operation in ALL:
        problems = draw(task_of(operation, max_digits=6), 300)
        answers = task_of(operation).answer(problems)
        expected = [len(str(abs(int(text)))) for text in answers.texts()]
        assert answers.lengths_B.tolist() == expected, operation


# Drawing ---------------------------------------------------------------------------------------


@each_operation
@pytest.mark.parametrize("sampling", ["lengths", "nines", "values"])
def test_drawn_operands_have_the_lengths_of_their_shapes(operation: str, sampling: str) -> None:
    problems = draw(task_of(operation, sampling=sampling, max_digits=4), 1_000)
    written = [[len(str(operand)) for operand in row] for row in operands(problems)]
    assert written == problems.lengths_BN.tolist()


@pytest.mark.parametrize("sampling", ["lengths", "nines", "values"])
@pytest.mark.parametrize("max_digits", [1, 3])
@pytest.mark.parametrize("operations", [("//",), ("%",), ALL], ids="".join)
def test_a_divisor_is_never_zero(
    operations: tuple[str, ...], max_digits: int, sampling: str
) -> None:
    task = task_of(*operations, max_digits=max_digits, sampling=sampling)
    problems = draw(task, 5_000)
    codes = problems.operation_B.tolist()
    for code, (_, b) in zip(codes, operands(problems), strict=True):
        assert b > 0 or CODES[code] not in DIVISIONS


def test_divisors_of_one_digit_take_the_nine_others_equally_often() -> None:
    for operation in DIVISIONS:
        divisors = [b for _, b in operands(draw(task_of(operation, max_digits=1), 18_000))]
        counts = torch.bincount(torch.tensor(divisors), minlength=10)
        assert ((counts[1:] - 2_000).abs() < 250).all(), counts


def test_a_dividend_may_be_zero() -> None:
    dividends = [a for a, _ in operands(draw(task_of("//", max_digits=1), 1_000))]
    assert set(dividends) == set(range(10))


def test_operands_of_other_operations_may_be_zero_beside_divisions() -> None:
    problems = draw(task_of("*", "%", max_digits=1), 2_000)
    rows = zip(problems.operation_B.tolist(), operands(problems), strict=True)
    seconds = {b for code, (_, b) in rows if CODES[code] == "*"}
    assert seconds == set(range(10))


def assert_uniform(counts: torch.Tensor) -> None:
    """The chi-square statistic is no further than 5 standard deviations from its mean."""
    expected = counts.sum() / len(counts)
    statistic = float(((counts - expected) ** 2 / expected).sum())
    freedom = len(counts) - 1
    assert abs(statistic - freedom) < 5 * (2 * freedom) ** 0.5, statistic


@pytest.mark.parametrize(
    ("operation", "least"), [("+", 0), ("-", 0), ("*", 0), ("//", 1), ("%", 1)]
)
def test_every_pair_of_values_is_equally_likely_when_values_are_sampled(
    operation: str, least: int
) -> None:
    pairs = operands(draw(task_of(operation, max_digits=1, sampling="values"), 20_000))
    numbers = torch.tensor([10 * a + b - least for a, b in pairs])
    cells = torch.bincount(numbers, minlength=100).view(10, 10)[:, : 10 - least]
    assert cells.sum() == 20_000
    assert_uniform(cells.flatten())


@pytest.mark.parametrize("operation", ["+", "%"])
@pytest.mark.parametrize("position", [0, 1])
def test_every_value_up_to_999_is_equally_likely_when_values_are_sampled(
    operation: str, position: int
) -> None:
    task = task_of(operation, max_digits=3, sampling="values")
    values = torch.tensor([row[position] for row in operands(draw(task, 50_000))])
    least = int(operation == "%" and position == 1)
    counts = torch.bincount(values, minlength=1_000)
    assert counts[:least].sum() == 0
    assert_uniform(counts[least:])


def test_short_values_are_as_rare_as_they_are_few() -> None:
    task = task_of("+", max_digits=3, sampling="values")
    lengths = task.draw_shapes(50_000, generator()).lengths_BN.flatten()
    shares = torch.bincount(lengths, minlength=4) / len(lengths)
    assert shares.tolist() == pytest.approx([0, 0.01, 0.09, 0.9], abs=0.005)


@pytest.mark.parametrize(("operation", "share"), [("+", 10 / 100), ("//", 9 / 99), ("%", 9 / 99)])
def test_divisors_of_one_digit_are_nine_of_99_and_other_operands_ten_of_100(
    operation: str, share: float
) -> None:
    task = task_of(operation, max_digits=2, sampling="values")
    lengths = task.draw_shapes(100_000, generator()).lengths_BN
    shares = (lengths == 1).float().mean(dim=0).tolist()
    assert shares == pytest.approx([0.1, share], abs=0.004)


def test_values_of_at_least_two_digits_leave_out_the_shorter_ones() -> None:
    task = task_of("+", min_digits=2, max_digits=3, sampling="values")
    values = torch.tensor(operands(draw(task, 45_000))).flatten()
    counts = torch.bincount(values, minlength=1_000)
    assert counts[:10].sum() == 0
    assert_uniform(counts[10:])


def test_values_can_be_sampled_at_any_length() -> None:
    lengths = task_of("+", max_digits=1_000, sampling="values").draw_shapes(1_000, generator())
    shares = torch.bincount(lengths.lengths_BN.flatten(), minlength=1_001) / 2_000
    assert shares[999:].tolist() == pytest.approx([0.09, 0.9], abs=0.02)


def test_operations_are_drawn_by_their_weights() -> None:
    task = Arithmetic(TASKS["five-operations"])
    codes = task.draw_shapes(50_000, generator()).operation_B.long()
    shares = torch.bincount(codes, minlength=5)[:5] / 50_000
    assert shares.tolist() == pytest.approx([0.05, 0.10, 0.20, 0.30, 0.35], abs=0.01)


def test_without_weights_operations_are_drawn_equally_often() -> None:
    codes = task_of("%", "+").draw_shapes(20_000, generator()).operation_B.long()
    assert_uniform(torch.bincount(codes)[[CODES.index("+"), CODES.index("%")]])
    assert set(codes.tolist()) == {CODES.index("+"), CODES.index("%")}


def test_only_the_ratio_of_weights_matters() -> None:
    for scale in (1.0, 1_000.0, 1e-9):
        task = task_of("+", "-", weights=(scale, 3 * scale))
        codes = task.draw_shapes(20_000, generator()).operation_B.long()
        assert float((codes == CODES.index("-")).float().mean()) == pytest.approx(0.75, abs=0.02)


@pytest.mark.parametrize("weights", [(1, 3), (0, 1), (1e-50, 1e-50), (1e300, 1.0)])
def test_weights_of_any_size_that_the_configuration_accepts_can_be_drawn_from(
    weights: tuple[float, float],
) -> None:
    task_of("+", "-", weights=weights).draw_shapes(10, generator())


def test_an_operation_of_weight_zero_is_never_drawn() -> None:
    codes = task_of("+", "-", weights=(0.0, 1.0)).draw_shapes(1_000, generator()).operation_B
    assert set(codes.tolist()) == {CODES.index("-")}


@pytest.mark.parametrize(
    "operations",
    [
        ("+",),
        ("+", "-"),
    ],
    ids="".join,
)
def test_an_empty_batch_can_be_drawn(operations: tuple[str, ...]) -> None:
    assert len(draw(task_of(*operations), 0)) == 0


@each_operation
def test_fixed_lengths_of_the_operands_are_always_drawn(operation: str) -> None:
    lengths = task_of(operation, operand_digits=(20, 10)).draw_shapes(100, generator()).lengths_BN
    assert lengths.tolist() == [[20, 10]] * 100


def test_fixed_lengths_of_many_operands_are_always_drawn() -> None:
    task = task_of("+", min_operands=3, max_operands=3, operand_digits=(1, 5, 2))
    assert task.draw_shapes(9, generator()).lengths_BN.tolist() == [[1, 5, 2]] * 9


def test_every_count_of_operands_is_equally_likely() -> None:
    task = task_of("+", min_operands=2, max_operands=6)
    counts = (task.draw_shapes(20_000, generator()).lengths_BN > 0).sum(dim=1)
    assert_uniform(torch.bincount(counts, minlength=7)[2:7])
    assert counts.min() == 2
    assert counts.max() == 6


def test_missing_operands_come_last_and_have_no_digits() -> None:
    problems = draw(task_of("+", max_operands=6), 500)
    present = problems.lengths_BN > 0
    assert (present == (torch.arange(6) < problems.counts_B.unsqueeze(1))).all()
    assert not problems.digits_BNW[~present].any()


def test_expressions_leave_out_missing_operands() -> None:
    problems = ADD_MANY.parse(["1+2", "3+4+5+6", "0+0+0"])
    assert problems.lengths_BN.tolist() == [[1, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 0]]
    assert ADD_MANY.expressions(problems) == ["1+2", "3+4+5+6", "0+0+0"]


def test_drawn_problems_of_varying_counts_are_answered_like_python() -> None:
    problems = draw(task_of("+", max_operands=10, max_digits=5), 500)
    assert ADD_MANY.answer(problems).texts() == [str(sum(row)) for row in operands(problems)]


@each_operation
def test_drawn_problems_are_answered_like_python(operation: str) -> None:
    problems = draw(task_of(operation, max_digits=8), 500)
    expected = [str(OPERATIONS[operation](a, b)) for a, b in operands(problems)]
    assert task_of(operation).answer(problems).texts() == expected


@pytest.mark.parametrize("name", ["five-operations", "add-many", "divide", "add"])
def test_drawing_is_a_function_of_the_generator(name: str) -> None:
    task = Arithmetic(TASKS[name])
    first, again, other = (draw(task, 50, seed) for seed in (3, 3, 4))
    assert task.expressions(first) == task.expressions(again)
    assert task.expressions(first) != task.expressions(other)


# Chains of carries -----------------------------------------------------------------------------

ADD = task_of("+")


def longest_chain(*numbers: int) -> int:
    """Columns in a row that receive a carry, counted one by one, in every addition."""
    longest, total = 0, numbers[0]
    for number in numbers[1:]:
        carry = run = 0
        for column in range(max(len(str(total)), len(str(number)))):
            digits = total // 10**column % 10 + number // 10**column % 10
            carry = int(digits + carry >= 10)
            run = (run + 1) * carry
            longest = max(longest, run)
        total += number
    return longest


@pytest.mark.parametrize(
    ("typed", "chain"),
    [("0+0", 0), ("5+4", 0), ("5+5", 1), ("99+1", 2), ("90+10", 1), ("199+1", 2), ("15+906", 1)],
)
def test_a_chain_counts_the_columns_in_a_row_that_receive_a_carry(typed: str, chain: int) -> None:
    assert ADD.longest_carry_chain(ADD.parse([typed])).tolist() == [chain]


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(naturals(longest=80), naturals(longest=80)) | complementary_naturals(),
        min_size=1,
        max_size=5,
    )
)
def test_the_longest_chain_of_a_sum_is_as_counted_by_hand(pairs: list[tuple[int, int]]) -> None:
    chains = ADD.longest_carry_chain(Problems.from_integers(list(pairs)))
    assert chains.tolist() == [longest_chain(a, b) for a, b in pairs]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(naturals(longest=12), min_size=2, max_size=6), min_size=1, max_size=5))
def test_the_longest_chain_of_several_additions_counts(rows: list[list[int]]) -> None:
    chains = ADD_MANY.longest_carry_chain(Problems.from_integers([tuple(row) for row in rows]))
    assert chains.tolist() == [longest_chain(*row) for row in rows]


def draw_chains(shapes: Shapes, seed: int = 0) -> Problems:
    return ADD.draw(shapes, generator(seed))


def test_every_chain_that_fits_comes_out_at_all_pairs_of_lengths() -> None:
    cases = [
        (a, b, chain)
        for a in range(1, 9)
        for b in range(1, 9)
        for chain in range(max(a, b) + 1)
        for _ in range(20)
    ]
    rows = torch.tensor(cases)
    shapes = Shapes(rows[:, :2], torch.zeros(len(rows), dtype=torch.uint8), rows[:, 2])
    problems = draw_chains(shapes)
    chains = ADD.longest_carry_chain(problems)
    assert torch.equal(chains, rows[:, 2])
    written = [[len(str(operand)) for operand in row] for row in operands(problems)]
    assert written == rows[:, :2].tolist()


@pytest.mark.parametrize("lengths", [(60, 60), (60, 1), (1, 60), (60, 59), (17, 60), (1, 1)])
def test_long_chains_come_out_at_unequal_lengths(lengths: tuple[int, int]) -> None:
    chains = torch.arange(max(lengths) + 1).repeat_interleave(5)
    shapes = Shapes(
        torch.tensor([lengths] * len(chains)), torch.zeros(len(chains), dtype=torch.uint8), chains
    )
    problems = draw_chains(shapes)
    assert torch.equal(ADD.longest_carry_chain(problems), chains)
    inside = torch.arange(problems.digits_BNW.shape[2]) < problems.lengths_BN.unsqueeze(2)
    assert not problems.digits_BNW[~inside].any()
    leading = problems.digits_BNW.gather(2, problems.lengths_BN.unsqueeze(2) - 1).squeeze(2)
    assert leading[problems.lengths_BN > 1].all()


def test_sampling_carry_chains_draws_the_chains_of_its_shapes() -> None:
    task = task_of("+", max_digits=30, sampling="carry-chains")
    source = generator()
    shapes = task.draw_shapes(2_000, source)
    problems = task.draw(shapes, source)
    assert torch.equal(task.longest_carry_chain(problems), shapes.chain_B)
    assert task.answer(problems).texts() == [str(a + b) for a, b in operands(problems)]


def test_without_weights_every_chain_that_fits_is_equally_likely() -> None:
    task = task_of("+", operand_digits=(4, 9), sampling="carry-chains")
    chains = task.draw_shapes(20_000, generator()).chain_B
    assert_uniform(torch.bincount(chains, minlength=10))


def test_chains_are_drawn_by_their_weights() -> None:
    task = task_of(
        "+", operand_digits=(5, 5), sampling="carry-chains", carry_chains=(1, 0, 0, 0, 0, 3)
    )
    chains = task.draw_shapes(20_000, generator()).chain_B
    shares = torch.bincount(chains, minlength=6) / len(chains)
    assert shares.tolist() == pytest.approx([0.25, 0, 0, 0, 0, 0.75], abs=0.02)


def test_weights_of_chains_count_among_those_that_fit() -> None:
    task = task_of("+", operand_digits=(2, 1), sampling="carry-chains", carry_chains=(1, 1, 2, 96))
    chains = task.draw_shapes(20_000, generator()).chain_B
    shares = torch.bincount(chains, minlength=4) / len(chains)
    assert shares.tolist() == pytest.approx([0.25, 0.25, 0.5, 0], abs=0.02)


def test_if_no_chain_with_a_weight_fits_the_longest_that_fits_is_drawn() -> None:
    weights = (0, 0, 0, 0, 0, 1)
    task = task_of("+", max_digits=8, sampling="carry-chains", carry_chains=weights)
    shapes = task.draw_shapes(2_000, generator())
    assert torch.equal(shapes.chain_B, shapes.lengths_BN.amax(dim=1).clamp(max=5))


def test_a_chain_longer_than_both_operands_is_refused() -> None:
    shapes = Shapes(torch.tensor([[2, 3]]), torch.zeros(1, dtype=torch.uint8), torch.tensor([4]))
    with pytest.raises(ValueError, match="cannot be longer than the longer operand"):
        draw_chains(shapes)


def test_all_sums_of_two_digits_that_have_the_chain_can_come() -> None:
    for chain in range(3):
        shapes = Shapes(
            torch.tensor([[2, 2]] * 60_000),
            torch.zeros(60_000, dtype=torch.uint8),
            torch.full((60_000,), chain),
        )
        possible = {
            (a, b) for a in range(10, 100) for b in range(10, 100) if longest_chain(a, b) == chain
        }
        pairs_drawn = set(operands(draw_chains(shapes)))
        assert pairs_drawn <= possible
        assert len(possible - pairs_drawn) < len(possible) // 50, chain


def test_shapes_of_chains_are_kept_when_rows_are_chosen_or_repeated() -> None:
    shapes = task_of("+", sampling="carry-chains").draw_shapes(4, generator())
    assert torch.equal(shapes[1:3].chain_B, shapes.chain_B[1:3])
    assert shapes.repeat_each(2).chain_B.tolist() == [
        c for c in shapes.chain_B.tolist() for _ in (0, 1)
    ]


# Measures of problems ----------------------------------------------------------------------------


def test_measures_are_lengths_and_for_sums_the_chain() -> None:
    measured = ADD.measures(ADD.parse(["999999+1", "1+2"]))
    assert {name: values.tolist() for name, values in measured.items()} == {
        "digits of the longest operand": [6, 1],
        "digits of the answer": [7, 1],
        "longest carry chain": [6, 0],
    }
    task = task_of("+", max_digits=3)
    sizes = task.measures(task.parse(["999+999", "20+19", "20+20"]))
    assert sizes["size of the answer, in steps of 40"].tolist() == [49, 0, 1]
    assert "longest carry chain" not in MIXED.measures(MIXED.parse(["1-2"]))


@pytest.mark.parametrize(
    ("config", "claim"),
    [
        (TASKS["add"], "adds all pairs of non-negative integers"),
        (TASKS["add-many"], "adds 2 to 10 non-negative integers"),
        (TASKS["divide"], "divides all pairs of non-negative integers"),
        (
            ArithmeticConfig(operations=("-", "%")),
            "is right for - and % of all pairs of non-negative integers",
        ),
        (
            ArithmeticConfig(operations=("+", "-", "*")),
            "is right for +, - and * of all pairs of non-negative integers",
        ),
    ],
)
def test_the_claim_says_what_a_perfect_model_does(config: ArithmeticConfig, claim: str) -> None:
    assert Arithmetic(config).claim == claim


@pytest.mark.parametrize("operations", [("*",), ("//",), ("%",), ("+", "-")], ids="".join)
def test_only_sums_and_differences_have_a_column_rule(operations: tuple[str, ...]) -> None:
    assert task_of(*operations).column_rule() is None
    assert ADD.column_rule() is not None
    assert task_of("-").column_rule() is not None


def test_propagating_columns_add_up_to_nine_with_and_without_a_carry() -> None:
    task = task_of("+", min_digits=1, max_digits=12, sampling="propagate")
    problems = draw(task, 4_000)
    first, second = problems.digits_BNW.long().unbind(1)
    shorter, longer = problems.lengths_BN.aminmax(dim=1, keepdim=True)
    column = torch.arange(first.shape[1])
    nine = (first + second == 9)[column < longer].float().mean()
    assert 0.5 < float(nine) < 0.62  # half by choice, and a tenth of the others
    carries = torch.zeros(len(problems), first.shape[1] + 1, dtype=torch.long)
    for place in range(first.shape[1]):
        carries[:, place + 1] = (first + second)[:, place] + carries[:, place] >= 10
    stretch = ((first + second == 9) & (column < longer)).int().cummin(dim=1).values
    with_carry = carries[:, 1:][(first + second == 9) & (column < shorter)]
    assert 0.2 < float(with_carry.float().mean()) < 0.5
    assert int((stretch.sum(dim=1) > 8).sum()) > 20
    leading = problems.digits_BNW.gather(2, problems.lengths_BN.unsqueeze(2) - 1).squeeze(2)
    assert bool(((leading > 0) | (problems.lengths_BN == 1)).all())


def test_many_stretches_of_nines_begin_at_the_units_and_end_below_the_highest_column() -> None:
    task = task_of("+", min_digits=12, max_digits=12, sampling="propagate")
    nine = draw(task, 8_000).digits_BNW.long().sum(dim=1) == 9
    below_the_highest = nine[:, :11].all(dim=1) & ~nine[:, 11]
    # A ninth of a quarter by choice, and some at random.
    assert 1 / 36 < float(below_the_highest.float().mean()) < 0.06


@pytest.mark.parametrize("longest", [1, 2, 3])
def test_short_problems_have_stretches_too(longest: int) -> None:
    task = task_of("+", min_digits=longest, max_digits=longest, sampling="propagate")
    totals = draw(task, 2_000).digits_BNW.long().sum(dim=1)
    assert totals.shape == (2_000, longest)
    assert set(totals.flatten().tolist()) == set(range(19))


def test_half_of_the_problems_are_rich_in_nines() -> None:
    task = task_of("*", min_digits=20, max_digits=20, sampling="nines")
    nines = (draw(task, 2_000).digits_BNW == 9).float().mean(dim=(1, 2))
    rich = nines > 0.3
    assert 0.45 < float(rich.float().mean()) < 0.55
    assert 0.5 < float(nines[rich].mean()) < 0.6
    assert 0.05 < float(nines[~rich].mean()) < 0.15
