"""Sums of more numbers than in training can be asked, because certificates claim them."""

import pytest

import abacist
from abacist.errors import ProblemError
from abacist.formats.config import FORMATS
from abacist.tasks.config import TASKS, ArithmeticConfig


@pytest.mark.parametrize("name", ["running-sums", "reversed"])
@pytest.mark.parametrize("count", [2, 11, 101, 240])
def test_a_sum_of_many_numbers_is_written_and_read(name, count):
    task = TASKS["add-many"].build()
    format = FORMATS[name].build(TASKS["add-many"])
    problems = task.parse(["+".join(["99999"] * count), "1+2"])
    answer = task.answer(problems)
    assert answer.texts() == [str(99_999 * count), "3"]
    lines = format.write(problems, answer)
    assert format.read(lines.ids) == answer.texts()
    written = lines.target.sum(dim=1)
    assert (written <= format.target_lengths(problems)).all()


def test_limits_are_stated():
    task = TASKS["add-many"].build()
    assert task.parse(["+".join("1" * 1_000)]).num_operands == 1_000
    with pytest.raises(ProblemError, match="1,001 numbers and this task takes 2 to 1,000 numbers"):
        task.parse(["+".join("1" * 1_001)])
    format = FORMATS["reversed"].build(TASKS["add-many"])
    with pytest.raises(ProblemError, match="this format writes at most 248"):
        format.prompt(task.parse(["+".join("1" * 249)]))
    padded = FORMATS["coupled"].build(TASKS["add-many"])
    with pytest.raises(ProblemError, match="11 numbers and this format writes at most 10"):
        padded.prompt(task.parse(["+".join("1" * 11)]))


def test_a_task_of_pairs_takes_pairs_only():
    with pytest.raises(ProblemError, match="3 numbers and this task takes 2 numbers"):
        ArithmeticConfig().build().parse(["1+2+3"])


def test_solve_takes_eleven_numbers(tmp_path, quick_settings):
    names = ("training.", "scoring.", "model.width", "model.num_heads", "model.mlp_width")
    settings = {k: v for k, v in quick_settings.items() if k.startswith(names)}
    run = abacist.train("add-many", out=tmp_path / "run", settings=settings)
    (solution,) = run.solve("+".join(["99999"] * 11))
    assert solution.expected == str(99_999 * 11)
