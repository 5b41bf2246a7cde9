"""Position encodings of extensions: their formulas, all paths of attention, and one line for mistakes."""

import math
from pathlib import Path

import pytest
import torch
from small_models import random_model, random_problems, write
from torch import nn

from abacist import (
    CoordinateBias,
    DifferenceBias,
    PositionScheme,
    VectorEncoding,
    extensions,
    position_encoding,
)
from abacist.cli import main
from abacist.errors import ConfigurationError
from abacist.models.config import POSITIONS, ModelConfig
from abacist.models.encodings import bias_input, make_encoding
from abacist.models.parameter_count import num_parameters
from abacist.models.receptive_field import obstacle_to_finite_receptive_field
from abacist.models.teacher_forcing import teacher_forced

EXAMPLE = Path(__file__).parents[2] / "examples" / "log_cpb.py"


@pytest.fixture(autouse=True)
def own_encodings(registries_as_before):
    """One encoding of each kind."""
    extensions.load(str(EXAMPLE))

    @position_encoding("test-product")
    class Product(CoordinateBias):
        def __init__(self, scheme, num_heads):
            super().__init__(scheme, num_heads)
            self.factor = nn.Parameter(torch.full((num_heads,), 0.01))

        def bias(self, query, key):
            return (query * key).unsqueeze(-1) * self.factor

    @position_encoding("test-powers", "init_std")
    class Powers(VectorEncoding):
        def __init__(self, scheme, width):
            super().__init__(scheme, width)
            self.rows = nn.Linear(2, width)

        def vectors(self, coordinate):
            powers = torch.stack([coordinate, coordinate**2], dim=-1)
            return self.rows(powers.to(self.rows.weight.dtype) / 100)


def scheme(encoding, coordinate="place", **settings):
    return PositionScheme(encoding=encoding, coordinate=coordinate, **settings)


def test_the_example_is_the_formula_it_states():
    bias = make_encoding(scheme("log-cpb"), 3).double()
    differences = [-7, -1, 0, 1, 2, 40]
    actual = bias(torch.tensor(differences)).detach()
    (w, c), W = (
        (p.detach().flatten().tolist() for p in bias.hidden.parameters()),
        bias.output.weight,
    )
    for row, d in enumerate(differences):
        logarithm = math.copysign(math.log(1 + abs(d)), d)
        hidden = [max(0.0, a * logarithm + b) for a, b in zip(w, c, strict=True)]
        for head in range(3):
            expected = sum(x * y for x, y in zip(W[head].tolist(), hidden, strict=True))
            assert float(actual[row, head]) == pytest.approx(expected, abs=1e-12)


def test_differences_are_key_minus_query_and_0_for_tokens_without_a_coordinate():
    query, key = torch.tensor([[4], [-1]]), torch.tensor([1, 6, -2])
    assert bias_input(scheme("log-cpb"), query, key).tolist() == [[-3, 2, 0], [0, 0, 0]]
    windowed = scheme("log-cpb", window=(-1, 0))
    assert bias_input(windowed, query, key).tolist() == [[-1, 0, 0], [0, 0, 0]]
    pairs = bias_input(scheme("test-product"), query, key)
    assert pairs.tolist() == [[[4, 1], [4, 6], [4, 0]], [[0, 1], [0, 6], [0, 0]]]


SCHEMES = {
    "differences": [("log-cpb", {})],
    "differences in a window": [("log-cpb", {"window": (0, 1)})],
    "coordinates": [("test-product", {})],
    "coordinates in a window": [("test-product", {"window": (-1, 2)})],
    "vectors": [("test-powers", {}), ("relative", {"window": (0, 1)})],
    "vectors of queries and keys": [("test-powers", {"added_to": "queries-keys"})],
}


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("name", SCHEMES)
@torch.no_grad()
def test_all_paths_of_attention_agree(name):
    positions = tuple(scheme(encoding, **settings) for encoding, settings in SCHEMES[name])
    model = random_model(positions, num_layers=2, dtype=torch.float32)
    lines = write(random_problems([(1, 1), (3, 5), (7, 2)]))
    paths = ["fused", "dense", "windowed"] if model.is_windowed else ["fused", "dense"]
    margins = [teacher_forced(model, lines, path=path).margins() for path in paths]
    for other in margins[1:]:
        assert torch.allclose(margins[0], other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", SCHEMES)
def test_parameters_of_own_encodings_are_counted(name):
    positions = tuple(scheme(encoding, **settings) for encoding, settings in SCHEMES[name])
    model = random_model(positions, num_layers=2)
    assert num_parameters(model.config, model.embedding.num_embeddings) == model.num_parameters


def test_only_differences_in_a_window_have_a_finite_receptive_field():
    def obstacle(*schemes):
        return obstacle_to_finite_receptive_field(ModelConfig(positions=schemes))

    assert obstacle(*POSITIONS["log-cpb"]) is None
    window = scheme("relative", window=(0, 1))
    assert "test-product encoding depends on the absolute" in obstacle(
        window, scheme("test-product")
    )
    assert "test-powers encoding depends on the absolute" in obstacle(window, scheme("test-powers"))
    assert "log-cpb encoding has no window of rows" in obstacle(window, scheme("log-cpb", "row"))


@pytest.mark.parametrize(
    ("bias", "message"),
    [
        (lambda self, difference: difference, r"shape \(3, 2\) for 3 tokens, got \(3,\)"),
        (lambda self, difference: None, "got NoneType"),
        (lambda self, difference: 1 / 0, "failed: ZeroDivisionError: division by zero"),
    ],
)
def test_an_encoding_that_fails_is_one_line(bias, message):
    position_encoding("test-wrong")(type("Wrong", (DifferenceBias,), {"bias": bias}))
    with pytest.raises(ConfigurationError, match=f"'test-wrong'.*{message}.*Correct Wrong"):
        make_encoding(scheme("test-wrong"), 2)


def test_names_of_encodings_are_checked(capsys):
    with pytest.raises(ConfigurationError, match="position encoding 'fire' is built in"):
        position_encoding("fire")(DifferenceBias)
    with pytest.raises(ConfigurationError, match=r"derived from VectorEncoding.*, got Linear"):
        position_encoding("test-linear")(nn.Linear)
    with pytest.raises(ConfigurationError, match="init_std belongs to"):
        scheme("log-cpb", init_std=1.0)
    assert scheme("test-powers", init_std=1.0).init_std == 1.0
    assert main(["model", "add", "--model.positions.0.encoding", "log-cbp"]) == 2
    error = capsys.readouterr().err
    assert "must be one of learned, sinusoidal" in error
    assert "Try --model.positions.0.encoding log-cpb." in error
    assert error.count("\n") == 1


def test_a_model_with_an_own_encoding_is_described(capsys):
    assert main(["model", "add", "--model.positions", "log-cpb"]) == 0
    assert "log-cpb bias over place" in capsys.readouterr().out


def test_a_run_names_the_extension_of_its_encoding():
    (needed,) = extensions.needed({"positions": [{"encoding": "log-cpb", "coordinate": "place"}]})
    assert needed["source"] == str(EXAMPLE)
