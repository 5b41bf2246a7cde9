import re

import pytest
import torch

from abacist.errors import ConfigurationError
from abacist.models.config import POSITIONS, ModelConfig, PositionScheme
from abacist.models.transformer import Transformer

RELATIVE = {"encoding": "relative", "coordinate": "place"}
LEARNED = {"encoding": "learned", "coordinate": "place"}


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({**RELATIVE, "offset": "batch"}, "a random offset changes nothing for a relative"),
        ({**RELATIVE, "window": (1, 0)}, "from its smaller to its larger difference, got (1, 0)"),
        ({**RELATIVE, "window": (1, 2)}, "window must contain difference 0"),
        ({**RELATIVE, "window": (-2, -1)}, "window must contain difference 0"),
        ({**RELATIVE, "max_distance": 0}, "max_distance must be 1 to 1,000,000, got 0"),
        ({**LEARNED, "window": (0, 1)}, "a window needs differences"),
        ({**LEARNED, "num_positions": 1}, "num_positions must be 2 to 10,000,000, got 1"),
        ({**LEARNED, "offset": "sample"}, "offset 'sample' and max_offset 0"),
        ({**LEARNED, "max_offset": 5}, "offset 'none' and max_offset 5"),
        ({**LEARNED, "offset": "batch", "max_offset": 127}, "max_offset must be 0 to 126, got 127"),
        ({**LEARNED, "offset": "batch", "max_offset": -1}, "max_offset must be 0 to 126, got -1"),
    ],
)
def test_position_settings_that_do_not_go_together_are_refused_with_what_to_type(
    settings: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(complaint)) as caught:
        PositionScheme(**settings)
    message = str(caught.value)
    assert "Try --model.positions.0." in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"width": 0}, "model.width must be 1 to 65,536, got 0"),
        ({"num_heads": 0}, "model.num_heads must be 1 to 1,024, got 0"),
        ({"mlp_width": -4}, "model.mlp_width must be 1 to 1,048,576, got -4"),
        ({"num_layers": 0}, "model.num_layers must be 1 to 1,024, got 0"),
        ({"head_width": 0}, "model.head_width must be 1 to 65,536, got 0"),
        ({"width": True}, "model.width must be a whole number, 1 to 65,536, got True"),
        ({"width": 30}, "model.width must be a multiple of model.num_heads = 4, got 30"),
    ],
)
def test_sizes_out_of_range_are_refused_with_what_to_type(
    settings: dict[str, int], complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(complaint)) as caught:
        ModelConfig(**settings)
    message = str(caught.value)
    assert "Try --model." in message
    assert "\n" not in message


@pytest.mark.parametrize(("width", "num_heads"), [(30, 4), (3, 4), (100, 7)])
def test_the_width_suggested_is_accepted(width: int, num_heads: int) -> None:
    with pytest.raises(ConfigurationError) as caught:
        ModelConfig(width=width, num_heads=num_heads)
    suggested = re.search(r"--model\.width (\d+)", str(caught.value))
    assert suggested is not None
    ModelConfig(width=int(suggested[1]), num_heads=num_heads)


def test_the_width_of_a_head_is_its_share_of_the_width_unless_configured() -> None:
    assert ModelConfig(width=32, num_heads=4).width_of_head == 8
    assert ModelConfig(width=30, num_heads=4, head_width=5).width_of_head == 5


@pytest.mark.parametrize("name", POSITIONS)
def test_every_named_scheme_makes_a_valid_model_configuration(name: str) -> None:
    assert ModelConfig(positions=POSITIONS[name]).positions == POSITIONS[name]


def test_the_default_is_the_place_relative_scheme_with_a_window() -> None:
    assert ModelConfig().positions == POSITIONS["place-relative"]
    assert ModelConfig().positions[0].window == (0, 1)


def test_all_matrices_begin_with_one_standard_deviation_and_biases_with_0():
    torch.manual_seed(0)
    config = ModelConfig(
        width=64,
        num_layers=2,
        init_std=0.02,
        scaled_residual_init=True,
        positions=POSITIONS["gpt2"],
    )
    model = Transformer(config, vocabulary_size=14)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any(), name
        elif "norm" not in name:
            scaled = name.endswith(("attention.output.weight", "mlp.down.weight"))
            expected = 0.02 / 2 if scaled else 0.02  # 0.02 / sqrt(2 layers × 2)
            assert float(parameter.detach().std()) == pytest.approx(expected, rel=0.1), name


def test_the_epsilon_of_normalisations_and_the_tanh_of_gelu_are_settings():
    config = ModelConfig(norm_epsilon=1e-12, activation="gelu-tanh")
    model = Transformer(config, vocabulary_size=14)
    norms = [module for module in model.modules() if isinstance(module, torch.nn.LayerNorm)]
    assert {norm.eps for norm in norms} == {1e-12}
    x = torch.linspace(-3, 3, 7)
    expected = 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)))
    torch.testing.assert_close(model.blocks[0].mlp.activation(x), expected)
    with pytest.raises(ConfigurationError, match=r"scaled_residual_init scales model\.init_std"):
        ModelConfig(scaled_residual_init=True)
