"""The checker of the calculator for signed operands: its lines, and what their tokens see."""

import importlib
import random
import sys
from collections import Counter
from pathlib import Path

import pytest
from calculator_lines import annotated, written_as

from abacist.recipes import find

FOLDER = Path(__file__).parents[2] / "checker"
PROBLEMS = ["-12+34", "5--3", "-7-123", "-10+5", "-100+-1000", "0+0", "-1+-1", "-10--10"]
PROBLEMS += ["-23*45", "-7*-8", "-5*0", "0*-12", "-97//8", "97//-8", "-97%-8", "7%-7", "-1//100"]
PROBLEMS += ["-100//7", "0%-3", "-10//1", "-953//-26"]


@pytest.fixture(scope="module")
def programs():
    """The modules of the model and of the calculator, imported as the programs import each other."""
    sys.path.insert(0, str(FOLDER))
    try:
        yield (
            importlib.import_module("check_certificate"),
            importlib.import_module("check_calculator"),
        )
    finally:
        sys.path.remove(str(FOLDER))


@pytest.fixture(scope="module")
def problems(programs):
    generator = random.Random(3)
    calculation = programs[1].SignedCalculator()
    return PROBLEMS + [calculation.random_problem(generator) for _ in range(30)]


def test_lines_and_coordinates_are_those_of_the_package(programs, problems):
    calculation = programs[1].SignedCalculator()
    for problem, texts, coordinates in annotated("signed-calculator", problems):
        line, length = written_as(calculation, problem, texts)
        assert [token.text for token in line] == texts
        # Nobody sees the last token, so its coordinates are of no consequence.
        for name, values in coordinates.items():
            assert [getattr(token, name) for token in line][:-1] == values[:-1], problem
        assert calculation.is_right(problem, texts[length:])
        assert not calculation.is_right(problem, texts[length:-1])


def test_a_wrong_sign_is_wrong_unless_the_number_is_0(programs):
    calculation, other = programs[1].SignedCalculator(), str.maketrans("⁺⁻", "⁻⁺")
    for problem, texts, _ in annotated(
        "signed-calculator", ["-12+34", "-7*-8", "97%-8", "-5*0", "7%-7"]
    ):
        written = texts[len(calculation.prompt(problem)) :]
        changed = [text.translate(other) for text in written]
        assert calculation.is_right(problem, changed) == (problem in ("-5*0", "7%-7"))


def test_the_vocabulary_is_that_of_the_package(programs):
    recipe = find("signed-calculator")
    form = recipe.format.build(recipe.task)
    assert programs[1].SignedCalculator().vocabulary == tuple(form.vocabulary.tokens)


def test_what_is_seen_in_right_lines_is_listed(programs, problems):
    """Only what signs change in divisions is listed; the rest is what `divide` is tested with."""
    checker, program = programs

    class Part(program.SignedCalculator):
        class Beginnings(type(program.SignedCalculator.divisions)):
            neighbourhoods = program.SignedDivisions.beginnings

        notations = (*program.SignedCalculator.notations[:3], Beginnings("//", "%"))

    calculation = Part()
    cases = list(calculation.neighbourhoods())
    right = {checker.relative(case.seen): case.right for case in cases}
    counts = Counter(start for (start, *_), *_ in right)
    assert counts == {
        "<sum>": 20_906,
        "<difference>": 20_906,
        "<product>": 67_560,
        "<division>": 272_837 - 269_696,
    }
    assert len({(case.seen, case.right) for case in cases}) == len(right), "no function"
    model = checker.Model({}, {}, calculation.windows[0], calculation.vocabulary)
    for problem, texts, _ in annotated("signed-calculator", problems):
        line, length = written_as(calculation, problem, texts)
        first_row = next((i for i, token in enumerate(line) if token.text == "[+9]"), length)
        ends = range(length, len(line))
        if texts[0] == "<division>":
            # The signs, and a first row that adds.
            divisor = problem.replace("//", "%").partition("%")[2].lstrip("-")
            adds = first_row == length + 1
            ends = range(length, length + (len(divisor) + 5 if adds else 2))
        for end in ends:
            sees = model.relate([tuple(line[:end])], queries=1)[0][0, 0]
            seen = [token for token, is_seen in zip(line, sees, strict=False) if is_seen]
            assert right[checker.relative(seen)] == texts[end], problem
