"""Bounds on rounding: they enclose the real function, and hold for implementations that differ."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from abacist import extensions
from abacist.certificates import certificate as check
from abacist.certificates.enclosures import BFLOAT16, FLOAT32, FLOAT64, TF32, Enclosure
from abacist.certificates.norm_jacobian import NormAt
from abacist.certificates.receptive_fields import NotProvable
from abacist.certificates.rounding import BoundedModel
from abacist.configuration import override
from abacist.models.attention_tables import AttentionTables, suits_tables
from abacist.models.config import ModelConfig
from abacist.models.id_cache import ShortLines
from abacist.recipes import find
from abacist.runs.run import build_model, build_problems

RECIPES = {
    "layer norm and GELU": ("add", {}),
    "rms norm and ReLU": ("add-tiny", {"model.activation": "relu"}),
    "gated": ("add", {"model.activation": "swiglu", "model.mlp_width": "16"}),
    "two layers": ("add", {"model.num_layers": 2, "model.width": 8, "model.mlp_width": 8}),
    "rows": ("subtract", {"model.width": 8, "model.mlp_width": 16}),
}


class Setting:
    """A model with random weights, one of its patterns, and some contexts of it."""

    def __init__(self, recipe_name, settings):
        recipe = override(find(recipe_name), settings)
        torch.manual_seed(0)
        self.model = build_model(recipe).eval()
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter += 0.2 * torch.randn_like(parameter)
        self.exact = check._double_copy(self.model)
        task, format = build_problems(recipe)
        parts = [part for part, _ in check._enumeration(self.exact, task, format, 1e9).parts()]
        largest = max(parts, key=lambda part: len(part[0].pattern.tokens))
        self.pattern = largest[0].pattern
        ids, target, _ = check._distinct(largest)
        chosen = torch.randperm(len(ids), generator=torch.Generator().manual_seed(0))[:60]
        self.ids, self.target = ids[chosen], target[chosen]


@pytest.fixture(scope="module", params=RECIPES)
def setting(request):
    return Setting(*RECIPES[request.param])


def test_the_bounded_model_computes_the_logits_of_the_model(setting):
    logits = BoundedModel(setting.exact).logits(setting.pattern, setting.ids)
    plain = check._logits(setting.exact, setting.pattern, setting.ids)
    torch.testing.assert_close(logits.value, plain, rtol=1e-11, atol=1e-11)
    assert float(logits.own.max()) < 1e-6


@pytest.mark.parametrize("path", ["dense", "windowed"])
def test_every_path_of_the_model_stays_within_the_bounds(setting, path):
    logits = BoundedModel(setting.exact).logits(setting.pattern, setting.ids)
    single = check._logits(setting.model, setting.pattern, setting.ids, path)
    assert bool(((single - logits.value).abs() <= logits.own + logits.error).all())


def test_generation_by_tables_stays_within_the_bounds(setting):
    if not suits_tables(setting.model):
        pytest.skip("tables serve models with one layer")
    bounded = BoundedModel(setting.exact)
    logits = bounded.logits(setting.pattern, setting.ids)
    coordinates = setting.model.coordinates_by_scheme(setting.pattern.coordinates)
    tables, length = AttentionTables(setting.model), torch.tensor([setting.ids.shape[1]])
    with torch.no_grad():
        single = torch.cat(
            [
                ShortLines(tables, coordinates, 1).prefill(row, length)
                for row in setting.ids.split(1)
            ]
        ).double()
    assert bool(((single - logits.value).abs() <= logits.own + logits.error).all())


def test_biases_of_an_extension_stay_within_the_bounds(registries_as_before):
    extensions.load(str(Path(__file__).parents[2] / "examples" / "log_cpb.py"))
    setting = Setting("add", {"model.positions": "log-cpb", "model.width": 8, "model.mlp_width": 8})
    logits = BoundedModel(setting.exact).logits(setting.pattern, setting.ids)
    single = check._logits(setting.model, setting.pattern, setting.ids)
    assert bool(((single - logits.value).abs() <= logits.own + logits.error).all())
    assert bool((logits.own < 1e-9).all()), "the code's own numbers are those of the function"
    assert bool((logits.error > 100 * 2.0**-24).all()), (
        "the assumption about biases is in the bound"
    )


def test_margins_in_float32_lose_no_more_than_the_bound(setting):
    bound = BoundedModel(setting.exact).margins(setting.pattern, setting.ids, setting.target)
    logits = check._logits(setting.model, setting.pattern, setting.ids)
    right = setting.target.unsqueeze(1)
    others = logits.scatter(1, right, -torch.inf).amax(dim=1)
    margin = logits.gather(1, right).squeeze(1) - others
    assert bool((margin >= bound.implemented).all())
    assert bool((bound.real <= bound.computed).all())


def test_the_smallest_margin_is_bounded_as_closely_where_others_are_large_enough(setting):
    bounded = BoundedModel(setting.exact)
    target = bounded.logits(setting.pattern, setting.ids).value.argmax(dim=1)
    close = bounded.margins(setting.pattern, setting.ids, target)
    enough = float(close.implemented.median())
    quick = bounded.margins(setting.pattern, setting.ids, target, enough)
    assert bool((quick.implemented <= close.implemented).all())
    below = quick.implemented < enough
    torch.testing.assert_close(quick.implemented[below], close.implemented[below])
    assert float(quick.implemented.min()) == pytest.approx(float(close.implemented.min()))


def test_the_bounds_hold_for_weights_at_the_worst_places_of_their_rounding(setting):
    """Rounding each weight up or down by half an ulp is a worst case that float32 might act like."""
    bound = BoundedModel(setting.exact).margins(setting.pattern, setting.ids, setting.target)
    generator = torch.Generator().manual_seed(1)
    disturbed = check._double_copy(setting.model)
    with torch.no_grad():
        for linear in (m for m in disturbed.modules() if isinstance(m, torch.nn.Linear)):
            sign = torch.randint(0, 2, linear.weight.shape, generator=generator) * 2.0 - 1
            linear.weight *= 1 + sign * FLOAT32.unit
    logits = check._logits(disturbed, setting.pattern, setting.ids)
    right = setting.target.unsqueeze(1)
    margin = logits.gather(1, right) - logits.scatter(1, right, -torch.inf).amax(1, keepdim=True)
    assert bool((margin.squeeze(1) >= bound.implemented).all())


@torch.no_grad()
def test_lower_precisions_lose_more(setting):
    def worst(precision):
        bounded = BoundedModel(setting.exact, precision)
        error = bounded._before_last_mlp(setting.pattern, setting.ids).error
        return float(error.nan_to_num(nan=torch.inf).max())

    assert worst(FLOAT32) < worst(TF32) <= worst(BFLOAT16)


@pytest.mark.parametrize("norm", [torch.nn.LayerNorm(6), torch.nn.RMSNorm(6, eps=1e-6)], ids=str)
def test_the_jacobian_of_a_norm_and_its_remainder_enclose_changed_inputs(norm):
    norm = norm.double().requires_grad_(False)
    norm.weight += torch.arange(6) / 3
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(200, 6, generator=generator, dtype=torch.float64)
    error = 0.05 * torch.rand(200, 6, generator=generator, dtype=torch.float64)
    change = error * (2 * torch.rand(200, 6, generator=generator, dtype=torch.float64) - 1)
    near = NormAt(norm, x)
    jacobian = near.before(torch.eye(6, dtype=torch.float64).expand(200, -1, -1))
    linear = (jacobian @ change.unsqueeze(-1)).squeeze(-1)
    left_out = (norm(x + change) - norm(x) - linear).abs()
    assert bool((left_out <= near.remainder(error)).all())
    passed_on = (jacobian.abs() @ error.unsqueeze(-1)).squeeze(-1)
    assert bool((passed_on <= near.passed_on(error) * (1 + 1e-12)).all())
    # The remainder is of second order, so it is no more than a few times what it bounds.
    assert float(near.remainder(error).max()) < 20 * float(left_out.max())


@torch.no_grad()
def test_own_bounds_enclose_arithmetic_of_higher_precision(setting):
    """The head in extended precision: what float64 computes is within its own bound."""
    bounded = BoundedModel(setting.exact)
    resid = bounded._before_last_mlp(setting.pattern, setting.ids)
    normed = bounded._norm(setting.exact.final_norm, resid)
    computed = bounded._linear(normed, setting.exact.head)
    weight = setting.exact.head.weight.detach().numpy().astype(np.longdouble)
    longer = normed.value.numpy().astype(np.longdouble) @ weight.T
    if setting.exact.head.bias is not None:
        longer = longer + setting.exact.head.bias.detach().numpy().astype(np.longdouble)
    difference = np.abs(longer - computed.value.numpy().astype(np.longdouble))
    assert bool((difference <= computed.own.numpy()).all())


@pytest.mark.parametrize("precision", [FLOAT64, FLOAT32], ids=lambda precision: precision.name)
@pytest.mark.parametrize("operations", [1, 2, 100])
def test_roundings_count_in_every_precision(precision, operations):
    """In float64, 1 plus the unit roundoff of float64 is 1."""
    assert precision.elementwise(operations) >= operations * precision.unit
    assert precision.gamma(operations) >= (operations + 1) * precision.unit


def test_numbers_that_float64_loses_are_within_its_own_bound():
    """1e20 + b - 1e20 is b in real numbers, and 0 in float64."""
    bounded = BoundedModel(SimpleNamespace(config=ModelConfig()))
    large, small = (Enclosure.exact(torch.tensor([value])) for value in (1e20, 1.0))
    minus_large = Enclosure.exact(torch.tensor([-1e20]))
    difference = bounded._add(bounded._add(large, small), minus_large)
    assert float(difference.value) == 0
    assert float(difference.own) >= 1


@torch.no_grad()
@pytest.mark.parametrize("num_dimensions", [8, 512, 32_768])
def test_values_may_go_through_the_output_matrix_first(num_dimensions):
    """Two values that cancel in the mixture leave the rounding of their own products."""
    generator = torch.Generator().manual_seed(0)
    first = torch.rand(num_dimensions, generator=generator) + 0.5
    values = torch.stack([first, -first]).view(1, 2, 1, num_dimensions)
    output = torch.nn.Linear(num_dimensions, 1, bias=False)
    output.weight.uniform_(0.5, 1.5, generator=generator)
    weights = torch.full((1, 1, 2, 1), 0.5)
    bounded = BoundedModel(SimpleNamespace(config=ModelConfig()))
    mixed = bounded._mix(Enclosure.exact(weights), Enclosure.exact(values), output.double())
    products = [
        _sequential_sum(0.5 * (value * output.weight[0].float())) for value in values[0, :, 0]
    ]
    assert abs(products[0] + products[1] - float(mixed.value)) <= float(mixed.error)
    # The rounding of each product alone.
    one = _sequential_sum(values[0, 0, 0] * output.weight[0].float())
    exact = float((values[0, 0, 0].double() * output.weight[0]).sum())
    assert 0.5 * abs(one - exact) <= float(mixed.error)


def _sequential_sum(numbers):
    """Add float32 numbers one after the other, the worst order that an implementation may choose."""
    total = np.float32(0)
    for number in numbers.numpy():
        total = np.float32(total + number)
    return float(total)


def test_sums_too_long_for_a_precision_are_refused():
    with pytest.raises(
        NotProvable, match="sums of 10,000,000 terms are too long for a bound in float32"
    ):
        FLOAT32.gamma(10_000_000)
