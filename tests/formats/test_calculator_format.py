"""Tests of the calculator's format: its lines for five operations, and where their tokens stand.

What every format must do is in `test_every_format.py`.
"""

import re

import pytest
import torch
from written_lines import Pair, texts

from abacist.formats.annotated import ANCHOR, EVERYWHERE, NO_PLACE, AnnotatedTokens, Field
from abacist.formats.calculator import CalculatorFormat
from abacist.formats.config import FORMATS, CalculatorFormatConfig
from abacist.tasks.config import ArithmeticConfig

TASK = ArithmeticConfig(operations=("+", "-", "*", "//", "%"), max_digits=5)
FIVE = Pair("five", TASK, CalculatorFormatConfig())
ALONE = {
    "+": Pair("sums", ArithmeticConfig(max_digits=5), FORMATS["reversed"]),
    "-": Pair(
        "differences", ArithmeticConfig(operations=("-",), max_digits=5), FORMATS["complement"]
    ),
    "*": Pair(
        "products",
        ArithmeticConfig(operations=("*",), max_digits=5),
        FORMATS["long-multiplication"],
    ),
    "//": Pair(
        "divisions",
        ArithmeticConfig(operations=("//", "%"), max_digits=5),
        FORMATS["non-restoring-division"],
    ),
}
"""The same operations, each in its own format."""


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        ("97+8", "<sum>79+8=501<end>"),
        ("0+0", "<sum>0+0=0<end>"),
        ("45-123", "<difference>54-321=229-<end>"),
        ("7-7", "<difference>7-7=0<end>"),
        ("23*45", "<product>32*54=⁰[15]5¹[10]1¹1⁰[12]3¹[8]0¹1<end>"),
        ("0*99", "<product>0*99=⁰[0]0⁰0⁰[0]0⁰0<end>"),
        ("7//3", "<division>7//3=[-0]:40[-1]:10[-2]:8'9'[+9]:1'0'[-0]:<end>"),
        ("7%3", "<division>7%3=[-0]:40[-1]:10[-2]:8'9'[+9]:1'0'[-0]:<end>"),
    ],
)
def test_each_operation_is_written_in_its_own_notation_after_its_start_token(problem, line):
    assert FIVE.typed(problem) == [line]


def test_lines_are_those_of_the_formats_that_are_proved_one_by_one():
    for pair in ALONE.values():
        written = texts(FIVE.format, FIVE.write(pair.problems))
        alone = texts(pair.format, pair.lines)
        # The counts of divisions stand in brackets, which they don't need where there is no `-`.
        plain = [re.sub(r"\[([-+]\d)\]", r"\1", line.partition(">")[2]) for line in written]
        assert plain == [line.removeprefix("<start>") for line in alone]


def visible(lines: AnnotatedTokens, windows: dict[str, tuple[int, int]]) -> torch.Tensor:
    """Which token sees which in windows over coordinates, bool (B, T, T), written out from the docs."""
    width = lines.ids.shape[1]
    inside = torch.ones(len(lines.ids), width, width, dtype=torch.bool).tril()
    for name, (low, high) in windows.items():
        value = getattr(lines, name)
        query, key = value.unsqueeze(2), value.unsqueeze(1)
        near = (key - query >= low) & (key - query <= high) & (query >= 0) & (key >= 0)
        inside &= near | (key == EVERYWHERE)
    return inside | torch.eye(width, dtype=torch.bool)


WINDOWS = {
    "+": {"place": (0, 1), "row": (-2, 0)},
    "-": {"place": (0, 1), "row": (-2, 0)},
    "*": {"place": (0, 1), "row": (-1, 0)},
    "//": {"place": (0, 2), "row": (-2, 0), "step": (0, 2)},
}
COMMON = {"place": (0, 2), "row": (-2, 0), "step": (0, 2)}


@pytest.mark.parametrize("operation", ALONE)
def test_each_token_that_writes_sees_the_same_tokens_as_in_the_format_of_its_operation(operation):
    """So all that is proved about a notation by itself holds in the common windows, too."""
    pair = ALONE[operation]
    for row in range(20):
        problem = pair.problems[row : row + 1]
        alone, together = pair.write(problem), FIVE.write(problem)
        query = together.target[0].nonzero().squeeze(1) - 1
        assert torch.equal(
            visible(together, COMMON)[0, query], visible(alone, WINDOWS[operation])[0, query]
        )


def test_digits_of_sums_stand_two_places_apart_and_in_one_step():
    lines = FIVE.write(FIVE.task.parse(["97+8"]))
    assert lines.place[0].tolist() == [EVERYWHERE, 2, 4, NO_PLACE, 2, ANCHOR, 2, 4, 6, 8]
    assert lines.row is not None
    assert lines.row[0].tolist() == [EVERYWHERE, 1, 1, NO_PLACE, 2, 3, 3, 3, 3, 3]
    assert lines.step is not None
    assert lines.step[0].tolist() == [EVERYWHERE] + 9 * [1]


def test_cells_of_products_stand_three_places_and_three_rows_apart():
    lines = FIVE.write(FIVE.task.parse(["23*4"]))
    assert lines.row is not None
    assert list(zip(lines.place[0].tolist(), lines.row[0].tolist(), strict=True)) == [
        (EVERYWHERE, EVERYWHERE),
        *((3, EVERYWHERE), (6, EVERYWHERE), (NO_PLACE, NO_PLACE), (EVERYWHERE, 1)),
        (ANCHOR, ANCHOR),
        *((3, 3), (3, 3), (2, 4), (6, 3), (6, 3), (5, 4), (9, 3), (8, 4), (3, 6)),
    ]


def test_a_calculator_of_two_operations_knows_only_their_notations():
    two = Pair("two", ArithmeticConfig(operations=("*", "+")), CalculatorFormatConfig())
    assert isinstance(two.format, CalculatorFormat)
    assert [member.task.operations for member in two.format.members] == [("+",), ("*",)]
    assert two.read(two.lines) == two.task.answer(two.problems).texts()


def test_lines_of_all_operations_in_one_batch_are_those_of_each_alone():
    expressions = ["12+9", "5-67", "34*9", "100//7", "100%7"]
    together = FIVE.typed(*expressions)
    assert together == [line for text in expressions for line in FIVE.typed(text)]


def test_a_line_in_the_notation_of_another_operation_is_malformed():
    assert FIVE.read_texts("<sum>79+8=501<end>") == ["105"]
    assert FIVE.read_texts("<product>79+8=501<end>") == [None]
    assert FIVE.read_texts("<division>7//3=[-0]:40[-1]:10<end>") == [None]


def test_every_line_begins_with_a_start_token_of_its_own_notation():
    starts = {FIVE.format.vocabulary.tokens[token] for token in FIVE.lines.ids[:, 0].tolist()}
    assert starts == {"<sum>", "<difference>", "<product>", "<division>"}
    assert bool((FIVE.lines.field[:, 0] == Field.START).all())
