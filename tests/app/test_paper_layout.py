"""Lines are laid out as people write them, with the units on the right."""

import pytest

from abacist.app.paper_layout import legend, paper_layout, shortened_sign
from abacist.formats.config import FORMATS
from abacist.tasks.config import TASKS, ArithmeticConfig

SHEETS = {
    ("multiply", "long-multiplication", "23*45"): [
        "<     2 3",
        "*     4 5 =",
        "    ¹ ¹10⁰15",
        "    1 1 5",
        "  ¹ ¹8⁰12",
        "  1 0 3   >",
    ],
    ("divide", "non-restoring-division", "97//8"): [
        "<      9 7 //   8   =",
        "-0 :   0 1",
        "-1 :   9'3'",
        "+9 :     4 5'",
        "+8 :     5 3'",
        "+7 :     6 1'",
        "+6 :     6 9",
        "+5 :     7 7'",
        "+4 :     8 5'",
        "+3 :     9 3'",
        "+2 :     0'1'",
        "-0 :   >",
    ],
    ("sort", "insertion-sort", "a:82,b:9"): [
        "< a : 8 2 ,",
        "  b :   9 =",
        "  a ,",
        "  8 > b a >",
    ],
    ("subtract", "complement", "12-45"): ["<     1 2", "  -   4 5", "  = > - 6 7"],
}


def sheet(format, line):
    """The rows of a line on paper, without spaces."""
    texts = [format.vocabulary.tokens[token] for token in line.ids[0].tolist()]
    positions = paper_layout(format, line)
    rows: dict[int, str] = {}
    for text, position in sorted(
        zip(texts, positions, strict=True), key=lambda pair: (pair[1].row, pair[1].column)
    ):
        sign = ">" if text == "<end>" else "<" if text.startswith("<") else shortened_sign(text)
        rows[position.row] = rows.get(position.row, "") + sign
    return [rows[row] for row in sorted(rows)]


@pytest.mark.parametrize("task_format_problem", SHEETS, ids=lambda key: key[1])
def test_lines_are_laid_out_as_on_paper(task_format_problem):
    task_name, format_name, text = task_format_problem
    task = TASKS[task_name].build()
    format = FORMATS[format_name].build(TASKS[task_name])
    problem = task.parse([text])
    line = format.write(problem, task.answer(problem))
    # Spaces between neighbouring small signs are up to their width, so they are not compared.
    assert sheet(format, line) == [row.replace(" ", "") for row in SHEETS[task_format_problem]]
    positions = paper_layout(format, line)
    assert all(position.place is None or position.place >= 1 for position in positions)


def test_the_calculator_lays_each_operation_out_as_the_format_of_that_operation_does():
    config = ArithmeticConfig(operations=("+", "-", "*", "//", "%"))
    task, format = config.build(), FORMATS["calculator"].build(config)
    alone = {
        "97+8": FORMATS["reversed"].build(TASKS["add"]),
        "12-45": FORMATS["complement"].build(TASKS["subtract"]),
        "23*45": FORMATS["long-multiplication"].build(TASKS["multiply"]),
        "97//8": FORMATS["non-restoring-division"].build(TASKS["divide"]),
    }
    for text, own in alone.items():
        problem = task.parse([text])
        line = format.write(problem, task.answer(problem))
        member = format.member_for(problem)
        expected = paper_layout(own, own.write(problem, task.answer(problem)))
        assert paper_layout(member.format, line) == expected
        assert legend(member.format, "-33") == legend(own, "-33")


SIGNED_SHEETS = {
    "-12+34": ["<⁻88", "+⁺34", "=>⁺022"],
    "-23*45": ["<⁻23", "*⁺45=", "¹¹10⁰15", "115", "¹¹8⁰12", "⁻103>"],
    "-8//3": ["<⁻2//⁺3=⁺", "+9:95", "+8:98", "+7:0'1'", "-0:>"],
    "8%-3": ["<⁻2%⁻3=⁻", "+9:95", "+8:98", "+7:0'1'", "-0:>"],
}


@pytest.mark.parametrize("text", SIGNED_SHEETS)
def test_signs_stand_before_the_numbers_that_they_belong_to(text):
    config = ArithmeticConfig(operations=("+", "-", "*", "//", "%"), signed=True)
    task, format = config.build(), FORMATS["calculator"].build(config)
    problem = task.parse([text])
    member = format.member_for(problem).format
    assert sheet(member, member.write(problem, task.answer(problem))) == SIGNED_SHEETS[text]
    assert any("⁻" in sign for sign, _ in legend(member, "1"))


def test_digits_of_one_place_are_below_each_other():
    task, format = (
        TASKS["multiply"].build(),
        FORMATS["long-multiplication"].build(TASKS["multiply"]),
    )
    problem = task.parse(["23*45"])
    line = format.write(problem, task.answer(problem))
    columns: dict[int, set[int]] = {}
    for position in paper_layout(format, line):
        if position.place is not None and position.kind != "small":
            columns.setdefault(position.place, set()).add(position.column)
    assert all(len(column) == 1 for column in columns.values())
    assert sorted(columns) == [1, 2, 3, 4]


def test_a_legend_explains_signs_and_differences_below_zero():
    complement = FORMATS["complement"].build(TASKS["subtract"])
    assert len(legend(complement, "33")) == 1
    assert "subtract the digits above from 100" in legend(complement, "-33")[1][1]
    for name, task in (("long-multiplication", "multiply"), ("insertion-sort", "sort")):
        assert len(legend(FORMATS[name].build(TASKS[task]), "1")) >= 4
