"""Direct logit attribution: what every part of the model adds to the right answer's lead.

The residual before the head is a sum: the embedding, what every head and every MLP wrote, and
biases. With the divisors of the norms held at their values, the head is linear, so the right
logit minus the runner-up's splits into one contribution for each part, exactly.

    lead = Σ part · (head[right] - head[runner-up])
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from abacist.inspection.cache import ActivationCache, run_with_cache
from abacist.inspection.finding import Array, Finding, array
from abacist.inspection.inspected_problem import InspectedProblem
from abacist.models.block import Block
from abacist.models.hooks import decompose_norm
from abacist.models.transformer import Transformer

Parts = dict[str, Tensor]
"""Summands of the residual at the tokens that predict, float64 (P, D), by name."""

_BIASES = "biases"


@dataclass(frozen=True)
class Attribution(Finding):
    """At the tokens that predict."""

    right: list[str]
    runner_up: list[str]
    """The likeliest wrong token."""
    components: list[str]
    contribution: Array
    """(component, predicting): to the right logit minus the runner-up's."""
    lead: Array
    """(predicting,): the right logit minus the runner-up's; negative where the model is wrong."""


@torch.no_grad()
def attribution(inspected: InspectedProblem) -> Attribution:
    """Contributions that sum to the lead of the right token."""
    model, lines, at = inspected.trained_model.model, inspected.lines, inspected.predicting
    logits, cache = run_with_cache(model, lines.tokens.ids, lines.coordinates)
    right = lines.labels[0, at]
    chosen = _exact(logits[0, at])
    best_wrong = chosen.scatter(-1, right.unsqueeze(-1), -torch.inf).argmax(dim=-1)
    lead = chosen.gather(-1, right.unsqueeze(-1)) - chosen.gather(-1, best_wrong.unsqueeze(-1))
    parts = _summands(model, lines_embedded(inspected), cache, at)
    head = _exact(model.head.weight)
    direction = head[right] - head[best_wrong]
    contribution = {name: (part * direction).sum(dim=-1) for name, part in parts.items()}
    if model.head.bias is not None:
        bias = _exact(model.head.bias)
        contribution[_BIASES] = contribution[_BIASES] + bias[right] - bias[best_wrong]
    names = inspected.trained_model.format.vocabulary.tokens
    return Attribution(
        right=inspected.right,
        runner_up=[names[token] for token in best_wrong.tolist()],
        components=list(contribution),
        contribution=array(torch.stack(list(contribution.values())), "component", "predicting"),
        lead=array(lead.squeeze(-1), "predicting"),
    )


def lines_embedded(inspected: InspectedProblem) -> Tensor:
    """What the first layer is given, and recurrences may be given again, (T, D)."""
    model, lines = inspected.trained_model.model, inspected.lines
    where = model.coordinates_by_scheme(lines.coordinates.to(model.device))
    return model.embed(lines.tokens.ids.to(model.device), where)[:, 0]


def _summands(
    model: Transformer, embedded_TD: Tensor, cache: ActivationCache, at: list[int]
) -> Parts:
    """The summands of what goes into the head, after the final norm."""
    config = model.config
    embedded = _exact(embedded_TD[at])
    zero = torch.zeros_like(embedded)
    parts: Parts = {
        "embedding": embedded if config.initial_state == "input" else zero,
        _BIASES: zero,
    }
    for depth in range(cache.depth):
        if depth % len(model.blocks) == 0:
            parts = _begun(model, parts, embedded)
        block = model.blocks[depth % len(model.blocks)]
        assert isinstance(block, Block)
        label = f"{depth}." if cache.depth > 1 else ""
        output = block.attention.output
        z_PHK = _exact(cache["z", depth][0, at])
        for head, weight_KD in enumerate(torch.split(_exact(output.weight).t(), z_PHK.shape[-1])):
            parts[f"head {label}{head}"] = z_PHK[:, head] @ weight_KD
        parts = _with_bias(parts, output.bias)
        if not block.is_pre_norm:
            before = cache["resid_pre", depth] + cache["attn_out", depth]
            parts = _frozen(block.attention_norm, parts, before[0, at])
        thought = _exact(cache["mlp_out", depth][0, at])
        bias = block.mlp.down.bias
        parts[f"MLP {label}".strip(" .")] = thought if bias is None else thought - _exact(bias)
        parts = _with_bias(parts, bias)
        if not block.is_pre_norm:
            before = cache["resid_mid", depth] + cache["mlp_out", depth]
            parts = _frozen(block.mlp_norm, parts, before[0, at])
    last = cache["resid_post", cache.depth - 1][0, at]
    if not isinstance(model.final_mlp, nn.Identity):
        # Its output replaces the residual, so that nothing else reaches the head directly.
        last = model.final_mlp(last)
        parts = {"final MLP": _exact(last), _BIASES: zero}
    return (
        parts
        if isinstance(model.final_norm, nn.Identity)
        else _frozen(model.final_norm, parts, last)
    )


def _begun(model: Transformer, parts: Parts, embedded: Tensor) -> Parts:
    """The summands when a recurrence begins, which may be given the input again."""
    if model.config.injection == "add":
        return parts | {"embedding": parts["embedding"] + embedded}
    if model.injection is None:
        return parts
    of_state, of_input = _exact(model.injection.mix.weight).t().chunk(2)
    mixed = {name: part @ of_state for name, part in parts.items()}
    return mixed | {"embedding": mixed["embedding"] + embedded @ of_input}


def _with_bias(parts: Parts, bias: Tensor | None) -> Parts:
    return parts if bias is None else parts | {_BIASES: parts[_BIASES] + _exact(bias)}


def _frozen(norm: nn.Module, parts: Mapping[str, Tensor], whole: Tensor) -> Parts:
    """Every summand through a norm whose divisor is that of the whole; the shift is a bias."""
    _, scale, gain, shift = decompose_norm(norm, whole)
    found = {}
    for name, part in parts.items():
        shifted, _, _, _ = decompose_norm(norm, part)
        found[name] = shifted / _exact(scale) * _exact(gain)
    return _with_bias(found, shift)


def _exact(x: Tensor) -> Tensor:
    """In float64 on the CPU: some devices have none."""
    return x.cpu().double()
