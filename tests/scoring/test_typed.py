"""Problems with the spaces that a person typed."""

import pytest
import torch
from trained_models import random_model

from abacist.errors import ProblemError
from abacist.models.teacher_forcing import coordinates_of
from abacist.scoring.solving import solve
from abacist.scoring.typed import read_typed, solve_typed
from abacist.tasks.config import ArithmeticConfig


@pytest.fixture
def spaced():
    return random_model(ArithmeticConfig(max_digits=5), "spaced", "gpt2")


@pytest.mark.parametrize(
    ("typed", "prompt"),
    [
        ("1234+5678", None),
        ("1234 + 5678", None),
        ("1234 + 5678 =", None),
        ("1234+5678=", "1234+5678="),
        ("1 234 + 5 678", "1 234 + 5 678="),
        ("1 234 + 5 678=", "1 234 + 5 678="),
        (" 12  + 3 4 = ", "12  + 3 4 ="),
    ],
)
def test_spaces_are_written_as_typed_unless_they_are_those_of_training(spaced, typed, prompt):
    assert read_typed(spaced.task, spaced.format, [typed]).prompts == [prompt]


def test_a_notation_without_spaces_drops_them():
    trained_model = random_model()
    assert read_typed(trained_model.task, trained_model.format, ["12 + 34"]).prompts == [None]
    assert solve_typed(trained_model, ["12 + 34"]) == solve(
        trained_model, trained_model.task.parse(["12+34"])
    )


def test_the_model_reads_what_was_typed(spaced):
    typed = ["1 234 + 5 678", "1234+5678", "1234+5678=", "9 9+1"]
    solutions = solve_typed(spaced, typed)
    assert [s.problem for s in solutions] == ["1 234 + 5 678", "1234+5678", "1234+5678", "9 9+1"]
    assert [s.expected for s in solutions] == ["6912", "6912", "6912", "100"]
    lines = ["1 234 + 5 678=", "1234 + 5678 =", "1234+5678=", "9 9+1="]
    for line, solution in zip(lines, solutions, strict=True):
        ids = torch.tensor([spaced.format.vocabulary.encode(line)])
        length = ids.shape[1]
        for _ in range(len(spaced.format.vocabulary.encode(solution.text))):
            lines = spaced.format.annotate(ids)
            logits = spaced.model(lines.ids, coordinates_of(lines))
            ids = torch.cat([ids, logits[:, -1:].argmax(dim=-1)], dim=1)
        assert spaced.format.vocabulary.decode(ids[0, length:].tolist()) == solution.text
    # Three notations of one problem have three perplexities.
    assert len({s.perplexity for s in solutions[:3]}) == 3


@pytest.mark.parametrize("typed", ["1 234 + ", "1 2 3 4", "1 + 2 == 3", "1 = 2 + 3"])
def test_what_is_no_problem_is_refused(spaced, typed):
    with pytest.raises(ProblemError):
        solve_typed(spaced, [typed])
