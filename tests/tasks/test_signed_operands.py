"""Problems whose operands have signs: what is drawn, typed, answered, counted and split."""

import random

import pytest
import torch

from abacist.data.config import SplitConfig
from abacist.data.split import draw_from_split, hash_problems, in_split
from abacist.errors import ConfigurationError, ProblemError
from abacist.formats.config import FORMATS
from abacist.scoring.counterexamples import mutated
from abacist.tasks import digits
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.config import ArithmeticConfig, Operation
from abacist.tasks.problems import Problems, concatenate

OPERATIONS: tuple[Operation, ...] = ("+", "-", "*", "//", "%")
SIGNED = Arithmetic(ArithmeticConfig(operations=OPERATIONS, signed=True, max_digits=4))


def drawn(count: int, seed: int = 0) -> Problems:
    generator = torch.Generator().manual_seed(seed)
    return SIGNED.draw(SIGNED.draw_shapes(count, generator), generator)


def without_signs(problems: Problems) -> Problems:
    return Problems(problems.digits_BNW, problems.shapes)


def test_answers_are_those_of_python_for_all_single_digits_and_signs():
    space = Arithmetic(ArithmeticConfig(operations=OPERATIONS, signed=True, max_digits=1)).space()
    assert space is not None
    problems = space.problems(torch.arange(len(space)))
    expressions = SIGNED.expressions(problems)
    assert len(expressions) == len(set(expressions)) == 3 * 19 * 19 + 2 * 19 * 18
    assert SIGNED.answer(problems).texts() == [str(eval(text)) for text in expressions]


def test_answers_are_those_of_python_for_long_numbers():
    numbers = random.Random(0)
    rows = [
        tuple(
            numbers.choice((-1, 1)) * numbers.randint(1, 10 ** numbers.randint(1, 40))
            for _ in range(2)
        )
        for _ in range(200)
    ]
    for operation in OPERATIONS:
        problems = Problems.from_integers(rows, operation)
        expected = [str(eval(f"{a}{operation}{b}")) for a, b in rows]
        assert SIGNED.answer(problems).texts() == expected


@pytest.mark.parametrize("operation", ["//", "%"])
def test_quotient_and_remainder_come_from_one_division(operation, monkeypatch):
    divided, divide = [], digits.divide

    def counted(a_BW, b_BW):
        divided.append(len(a_BW))
        return divide(a_BW, b_BW)

    monkeypatch.setattr(digits, "divide", counted)
    problems = Problems.from_integers([(-7, 2), (7, -2), (-8, -2)], operation)
    expected = {"//": ["-4", "-4", "4"], "%": ["1", "-1", "0"]}
    assert SIGNED.answer(problems).texts() == expected[operation]
    assert divided == [3]


def test_all_numbers_of_two_digits_have_both_signs():
    task = Arithmetic(ArithmeticConfig(operations=("//",), signed=True, min_digits=2, max_digits=2))
    space = task.space()
    assert space is not None
    assert len(set(task.expressions(space.problems(torch.arange(len(space)))))) == 180**2


def test_half_of_all_operands_are_below_0_and_no_zero_is():
    problems = drawn(4_000)
    assert problems.negative_BN is not None
    assert problems.negative_BN.float().mean() == pytest.approx(0.5, abs=0.03)
    assert not any(text.startswith("-0") for text in problems.operand(0).texts())
    assert bool((problems.digits_BNW[:, 0] == 0).all(dim=1).any())


def test_signs_change_nothing_else_about_what_is_drawn():
    unsigned = Arithmetic(ArithmeticConfig(operations=OPERATIONS, max_digits=4))
    problems = [
        task.draw(task.draw_shapes(100, generator), generator)
        for task in (SIGNED, unsigned)
        for generator in [torch.Generator().manual_seed(3)]
    ]
    assert torch.equal(problems[0].digits_BNW, problems[1].digits_BNW)
    assert problems[1].negative_BN is None


