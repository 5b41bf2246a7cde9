"""Every error about a model's settings: one line that names the value and what to type instead."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_models import coordinates_of_places, ids_of, random_model

import abacist
from abacist import recipes
from abacist.configuration import override
from abacist.errors import ConfigurationError
from abacist.models.config import POSITIONS, ModelConfig, PositionScheme
from abacist.recipes.recipe import Recipe
from abacist.runs.run import build_model


def learned(**settings: object) -> dict[str, object]:
    return {"encoding": "learned", "coordinate": "place", **settings}


def relative(**settings: object) -> dict[str, object]:
    return {"encoding": "relative", "coordinate": "place", **settings}


def rotary(**settings: object) -> dict[str, object]:
    return {"encoding": "rotary", "coordinate": "index", **settings}


POSITION_REFUSALS = [
    # settings, what is wrong, what to type after --model.positions.0.
    (learned(num_positions=1), "num_positions must be 2 to 10,000,000, got 1", "num_positions 128"),
    (
        learned(num_positions=10_000_001),
        "num_positions must be 2 to 10,000,000, got 10000001",
        "num_positions 128",
    ),
    (relative(max_distance=0), "max_distance must be 1 to 1,000,000, got 0", "max_distance 16"),
    (rotary(base=0.5), "base must be 1 to 1,000,000,000, got 0.5", "base 10000.0"),
    (rotary(base=float("nan")), "base must be 1 to 1,000,000,000, got nan", "base 10000.0"),
    (rotary(subset_of=-1), "subset_of must be 0 to 10,000,000, got -1", "subset_of 0"),
    (
        {"encoding": "alibi", "coordinate": "index", "slope": -1.0},
        "slope must be 0 to 1,000,000, got -1.0",
        "slope 0.0",
    ),
    (relative(init_std=-1.0), "init_std must be 0 to 100, got -1.0", "init_std 0.0"),
    (relative(num_buckets=3), "num_buckets must be 4 to 250,000, got 3", "num_buckets 32"),
    (relative(num_buckets=-8), "num_buckets must be 4 to 250,000, got -8", "num_buckets 32"),
    (
        relative(num_buckets=32, max_distance=31),
        "max_distance must be 32 to 1,000,000, got 31",
        "max_distance 128",
    ),
    (
        learned(offset="batch", max_offset=127),
        "max_offset must be 0 to 126, got 127",
        "max_offset 126",
    ),
    (
        learned(offset="batch", max_offset=-1),
        "max_offset must be 0 to 126, got -1",
        "max_offset 126",
    ),
    (
        {"encoding": "sinusoidal", "coordinate": "place", "max_offset": 10_000_001},
        "max_offset must be 0 to 10,000,000, got 10000001",
        "max_offset 10000000",
    ),
]
POSITION_CONFLICTS = [
    (
        relative(num_buckets=8, window=(0, 1)),
        "num_buckets belongs to a relative encoding without a window, got encoding relative with the "
        "window (0, 1)",
        "num_buckets 0",
    ),
    (
        rotary(num_buckets=8),
        "num_buckets belongs to a relative encoding without a window, got encoding rotary",
        "num_buckets 0",
    ),
    (
        learned(num_buckets=8),
        "num_buckets belongs to a relative encoding without a window, got encoding learned",
        "num_buckets 0",
    ),
    (
        rotary(init_std=1.0),
        "init_std belongs to a relative or learned encoding, got encoding rotary",
        "init_std 0",
    ),
    (relative(slope=0.5), "slope belongs to alibi, got encoding relative", "slope 0"),
    (learned(slope=0.5), "slope belongs to alibi, got encoding learned", "slope 0"),
    (
        learned(window=(0, 1)),
        "a window needs differences, and learned encodes coordinates",
        "encoding relative",
    ),
    (
        {"encoding": "sinusoidal", "coordinate": "place", "window": (0, 1)},
        "a window needs differences, and sinusoidal encodes coordinates",
        "encoding relative",
    ),
    (
        learned(num_positions=64, subset_of=512),
        "subset_of 512 needs 513 rows of a learned encoding, got num_positions 64",
        "num_positions 513",
    ),
    (
        learned(offset="sample"),
        "offset and max_offset go together, got offset 'sample' and max_offset 0",
        "offset sample --model.positions.0.max_offset 100",
    ),
    (
        learned(max_offset=5),
        "offset and max_offset go together, got offset 'none' and max_offset 5",
        "offset sample --model.positions.0.max_offset 100",
    ),
    (
        learned(offset="batch", max_offset=5, subset_of=50),
        "a scheme is randomised by an offset or by a subset, got both",
        "subset_of 0",
    ),
    (
        relative(offset="batch"),
        "a random offset changes nothing for a relative encoding, which sees only differences, "
        "got offset 'batch' and max_offset 0",
        "offset none --model.positions.0.max_offset 0",
    ),
    (
        rotary(added_to="queries-keys"),
        "rotary adds no vector, got added_to queries-keys",
        "added_to input",
    ),
    (
        {"encoding": "fire", "coordinate": "index", "added_to": "queries-keys"},
        "fire adds no vector, got added_to queries-keys",
        "added_to input",
    ),
    (
        relative(window=(1, 0)),
        "window must go from its smaller to its larger difference, got (1, 0)",
        "window 0,1",
    ),
    (
        rotary(window=(1, 2)),
        "window must contain difference 0, the query's own, got (1, 2)",
        "window 0,1",
    ),
    (
        relative(window=(-2, -1)),
        "window must contain difference 0, the query's own, got (-2, -1)",
        "window 0,1",
    ),
]
MODEL_REFUSALS = [
    # settings, what is wrong, what to type after --model.
    ({"width": 0}, "model.width must be 1 to 65,536, got 0", "width 32"),
    ({"num_heads": 1_025}, "model.num_heads must be 1 to 1,024, got 1025", "num_heads 4"),
    ({"mlp_width": 0}, "model.mlp_width must be 1 to 1,048,576, got 0", "mlp_width 128"),
    ({"num_layers": 0}, "model.num_layers must be 1 to 1,024, got 0", "num_layers 1"),
    ({"recurrences": 0}, "model.recurrences must be 1 to 1,024, got 0", "recurrences 1"),
    ({"recurrences": 1_025}, "model.recurrences must be 1 to 1,024, got 1025", "recurrences 1"),
    ({"dropout": -0.1}, "model.dropout must be 0 to 0.95, got -0.1", "dropout 0.0"),
    ({"dropout": 1.0}, "model.dropout must be 0 to 0.95, got 1.0", "dropout 0.0"),
    (
        {"embedding_init_std": -1.0},
        "model.embedding_init_std must be 0 to 100, got -1.0",
        "embedding_init_std 0.0",
    ),
    ({"head_width": 0}, "model.head_width must be 1 to 65,536, got 0", "head_width 8"),
    (
        {"width": 30},
        "model.width must be a multiple of model.num_heads = 4, got 30",
        "width 28, or set --model.head_width",
    ),
    (
        {"width": 12, "positions": POSITIONS["rope"]},
        "rotary encodings turn pairs of numbers, so a head's width must be a multiple of 2, got 3",
        "head_width 4",
    ),
    (
        {"head_width": 6, "positions": POSITIONS["rope"] * 2},
        "rotary encodings turn pairs of numbers, so a head's width must be a multiple of 4, got 6",
        "head_width 8",
    ),
    (
        {"initial_state": "noise"},
        "model.initial_state noise without injection would never see the input",
        "injection add",
    ),
]


def refusal(make: Callable[[], object]) -> str:
    with pytest.raises(ConfigurationError) as caught:
        make()
    return str(caught.value)


def remedies(message: str, prefix: str) -> dict[str, str]:
    """The values that a message says to type, by setting."""
    return dict(re.findall(rf"--{re.escape(prefix)}(\w+) (\S+?)[.,]?(?= |$)", message))


def value_of(text: str, present: object) -> Any:
    """The value of a setting as the command line reads it."""
    if isinstance(present, tuple):
        return tuple(int(number) for number in text.split(","))
    return text if isinstance(present, str) else type(present)(float(text))


def follow(make: Callable[..., object], settings: dict[str, object], prefix: str) -> None:
    """Apply what errors say to type until there is none, at most three times."""
    for _ in range(3):
        try:
            make(**settings)
            return
        except ConfigurationError as error:
            for name, text in remedies(str(error), prefix).items():
                present = settings.get(name, make.__dataclass_fields__[name].default)
                settings = {**settings, name: value_of(text, 0 if present is None else present)}
    make(**settings)


@pytest.mark.parametrize(("settings", "complaint", "remedy"), POSITION_REFUSALS)
def test_a_number_of_a_position_scheme_out_of_range_is_refused(
    settings: dict[str, object], complaint: str, remedy: str
) -> None:
    message = refusal(lambda: PositionScheme(**settings))
    assert message == f"model.positions.0.{complaint}. Try --model.positions.0.{remedy}."


@pytest.mark.parametrize(("settings", "complaint", "remedy"), POSITION_CONFLICTS)
def test_settings_of_a_position_scheme_that_do_not_go_together_are_refused(
    settings: dict[str, object], complaint: str, remedy: str
) -> None:
    message = refusal(lambda: PositionScheme(**settings))
    assert message == f"{complaint}. Try --model.positions.0.{remedy}."


@pytest.mark.parametrize(("settings", "complaint", "remedy"), MODEL_REFUSALS)
def test_impossible_settings_of_a_model_are_refused(
    settings: dict[str, object], complaint: str, remedy: str
) -> None:
    assert refusal(lambda: ModelConfig(**settings)) == f"{complaint}. Try --model.{remedy}."


@pytest.mark.parametrize(
    "settings", [settings for settings, *_ in POSITION_REFUSALS + POSITION_CONFLICTS]
)
def test_applying_what_errors_of_a_position_scheme_say_gives_valid_settings(
    settings: dict[str, object],
) -> None:
    follow(PositionScheme, settings, "model.positions.0.")


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(relative(offset="batch", max_offset=5), id="offset without a vector"),
        pytest.param(rotary(max_offset=5), id="max_offset without a vector"),
        pytest.param(
            learned(num_positions=8, offset="batch", max_offset=7),
            id="an offset beyond a small table",
        ),
        pytest.param(relative(num_buckets=300_000), id="a great many buckets"),
    ],
)
def test_errors_of_a_position_scheme_do_not_lead_in_circles(
    settings: dict[str, object],
) -> None:
    follow(PositionScheme, settings, "model.positions.0.")


@pytest.mark.parametrize("settings", [settings for settings, *_ in MODEL_REFUSALS])
def test_applying_what_errors_of_a_model_say_gives_valid_settings(
    settings: dict[str, object],
) -> None:
    follow(ModelConfig, settings, "model.")


def test_an_error_names_the_number_of_the_wrong_scheme() -> None:
    recipe = override(recipes.find("add"), {"model.positions": "abacus-fire"})
    message = refusal(lambda: override(recipe, {"model.positions.1.window": "1,2"}))
    assert "--model.positions.1.window 0,1" in message


@pytest.mark.parametrize("direction", ["causal", "both"])
@pytest.mark.parametrize("positions", POSITIONS)
def test_all_other_combinations_are_accepted(positions: str, direction: str) -> None:
    ModelConfig(positions=POSITIONS[positions], direction=direction)


@pytest.mark.parametrize("injection", ["add", "linear", "sublayers"])
def test_noise_goes_with_every_injection(injection: str) -> None:
    ModelConfig(initial_state="noise", injection=injection)


# With a format and a training ---------------------------------------------------------------

RECIPE_REFUSALS = {
    "a decoder with an encoder's format": (
        {"format": "parallel"},
        "the parallel format is for encoders and this model is a causal decoder",
        "--model.direction both, or --format reversed",
    ),
    "a decoder with an encoder's mirrored format": (
        {"format": "mirrored"},
        "the parallel format is for encoders and this model is a causal decoder",
        "--model.direction both, or --format reversed",
    ),
    "an encoder with a decoder's format": (
        {"model.direction": "both"},
        "an encoder writes all answer tokens at once and needs a format with parallel targets",
        "--format parallel, or --model.direction causal",
    ),
    "rows in a format without": (
        {"format": "mirrored", "model.direction": "both", "model.positions.0.coordinate": "row"},
        "the parallel format gives tokens no row",
        "--model.positions.0.coordinate place",
    ),
    "steps in a format without, in the second scheme": (
        {"model.positions": "abacus-fire", "model.positions.1.coordinate": "step"},
        "the plain format gives tokens no step",
        "--model.positions.1.coordinate place",
    ),
    "steps in a format with rows": (
        {
            "task": "multiply",
            "format": "partial-products",
            "model.positions.0.coordinate": "step",
        },
        "the partial-products format gives tokens no step",
        "--model.positions.0.coordinate place",
    ),
    "places in a format without": (
        {"task": "add-modulo", "format": "residues"},
        "the residues format gives tokens no place",
        "--model.positions.0.coordinate index",
    ),
    "rows in an encoder's format": (
        {
            "format": "parallel",
            "model.direction": "both",
            "model.positions.0.coordinate": "row",
        },
        "the parallel format gives tokens no row",
        "--model.positions.0.coordinate place",
    ),
    "fewer loops of a model that runs once": (
        {"training.progressive_loss": "fewer"},
        "a progressive loss is for looped models and this one runs once",
        "--training.progressive_loss none, or --model.recurrences 8",
    ),
    "detached loops of a model that runs once": (
        {"training.progressive_loss": "detached"},
        "a progressive loss is for looped models and this one runs once",
        "--training.progressive_loss none, or --model.recurrences 8",
    ),
}
each_recipe = pytest.mark.parametrize(
    ("settings", "complaint", "remedy"), RECIPE_REFUSALS.values(), ids=RECIPE_REFUSALS.keys()
)


def recipe_with(settings: dict[str, object]) -> Recipe:
    return override(recipes.find("add"), settings)


@each_recipe
def test_a_model_that_does_not_go_with_its_format_or_training_is_refused(
    settings: dict[str, object], complaint: str, remedy: str
) -> None:
    recipe = recipe_with(settings)
    assert refusal(lambda: build_model(recipe)) == f"{complaint}. Try {remedy}."


@each_recipe
def test_each_value_that_the_error_says_to_type_is_accepted(
    settings: dict[str, object], complaint: str, remedy: str
) -> None:
    for alternative in remedy.split(", or "):
        name, value = alternative.removeprefix("--").split()
        build_model(recipe_with({**settings, name: value}))


@each_recipe
def test_the_error_comes_before_a_directory_is_made(
    tmp_path: Path, settings: dict[str, object], complaint: str, remedy: str
) -> None:
    path = tmp_path / "run"
    assert complaint in refusal(lambda: abacist.train(recipe_with(settings), out=path, threads=1))
    assert not path.exists()


@pytest.mark.parametrize("number", [0, 1])
def test_tokens_without_the_coordinate_of_a_scheme_are_refused(number: int) -> None:
    schemes = [PositionScheme(encoding="learned", coordinate="place")] * 2
    schemes[number] = PositionScheme(encoding="learned", coordinate="row")
    model = random_model(tuple(schemes))
    ids = ids_of("<start>21+43=64<end>")
    coordinates = coordinates_of_places([[0] * ids.shape[1]])
    assert refusal(lambda: model(ids, coordinates)) == (
        f"this format gives tokens no row. Try --model.positions.{number}.coordinate place."
    )
