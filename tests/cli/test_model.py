"""`abacist model`: what a model consists of, checked against the models of published documents."""

import json

import pytest

from abacist.models.config import ModelConfig, PositionScheme
from abacist.models.parameter_count import components, num_parameters


def index(num_positions: int, **settings: object) -> tuple[PositionScheme, ...]:
    scheme = PositionScheme(
        encoding="learned", coordinate="index", num_positions=num_positions, **settings
    )
    return (scheme,)


MLP = ("mlp-hidden", "mlp-output")
LINEAR = ("queries-keys-values", "attention-output", *MLP)


@pytest.mark.parametrize(
    ("vocabulary", "parameters", "config"),
    [
        pytest.param(
            14,
            17_760,
            ModelConfig(
                num_layers=2, mlp_width=64, biases=MLP, tied_head=True, positions=index(13)
            ),
            id="three digits",
        ),
        pytest.param(
            14,
            104_206,
            ModelConfig(
                direction="both",
                width=64,
                num_heads=2,
                mlp_width=256,
                num_layers=2,
                activation="relu",
                dropout=0.1,
                biases=("attention-output", *MLP, "head"),
                positions=index(42),
            ),
            id="parallel encoder",
        ),
        pytest.param(
            14,
            71_438,
            ModelConfig(
                direction="both",
                width=64,
                num_heads=2,
                num_layers=2,
                activation="relu",
                norm_order="post",
                final_norm=False,
                biases=(*LINEAR, "head"),
                positions=index(42),
            ),
            id="parallel encoder of torch",
        ),
        pytest.param(
            13,
            926_080,
            ModelConfig(
                width=128, mlp_width=512, num_layers=4, tied_head=True, positions=index(1_024)
            ),
            id="four digits with spaces",
        ),
        pytest.param(
            17,
            10_650_624,
            ModelConfig(
                width=384,
                num_heads=6,
                mlp_width=1_536,
                num_layers=6,
                biases=(),
                positions=index(28),
            ),
            id="five operations",
        ),
        pytest.param(
            15,
            8_954_895,
            ModelConfig(
                width=1_024,
                num_heads=16,
                mlp_width=2_048,
                recurrences=16,
                injection="sublayers",
                final_norm=False,
                biases=(*LINEAR, "head"),
                positions=index(512, added_to="queries-keys"),
            ),
            id="looped, of a blog post",
        ),
    ],
)
def test_models_of_published_documents_have_as_many_parameters_as_they_say(
    vocabulary, parameters, config
):
    assert num_parameters(config, vocabulary) == parameters


@pytest.mark.parametrize(
    ("layers", "recurrences", "millions"), [(16, 1, 122.3), (8, 2, 63.5), (1, 16, 12.1)]
)
def test_models_of_the_abacus_paper_have_as_many_parameters_as_they_say(
    layers, recurrences, millions
):
    """Its code gives them a gated MLP of 2 × 1,024 hidden numbers, and one more before the head."""
    config = ModelConfig(
        width=1_024,
        num_heads=16,
        mlp_width=1_024,
        num_layers=layers,
        recurrences=recurrences,
        injection="add",
        initial_state="noise",
        activation="geglu",
        norm_order="post",
        embedding_norm=True,
        final_mlp=True,
        biases=(),
        positions=(
            PositionScheme(
                encoding="learned",
                coordinate="place",
                num_positions=1_536,
                offset="batch",
                max_offset=100,
            ),
        ),
    )
    assert round(num_parameters(config, 19) / 1e6, 1) == millions


def test_the_table_adds_up_and_json_has_the_total(run):
    code, out, _ = run("model", "add", "--json")
    data = json.loads(out)
    assert code == 0
    assert data["parameters"] == 13_676
    assert data["parameters"] == sum(part["parameters"] for part in data["components"])
    assert data["multiply_adds"] == sum(part["multiply_adds"] for part in data["components"])
    assert "13,676 parameters" in run("model", "add")[1]


def test_shapes_bytes_and_the_parameters_of_each_block_are_shown(run):
    data = json.loads(run("model", "five-operations-10m", "--json")[1])
    assert data["bytes"] == 4 * data["parameters"] == sum(b["bytes"] for b in data["blocks"])
    assert [block["name"] for block in data["blocks"]] == [
        "input", *(f"layer {n}" for n in range(1, 7)), "output"
    ]  # fmt: skip
    # 1,771,008 = 4 · 384² + 2 · 384 · 1,536 + 2 norms of 2 · 384
    assert {b["parameters"] for b in data["blocks"][1:7]} == {1_771_008}
    shapes = {part["name"]: (part["input"], part["output"]) for part in data["components"]}
    assert shapes["token embedding"] == ("28", "28 × 384")
    assert shapes["queries, keys, values"] == ("28 × 384", "3 × 28 × 384")
    assert shapes["head"] == ("19 × 384", "19 × 17")
    out = run("model", "five-operations-10m")[1]
    assert "10,650,624 parameters in 42,602,496 bytes" in out


def test_settings_change_the_model_that_is_counted(run):
    out = run("model", "add", "--model.num_layers", "3", "--model.positions", "fire", "--json")[1]
    data = json.loads(out)
    assert any(part["name"] == "fire bias over index" for part in data["components"])
    assert data["model"]["num_layers"] == 3


def test_multiply_adds_are_those_of_the_products():
    config = ModelConfig(width=8, num_heads=2, mlp_width=16, num_layers=2, recurrences=3)
    by_name = {part.name: part.multiply_adds for part in components(config, 10, 7, 2)}
    carried = 5 * 7 + 2
    assert by_name["queries, keys, values"] == (2 * 6 * 7 + carried) * 8 * 8
    assert by_name["scores and mixing"] == 2 * carried * 7 * 8
    assert by_name["attention output"] == carried * 8 * 8
    assert by_name["MLP"] == carried * 2 * 8 * 16
    assert by_name["head"] == 2 * 8 * 10


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["--model.positions", "rope", "--model.head_width", "5"], "Try --model.head_width 6."),
        (["--model.recurrences", "0"], "model.recurrences must be 1 to 1,024, got 0"),
        (["--model.positions.0.coordinate", "step"], "the plain format gives tokens no step"),
        (["--model.direction", "both"], "Try --format parallel"),
        (["--model.positions.0.offset", "batch"], "a random offset changes nothing"),
        (["--training.progressive_loss", "fewer"], "a progressive loss is for looped models"),
        (
            ["--training.relative_bias_rate", "8", "--model.positions", "gpt2"],
            "relative_bias_rate 8 is for relative position biases, and this model has none",
        ),
        (["--model.initial_state", "noise"], "Try --model.injection add."),
        (["--model.positions", "rotary"], "model.positions must be one of place-relative"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(run, settings, said):
    code, out, error = run("model", "add", *settings)
    assert (code, out) == (2, "")
    assert said in error
    assert error.count("\n") == 1
