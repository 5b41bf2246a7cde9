"""The dense path equals the fast ones, names are those of TransformerLens, hooks replace activations."""

import pytest
import torch

from abacist.errors import ConfigurationError
from abacist.formats.config import PlainFormatConfig
from abacist.inspection.cache import name_of, run_with_cache
from abacist.inspection.inspected_lines import write_lines
from abacist.models.config import POSITIONS, PositionScheme

CASES = {
    **{
        name: {"positions": name}
        for name, schemes in POSITIONS.items()
        if all(scheme.coordinate in PlainFormatConfig.coordinates for scheme in schemes)
    },
    "post-norm": {"norm_order": "post"},
    "rms": {"norm": "rms"},
    "gated": {"activation": "swiglu", "num_layers": 2},
    "sharpened": {"length_scaling": True, "query_key_norm": True},
    "looped": {"num_layers": 2, "recurrences": 3},
    "looped, add": {"recurrences": 3, "injection": "add"},
    "looped, linear": {"recurrences": 3, "injection": "linear", "initial_state": "noise"},
    "looped, sublayers": {"recurrences": 2, "injection": "sublayers", "norm_order": "post"},
    "published Abacus": {"embedding_norm": True, "final_mlp": True, "positions": "abacus"},
    "encoder": {"direction": "both", "format": "parallel"},
    "no final norm": {"final_norm": False},
}


@pytest.fixture(params=CASES.values(), ids=list(CASES))
def inspected(request, random_inspected_problem):
    return random_inspected_problem(**request.param)


def run(inspected, hooks=None, **options):
    lines = inspected.lines
    return run_with_cache(
        inspected.trained_model.model, lines.tokens.ids, lines.coordinates, hooks, **options
    )


def test_the_dense_path_gives_the_logits_of_the_fast_path(inspected):
    model, lines = inspected.trained_model.model, inspected.lines
    logits, _ = run(inspected)
    with torch.no_grad():
        fast = model(lines.tokens.ids, lines.coordinates)
    torch.testing.assert_close(logits, fast, rtol=1e-4, atol=1e-5)
    if model.is_windowed:
        windowed = model(lines.tokens.ids, lines.coordinates, path="windowed")
        torch.testing.assert_close(logits, windowed, rtol=1e-4, atol=1e-5)


def test_a_cache_holds_every_activation_under_its_name(inspected):
    model = inspected.trained_model.model
    _, cache = run(inspected)
    tokens, heads = inspected.lines.tokens.ids.shape[1], model.config.num_heads
    residual = (1, tokens, model.config.width)
    per_head = (1, tokens, heads, model.config.width_of_head)
    shapes = {
        **dict.fromkeys(("resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out"), residual),
        **dict.fromkeys(("q", "k", "v", "z"), per_head),
        **dict.fromkeys(("attn_scores", "pattern"), (1, heads, tokens, tokens)),
        **dict.fromkeys(("pre", "post"), (1, tokens, model.config.mlp_width)),
    }
    assert cache.depth == model.depth
    for depth in range(model.depth):
        for short, shape in shapes.items():
            assert cache[name_of(short, depth)].shape == shape, short
    assert cache["hook_embed"].shape == residual
    if model.config.final_norm:
        assert cache["ln_final.hook_scale"].shape == (1, tokens, 1)
    assert cache["blocks.0.attn.hook_pattern"] is cache["pattern", 0]


def test_attention_rows_sum_to_1_and_mix_the_values(inspected):
    _, cache = run(inspected)
    pattern = cache.stack("pattern")
    torch.testing.assert_close(pattern.sum(dim=-1), torch.ones(pattern.shape[:-1]))
    mixed = torch.einsum("lbhqt,lbthk->lbqhk", pattern, cache.stack("v"))
    torch.testing.assert_close(mixed, cache.stack("z"))


