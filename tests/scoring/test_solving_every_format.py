"""Generation and the one-pass check agree in every notation, with and without end tokens."""

import pytest
import torch

from abacist import generators
from abacist.formats.config import FORMATS
from abacist.models.config import POSITIONS, ModelConfig
from abacist.models.teacher_forcing import coordinates_of, teacher_forced
from abacist.models.transformer import Transformer
from abacist.scoring import exact_match as module
from abacist.scoring.exact_match import exact_match
from abacist.scoring.records import Solution
from abacist.scoring.solving import solve
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.config import TASKS, ArithmeticConfig, ModularAdditionConfig, SortingConfig

CASES = [
    ("reversed", TASKS["five-operations"]),
    ("zero-padded", ArithmeticConfig(max_digits=3)),
    ("complement", ArithmeticConfig(operations=("-",), max_digits=3)),
    ("random-spaces", ArithmeticConfig(max_digits=3)),
    ("carry-trace", TASKS["five-operations"]),
    ("long-division", ArithmeticConfig(operations=("//", "%"), max_digits=2)),
    ("running-sums", ArithmeticConfig(max_operands=4, max_digits=2)),
    ("non-restoring-division", ArithmeticConfig(operations=("//", "%"), max_digits=2)),
    ("long-multiplication", ArithmeticConfig(operations=("*",), max_digits=2)),
    ("partial-products", ArithmeticConfig(operations=("*",), max_digits=2)),
    ("labels", SortingConfig(max_numbers=3, max_digits=2)),
    ("insertion-sort", SortingConfig(max_numbers=3, max_digits=2)),
    ("residues", ModularAdditionConfig(modulus=5)),
]


@pytest.fixture(params=CASES, ids=lambda case: case[0])
def setting(request):
    name, config = request.param
    task, format = config.build(), FORMATS[name].build(config)
    generator = generators.generator(0, name)
    problems = task.draw(task.draw_shapes(12, generator), generator)
    torch.manual_seed(0)
    config = ModelConfig(width=16, num_heads=2, mlp_width=16, positions=POSITIONS["index-relative"])
    return task, format, problems, Transformer(config, len(format.vocabulary)).eval()


@torch.no_grad()
def greedy(model, format, problems, row):
    """The simplest generation: the whole line runs again for every token."""
    prompt = format.prompt(problems)
    ids = prompt.ids[row : row + 1, : int(prompt.lengths[row])]
    for _ in range(int(format.target_lengths(problems).max())):
        logits = model(ids, coordinates_of(format.annotate(ids)))
        token = logits[:, -1].argmax(dim=-1, keepdim=True)
        ids = torch.cat([ids, token.int()], dim=1)
        if format.end_id is not None and int(token) == format.end_id:
            return format.read(ids)[0]
    return None if format.end_id is not None else format.read(ids)[0]


def test_cached_generation_of_a_batch_equals_the_simplest_one(setting):
    task, format, problems, model = setting
    solutions = solve(TrainedModel(model, task, format), problems)
    plain = [greedy(model, format, problems, row) for row in range(len(problems))]
    assert [solution.answer for solution in solutions] == plain


def test_a_model_trained_on_one_batch_solves_it_token_by_token(setting):
    """A model that memorised its batch by the one-pass check must also write all answers."""
    task, format, problems, model = setting
    problems = problems[:4]
    lines = format.write(problems, task.answer(problems))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(400):
        predictions = teacher_forced(model, lines)
        if bool((predictions.margins() > 0.5).all()):
            break
        loss = torch.nn.functional.cross_entropy(
            predictions.logits.flatten(0, 1), predictions.labels.flatten(), ignore_index=-100
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert exact_match(TrainedModel(model, task, format), problems).correct.all()
    assert all(solution.correct for solution in solve(TrainedModel(model, task, format), problems))


def test_lines_have_the_same_margins_whether_they_share_coordinates_or_not(setting, monkeypatch):
    task, format, problems, model = setting
    many = problems[torch.arange(len(problems)).repeat(3)]
    margins = []
    for fewest in (2, 1_000):
        monkeypatch.setattr(module, "FEWEST_ALIKE", fewest)
        monkeypatch.setattr(module, "FEWEST_OF_ONE_LAYOUT", fewest)
        margins.append(exact_match(TrainedModel(model, task, format), many).margins)
    alike, others = module.group_by_shape(format, many)
    assert sum(map(len, alike)) + len(others) == len(many)
    torch.testing.assert_close(margins[0], margins[1], rtol=1e-4, atol=1e-5)


def test_lines_with_data_dependent_layouts_are_grouped_by_their_coordinates(setting, monkeypatch):
    task, format, problems, _ = setting
    monkeypatch.setattr(module, "FEWEST_OF_ONE_LAYOUT", 2)
    many = problems[torch.arange(len(problems)).repeat(2)]
    lines = format.write(many, task.answer(many), torch.Generator().manual_seed(0))
    alike, others = module.group_by_layout(lines)
    assert sorted(torch.cat([*alike, others]).tolist()) == list(range(len(many)))
    for rows in alike:
        assert len(rows) >= 2
        for tensor in (lines.place, lines.row, lines.step, lines.lengths.unsqueeze(1)):
            assert tensor is None or bool((tensor[rows] == tensor[rows[:1]]).all())


def test_what_is_no_answer_is_shown_as_it_was_written():
    solution = Solution("1+1", None, "2", text="====")
    assert str(solution) == "1+1=(no answer) ✗ expected 2, wrote ===="
    assert Solution.from_json(solution.to_json()).text == "===="
