"""Tests of the calculator's products and divisions of signed operands.

Sums and differences are tested in `test_signed_addition_format.py`.
"""

import pytest
import torch
from written_lines import Pair

from abacist.formats.annotated import ANCHOR, EVERYWHERE, NO_PLACE
from abacist.formats.config import CalculatorFormatConfig
from abacist.tasks.config import ArithmeticConfig, Operation

SIGNED = Pair(
    "signed",
    ArithmeticConfig(operations=("*", "//", "%"), signed=True, max_digits=4),
    CalculatorFormatConfig(),
)
MIRROR = str.maketrans("0123456789+-", "9876543210-+")


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        ("-23*45", "<product>32⁻*54⁺=⁻⁰[15]5¹[10]1¹1⁰[12]3¹[8]0¹1<end>"),
        ("-7*-8", "<product>7⁻*8⁻=⁺⁰[56]6⁵5<end>"),
        ("-5*0", "<product>5⁻*0⁺=⁻⁰[0]0⁰0<end>"),
        ("7//3", "<division>⁺7//⁺3=⁺[-0]:40[-1]:10[-2]:8'9'[+9]:1'0'[-0]:<end>"),
        ("-8//3", "<division>⁻2//⁺3=⁺[+9]:59[+8]:89[+7]:1'0'[-0]:<end>"),
        ("8//-3", "<division>⁻2//⁻3=⁻[+9]:59[+8]:89[+7]:1'0'[-0]:<end>"),
        ("-7//-3", "<division>⁺7//⁻3=⁻[-0]:40[-1]:10[-2]:8'9'[+9]:1'0'[-0]:<end>"),
        ("-1%100", "<division>⁻9%⁺100=⁺[+9]:990'0'[-0]:<end>"),
        ("0%-3", "<division>⁺0%⁻3=⁻[-0]:7'9'[+9]:0'0'[-0]:<end>"),
    ],
)
def test_signs_stand_beside_the_numbers_and_before_the_work(problem, line):
    assert SIGNED.typed(problem) == [line]


@pytest.mark.parametrize("operation", ["*", "//", "%"])
def test_problems_of_small_numbers_are_read_back_as_python_answers(operation: Operation):
    task = ArithmeticConfig(operations=(operation,), signed=True, max_digits=2).build()
    space = task.space()
    assert space is not None
    problems = space.problems(torch.arange(0, len(space), 23))
    expected = [str(eval(text)) for text in task.expressions(problems)]
    assert SIGNED.read(SIGNED.write(problems)) == expected


@pytest.mark.parametrize(("number", "divisor"), [(0, 7), (96, 8), (953, 26), (12, 345), (99, 1)])
def test_rows_of_a_dividend_below_0_mirror_those_of_a_number_from_0_up(number, divisor):
    (line,) = SIGNED.typed(f"{number}//{divisor}")
    (mirror,) = SIGNED.typed(f"{-1 - number}//{divisor}")
    rows, mirrored = (
        text.partition("=")[2].removeprefix("⁺").split("[") for text in (line, mirror)
    )
    # The row that returns, and the last one, are the same in both.
    num_rows = min(len(rows), len(mirrored)) - 1
    assert num_rows > 1
    assert [row.translate(MIRROR) for row in rows[:num_rows]] == mirrored[:num_rows]


def test_signs_of_products_are_seen_by_nothing_but_the_equals_sign():
    lines = SIGNED.write(SIGNED.task.parse(["-2*3"]))
    assert lines.row is not None
    assert list(zip(lines.place[0].tolist(), lines.row[0].tolist(), strict=True))[:8] == [
        (EVERYWHERE, EVERYWHERE),
        (3, EVERYWHERE),
        (ANCHOR, ANCHOR),
        (NO_PLACE, NO_PLACE),
        (EVERYWHERE, 1),
        (ANCHOR, ANCHOR),
        (ANCHOR, ANCHOR),
        (NO_PLACE, NO_PLACE),
    ]


def test_digits_and_rows_of_divisions_stand_where_they_do_without_signs():
    unsigned = Pair(
        "unsigned", ArithmeticConfig(operations=("//",), max_digits=4), CalculatorFormatConfig()
    )
    first, second = (pair.write(pair.task.parse(["953//26"])) for pair in (SIGNED, unsigned))
    signs = [
        i for i, token in enumerate(first.ids[0]) if SIGNED.format.vocabulary.tokens[token] in "⁺⁻"
    ]
    assert len(signs) == 3
    others = [i for i in range(first.ids.shape[1]) if i not in signs]
    for name in ("place", "row", "step", "field", "target"):
        values, alone = getattr(first, name)[0], getattr(second, name)[0]
        assert values[others].tolist() == alone.tolist()
        if name in ("place", "row", "step"):
            assert values[signs].tolist() == [2 if name == "place" else ANCHOR, ANCHOR, ANCHOR]


@pytest.mark.parametrize(
    "line",
    [
        "<product>7⁻*8⁻=⁰[56]6⁵5<end>",
        "<product>7⁻*8⁻=⁺<end>",
        "<product>7⁻*8⁻=<end>",
        "<division>⁻2//⁺3=[+9]:59[+8]:89[+7]:1'0'[-0]:<end>",
        "<division>⁻2//⁺3=⁺[+8]:59[+8]:89[+7]:1'0'[-0]:<end>",
        "<division>⁻2//⁺3=⁺<end>",
        "<division>⁻2//⁺3=<end>",
    ],
)
def test_lines_without_a_sign_or_with_another_first_row_are_malformed(line):
    assert SIGNED.read_texts(line) == [None]


def test_a_zero_has_no_sign_whatever_was_written():
    assert SIGNED.read_texts("<product>5⁻*0⁺=⁻⁰[0]0⁰0<end>") == ["0"]
    assert SIGNED.read_texts("<division>⁺0%⁻3=⁻[-0]:7'9'[+9]:0'0'[-0]:<end>") == ["0"]


def test_unlike_signs_of_a_division_differ_for_a_model():
    """A model sees tokens with their coordinates and not their order, so signs must not share these."""
    task = ArithmeticConfig(operations=("//",), signed=True).build()
    form = CalculatorFormatConfig().build(task.config)
    seen = []
    for problem in ("-7//2", "-7//-2"):
        line = form.prompt(task.parse([problem]))
        columns = zip(
            *(getattr(line, name)[0].tolist() for name in ("ids", "place", "row", "step")),
            strict=True,
        )
        seen.append({column for column in columns if form.vocabulary.tokens[column[0]] in "⁺⁻"})
    assert seen[0] != seen[1]
