"""The whole model against `reference_model`, which computes one pair of tokens at a time."""

import pytest
import torch
from reference_model import reference_logits
from small_models import (
    FORMAT,
    SCHEME_NAMES,
    ids_of,
    place_window,
    random_model,
    random_problems,
    write,
)
from torch import Tensor

from abacist.models.config import POSITIONS, PositionScheme
from abacist.models.coordinates import Coordinates
from abacist.models.teacher_forcing import coordinates_of
from abacist.models.transformer import Path, Transformer


def scheme(encoding: str, coordinate: str = "index", **settings: object) -> PositionScheme:
    return PositionScheme(encoding=encoding, coordinate=coordinate, **settings)


PLACE_WINDOW = place_window(0, 1)
EVERYTHING = {
    "num_layers": 2,
    "recurrences": 2,
    "injection": "linear",
    "activation": "swiglu",
    "norm": "rms",
    "norm_order": "post",
    "query_key_norm": True,
    "length_scaling": True,
    "biases": ("head",),
    "positions": (
        scheme("learned", "place", added_to="queries-keys"),
        scheme("rotary"),
        *place_window(-1, 2),
    ),
}
MODELS: dict[str, dict[str, object]] = {
    # Position schemes.
    **{f"positions {name}": {"positions": schemes} for name, schemes in POSITIONS.items()},
    "learned in every layer": {
        "positions": (scheme("learned", added_to="queries-keys"),),
        "num_layers": 2,
    },
    "learned places in every layer": {
        "positions": (scheme("learned", "place", added_to="queries-keys"),),
        "head_width": 5,
        "num_layers": 2,
    },
    "learned in both ways": {
        "positions": (scheme("learned"), scheme("learned", "place", added_to="queries-keys")),
    },
    "sinusoidal in every layer": {
        "positions": (scheme("sinusoidal", "place", added_to="queries-keys", base=50.0),),
        "num_layers": 2,
    },
    "sinusoidal and learned": {"positions": (scheme("sinusoidal", "place"), scheme("learned"))},
    "rotary over places": {"positions": (scheme("rotary", "place", base=30.0),), "head_width": 4},
    "two rotary schemes": {
        "positions": (scheme("rotary"), scheme("rotary", "place", base=30.0)),
        "head_width": 8,
    },
    "rotary and learned in every layer": {
        "positions": (scheme("rotary"), scheme("learned", "place", added_to="queries-keys")),
        "num_layers": 2,
    },
    "alibi over places, slope of its own": {"positions": (scheme("alibi", "place", slope=0.5),)},
    "alibi in three heads": {"positions": (scheme("alibi"),), "num_heads": 3},
    "t5 over places": {
        "positions": (scheme("relative", "place", num_buckets=4, max_distance=6),),
    },
    "fire over places": {"positions": (scheme("fire", "place"),)},
    "place window (-1, 1)": {"positions": place_window(-1, 1), "num_layers": 2},
    "index window": {"positions": (scheme("relative", window=(-4, 0)),), "num_layers": 2},
    "alibi in a place window": {"positions": (scheme("alibi", "place", window=(-1, 1)),)},
    "fire in an index window": {"positions": (scheme("fire", window=(-6, 0)),)},
    "rotary in a place window": {"positions": (scheme("rotary"), *PLACE_WINDOW)},
    "two windows": {"positions": (*place_window(-1, 2), scheme("relative", window=(-9, 0)))},
    "windows of rows and steps": {
        "positions": (
            scheme("relative", "step", window=(-1, 0)),
            scheme("relative", "row", window=(-2, 0)),
            scheme("relative", "place", max_distance=2),
        ),
    },
    "learned rows, rotary steps": {
        "positions": (scheme("learned", "row"), scheme("rotary", "step")),
    },
    # The model around them.
    "three layers": {"num_layers": 3},
    "normalised behind": {"norm_order": "post", "num_layers": 2},
    "rms behind": {"norm": "rms", "norm_order": "post", "num_layers": 2},
    "rms": {"norm": "rms"},
    "no final norm": {"final_norm": False},
    "normalised embedding": {"embedding_norm": True},
    "a last MLP": {"final_mlp": True, "activation": "geglu"},
    **{f"activation {name}": {"activation": name} for name in ("relu", "geglu", "swiglu")},
    "no biases": {"biases": ()},
    "biases of queries, keys, values": {"biases": ("queries-keys-values",)},
    "biases of the MLP, gated": {"biases": ("mlp-hidden", "mlp-output"), "activation": "geglu"},
    "biases of output and head": {"biases": ("attention-output", "head")},
    "tied head": {"tied_head": True},
    "tied head with a bias": {"tied_head": True, "biases": ("head",)},
    "heads of another width": {"head_width": 3, "num_heads": 3},
    "query-key norm": {"query_key_norm": True, "positions": POSITIONS["rope"]},
    "query-key norm, learned in every layer": {
        "query_key_norm": True,
        "positions": (scheme("learned", added_to="queries-keys"),),
    },
    "length scaling": {"length_scaling": True, "num_layers": 2},
    "length scaling without a window": {"length_scaling": True, "positions": POSITIONS["alibi"]},
    "query-key norm and length scaling": {"query_key_norm": True, "length_scaling": True},
    **{
        f"3 recurrences, injection {name}": {"injection": name, "recurrences": 3}
        for name in ("none", "add", "linear", "sublayers")
    },
    **{
        f"3 recurrences, normalised behind, injection {name}": {
            "injection": name,
            "recurrences": 3,
            "norm_order": "post",
            "num_layers": 2,
        }
        for name in ("add", "linear", "sublayers")
    },
    **{
        f"from nothing, injection {name}": {
            "injection": name,
            "recurrences": 3,
            "initial_state": "noise",
        }
        for name in ("add", "linear", "sublayers")
    },
    "everything": EVERYTHING,
    # Encoders.
    **{
        f"encoder {name}": {"positions": POSITIONS[name], "direction": "both", "num_layers": 2}
        for name in POSITIONS
    },
    "encoder, place window (-1, 1)": {"positions": place_window(-1, 1), "direction": "both"},
    "encoder, length scaling": {"length_scaling": True, "direction": "both"},
    "encoder, everything": {**EVERYTHING, "direction": "both"},
}
each_model = pytest.mark.parametrize("settings", MODELS.values(), ids=MODELS.keys())


