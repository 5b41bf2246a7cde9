"""Recipes of published systems have the documents' sizes and lines, and they train."""

import pytest
import torch
from torch import nn

import abacist
from abacist import recipes
from abacist.models.teacher_forcing import coordinates_of
from abacist.runs.run import build_model, build_problems
from abacist.training import checkpoint

PARAMETERS = {
    "three-digit-grokking": 17_760,
    "parallel-encoder": 104_206,
    "parallel-encoder-torch": 71_438,
    "spaced-gpt2": 926_080,
    "five-operations-10m": 10_650_624,
    "looped-abacus-post": 8_954_895,
}
MILLIONS = {"looped-abacus-1x16": 12.1, "looped-abacus-8x2": 63.5, "looped-abacus-16x1": 122.3}


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_model_has_the_number_of_parameters_of_the_document(name):
    assert build_model(recipes.find(name)).num_parameters == PARAMETERS[name]


@pytest.mark.parametrize("name", MILLIONS)
def test_the_model_has_the_millions_of_parameters_of_the_paper(name):
    model = build_model(recipes.find(name))
    assert round(model.num_parameters / 1e6, 1) == MILLIONS[name]


@pytest.mark.parametrize(
    ("name", "problem", "line"),
    [
        ("three-digit-grokking", "54+114", "054+114=8610<end>"),
        ("parallel-encoder", "123+45", "=54+321" + "<pad>" * 35),
        ("spaced-gpt2", "1234+5678", "1234 + 5678 =6912 "),
        ("looped-abacus-post", "12+345", "<start>21+543=753<end>"),
    ],
)
def test_lines_are_written_as_the_document_writes_them(name, problem, line):
    task, format = build_problems(recipes.find(name))
    problems = task.parse([problem])
    (ids,) = format.write(problems, task.answer(problems)).ids.tolist()
    assert format.vocabulary.text(ids) == line


@pytest.mark.parametrize("name", ["parallel-encoder", "parallel-encoder-torch"])
def test_the_encoders_are_layers_of_torch_between_an_embedding_and_a_head(name):
    recipe = recipes.find(name)
    torch.manual_seed(0)
    model = build_model(recipe).eval()
    task, format = build_problems(recipe)
    problems = task.parse(["123+45", "9+99999"])
    lines = format.write(problems, task.answer(problems))
    own = dict(model.named_parameters())
    resid = own["embedding.weight"][lines.ids] + own["positions.0.rows.weight"][:42]
    for number in range(2):
        resid = _layer_of_torch(recipe.model, own, f"blocks.{number}.")(resid)
    expected = model.head(model.final_norm(resid))
    torch.testing.assert_close(model(lines.ids, coordinates_of(lines)), expected)


def _layer_of_torch(config, own, prefix):
    """Return a layer of torch's encoder with the weights of one of ours."""
    layer = nn.TransformerEncoderLayer(
        config.width,
        config.num_heads,
        config.mlp_width,
        config.dropout,
        batch_first=True,
        norm_first=config.norm_order == "pre",
    )
    parts = [f"{prefix}attention.{part}" for part in ("query", "key", "value")]
    names = {
        "self_attn.out_proj": "attention.output",
        "linear1": "mlp.up",
        "linear2": "mlp.down",
        "norm1": "attention_norm",
        "norm2": "mlp_norm",
    }
    weights = {
        f"{theirs}.{kind}": own[f"{prefix}{ours}.{kind}"]
        for theirs, ours in names.items()
        for kind in ("weight", "bias")
    }
    zeros = torch.zeros(config.width)
    weights["self_attn.in_proj_weight"] = torch.cat([own[f"{part}.weight"] for part in parts])
    weights["self_attn.in_proj_bias"] = torch.cat(
        [own.get(f"{part}.bias", zeros) for part in parts]
    )
    layer.load_state_dict(weights)
    return layer.eval()


@pytest.mark.parametrize("name", [*PARAMETERS, *MILLIONS, "looped-abacus-small"])
def test_every_published_recipe_takes_two_steps_and_saves_them(tmp_path, name):
    settings = {
        "training.num_steps": 2,
        "training.warmup_steps": 1,
        "training.batch_size": 2,
        "training.validation_problems": 2,
        "training.checkpoint_every": 2,
        "training.precision": "float32",
    }
    if recipes.find(name).training.schedule == "trapezoid":
        settings["training.decay_steps"] = 1
    if recipes.find(name).training.num_examples:
        settings["training.num_examples"] = 8
    if name.startswith("looped-abacus-") and name != "looped-abacus-small":
        settings |= {"model.width": 64, "model.mlp_width": 64}
    run = abacist.train(name, out=tmp_path / "run", settings=settings, threads=1)
    assert [record["step"] for record in run.directory.read_metrics()] == [2]
    assert checkpoint.all_in(run.directory.checkpoints)
