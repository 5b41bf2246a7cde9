"""Tests of the roles that tokens play in the calculation of their line, as certificates read them."""

import pytest
from written_lines import Pair, ids_of

from abacist.formats.config import (
    FORMATS,
    FormatConfig,
    InsertionSortFormatConfig,
    LongMultiplicationFormatConfig,
    NonRestoringDivisionFormatConfig,
    RunningSumsFormatConfig,
)
from abacist.formats.insertion_sort import InsertionSortFormat
from abacist.formats.roles import Role
from abacist.tasks.config import TASKS, ArithmeticConfig, SortingConfig

DIVISIONS = ArithmeticConfig(operations=("//", "%"), max_digits=5)


def roles_by_token(pair: Pair, line: str) -> list[tuple[str, str, int, int, int]]:
    """Token, part, column, row and step for each token of one line."""
    ids = ids_of(pair.format, line)[0]
    tokens = [pair.format.vocabulary.tokens[token] for token in ids.tolist()]
    return [(token, *role) for token, role in zip(tokens, pair.format.roles(ids), strict=True)]


PROVABLE = [
    Pair("add", TASKS["add"], FORMATS["reversed"]),
    Pair("subtract", TASKS["subtract"], FORMATS["complement"]),
    Pair("add many", TASKS["add-many"], RunningSumsFormatConfig()),
    Pair("multiply", TASKS["multiply"], LongMultiplicationFormatConfig()),
    Pair("divide", DIVISIONS, NonRestoringDivisionFormatConfig()),
    Pair("sort", SortingConfig(max_digits=4), InsertionSortFormatConfig()),
]


@pytest.mark.parametrize(
    ("name", "enumeration"),
    [
        ("reversed", "column-addition"),
        ("running-sums", "column-addition"),
        ("long-multiplication", "long-multiplication"),
        ("non-restoring-division", "non-restoring-division"),
        ("insertion-sort", "insertion-sort"),
        ("calculator", "calculator"),
        ("worked", None),
        ("long-division", None),
        ("partial-products", None),
        ("labels", None),
        ("parallel", None),
        ("residues", None),
        ("carry-trace", None),
    ],
)
def test_a_format_names_the_enumeration_that_proves_it(name: str, enumeration: str | None) -> None:
    config: FormatConfig = FORMATS[name]
    task = next(task for task in TASKS.values() if config.obstacle(task) is None)
    assert Pair(name, task, config).format.enumeration == enumeration


@pytest.mark.parametrize("pair", PROVABLE, ids=lambda pair: pair.name)
@pytest.mark.parametrize("start_token", [True, False])
def test_roles_and_operands_agree_with_the_fields_of_the_annotation(
    pair: Pair, start_token: bool
) -> None:
    config = type(pair.format_config)(**{**vars(pair.format_config), "start_token": start_token})
    pair = Pair(pair.name, pair.task_config, config)
    for row in range(10):
        line = pair.lines[row : row + 1]
        length = int(line.lengths)
        roles = pair.format.roles(line.ids[0, :length])
        assert len(roles) == length
        assert (roles[0] == Role("<start>")) == start_token
        assert [role.part for role in roles].count("<end>") == 1
        assert roles[-1] == Role("<end>")
        equals_at = [role.part for role in roles].index("=")
        assert line.target[0, :length].tolist() == [index > equals_at for index in range(length)]


def test_each_digit_of_a_plain_line_has_its_operand_and_column() -> None:
    pair = Pair("add", TASKS["add"], FORMATS["reversed"])
    assert roles_by_token(pair, "<start>21+3=51<end>") == [
        ("<start>", "<start>", 0, 0, 0),
        ("2", "operand", 1, 1, 0),
        ("1", "operand", 2, 1, 0),
        ("+", "+", 0, 0, 0),
        ("3", "operand", 1, 2, 0),
        ("=", "=", 0, 0, 0),
        ("5", "answer", 1, 0, 0),
        ("1", "answer", 2, 0, 0),
        ("<end>", "<end>", 0, 0, 0),
    ]


def test_the_sign_of_a_complement_belongs_to_the_answer() -> None:
    pair = Pair("subtract", TASKS["subtract"], FORMATS["complement"])
    assert roles_by_token(pair, "<start>1-3=8-<end>")[5:] == [
        ("8", "answer", 1, 0, 0),
        ("-", "answer", 2, 0, 0),
        ("<end>", "<end>", 0, 0, 0),
    ]


def test_each_addition_of_running_sums_is_a_row() -> None:
    pair = Pair("add many", TASKS["add-many"], RunningSumsFormatConfig())
    assert roles_by_token(pair, "<start>8+43+5=24;74<end>") == [
        ("<start>", "<start>", 0, 0, 0),
        ("8", "operand", 1, 0, 0),
        ("+", "+", 0, 1, 0),
        ("4", "operand", 1, 1, 0),
        ("3", "operand", 2, 1, 0),
        ("+", "+", 0, 2, 0),
        ("5", "operand", 1, 2, 0),
        ("=", "=", 0, 1, 0),
        ("2", "sum", 1, 1, 0),
        ("4", "sum", 2, 1, 0),
        (";", ";", 0, 2, 0),
        ("7", "sum", 1, 2, 0),
        ("4", "sum", 2, 2, 0),
        ("<end>", "<end>", 0, 0, 0),
    ]


