"""Attention by one fused kernel, for GPUs.

The kernel computes what position schemes add to a score from the two tokens' coordinates, while it
goes: nothing of size T × T is stored, neither scores nor biases. It is torch's `flex_attention`
(arXiv 2412.05496). On a CPU it runs forward only, uncompiled, which is what tests compare.
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
    BIASING,
    INVISIBLE,
    AlibiBias,
    FireBias,
    RelativeBias,
    buckets,
    distance,
    inside_window,
)

_ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class FusedView:
    """For every query all keys, told apart inside the kernel by their coordinates."""

    schemes: tuple[PositionScheme, ...]
    query: SchemeCoordinates
    """(G, Q)"""
    key: SchemeCoordinates
    """(G, T)"""
    causal: bool


def fused_attention(
    query_QBHK: Tensor,
    key_TBHK: Tensor,
    value_TBHK: Tensor,
    biases: nn.ModuleList,
    view: FusedView,
) -> Tensor:
    """(Q, B, H, K). `biases` are those of the view's biasing schemes, in order; queries are scaled."""
    query, key, value = (x.permute(1, 2, 0, 3) for x in (query_QBHK, key_TBHK, value_TBHK))
    kernel = _kernel(view.schemes, view.causal, query.is_cuda)
    mixed: Tensor = kernel(
        query, key.to(query), value.to(query), score_mod=_score_mod(biases, view), scale=1.0
    )
    return mixed.permute(2, 0, 1, 3)


@lru_cache(maxsize=1)
def _kernel(schemes: tuple[PositionScheme, ...], causal: bool, is_cuda: bool) -> Any:
    """The kernel for models with these schemes, compiled where there is a GPU."""
    # The compiler looks for a kernel it can use again among those of other schemes, whose score
    # functions hold other things, and trips over them (seen in torch 2.13).
    torch.compiler.reset()
    # Lines of many widths come by; without `dynamic` each would compile a kernel of its own.
    return torch.compile(flex_attention, dynamic=True) if is_cuda else flex_attention


def _score_mod(biases: nn.ModuleList, view: FusedView) -> _ScoreMod:
    """What is done to the score of query q and key k of line b in head h."""
    query, key, causal = view.query, view.key, view.causal
    terms = []
    remaining = iter(biases)
    for scheme, query_values, key_values in zip(
        view.schemes, query.values, key.values, strict=True
    ):
        bias = next(remaining) if scheme.encoding in BIASING else None
        of_pair = _bias_of_pair(scheme, bias, query_values, key_values, causal)
        terms.append((scheme, query_values, key_values, of_pair))

    def score_mod(score: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        query_index, key_index = _at(query.index, b, q), _at(key.index, b, k)
        visible = key_index >= 0
        if causal:
            visible = visible & (key_index <= query_index)
        for scheme, query_values, key_values, bias in terms:
            query_value, key_value = _at(query_values, b, q), _at(key_values, b, k)
            inside = inside_window(scheme, query_value, key_value)
            if inside is not None:
                visible = visible & (inside | (key_index == query_index))
            if bias is not None:
                score = score + bias(query_value, key_value, h)
        return torch.where(visible, score, INVISIBLE)

    return score_mod


def _at(values: Tensor, line: Tensor, token: Tensor) -> Tensor:
    """The value of one token; lines that share their coordinates have one row of them."""
    return values[line, token] if len(values) > 1 else values[0, token]


def _bias_of_pair(
    scheme: PositionScheme,
    bias: nn.Module | None,
    query_values: Tensor,
    key_values: Tensor,
    causal: bool,
) -> Callable[[Tensor, Tensor, Tensor], Tensor] | None:
    """What a scheme adds to a score, from the coordinates of its query and key, and the head."""
    if bias is None:
        return None
    if isinstance(bias, AlibiBias):
        slopes = bias.slopes
        assert isinstance(slopes, Tensor)
        return lambda query, key, head: -distance(scheme, query, key) * slopes[head]
    if isinstance(bias, FireBias):
        # Its small network is nothing for the inside of a kernel: all values there are, listed once.
        count = 1 + max(int(values.max()) for values in (query_values, key_values))
        listed = bias.listed(count, count)
        return lambda query, key, head: listed[
            distance(scheme, query, key), query.clamp(min=0), head
        ]
    assert isinstance(bias, RelativeBias)
    table = bias.table
    return lambda query, key, head: table[buckets(scheme, query, key, causal), head]
