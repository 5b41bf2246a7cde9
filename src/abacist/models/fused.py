"""Attention by one fused kernel, for GPUs.

The kernel computes the position schemes' biases from the coordinates of query and key while it
runs, so nothing of size T × T is stored, neither scores nor biases. It is torch's `flex_attention`
(arXiv 2412.05496). On a CPU it runs forward only and uncompiled, which is what tests compare.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import flex_attention

from abacist.models.config import PositionScheme
from abacist.models.coordinates import SchemeCoordinates
from abacist.models.encodings import (
    INVISIBLE,
    AlibiBias,
    CoordinateBias,
    DifferenceBias,
    FireBias,
    RelativeBias,
    buckets,
    distance,
    inside_window,
)

_ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class FusedView:
    """Pairs every query with every key; the kernel itself finds from coordinates which attend."""

    schemes: tuple[PositionScheme, ...]
    query: SchemeCoordinates
    """Coordinates of the queries, (G, Q)."""
    key: SchemeCoordinates
    """Coordinates of the keys, (G, T)."""
    causal: bool
    """Whether queries see only keys up to their own index."""


def fused_attention(
    query_QBHK: Tensor,
    key_TBHK: Tensor,
    value_TBHK: Tensor,
    biases: nn.ModuleList,
    view: FusedView,
) -> Tensor:
    """Return attention's mixed values, (Q, B, H, K).

    Args:
        query_QBHK: queries, already multiplied by the scale of scores.
        key_TBHK: keys.
        value_TBHK: values.
        biases: one module for each biasing scheme of the view, in their order.
        view: the coordinates of queries and keys.
    """
    query, key, value = (x.permute(1, 2, 0, 3) for x in (query_QBHK, key_TBHK, value_TBHK))
    kernel = _kernel(view.schemes, view.causal, query.is_cuda)
    z_BHQK: Tensor = kernel(
        query, key.to(query), value.to(query), score_mod=_score_mod(biases, view), scale=1.0
    )
    return z_BHQK.permute(2, 0, 1, 3)


@lru_cache(maxsize=1)
def _kernel(schemes: tuple[PositionScheme, ...], causal: bool, is_cuda: bool) -> Any:
    """Return the kernel for models with these schemes, compiled where there is a GPU."""
    # The compiler tries to reuse kernels compiled for other schemes, whose score functions refer
    # to other tensors, and fails (seen in torch 2.13).
    torch.compiler.reset()
    # Batches differ in their number of tokens; without `dynamic`, each would compile a new kernel.
    return torch.compile(flex_attention, dynamic=True) if is_cuda else flex_attention


def _score_mod(biases: nn.ModuleList, view: FusedView) -> _ScoreMod:
    """Return the function that adds biases to a score and hides it where the pair is invisible.

    The kernel calls it with a score and the numbers of its line, head, query and key.
    """
    query, key, causal = view.query, view.key, view.causal
    terms = []
    remaining = iter(biases)
    for scheme, query_values, key_values in zip(
        view.schemes, query.values, key.values, strict=True
    ):
        module = next(remaining) if scheme.adds == "bias" else None
        bias = _pair_bias(scheme, module, query_values, key_values, causal)
        terms.append((scheme, query_values, key_values, bias))

    def score_mod(score: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        query_index, key_index = _value(query.index, b, q), _value(key.index, b, k)
        visible = key_index >= 0
        if causal:
            visible = visible & (key_index <= query_index)
        for scheme, query_values, key_values, bias in terms:
            query_value, key_value = _value(query_values, b, q), _value(key_values, b, k)
            inside = inside_window(scheme, query_value, key_value)
            if inside is not None:
                visible = visible & (inside | (key_index == query_index))
            if bias is not None:
                score = score + bias(query_value, key_value, h)
        return torch.where(visible, score, INVISIBLE)

    return score_mod


def _value(values_GT: Tensor, line: Tensor, token: Tensor) -> Tensor:
    """Return the coordinate of one token of one line."""
    return values_GT[line, token] if len(values_GT) > 1 else values_GT[0, token]


def _pair_bias(
    scheme: PositionScheme,
    module: nn.Module | None,
    query_values: Tensor,
    key_values: Tensor,
    causal: bool,
) -> Callable[[Tensor, Tensor, Tensor], Tensor] | None:
    """Return a scheme's bias as a function of a query's coordinate, a key's, and a head's number.

    `query_values`, (G, Q), and `key_values`, (G, T), are all coordinates that can occur.
    """
    if module is None:
        return None
    if isinstance(module, AlibiBias):
        slopes = module.slopes
        assert isinstance(slopes, Tensor)
        return lambda query, key, head: -distance(scheme, query, key) * slopes[head]
    if isinstance(module, RelativeBias):
        table = module.table
        return lambda query, key, head: table[buckets(scheme, query, key, causal), head]
    # What is calculated by a small network, or by an extension, cannot run inside a kernel, so its
    # values are tabulated first.
    count = 1 + max(0, *(int(values.max()) for values in (query_values, key_values)))
    if isinstance(module, FireBias):
        tabulated = module.tabulate(count, count)
        return lambda query, key, head: tabulated[
            distance(scheme, query, key), query.clamp(min=0), head
        ]
    if isinstance(module, DifferenceBias):
        low, high = scheme.window or (1 - count, count - 1)
        by_difference = module(torch.arange(low, high + 1, device=query_values.device))
        return lambda query, key, head: by_difference[
            module.inputs(scheme, query, key, causal) - low, head
        ]
    assert isinstance(module, CoordinateBias)
    values = torch.arange(count, device=query_values.device)
    pairs = torch.stack(torch.meshgrid(values, values, indexing="ij"), dim=-1)
    by_pair = module(pairs)
    return lambda query, key, head: by_pair[query.clamp(min=0), key.clamp(min=0), head]
