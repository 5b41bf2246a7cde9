"""Recipes of published systems have the documents' sizes and lines, and they train."""

import pytest
import torch
from torch import nn

import abacist
from abacist import recipes
from abacist.configuration import to_json
from abacist.models.teacher_forcing import coordinates_of
from abacist.runs.run import build_model, build_problems
from abacist.scoring.solving import solve
from abacist.scoring.trained_model import TrainedModel
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
        ("looped-abacus-post", "12+345", "21+543=753<end>"),
    ],
)
def test_lines_are_written_as_the_document_writes_them(name, problem, line):
    task, format = build_problems(recipes.find(name))
    problems = task.parse([problem])
    (ids,) = format.write(problems, task.answer(problems)).ids.tolist()
    assert format.vocabulary.decode(ids) == line


# Hyperparameters, written from the documents and not from the recipes. Where a document relies on a
# library's default, the default is written here: nn.Embedding N(0, 1), nn.LayerNorm ε 1e-5, Adam β₂ 0.999.
GPT2 = {"model.activation": "gelu-tanh", "model.init_std": 0.02, "model.scaled_residual_init": True}
ENCODER = {
    "task.operations": ("+",),
    "task.min_digits": 1,
    "task.max_digits": 20,
    "format.kind": "parallel",
    "format.mirrored": True,
    "model.direction": "both",
    "model.positions.0.beyond": "clamp",
    "model.width": 64,
    "model.num_heads": 2,
    "model.num_layers": 2,
    "model.activation": "relu",
    "model.dropout": 0.1,
    "model.tied_head": False,
    "model.positions.0.coordinate": "index",
    "model.positions.0.num_positions": 42,
    "model.positions.0.init_std": 1.0,
    "training.num_examples": 200_000,
    "training.balanced_examples": True,
    "training.batch_size": 32,
    "training.optimizer": "adamw",
    "training.weight_decay": 0.0,
    "training.learning_rate": 1e-3,
    "training.schedule": "constant",
    "training.beta2": 0.999,
    "training.clip_norm": None,
    "training.record_embeddings_every": 100,
    "training.record_loss_every": 100,
}
PAPER = {
    "task.operations": ("+",),
    "task.max_digits": 20,
    "format.operand_order": "reversed",
    "format.answer_order": "reversed",
    "format.start_token": False,
    "model.width": 1_024,
    "model.num_heads": 16,
    "model.mlp_width": 1_024,
    "model.injection": "add",
    "model.initial_state": "noise",
    "model.activation": "geglu",
    "model.norm_order": "post",
    "model.norm_epsilon": 1e-12,
    "model.embedding_norm": True,
    "model.embedding_init_std": 1_024**-0.5,
    "model.positions.0.coordinate": "place",
    "model.positions.0.offset": "batch",
    "model.positions.0.max_offset": 100,
    "training.mixed_lengths": True,
    "training.batch_size": 8_192,
    "training.clip_norm": 0.5,
    "training.loss_on": "answer",
}
HYPERPARAMETERS = {
    "three-digit-grokking": {
        "task.max_digits": 3,
        "format.operand_padding": "fixed",
        "format.answer_padding": "fixed",
        "format.operand_order": "usual",
        "format.answer_order": "reversed",
        "format.start_token": False,
        "model.width": 32,
        "model.mlp_width": 64,
        "model.num_layers": 2,
        "model.tied_head": True,
        "model.positions.0.num_positions": 13,
        "training.num_examples": 50_000,
        "training.batch_size": 512,
        "training.num_steps": 150 * 97,
        "training.optimizer": "adamw",
        "training.learning_rate": 0.01,
        "training.schedule": "cosine",
        "training.warmup_steps": 200,
        "training.loss_on": "all",
        "training.clip_norm": 1.0,
    },
    "parallel-encoder": ENCODER
    | {
        "model.mlp_width": 256,
        "model.biases": ("attention-output", "mlp-hidden", "mlp-output", "head"),
        "model.norm_order": "pre",
        "model.final_norm": True,
        "training.num_steps": 3 * 6_250,
    },
    "parallel-encoder-torch": ENCODER
    | {
        "model.mlp_width": 128,
        "model.norm_order": "post",
        "model.final_norm": False,
        "training.num_steps": 10 * 6_250,
    },
    "spaced-gpt2": GPT2
    | {
        "task.operand_digits": (4, 4),
        "format.spaces": "around",
        "format.answer_order": "usual",
        "model.width": 128,
        "model.num_heads": 4,
        "model.mlp_width": 512,
        "model.num_layers": 4,
        "model.norm_order": "pre",
        "model.final_norm": True,
        "model.norm_epsilon": 0.0,
        "model.tied_head": True,
        "model.dropout": 0.1,
        "model.positions.0.num_positions": 1_024,
        "model.positions.0.init_std": 0.0,
        "training.num_examples": 50_000,
        "training.batch_size": 64,
        "training.keep_partial_batches": True,
        "training.num_steps": 15_640,
        "training.learning_rate": 5e-4,
        "training.schedule": "linear",
        "training.warmup_steps": 0,
        "training.final_fraction": 0.0,
        "training.weight_decay": 0.0,
        "training.beta2": 0.999,
        "training.clip_norm": 1.0,
        "training.precision": "bfloat16",
        "training.loss_on": "answer",
        "training.validation_problems": 10_000,
        "training.validate_every": 156,
        "training.checkpoint_every": 156,
        "training.keep_checkpoints": 5,
        "training.record_loss_every": 78,
    },
    "five-operations-10m": {
        "task.operations": ("+", "-", "*", "//", "%"),
        "task.weights": (0.05, 0.10, 0.20, 0.30, 0.35),
        "task.max_digits": 3,
        "task.sampling": "values",
        "format.kind": "carry-trace",
        "split.validation_fraction": 100_000 / 4_998_000,
        "split.test_fraction": 0.0,
        "model.width": 384,
        "model.num_heads": 6,
        "model.mlp_width": 1_536,
        "model.num_layers": 6,
        "model.biases": (),
        "model.activation": "gelu-tanh",
        "model.norm_epsilon": 1e-6,
        "model.init_std": 0.02,
        "model.scaled_residual_init": False,
        "model.embedding_init_std": 0.0,
        "model.positions.0.num_positions": 28,
        "model.positions.0.init_std": 0.0,
        "training.num_steps": 8_000,
        "training.batch_size": 1_024,
        "training.learning_rate": 8e-4,
        "training.schedule": "cosine",
        "training.decay_from": "warmup",
        "training.warmup_steps": 400,
        "training.final_fraction": 0.1,
        "training.weight_decay": 1e-4,
        "training.beta2": 0.999,
        "training.clip_norm": 1.0,
        "training.loss_on": "answer",
        "training.validate_every": 500,
        "training.validation_problems": 1_000,
        "training.stop_at": 0.99,
        "training.stop_on": "answer",
        "training.stop_from": 5_000,
    },
    "looped-abacus-post": {
        "task.max_digits": 20,
        "format.start_token": False,
        "format.padding_token": False,
        "format.unused_tokens": ("-", "*"),
        "model.width": 1_024,
        "model.num_heads": 16,
        "model.mlp_width": 2_048,
        "model.num_layers": 1,
        "model.recurrences": 16,
        "model.injection": "sublayers",
        "model.activation": "gelu",
        "model.norm_epsilon": 1e-12,
        "model.final_norm": False,
        "model.embedding_init_std": 0.0,
        "model.positions.0.added_to": "queries-keys",
        "model.positions.0.num_positions": 512,
        "model.positions.0.offset": "sample",
        "model.positions.0.max_offset": 99,
        "model.positions.0.init_std": 1.0,
        "training.num_steps": 210_000,
        "training.batch_size": 95,
        "training.mixed_lengths": True,
        "training.optimizer": "adamw",
        "training.learning_rate": 1e-4,
        "training.schedule": "constant",
        "training.weight_decay": 0.01,
        "training.clip_norm": None,
        "training.precision": "float16",
        "training.progressive_loss": "fewer",
        "training.progressive_weight": 0.5,
        "training.checkpoint_every": 5_000,
        "training.keep_checkpoints": None,
        "training.record_loss_every": 1,
        "training.beta2": 0.999,
    },
    "looped-abacus-1x16": PAPER | {"model.num_layers": 1, "model.recurrences": 16},
    "looped-abacus-8x2": PAPER | {"model.num_layers": 8, "model.recurrences": 2},
    "looped-abacus-16x1": PAPER | {"model.num_layers": 16, "model.recurrences": 1},
}