def model_of(settings: dict[str, object]) -> Transformer:
    model = random_model(**settings)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("threshold"):
                # So small that some queries stand beyond it and some do not.
                parameter.fill_(4.5)
    return model


def assert_is_reference(
    model: Transformer, ids: Tensor, coordinates: Coordinates, path: Path = "dense"
) -> None:
    logits = model(ids, coordinates, path=path)
    expected = reference_logits(model, ids, coordinates)
    real = (coordinates.index >= 0).expand(ids.shape)
    torch.testing.assert_close(logits[real], expected[real], rtol=1e-9, atol=1e-9)


def written_out() -> tuple[Tensor, Coordinates]:
    """Two lines with all four coordinates, the second one shorter, which no format of this package writes."""
    index = [[*range(9)], [*range(7), -1, -1]]
    place = [[-2, 1, 2, 3, -1, 0, 1, 2, 1], [-2, 1, -1, 2, 1, -2, 3, -1, -1]]
    row = [[-2, 1, 1, 1, -1, 2, 2, 2, 3], [0, 1, 1, 2, 3, 3, -1, -1, -1]]
    step = [[-2, 1, 1, 2, 2, 3, 3, 4, 1], [1, -2, 2, 1, 0, 2, 3, -1, -1]]
    ids = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6, 5], [2, 7, 1, 8, 2, 8, 1, 0, 0]])
    return ids, Coordinates(*(torch.tensor(rows) for rows in (index, place, row, step)))


@each_model
def test_logits_are_those_of_the_formulas(settings: dict[str, object]) -> None:
    assert_is_reference(model_of(settings), *written_out())


@pytest.mark.parametrize("direction", ["causal", "both"])
@pytest.mark.parametrize("positions", SCHEME_NAMES)
def test_logits_of_a_line_of_the_format_are_those_of_the_formulas(
    positions: str, direction: str
) -> None:
    ids = ids_of("<start>21+439=064<end>")
    model = model_of({"positions": positions, "direction": direction})
    assert_is_reference(model, ids, coordinates_of(FORMAT.annotate(ids)))


WINDOWED = {
    name: settings
    for name, settings in MODELS.items()
    if any(s.window for s in settings.get("positions", PLACE_WINDOW))
}


@pytest.mark.parametrize("settings", WINDOWED.values(), ids=WINDOWED.keys())
def test_logits_of_the_windowed_path_are_those_of_the_formulas(
    settings: dict[str, object],
) -> None:
    assert_is_reference(model_of(settings), *written_out(), path="windowed")


@pytest.mark.parametrize("first", [0, 3, 8])
@pytest.mark.parametrize("name", ["three layers", "everything", "encoder, everything"])
def test_the_tail_of_a_pass_is_that_of_the_formulas(name: str, first: int) -> None:
    model = model_of(MODELS[name])
    ids, coordinates = written_out()
    expected = reference_logits(model, ids, coordinates)[:, first:]
    for path in ("dense", "windowed"):
        logits = model(ids, coordinates, first=first, path=path)
        real = coordinates.index[:, first:] >= 0
        torch.testing.assert_close(logits[real], expected[real], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("positions", ["place-relative", "abacus-fire", "rope"])
def test_shared_coordinates_equal_those_of_each_line(positions: str) -> None:
    lines = write(random_problems([(2, 3)] * 3))[:, :-1]
    shared = coordinates_of(lines, equal_lengths=True)
    assert len(shared.place) == 1
    assert_is_reference(random_model(positions, num_layers=2), lines.ids, shared)
