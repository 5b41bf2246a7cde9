"""Tests of sums and differences in ten's complement, as the calculator writes them.

What every format must do is in `test_every_format.py`.
"""

import pytest
import torch
from written_lines import Pair

from abacist.formats.annotated import ANCHOR, EVERYWHERE, NO_PLACE
from abacist.formats.config import CalculatorFormatConfig
from abacist.tasks.config import ArithmeticConfig

SIGNED = Pair(
    "signed",
    ArithmeticConfig(operations=("+", "-"), signed=True, max_digits=4),
    CalculatorFormatConfig(),
)


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        ("-12+34", "<sum>88⁻+43⁺=220⁺<end>"),
        ("5--3", "<difference>5⁺-7⁻=80⁺<end>"),
        ("-7-123", "<difference>399⁻-321⁺=0789⁻<end>"),
        ("0+0", "<sum>0⁺+0⁺=00⁺<end>"),
        ("-1+-1", "<sum>9⁻+9⁻=89⁻<end>"),
        ("-10+-10", "<sum>0⁻+0⁻=08⁻<end>"),
        ("-100+7", "<sum>00⁻+70⁺=709⁻<end>"),
        ("9--999", "<difference>900⁺-100⁻=8001⁺<end>"),
    ],
)
def test_numbers_below_0_are_written_in_tens_complement(problem, line):
    assert SIGNED.typed(problem) == [line]


@pytest.mark.parametrize("operation", ["+", "-"])
def test_all_problems_of_small_numbers_are_read_back(operation):
    task = ArithmeticConfig(operations=(operation,), signed=True, max_digits=2).build()
    space = task.space()
    assert space is not None
    # Every seventh problem, which meets all combinations of signs, lengths and powers of ten.
    problems = space.problems(torch.arange(0, len(space), 7))
    lines = SIGNED.write(problems)
    assert SIGNED.read(lines) == task.answer(problems).texts()
    longest = SIGNED.format.target_lengths(problems)
    assert bool((lines.target.sum(dim=1) <= longest).all())


def test_both_operands_have_the_smallest_width_in_which_both_can_be_written():
    for number in range(-1_100, 1_101, 7):
        (line,) = SIGNED.typed(f"{number}+0")
        digits = line.removeprefix("<sum>").partition("+")[0][:-1]
        width = len(digits)
        assert -(10**width) <= number < 10**width
        assert width == 1 or not -(10 ** (width - 1)) <= number < 10 ** (width - 1)
        assert int(digits[::-1]) - (number < 0) * 10**width == number


def test_signs_stand_in_the_column_after_the_last_digit():
    lines = SIGNED.write(SIGNED.task.parse(["-97+8"]))
    assert lines.place[0].tolist() == [
        EVERYWHERE,
        *(2, 4, 6, NO_PLACE, 2, 4, 6, ANCHOR, 2, 4, 6, 8, 10),
    ]
    assert lines.row is not None
    assert lines.row[0].tolist() == [EVERYWHERE, 1, 1, 1, NO_PLACE, 2, 2, 2, *6 * [3]]


@pytest.mark.parametrize(
    "line",
    [
        "<sum>88⁻+43⁺=22⁺<end>",
        "<sum>88⁻+43⁺=2200⁺<end>",
        "<sum>88⁻+43⁺=220<end>",
        "<sum>88⁻+43⁺=2200<end>",
        "<sum>88⁻+43⁺=⁺220<end>",
        "<sum>88⁻+43⁺=<end>",
    ],
)
def test_answers_of_another_width_or_without_a_sign_are_malformed(line):
    assert SIGNED.read_texts(line) == [None]


def test_every_well_formed_answer_is_read_as_the_number_it_stands_for():
    assert SIGNED.read_texts("<sum>88⁻+43⁺=220⁻<end>") == ["-978"]
    assert SIGNED.read_texts("<sum>88⁻+43⁺=000⁻<end>") == ["-1000"]
    assert SIGNED.read_texts("<sum>88⁻+43⁺=999⁻<end>") == ["-1"]
