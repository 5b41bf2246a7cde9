"""The checker of written work, with lines that Python writes instead of a model."""

import importlib
import itertools
import random
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from abacist.recipes import find

FOLDER = Path(__file__).parents[2] / "checker"
MOST_LINES = 500


@pytest.fixture(scope="module", autouse=True)
def programs():
    """The modules, imported as the programs import each other."""
    sys.path.insert(0, str(FOLDER))
    try:
        yield (
            importlib.import_module("check_certificate"),
            importlib.import_module("check_written_work"),
            importlib.import_module("check_divisions"),
        )
    finally:
        sys.path.remove(str(FOLDER))


@pytest.fixture(scope="module")
def calculations(programs):
    checker, work, divisions = programs
    return {
        "add": checker.Columns("+"),
        "subtract": checker.Columns("-"),
        "add-many": work.RunningSums(),
        "multiply": work.Products(),
        "divide": divisions.Divisions("//", "%"),
        "sort": work.Sorting(),
    }


@pytest.fixture(scope="module")
def listed(programs, calculations):
    """For each calculation, what must follow each listed neighbourhood."""

    def right(calculation):
        cases = list(calculation.neighbourhoods())
        table = {programs[0].relative(case.seen): case.right for case in cases}
        assert len(table) == len({(case.seen, case.right) for case in cases}), "no function"
        return table

    return {name: right(calculation) for name, calculation in calculations.items()}


def write(checker, calculation, right, problem):
    """The tokens after the prompt, if each neighbourhood that the masks show is followed by what is right."""
    model = checker.Model({}, {}, calculation.windows[-1], calculation.vocabulary)
    line, written = calculation.prompt(problem), []
    while "<end>" not in written:
        sees = model.relate([tuple(line)], queries=1)[0][0, 0]
        seen = [token for token, is_seen in zip(line, sees, strict=True) if is_seen]
        written.append(right[checker.relative(seen)])
        line.append(calculation.next(line, written[-1]))
    return line, written


@pytest.mark.parametrize(
    ("name", "count"),
    [("add-many", 97_834), ("multiply", 67_555), ("divide", 269_796), ("sort", 3_599)],
)
def test_as_many_neighbourhoods_are_listed_as_the_documentation_counts(name, count, listed):
    assert len(listed[name]) == count


PROBLEMS = {
    "add": ["0+0", "9+1", "12+3456", "999+1"],
    "subtract": ["0-0", "5-123", "1000-1", "45-45"],
    "add-many": ["0+0", "0+0+0", "9+1+990", "5+5+0+0+0", "1+2+3+4+5+6+7+8+9+10+11+12", "999+1"],
    "divide": ["0//1", "7//3", "953//26", "953%26", "8%42", "99//10000", "1000000%1", "521//4282"],
    "multiply": ["0*0", "0*123", "123*0", "99*99", "7*12345", "90909*909", "12345*7"],
    "sort": ["a:0", "a:0,b:0", "a:821,b:9,c:35", "a:5,b:99,c:99,d:10,e:999,f:9", "a:10,b:1,c:10"],
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_right_lines_are_those_of_the_package_and_hold_only_what_is_listed(
    name, programs, calculations, listed
):
    """Tokens, vocabulary and coordinates are compared with the package's own format."""
    checker, calculation = programs[0], calculations[name]
    recipe = find(name)
    if name == "sort":  # a list of one number, too
        recipe = replace(recipe, task=replace(recipe.task, min_numbers=1))
    task, form = recipe.task.build(), recipe.format.build(recipe.task)
    assert calculation.vocabulary == form.vocabulary.tokens
    generator = random.Random(2)
    problems = PROBLEMS[name] + [calculation.random_problem(generator) for _ in range(40)]
    for problem in problems:
        line, written = write(checker, calculation, listed[name], problem)
        assert calculation.is_right(problem, written), (problem, written)
        asked = task.parse([problem])
        annotated = form.write(asked, task.answer(asked))
        tokens = [form.vocabulary.tokens[token] for token in annotated.ids[0].tolist()]
        assert [token.text for token in line] == tokens
        # Nobody sees the last token, so its coordinates are of no consequence.
        for coordinate in calculation.windows[-1]:
            values = getattr(annotated, coordinate)[0].tolist()
            assert [getattr(token, coordinate) for token in line][:-1] == values[:-1], problem


def test_a_wrong_product_or_order_is_not_taken_for_right(programs, calculations, listed):
    checker = programs[0]
    problems = {"add-many": "12+34+56", "divide": "953//26", "multiply": "12*34"}
    for name, problem in (problems | {"sort": "a:21,b:3,c:3"}).items():
        calculation = calculations[name]
        _, written = write(checker, calculation, listed[name], problem)
        assert calculation.is_right(problem, written)
        assert not calculation.is_right(problem, written[:-1])
        assert not calculation.is_right(problem, ["other tokens when read as a whole"])
        assert not calculation.is_right(problem, [])
        wrong = {"divide": "1", "multiply": "8", "sort": "a"}.get(name, "4")
        last = max(i for i, token in enumerate(written[:-1]) if token != wrong)
        assert not calculation.is_right(problem, [*written[:last], wrong, *written[last + 1 :]])


def test_it_refuses_a_run_of_sums_in_one_line(certified):
    program = FOLDER / "check_written_work.py"
    command = [sys.executable, str(program), str(certified.directory.path)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr.count("\n") == 1
    assert "no calculation here is written in the format plain" in finished.stderr


def row_of_integers(v, b, num_digits):
    """The tokens of the row above, which holds v after b was subtracted, and of the row that holds v - b."""
    above, row = [], []
    for i in range(num_digits + 1):
        rest, part = v % 10 ** (i + 1), b % 10 ** (i + 1)
        above.append(str(v // 10**i % 10) + "'" * (rest + part >= 10 ** (i + 1)))
        row.append(str((v - b) // 10**i % 10) + "'" * (rest < part))
    return above, row


@pytest.mark.parametrize("count", [6, 9])
def test_the_highest_column_of_a_row_holds_what_integers_give_and_nothing_else(count, programs):
    """Three digits of a divisor suffice: the lower ones cause every borrow and keep every bound that can be kept."""
    divisions = programs[2]
    row = divisions.Row(f"-{count}", partial(divisions.within, count), [(0, 0, 0)])
    met = set()
    for highest, lower in itertools.product(range(1, 10), (0, 1, 49, 50, 99)):
        b = 100 * highest + lower
        for v in range((10 - count) * b):
            above, written = row_of_integers(v, b, 3)
            met.add((above[2], written[2], above[3], None, written[3]))
    assert met == {context for context in row.contexts() if context[3] is None}


@pytest.mark.parametrize("file", ["check_written_work.py", "check_divisions.py"])
def test_it_is_short_enough_to_be_read(file):
    assert len((FOLDER / file).read_text().splitlines()) <= MOST_LINES
