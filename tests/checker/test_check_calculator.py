"""The checker of the calculator: its lines, what their tokens see, and how it reads a run."""

import importlib
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from calculator_lines import annotated, written_as

import abacist

FOLDER = Path(__file__).parents[2] / "checker"
MOST_LINES = 500
QUICK = {"task.max_digits": 2, "training.num_steps": 2, "training.warmup_steps": 1}


@pytest.fixture(scope="module", autouse=True)
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
def run(train_once, quick_settings):
    """A calculator that has hardly learned anything."""

    def train(path):
        return abacist.train("calculator", out=path, settings=quick_settings | QUICK, threads=1)

    return abacist.load(train_once("quick-calculator", train))


def first_notations(program, count):
    """A calculator with fewer notations, whose neighbourhoods are listed faster."""

    class Part(program.Calculator):
        starts = program.Calculator.starts[:count]
        notations = program.Calculator.notations[:count]

    return Part()


# Lines ------------------------------------------------------------------------------------------

PROBLEMS = ["0+0", "999+1", "45-123", "123-45", "7-7", "0*0", "23*45", "99*99", "0*123", "7*12345"]
PROBLEMS += ["7//3", "7%3", "953//26", "953%26", "0//1", "8%42", "99//10000", "1000000%1"]


def random_problems(program, count):
    generator = random.Random(3)
    return [program.Calculator().random_problem(generator) for _ in range(count)]


def test_lines_and_coordinates_are_those_of_the_package(programs):
    calculation = programs[1].Calculator()
    for problem, texts, coordinates in annotated(
        "calculator", PROBLEMS + random_problems(programs[1], 40)
    ):
        line, length = written_as(calculation, problem, texts)
        assert [token.text for token in line] == texts
        # Nobody sees the last token, so its coordinates are of no consequence.
        for name, values in coordinates.items():
            assert [getattr(token, name) for token in line][:-1] == values[:-1], problem
        assert calculation.is_right(problem, texts[length:])
        assert not calculation.is_right(problem, texts[length:-1])


def test_every_operation_is_drawn(programs):
    digits = str.maketrans("", "", "0123456789")
    operators = {problem.translate(digits) for problem in random_problems(programs[1], 200)}
    assert operators == {"+", "-", "*", "//", "%"}


def test_what_is_seen_in_right_lines_is_listed(programs):
    """Sums, differences and products; the list of divisions is the one that `divide` is tested with."""
    checker, program = programs
    calculation = first_notations(program, 3)
    cases = list(calculation.neighbourhoods())
    right = {checker.relative(case.seen): case.right for case in cases}
    counts = Counter(start for (start, *_), *_ in right)
    assert counts == {"<sum>": 24_518, "<difference>": 24_518, "<product>": 67_555}
    assert len({(case.seen, case.right) for case in cases}) == len(right), "no function"
    model = checker.Model({}, {}, calculation.windows[0], calculation.vocabulary)
    problems = [p for p in PROBLEMS + random_problems(program, 40) if not {*p} & {*"/%"}]
    for problem, texts, _ in annotated("calculator", problems):
        line, length = written_as(calculation, problem, texts)
        for end in range(length, len(line)):
            sees = model.relate([tuple(line[:end])], queries=1)[0][0, 0]
            seen = [token for token, is_seen in zip(line, sees, strict=False) if is_seen]
            assert right[checker.relative(seen)] == texts[end], problem


@pytest.mark.parametrize(("problem", "number"), [("97+8", 0), ("45-123", 1), ("23*45", 2)])
def test_at_the_distances_of_their_own_format_tokens_would_see_more(problem, number, programs):
    checker, program = programs
    together = program.Calculator()
    alone = [checker.Columns("+"), checker.Columns("-"), program.Products()][number]

    def sees(calculation, windows, texts):
        line, length = written_as(calculation, problem, texts)
        model = checker.Model({}, {}, windows, calculation.vocabulary)
        return model.relate([tuple(line)], queries=len(line) - length + 1)[0][0, :-1]

    for _, texts, _ in annotated("calculator", [problem]):
        expected = sees(alone, alone.windows[-1], texts)
        assert (sees(together, together.windows[0], texts) == expected).all()
        common = {name: together.windows[0][name] for name in ("place", "row")}
        assert (sees(alone, common, texts) > expected).any()


# Runs -------------------------------------------------------------------------------------------


def test_the_vocabulary_is_the_one_of_the_run(programs, run):
    assert programs[1].Calculator.vocabulary == run.format.vocabulary.tokens


@pytest.mark.parametrize("problem", ["97+8", "45-123", "23*45", "953//26", "953%26"])
def test_logits_of_whole_lines_are_those_of_the_run(problem, programs, run):
    """So the checker's masks and biases are those with which the package runs the model."""
    checker, program = programs
    calculation, model, *_ = checker.read_run(run.directory.path, [program.Calculator()])
    line, _ = written_as(calculation, problem, run.tokens(problem)["token"][:-1])
    logits = model.logits([tuple(line)], queries=len(line))[0]
    assert np.abs(logits - run.logits(problem).numpy()).max() < 1e-5


def test_a_model_that_has_learned_little_is_not_certified(programs, run, capsys):
    checker, program = programs
    assert checker.main([str(run.directory.path)], [first_notations(program, 2)]) == 1
    output = capsys.readouterr().out
    assert output.startswith("NOT CERTIFIED: is right for +, -, *, // and % of all pairs")
    assert "49,036 neighbourhoods checked" in output
    assert "(24,518 after <sum>, 24,518 after <difference>)" in output
    assert "worst of those that are wrong: after <" in output


def test_a_run_of_one_operation_is_refused_in_one_line():
    run = FOLDER.parent / "examples" / "add-tiny"
    command = [sys.executable, str(FOLDER / "check_calculator.py"), str(run)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr.count("\n") == 1
    assert "no calculation here is written in the format plain" in finished.stderr


def test_it_is_short_enough_to_be_read():
    text = (FOLDER / "check_calculator.py").read_text()
    assert len(text.splitlines()) <= MOST_LINES
