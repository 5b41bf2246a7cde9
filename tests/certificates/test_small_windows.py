"""Notations made for one layer and a small window: what it sees tells the next token, at any length."""

import pytest
import torch
from torch import Tensor

from abacist import recipes
from abacist.formats.annotated import AnnotatedTokens
from abacist.models.coordinates import coordinates_by_scheme
from abacist.models.teacher_forcing import coordinates_of, teacher_forced
from abacist.models.views import dense_view, windowed_view
from abacist.recipes.recipe import Recipe
from abacist.runs.run import build_model, build_problems
from abacist.scoring.exact_match import exact_match
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.problems import Problems, Shapes

SMALL = ["multiply", "divide"]


def draw(recipe: Recipe, lengths: tuple[int, int], count: int, seed: int = 0) -> Problems:
    task, _ = build_problems(recipe)
    generator = torch.Generator().manual_seed(seed)
    shapes = Shapes.of(torch.tensor([lengths]).expand(count, 2), recipe.task.operations[0])
    return task.draw(shapes, generator)


def lines_of(recipe: Recipe, lengths: tuple[int, int], count: int) -> AnnotatedTokens:
    task, format = build_problems(recipe)
    problems = draw(recipe, lengths, count)
    return format.write(problems, task.answer(problems))


def seen(recipe: Recipe, lines: AnnotatedTokens) -> list[tuple[tuple[object, ...], int]]:
    """For every token to predict: what a query sees, each token with its buckets, and the token."""
    where = coordinates_by_scheme(recipe.model.positions, coordinates_of(lines))
    view = dense_view(recipe.model.positions, where, where)
    found = []
    for line, target in lines.target.nonzero().tolist():
        query = target - 1
        keys = view.visible[line, query].nonzero()[:, 0]
        buckets: list[Tensor] = [pairs[line, query, keys] for pairs in view.bias_inputs]
        coordinates_of_tokens = torch.stack(
            [*buckets, lines.ids[line, keys], (keys == query).int()], dim=1
        )
        found.append(
            (
                tuple(sorted(map(tuple, coordinates_of_tokens.tolist()))),
                int(lines.ids[line, target]),
            )
        )
    return found


@pytest.mark.parametrize("name", SMALL)
def test_the_same_contents_of_a_window_are_never_followed_by_two_tokens(name: str) -> None:
    recipe = recipes.find(name)
    followed: dict[tuple[object, ...], int] = {}
    for lengths in ((1, 1), (2, 1), (1, 2), (3, 2), (2, 3), (5, 3), (6, 6), (12, 5)):
        for context, token in seen(recipe, lines_of(recipe, lengths, 12)):
            assert followed.setdefault(context, token) == token
    assert len(followed) > 1_000


@pytest.mark.parametrize("name", SMALL)
def test_a_window_holds_no_more_tokens_in_longer_problems(name: str) -> None:
    recipe = recipes.find(name)
    assert recipe.model.num_layers == recipe.model.recurrences == 1
    most = [
        max(len(context) for context, _ in seen(recipe, lines_of(recipe, lengths, 4)))
        for lengths in ((4, 3), (9, 5))
    ]
    assert most == [6, 6]


@pytest.mark.parametrize("name", SMALL)
def test_windows_over_several_coordinates_leave_no_gaps(name: str) -> None:
    recipe = recipes.find(name)
    model = build_model(recipe)
    where = model.coordinates_by_scheme(coordinates_of(lines_of(recipe, (9, 5), 4)))
    table = model.key_table(where)
    view = windowed_view(model.schemes, where, where, table)
    dense = dense_view(model.schemes, where, where)
    assert view.visible.shape[2] == int(dense.visible.sum(dim=2).max())
    assert torch.equal(view.visible.sum(dim=2), dense.visible.sum(dim=2))


@pytest.mark.parametrize("name", SMALL)
@torch.no_grad()
def test_lines_scored_together_have_the_margins_of_each_alone(name: str) -> None:
    recipe = recipes.find(name)
    task, format = build_problems(recipe)
    torch.manual_seed(0)
    model = build_model(recipe).eval()
    problems = draw(recipe, (8, 5), 6)
    together = exact_match(TrainedModel(model, task, format), problems).margins
    for row in range(len(problems)):
        problem = problems[row : row + 1]
        line = format.write(problem, task.answer(problem))
        for path in ("dense", "windowed"):
            alone = teacher_forced(model, line, path=path).margins().amin()
            assert torch.isclose(alone.double(), together[row], atol=1e-5), path