@pytest.mark.parametrize("name", HYPERPARAMETERS)
def test_the_recipe_has_the_hyperparameters_of_the_document(name):
    recipe = to_json(recipes.find(name))
    for path, expected in HYPERPARAMETERS[name].items():
        value = recipe
        for part in path.split("."):
            value = value[int(part)] if isinstance(value, list) else value[part]
        assert value == (list(expected) if isinstance(expected, tuple) else expected), path


def test_the_weights_of_the_small_gpt2_begin_as_those_of_transformers_do():
    transformers = pytest.importorskip("transformers")
    recipe = recipes.find("spaced-gpt2")
    torch.manual_seed(0)
    ours = dict(build_model(recipe).named_parameters())
    config = transformers.GPT2Config(
        n_layer=4, n_embd=128, n_head=4, n_inner=512, vocab_size=13, n_positions=1_024
    )
    assert config.layer_norm_epsilon == 1e-5
    assert config.activation_function == "gelu_new"
    theirs = dict(transformers.GPT2LMHeadModel(config).named_parameters())
    names = {
        "embedding.weight": "transformer.wte.weight",
        "positions.0.rows.weight": "transformer.wpe.weight",
        "blocks.2.attention.output.weight": "transformer.h.2.attn.c_proj.weight",
        "blocks.2.mlp.up.weight": "transformer.h.2.mlp.c_fc.weight",
        "blocks.2.mlp.down.weight": "transformer.h.2.mlp.c_proj.weight",
        "blocks.2.attention.query.bias": "transformer.h.2.attn.c_attn.bias",
    }
    for name, other in names.items():
        assert float(ours[name].detach().std()) == pytest.approx(
            float(theirs[other].detach().std()), rel=0.06
        ), name
        assert float(ours[name].detach().mean()) == pytest.approx(0, abs=0.002)


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


def test_the_encoder_is_asked_sums_of_30_digits_with_places_for_20():
    recipe = recipes.find("parallel-encoder")
    torch.manual_seed(0)
    model = build_model(recipe).eval()
    task, format = build_problems(recipe)
    trained_model = TrainedModel(model, task, format)
    texts = ["1" + 29 * "7" + "+" + 25 * "8", "123+45"]
    alone = [solve(trained_model, task.parse([text]))[0] for text in texts]
    together = solve(trained_model, task.parse(texts))
    assert [s.text for s in together] == [s.text for s in alone]
    line = format.prompt(task.parse(texts)[:1])
    rows = model.positions[0](line.index)
    assert line.ids.shape == (1, 57)
    assert torch.equal(rows[0, 41:], model.positions[0].rows.weight[41].expand(16, -1))


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
        "training.sample_problems": 2,
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
    assert [record["step"] for record in run.directory.read_metrics()] == [0, 2]
    assert checkpoint.all_in(run.directory.checkpoints)
