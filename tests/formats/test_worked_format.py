"""Tests of the worked format: its lines for the five operations, and the coordinates of their tokens."""

import pytest
from written_lines import Pair

from abacist.formats.annotated import ANCHOR, EVERYWHERE
from abacist.formats.config import WorkedFormatConfig
from abacist.tasks.config import TASKS, ArithmeticConfig

FIVE = Pair("five", TASKS["five-operations"], WorkedFormatConfig())


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        ("97+8", "97+8=501<end>"),
        ("0+0", "0+0=0<end>"),
        ("123-45", "123-45=870<end>"),
        ("45-123", "45-123=229-<end>"),
        ("23*45", "23*45=⁰[15]5¹[10]1¹1⁰[12]3¹[8]0¹1<end>"),
        ("0*99", "0*99=⁰[0]0⁰0⁰[0]0⁰0<end>"),
        ("97//8", "97//8=90¹.10².39-1:71¹.90².10³.39-2<end>"),
        ("97%8", "97%8=90¹.10².39-1:71¹.90².10³.39-2;1<end>"),
        ("5//123", "5//123=5000¹.2889-0<end>"),
        ("5%123", "5%123=5000¹.2889-0;500<end>"),
        ("9//1", "9//1=90¹.80².70³.60⁴.50⁵.40⁶.30⁷.20⁸.10⁹.00¹⁰.99-9<end>"),
    ],
)
def test_each_operation_is_written_with_its_work(problem, line):
    assert FIVE.typed(problem) == ["<start>" + line]


def coordinates(problem: str) -> list[tuple[str, int, int, int]]:
    lines = FIVE.write(FIVE.task.parse([problem]))
    tokens = [FIVE.format.vocabulary.tokens[token] for token in lines.ids[0].tolist()]
    rows = zip(
        tokens,
        lines.place[0].tolist(),
        lines.row[0].tolist(),
        lines.step[0].tolist(),
        strict=True,
    )
    return list(rows)


E = EVERYWHERE


def test_a_sum_stands_under_its_first_operand():
    assert coordinates("97+8") == [
        ("<start>", E, E, E),
        *(("9", 2, 1, E), ("7", 1, 1, E), ("+", E, E, E), ("8", 1, E, E), ("=", ANCHOR, 2, E)),
        *(("5", 1, 2, E), ("0", 2, 2, E), ("1", 3, 2, E), ("<end>", 4, 2, E)),
    ]


def test_a_product_has_a_row_for_each_digit_of_the_second_operand():
    assert coordinates("23*45")[1:] == [
        ("2", 2, E, E),
        ("3", 1, E, E),
        ("*", E, E, E),
        ("4", E, 2, E),
        ("5", E, 1, E),
        ("=", ANCHOR, 1, E),
        *(("⁰", 1, 1, E), ("[15]", 1, 1, E), ("5", 1, 1, E)),
        *(("¹", 2, 1, E), ("[10]", 2, 1, E), ("1", 2, 1, E)),
        *(("¹", 3, 1, E), ("1", 3, 1, E)),
        *(("⁰", 1, 2, E), ("[12]", 1, 2, E), ("3", 1, 2, E)),
        *(("¹", 2, 2, E), ("[8]", 2, 2, E), ("0", 2, 2, E)),
        *(("¹", 3, 2, E), ("1", 3, 2, E)),
        ("<end>", 1, 3, E),
    ]


def test_a_division_has_a_step_for_each_digit_brought_down():
    assert coordinates("17%8")[1:] == [
        ("1", 1, E, 1),
        ("7", E, E, 2),
        ("%", E, E, E),
        ("8", 1, E, E),
        *(("=", ANCHOR, 1, 1), ("1", 1, 1, 1), ("0", 2, 1, 1)),
        *(("¹", E, 2, 1), (".", ANCHOR, 2, 1), ("3", 1, 2, 1), ("9", 2, 2, 1)),
        *(("-", E, 3, 2), ("0", E, 3, 2), (":", ANCHOR, 3, 2), ("7", 1, 3, 2), ("1", 2, 3, 2)),
        *(("¹", E, 4, 2), (".", ANCHOR, 4, 2), ("9", 1, 4, 2), ("0", 2, 4, 2)),
        *(("²", E, 5, 2), (".", ANCHOR, 5, 2), ("1", 1, 5, 2), ("0", 2, 5, 2)),
        *(("³", E, 6, 2), (".", ANCHOR, 6, 2), ("3", 1, 6, 2), ("9", 2, 6, 2)),
        *(("-", E, 7, 3), ("2", E, 7, 3), (";", ANCHOR, 7, 3), ("1", 1, 7, 3)),
        ("<end>", 2, 7, 3),
    ]


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("97+8=501<end>", "105"),
        ("97+8=5010<end>", None),
        ("97+8=50-<end>", None),
        ("45-123=229-<end>", "-78"),
        ("45-123=22-<end>", None),
        ("45-123=000-<end>", None),
        ("45-123=2290<end>", None),
        ("23*45=⁰[15]5¹[10]1¹1⁰[12]3¹[8]0¹1<end>", "1035"),
        ("23*45=⁰[15]5¹[10]1¹1⁰[12]3¹[8]0¹<end>", None),
        ("23*45=⁰[15]5¹[10]1¹1⁰[12]3¹[8]0¹[1]<end>", None),
        ("17//8=10¹.39-0:71¹.90².10³.39-2<end>", "2"),
        ("17//8=10¹.39-0:71¹.90².10².39-2<end>", None),
        ("17//8=10¹.39-0:71¹.90².10³.39-3<end>", None),
        ("17//8=10¹.39-0;71¹.90².10³.39-2<end>", None),
        ("17//8=10¹.39-0<end>", None),
        ("17//8=10¹.39-0:71¹.90².10³.39-2;1<end>", None),
        ("17%8=10¹.39-0:71¹.90².10³.39-2;1<end>", "1"),
        ("17%8=10¹.39-0:71¹.90².10³.39-2;11<end>", None),
        ("17%8=10¹.39-0:71¹.90².10³.39-2<end>", None),
    ],
)
def test_reading_is_strict(line, answer):
    assert FIVE.read_texts("<start>" + line) == [answer]


def test_long_operands_are_written_and_read_as_well():
    task = ArithmeticConfig(operations=("+", "-", "*", "//", "%"), max_digits=25)
    pair = Pair("long", task, WorkedFormatConfig())
    problems = pair.draw(100)
    assert pair.read(pair.write(problems)) == pair.task.answer(problems).texts()
