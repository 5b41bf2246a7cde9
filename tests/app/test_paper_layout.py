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


@pytest.mark.parametrize("task_format_problem", SHEETS, ids=lambda key: key[1])
def test_lines_are_laid_out_as_on_paper(task_format_problem):
    task_name, format_name, text = task_format_problem
    task = TASKS[task_name].build()
    format = FORMATS[format_name].build(TASKS[task_name])
    problem = task.parse([text])
    line = format.write(problem, task.answer(problem))
    positions = paper_layout(format, line)
    texts = [format.vocabulary.tokens[token] for token in line.ids[0].tolist()]
    rows: dict[int, str] = {}
    for text, position in sorted(
        zip(texts, positions, strict=True), key=lambda pair: (pair[1].row, pair[1].column)
    ):
        sign = {"<start>": "<", "<end>": ">"}.get(text, shortened_sign(text))
        before = rows.get(position.row, "")
        rows[position.row] = before.ljust(position.column - 1) + sign
    shown = [rows[row] for row in sorted(rows)]
    # Spaces between neighbouring small signs are up to their width, so they are not compared.
    assert [row.replace(" ", "") for row in shown] == [
        row.replace(" ", "") for row in SHEETS[task_format_problem]
    ]
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