def test_hooks_that_change_nothing_change_nothing(inspected):
    logits, cache = run(inspected)
    hooks = dict.fromkeys(cache.activations, lambda activation: activation.clone())
    again, _ = run(inspected, hooks)
    assert torch.equal(logits, again)


def test_a_hook_on_the_last_residual_replaces_the_input_of_the_unembedding(inspected):
    model = inspected.trained_model.model
    other = torch.randn(1, inspected.lines.tokens.ids.shape[1], model.config.width)
    logits, _ = run(inspected, {name_of("resid_post", model.depth - 1): lambda _: other})
    with torch.no_grad():
        torch.testing.assert_close(logits, model.unembed(other.transpose(0, 1)))


def test_residuals_are_sums_in_pre_norm_models(random_inspected_problem):
    _, cache = run(random_inspected_problem(num_layers=2))
    for depth in range(2):
        middle = cache["resid_pre", depth] + cache["attn_out", depth]
        torch.testing.assert_close(cache["resid_mid", depth], middle)
        last = cache["resid_mid", depth] + cache["mlp_out", depth]
        torch.testing.assert_close(cache["resid_post", depth], last)


def test_there_can_be_more_recurrences_than_in_training(random_inspected_problem):
    inspected = random_inspected_problem(recurrences=2, num_layers=2)
    _, cache = run(inspected, recurrences=5)
    assert cache.depth == 10
    assert cache.stack("pattern").shape[0] == 10


def test_several_vectors_of_positions_have_names_of_their_own(random_inspected_problem):
    schemes = (POSITIONS["gpt2"][0], PositionScheme(encoding="sinusoidal", coordinate="place"))
    _, cache = run(random_inspected_problem(positions=schemes))
    names = ("positions.0.hook_pos_embed", "positions.1.hook_pos_embed")
    total = cache["hook_embed"] + sum(cache[name] for name in names)
    torch.testing.assert_close(cache["resid_pre", 0], total)


def test_keep_selects_activations(random_inspected_problem):
    _, cache = run(random_inspected_problem(), keep=lambda name: name.endswith("hook_z"))
    assert list(cache.activations) == ["blocks.0.attn.hook_z"]


def test_a_cache_lists_its_keys_and_has_a_short_repr(random_inspected_problem):
    _, cache = run(random_inspected_problem(num_layers=2))
    assert list(cache.keys()) == list(cache) == list(cache.activations)
    assert "blocks.1.attn.hook_pattern" in cache
    assert repr(cache) == (
        f"ActivationCache({len(cache)} activations, hook_embed … {list(cache)[-1]}; see keys())"
    )
    _, empty = run(random_inspected_problem(), keep=lambda name: False)
    assert repr(empty) == "ActivationCache(empty)"


def test_a_hook_or_activation_that_does_not_exist_is_refused_with_the_nearest(
    random_inspected_problem,
):
    inspected = random_inspected_problem()
    _, cache = run(inspected)
    with pytest.raises(ConfigurationError, match=r"did you mean 'blocks.0.attn.hook_z'"):
        run(inspected, {"blocks.1.attn.hook_z": lambda z: z})
    with pytest.raises(ConfigurationError, match=r"no activation 'blocks.7.attn.hook_pattern'"):
        cache["pattern", 7]


def test_padding_of_a_batch_receives_no_attention(random_inspected_problem):
    trained_model = random_inspected_problem().trained_model
    problems = trained_model.task.parse(["1+2", "123+456"])
    lines = write_lines(trained_model, problems)
    logits, cache = run_with_cache(trained_model.model, lines.tokens.ids, lines.coordinates)
    alone = write_lines(trained_model, problems[:1])
    own, _ = run_with_cache(trained_model.model, alone.tokens.ids, alone.coordinates)
    short = alone.tokens.ids.shape[1]
    torch.testing.assert_close(logits[:1, :short], own)
    assert float(cache["pattern", 0][0, :, :short, short:].abs().max()) == 0
