"""Direct logit attribution: what every component contributes to the lead of the right token.

The residual before the unembedding is a sum of the embedding, the outputs of all heads and MLPs, and
biases. With the divisors of the norms held at their values, the logits are linear in this sum, so
the right logit minus the runner-up's is exactly the sum of one contribution per component.

    lead = Σ component · (unembedding[right] - unembedding[runner-up])
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from abacist.inspection.ablation import component_label
from abacist.inspection.cache import ActivationCache, run_with_cache
from abacist.inspection.finding import Array, Finding, array
from abacist.inspection.inspected_problem import InspectedProblem
from abacist.models.block import Block
from abacist.models.hooks import decompose_norm
from abacist.models.transformer import Transformer

Summands = dict[str, Tensor]
"""Summands of the residual at the tokens that predict, float64 (A, D), by component."""

_BIASES = "biases"


@dataclass(frozen=True)
class Attribution(Finding):
    """Contributions of all components at the tokens that predict."""

    right: list[str]
    runner_up: list[str]
    """The likeliest wrong token."""
    components: list[str]
    contribution: Array
    """(component, predicting): contribution to the right logit minus the runner-up's."""
    lead: Array
    """(predicting,): the right logit minus the runner-up's; negative where the model is wrong."""


@torch.no_grad()
def attribution(inspected: InspectedProblem) -> Attribution:
    """Return contributions that sum to the lead of the right token."""
    model, lines = inspected.trained_model.model, inspected.lines
    predicting = inspected.predicting
    logits, cache = run_with_cache(model, lines.tokens.ids, lines.coordinates)
    right = lines.labels[0, predicting]
    logits_AV = _exact(logits[0, predicting])
    best_wrong = logits_AV.scatter(-1, right.unsqueeze(-1), -torch.inf).argmax(dim=-1)
    lead = logits_AV.gather(-1, right.unsqueeze(-1)) - logits_AV.gather(
        -1, best_wrong.unsqueeze(-1)
    )
    summands = _summands(model, embedded_line(inspected), cache, predicting)
    unembedding = _exact(model.head.weight)
    direction = unembedding[right] - unembedding[best_wrong]
    contribution = {name: (summand * direction).sum(dim=-1) for name, summand in summands.items()}
    if model.head.bias is not None:
        bias = _exact(model.head.bias)
        contribution[_BIASES] = contribution[_BIASES] + bias[right] - bias[best_wrong]
    names = inspected.trained_model.format.vocabulary.tokens
    return Attribution(
        right=inspected.right_tokens,
        runner_up=[names[token] for token in best_wrong.tolist()],
        components=list(contribution),
        contribution=array(torch.stack(list(contribution.values())), "component", "predicting"),
        lead=array(lead.squeeze(-1), "predicting"),
    )


def embedded_line(inspected: InspectedProblem) -> Tensor:
    """Return the embedded input (T, D), which goes into the first layer and perhaps every recurrence."""
    model, lines = inspected.trained_model.model, inspected.lines
    coordinates = model.coordinates_by_scheme(lines.coordinates.to(model.device))
    return model.embed(lines.tokens.ids.to(model.device), coordinates)[:, 0]


def _summands(
    model: Transformer, embedded_TD: Tensor, cache: ActivationCache, predicting: list[int]
) -> Summands:
    """Return the summands of the input of the unembedding, after the final norm."""
    config = model.config
    embedded = _exact(embedded_TD[predicting])
    zero = torch.zeros_like(embedded)
    summands: Summands = {
        "embedding": embedded if config.initial_state == "input" else zero,
        _BIASES: zero,
    }
    for depth in range(cache.depth):
        if depth % len(model.blocks) == 0:
            summands = _begin_recurrence(model, summands, embedded)
        block = model.blocks[depth % len(model.blocks)]
        assert isinstance(block, Block)
        output = block.attention.output
        z_AHK = _exact(cache["z", depth][0, predicting])
        for head, weight_KD in enumerate(torch.split(_exact(output.weight).t(), z_AHK.shape[-1])):
            summands[component_label("head", depth, cache.depth, head)] = z_AHK[:, head] @ weight_KD
        summands = _with_bias(summands, output.bias)
        if not block.is_pre_norm:
            before = cache["resid_pre", depth] + cache["attn_out", depth]
            summands = _frozen(block.attention_norm, summands, before[0, predicting])
        mlp_out = _exact(cache["mlp_out", depth][0, predicting])
        bias = block.mlp.down.bias
        label = component_label("MLP", depth, cache.depth)
        summands[label] = mlp_out if bias is None else mlp_out - _exact(bias)
        summands = _with_bias(summands, bias)
        if not block.is_pre_norm:
            before = cache["resid_mid", depth] + cache["mlp_out", depth]
            summands = _frozen(block.mlp_norm, summands, before[0, predicting])
    last = cache["resid_post", cache.depth - 1][0, predicting]
    if not isinstance(model.final_mlp, nn.Identity):
        # Its output replaces the residual, so nothing else reaches the unembedding directly.
        last = model.final_mlp(last)
        summands = {"final MLP": _exact(last), _BIASES: zero}
    return (
        summands
        if isinstance(model.final_norm, nn.Identity)
        else _frozen(model.final_norm, summands, last)
    )


def _begin_recurrence(model: Transformer, summands: Summands, embedded: Tensor) -> Summands:
    """Return the summands at the beginning of a recurrence, which may inject the input again."""
    if model.config.injection == "add":
        return summands | {"embedding": summands["embedding"] + embedded}
    if model.injection is None:
        return summands
    of_state, of_input = _exact(model.injection.mix.weight).t().chunk(2)
    mixed = {name: summand @ of_state for name, summand in summands.items()}
    return mixed | {"embedding": mixed["embedding"] + embedded @ of_input}


def _with_bias(summands: Summands, bias: Tensor | None) -> Summands:
    if bias is None:
        return summands
    return summands | {_BIASES: summands[_BIASES] + _exact(bias)}


def _frozen(norm: nn.Module, summands: Mapping[str, Tensor], total: Tensor) -> Summands:
    """Apply a norm to every summand with the divisor of their total; its shift becomes a bias."""
    _, scale, gain, shift = decompose_norm(norm, total)
    scaled = {}
    for name, summand in summands.items():
        centred, _, _, _ = decompose_norm(norm, summand)
        scaled[name] = centred / _exact(scale) * _exact(gain)
    return _with_bias(scaled, shift)


def _exact(x: Tensor) -> Tensor:
    """Return a float64 copy on the CPU, because some devices have no float64."""
    return x.cpu().double()