@pytest.mark.parametrize(
    ("typed", "expression"),
    [
        ("-12+34", "-12+34"),
        ("5--3", "5--3"),
        ("5 - (-3)", "5--3"),
        ("-7*-8=", "-7*-8"),
        ("(-7)//2", "-7//2"),
        (" - 7 % -2", "-7%-2"),
        ("-0+5", "0+5"),
        ("-007-1", "-7-1"),
    ],
)
def test_typed_problems_may_have_signs_and_brackets(typed, expression):
    assert SIGNED.expressions(SIGNED.parse([typed])) == [expression]


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("--5+3", "one minus sign at most"),
        ("5---3", "one minus sign at most"),
        ("-1 2+3", "not a calculation of whole numbers"),
        ("5+", "an operand is missing"),
        ("-5", "1 number"),
        ("-5/3", "not /"),
        ("7//-0", "divides by zero; type a divisor other than 0"),
        ("-1.5+2", "without points"),
        ("1+-2+3", "3 numbers"),
    ],
)
def test_other_texts_are_refused_in_one_line(typed, reason):
    with pytest.raises(ProblemError, match=reason) as error:
        SIGNED.parse([typed])
    assert "\n" not in str(error.value)


def test_a_task_without_signs_still_refuses_them():
    with pytest.raises(ProblemError, match="operands are whole numbers from 0 up"):
        Arithmetic(ArithmeticConfig()).parse(["-12+34"])


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"max_operands": 3}, "task.signed is for problems of 2 operands"),
        ({"sampling": "values"}, "task.signed draws operands by lengths or nines"),
        ({"sampling": "carry-chains"}, "task.signed draws operands by lengths or nines"),
    ],
)
def test_settings_that_signs_do_not_go_with_are_refused(setting, reason):
    with pytest.raises(ConfigurationError, match=reason) as error:
        ArithmeticConfig(signed=True, **setting)
    assert "\n" not in str(error.value)


def test_a_number_and_its_opposite_can_be_in_different_splits():
    rows = [(a, b) for a in range(1, 60) for b in range(1, 60)]
    positive = hash_problems(Problems.from_integers(rows))
    negative = hash_problems(Problems.from_integers([(-a, b) for a, b in rows]))
    both = hash_problems(Problems.from_integers([(-a, -b) for a, b in rows]))
    assert not bool((positive == negative).any())
    assert not bool((negative == both).any())


def test_problems_without_negative_operands_are_in_the_same_split_with_and_without_signs():
    problems = drawn(300)
    unsigned = without_signs(problems)
    is_unsigned = ~problems.is_negative_BN.any(dim=1)
    same = hash_problems(problems) == hash_problems(unsigned)
    assert torch.equal(same, is_unsigned)


def test_sums_and_products_commute_with_their_signs():
    rows = [(-3, 45), (12, -7), (-8, -9)]
    for operation in ("+", "*"):
        first = hash_problems(Problems.from_integers(rows, operation))
        second = hash_problems(Problems.from_integers([(b, a) for a, b in rows], operation))
        assert torch.equal(first, second)


def test_problems_that_are_drawn_again_for_a_split_keep_the_signs_they_were_hashed_with():
    config, generator = SplitConfig(exempt_digits=0), torch.Generator().manual_seed(0)
    shapes = SIGNED.draw_shapes(300, generator)
    problems = draw_from_split(SIGNED, shapes, "test", config, generator)
    assert bool(in_split(problems, "test", config).all())
    assert problems.is_negative_BN.float().mean() == pytest.approx(0.5, abs=0.1)


def test_mutations_have_signs_and_no_zero_is_negative():
    generator = torch.Generator().manual_seed(0)
    problems = drawn(100)
    children = mutated(SIGNED, problems, 4, generator)
    assert torch.equal(children.with_signs(children.is_negative_BN).digits_BNW, children.digits_BNW)
    parents = problems.is_negative_BN.repeat_interleave(4, dim=0)
    changed = (children.is_negative_BN != parents).float().mean()
    assert 0.15 < changed < 0.35
    assert not any(text.startswith("-0") for text in children.operand(1).texts())


def test_batches_with_and_without_signs_can_be_joined():
    joined = concatenate([Problems.from_integers([(5, 3)]), Problems.from_integers([(-50, 3)])])
    assert SIGNED.expressions(joined) == ["5+3", "-50+3"]


def test_a_format_that_writes_no_signs_is_refused_with_the_one_that_does():
    with pytest.raises(
        ConfigurationError, match=r"operands from 0 up only\. Try --format calculator"
    ):
        FORMATS["reversed"].build(ArithmeticConfig(signed=True))