def test_each_cell_of_a_long_multiplication_has_a_column_and_a_row() -> None:
    pair = Pair("multiply", TASKS["multiply"], LongMultiplicationFormatConfig())
    line = "<start>32*54=⁰[15]5¹[10]1¹1⁰[12]3¹[8]0¹1<end>"
    assert roles_by_token(pair, line) == [
        ("<start>", "<start>", 0, 0, 0),
        ("3", "multiplicand", 1, 0, 0),
        ("2", "multiplicand", 2, 0, 0),
        ("*", "*", 0, 0, 0),
        ("5", "multiplier", 0, 1, 0),
        ("4", "multiplier", 0, 2, 0),
        ("=", "=", 0, 0, 0),
        ("⁰", "carry", 1, 1, 0),
        ("[15]", "product", 1, 1, 0),
        ("5", "digit", 1, 1, 0),
        ("¹", "carry", 2, 1, 0),
        ("[10]", "product", 2, 1, 0),
        ("1", "digit", 2, 1, 0),
        ("¹", "carry", 3, 1, 0),
        ("1", "digit", 3, 1, 0),
        ("⁰", "carry", 1, 2, 0),
        ("[12]", "product", 1, 2, 0),
        ("3", "digit", 1, 2, 0),
        ("¹", "carry", 2, 2, 0),
        ("[8]", "product", 2, 2, 0),
        ("0", "digit", 2, 2, 0),
        ("¹", "carry", 3, 2, 0),
        ("1", "digit", 3, 2, 0),
        ("<end>", "<end>", 0, 0, 0),
    ]


def test_each_row_of_a_division_belongs_to_a_step() -> None:
    pair = Pair("divide", DIVISIONS, NonRestoringDivisionFormatConfig())
    line = "<start>123//98=-0:421-1:4'2'0'+9:2'2'1-0:<end>"
    assert roles_by_token(pair, line) == [
        ("<start>", "<start>", 0, 0, 0),
        # 1 is the leading digit, in row 0; 2 and 3 are brought down in steps 1 and 2.
        ("1", "dividend", 1, 0, 0),
        ("2", "dividend", 0, 0, 1),
        ("3", "dividend", 0, 0, 2),
        ("//", "operator", 0, 0, 0),
        ("9", "divisor", 2, 0, 0),
        ("8", "divisor", 1, 0, 0),
        ("=", "=", 0, 0, 0),
        ("-0", "action", 0, 1, 1),
        (":", "colon", 0, 1, 1),
        ("4", "digit", 1, 1, 1),
        ("2", "digit", 2, 1, 1),
        ("1", "digit", 3, 1, 1),
        ("-1", "action", 0, 2, 1),
        (":", "colon", 0, 2, 1),
        ("4'", "digit", 1, 2, 1),
        ("2'", "digit", 2, 2, 1),
        ("0'", "digit", 3, 2, 1),
        ("+9", "action", 0, 3, 2),
        (":", "colon", 0, 3, 2),
        ("2'", "digit", 1, 3, 2),
        ("2'", "digit", 2, 3, 2),
        ("1", "digit", 3, 3, 2),
        ("-0", "action", 0, 4, 2),
        (":", "colon", 0, 4, 2),
        ("<end>", "<end>", 0, 0, 0),
    ]


def test_rows_after_the_last_digit_belong_to_a_step_of_their_own() -> None:
    pair = Pair("divide", DIVISIONS, NonRestoringDivisionFormatConfig(start_token=False))
    steps = {
        (row, step)
        for _, part, _, row, step in roles_by_token(pair, "7//3=-0:40-1:10-2:8'9'+9:1'0'-0:<end>")
        if part == "action"
    }
    assert steps == {(1, 1), (2, 1), (3, 1), (4, 2), (5, 3)}


def test_work_of_an_insertion_points_to_digits_and_labels_of_the_prompt() -> None:
    pair = Pair("sort", SortingConfig(max_digits=4), InsertionSortFormatConfig())
    format = pair.format
    assert isinstance(format, InsertionSortFormat)
    line = "<start>a:12,b:3=a,1>ba<end>"
    ids = ids_of(format, line)[0]
    assert roles_by_token(pair, line)[1:9] == [
        ("a", "label", 0, 1, 0),
        (":", ":", 0, 1, 0),
        ("1", "digit", 2, 1, 0),
        ("2", "digit", 1, 1, 0),
        (",", ",", 0, 2, 0),
        ("b", "label", 0, 2, 0),
        (":", ":", 0, 2, 0),
        ("3", "digit", 1, 2, 0),
    ]
    assert dict(enumerate(format.pointers(ids))) == dict.fromkeys(range(17)) | {
        10: 5,  # the list of a alone → the comma before b, which is inserted next
        11: 3,  # that comma → the tens of a
        # The tens of a → the tens of b, which are not there.
        13: 6,  # larger → the label of b
        14: 1,  # b → the label of a, which is the rest of the list
        15: 9,  # a, the last label of the last list → "=", which ends the line
    }
