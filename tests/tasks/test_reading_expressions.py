"""Reading what people type, and refusing it; `test_arithmetic.py` has more cases for sums."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from abacist.errors import ProblemError
from abacist.tasks.config import (
    TASKS,
    ArithmeticConfig,
    ModularAdditionConfig,
    SortingConfig,
    TaskConfig,
)
from abacist.tasks.reading import quoted, whole_number

CONFIGS: dict[str, TaskConfig] = {
    "add": TASKS["add"],
    "add 2 to 10": TASKS["add-many"],
    "add 3": ArithmeticConfig(min_operands=3, max_operands=3),
    "subtract": TASKS["subtract"],
    "multiply": TASKS["multiply"],
    "divide": TASKS["divide"],
    "modulo": TASKS["modulo"],
    "five": TASKS["five-operations"],
    "sums and differences": ArithmeticConfig(operations=("+", "-")),
    "sort": SortingConfig(),
    "add modulo 113": ModularAdditionConfig(),
}
ARITHMETIC = [name for name, config in CONFIGS.items() if config.kind == "arithmetic"]


def refusal(name: str, typed: str, max_digits: int = 100_000) -> str:
    task = CONFIGS[name].build()
    with pytest.raises(ProblemError) as caught:
        task.parse([task.example, typed], max_digits)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "typed", "understood"),
    [
        ("add", "12+34=", "12+34"),
        ("add", "\u00a012 + 34\u2003", "12+34"),
        ("add 2 to 10", "1+2+3", "1+2+3"),
        ("add 3", " 1 + 02 + 3 =", "1+2+3"),
        ("subtract", "3 - 4", "3-4"),
        ("subtract", "0-0", "0-0"),
        ("multiply", "7*8", "7*8"),
        ("divide", "8//4", "8//4"),
        ("divide", "0 // 007", "0//7"),
        ("modulo", "5 % 10", "5%10"),
        ("five", "12 + 34", "12+34"),
        ("five", "3-4", "3-4"),
        ("five", "7*8=", "7*8"),
        ("five", "5//7", "5//7"),
        ("five", "5%7", "5%7"),
    ],
)
def test_a_typed_problem_is_understood(name: str, typed: str, understood: str) -> None:
    task = CONFIGS[name].build()
    assert task.expressions(task.parse([typed])) == [understood]


NO_POINTS = "operands are whole numbers without points or commas."
MINUS = "it has a minus sign; operands are whole numbers from 0 up."


@pytest.mark.parametrize(
    ("name", "typed", "message"),
    [
        ("add", "", "empty problem: type a sum, such as 12+34."),
        ("subtract", " \n", "empty problem: type a problem, such as 56-12."),
        ("add", "7*8", "cannot read '7*8': this task knows + only, not *. "),
        ("add", "5//0", "cannot read '5//0': this task knows + only, not //. "),
        ("add", "5%0", "cannot read '5%0': this task knows + only, not %. "),
        ("add", "12-3", "cannot read '12-3': this task knows + only, not -. "),
        ("subtract", "1+2", "cannot read '1+2': this task knows - only, not +. "),
        ("divide", "12%5", "cannot read '12%5': this task knows // only, not %. "),
        ("sums and differences", "7*8", "cannot read '7*8': this task knows + - only, not *. "),
        ("divide", "5//0", "'5//0' divides by zero; type a divisor from 1 up, such as 56//12."),
        ("five", "5 // 000", "'5 // 000' divides by zero; type a divisor from 1 up, "),
        ("modulo", "5%0", "'5%0' divides by zero; type a divisor from 1 up, such as 56%12."),
        ("add", "1/2", "cannot read '1/2': this task knows + only, not /. "),
        ("divide", "1/2", "cannot read '1/2': this task knows // only, not /. "),
        ("five", "1/2", "cannot read '1/2': this task knows + - * // % only, not /. "),
        ("add", "1.5+2", f"cannot read '1.5+2': {NO_POINTS} "),
        ("multiply", "1.5*2", f"cannot read '1.5*2': {NO_POINTS} "),
        ("subtract", "1,500-2", f"cannot read '1,500-2': {NO_POINTS} "),
        ("add", "-3+4", f"cannot read '-3+4': {MINUS} "),
        ("five", "-3+4", f"cannot read '-3+4': {MINUS} "),
        ("subtract", "-3-4", f"cannot read '-3-4': {MINUS} "),
        ("subtract", "3--4", f"cannot read '3--4': {MINUS} "),
        ("multiply", "3*-4", f"cannot read '3*-4': {MINUS} "),
        ("add", "3 - 4", "cannot read '3 - 4': this task knows + only, not -. "),
        ("add", "1+2-3", "cannot read '1+2-3': this task knows + only, not -. "),
        ("add 3", "1+2-3", "cannot read '1+2-3': this task knows + only, not -. "),
        ("sums and differences", "1+2-3", "cannot read '1+2-3': a problem has only one kind of operation. "),
        ("five", "1+2*3", "cannot read '1+2*3': a problem has only one kind of operation. "),
        ("add", "1+2+3", "it has 3 numbers and this task takes 2 numbers. Type 2 numbers, "),
        ("add 3", "1+2", "it has 2 numbers and this task takes 3 numbers. Type 3 numbers, "),
        ("add 3", "12+34=", "it has 2 numbers and this task takes 3 numbers. "),
        ("five", "1*2*3", "it has 3 numbers and this task takes 2 numbers. "),
        ("subtract", "1-2-3", "it has 3 numbers and this task takes 2 numbers. "),
        ("add 2 to 10", "1", "it has 1 number and this task takes 2 to 1,000 numbers. "),
        ("add 2 to 10", "+".join("1" * 1001), "it has 1,001 numbers and this task takes 2 to "),
        ("add", "12+", "cannot read '12+': an operand is missing. "),
        ("multiply", "7**2", "cannot read '7**2': an operand is missing. "),
        ("divide", "7///2", "cannot read '7///2': "),
        ("add", "12+34=46", "cannot read '12+34=46': it is not a sum of whole numbers. "),
        ("five", "12+34=46", "cannot read '12+34=46': it is not a calculation of whole numbers. "),
        ("five", "two+2", "cannot read 'two+2': it is not a calculation of whole numbers. "),
        ("add", "😀+1", "cannot read '😀+1': it is not a sum of whole numbers. "),
        ("add", "0x1F+1", "cannot read '0x1F+1': it is not a sum of whole numbers. "),
        ("add", "1e3+1", "cannot read '1e3+1': it is not a sum of whole numbers. "),
        ("add", "1\x00+2", r"cannot read '1\x00+2': it is not a sum of whole numbers. "),
        ("multiply", "7×8", "cannot read '7×8': "),
        ("subtract", "7−8", "cannot read '7−8': "),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_what_was_typed_what_is_allowed_and_an_example(
    name: str, typed: str, message: str
) -> None:
    refusal_text = refusal(name, typed)
    assert message in refusal_text
    assert "\n" not in refusal_text
    assert "such as" in refusal_text
    assert refusal_text.endswith(".")


@pytest.mark.parametrize("typed", ["١+٢", "²+1", "１+２", "१२+३"])
def test_digits_of_other_scripts_are_called_what_they_are(typed: str) -> None:
    refusal_text = refusal("add", typed)
    assert f"cannot read {typed!r}: " in refusal_text
    assert "this task takes" not in refusal_text


@pytest.mark.parametrize("name", ["subtract", "five", "sort", "add modulo 113"])
@pytest.mark.parametrize("typed", ["١+٢", "²+1", "１-２"])
def test_digits_of_other_scripts_are_refused(name: str, typed: str) -> None:
    assert repr(typed) in refusal(name, typed)


@pytest.mark.parametrize("name", [name for name in CONFIGS if name != "sort"])
def test_an_operand_of_200_000_digits_is_refused_with_the_limit(name: str) -> None:
    operator = getattr(CONFIGS[name].build(), "operations", ("+",))[0].removesuffix(" mod")
    refusal_text = refusal(name, "7" * 200_000 + operator + "1")
    assert refusal_text == (
        f"'{'7' * 37}...' has an operand of 200,000 digits; at most 100,000 are accepted."
    )


def test_a_number_to_sort_of_200_000_digits_is_refused_with_the_limit() -> None:
    refusal_text = refusal("sort", "1," + "7" * 200_000)
    assert refusal_text == (
        f"'1,{'7' * 35}...' has an operand of 200,000 digits; at most 100,000 are accepted."
    )


@pytest.mark.parametrize("name", ARITHMETIC)
def test_an_operand_as_long_as_the_limit_is_read(name: str) -> None:
    task = CONFIGS[name].build()
    problems = task.parse([task.operations[0].join(["7" * 50] * CONFIGS[name].min_operands)], 50)
    assert problems.lengths_BN.amax() == 50


@pytest.mark.parametrize("name", [name for name in CONFIGS if name != "sort"])
@pytest.mark.parametrize(
    "typed", ["x" * 200_000, "+" * 5_000, "1+x" + "7" * 50_000, "7" * 5_000 + "^2"], ids=len
)
def test_a_refusal_is_short_however_long_what_was_typed(name: str, typed: str) -> None:
    refusal_text = refusal(name, typed)
    assert len(refusal_text) < 300
    assert "\n" not in refusal_text


@pytest.mark.parametrize(("name", "operator"), [("divide", "//"), ("modulo", "%")])
def test_a_long_division_by_zero_is_refused_in_a_short_message(name: str, operator: str) -> None:
    assert len(refusal(name, "7" * 1_000 + operator + "0")) < 300


@pytest.mark.parametrize("name", CONFIGS)
@settings(deadline=None, max_examples=60)
@given(
    typed=st.text("0123456789+-*/%=,.:ab", max_size=9)
    | st.text("12+-*/=:mod \t\n\x00\x85\u2028٣²½−😀", max_size=9)
)
def test_whatever_is_typed_is_understood_or_refused_in_one_short_line(
    name: str, typed: str
) -> None:
    task = CONFIGS[name].build()
    try:
        problems, message = task.parse([typed]), None
    except ProblemError as error:
        problems, message = None, str(error)
    if problems is None:
        assert len(message.splitlines()) == 1
        assert len(message) < 300
        assert message.endswith(".")
    else:
        again = task.parse(task.expressions(problems))
        assert task.expressions(again) == task.expressions(problems)
        assert task.answer(again).texts() == task.answer(problems).texts()


@pytest.mark.parametrize("name", CONFIGS)
def test_the_example_of_a_task_can_be_typed(name: str) -> None:
    task = CONFIGS[name].build()
    problems = task.parse([task.example])
    assert task.expressions(problems)[0].startswith(task.example)
    assert len(task.answer(problems)) == 1


@pytest.mark.parametrize("count", [2, 3, 5, 6, 25])
def test_the_example_of_a_sum_has_as_many_numbers_as_it_takes(count: int) -> None:
    task = ArithmeticConfig(min_operands=count, max_operands=count).build()
    assert task.parse([task.example]).counts_B.tolist() == [count]


def test_the_first_expression_that_cannot_be_read_is_the_one_named() -> None:
    task = CONFIGS["five"].build()
    with pytest.raises(ProblemError, match="cannot read 'first'"):
        task.parse(["1+1", "first", "second", "5//0"])


@pytest.mark.parametrize("name", ARITHMETIC)
def test_drawn_problems_parse_back_from_their_expressions(name: str) -> None:
    task = CONFIGS[name].build()
    generator = torch.Generator().manual_seed(0)
    problems = task.draw(task.draw_shapes(300, generator), generator)
    again = task.parse(task.expressions(problems))
    assert task.expressions(again) == task.expressions(problems)
    counts = again.num_operands
    assert torch.equal(again.lengths_BN, problems.lengths_BN[:, :counts])
    assert torch.equal(again.operation_B, problems.operation_B)
    width = again.digits_BNW.shape[2]
    assert torch.equal(again.digits_BNW, problems.digits_BNW[:, :counts, :width])


# The pieces ------------------------------------------------------------------------------------


def test_an_expression_of_up_to_40_characters_is_shown_whole_and_a_longer_one_cut_to_40() -> None:
    assert quoted("7" * 40) == repr("7" * 40)
    assert quoted("7" * 41) == repr("7" * 37 + "...")


@pytest.mark.parametrize(
    ("text", "number"),
    [("12", "12"), ("0012", "12"), ("0", "0"), ("000", "0"), ("", None), (" 1", None),
     ("1 ", None), ("-1", None), ("+1", None), ("1_0", None), ("1.0", None), ("²", None),
     ("٣", None), ("1e3", None)],
)  # fmt: skip
def test_a_whole_number_is_ascii_digits_without_leading_zeros(
    text: str, number: str | None
) -> None:
    assert whole_number(text, "", 10) == number


def test_a_whole_number_has_at_most_as_many_digits_as_are_accepted() -> None:
    assert whole_number("0" * 9 + "7" * 5, "", 5) == "7" * 5
    with pytest.raises(ProblemError, match="an operand of 6 digits; at most 5 are accepted"):
        whole_number("7" * 6, "777777+1", 5)
