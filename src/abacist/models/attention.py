"""Multi-head attention, dense and windowed."""

import torch
from torch import Tensor, nn

from abacist.models.config import ModelConfig
from abacist.models.encodings import BIASING, INVISIBLE, QueryKeyPositions, make_bias
from abacist.models.fused import FusedView, fused_attention
from abacist.models.hooks import ActivationHook, hooked
from abacist.models.views import View

_VECTOR = 16
"""Numbers that a processor with AVX-512 handles at once."""


class Attention(nn.Module):
    """Queries look at the keys of a view; biasing encodings add to the scores."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.num_heads, self.head_width = config.num_heads, config.width_of_head
        inner = self.num_heads * self.head_width
        biases = "queries-keys-values" in config.biases
        self.query = nn.Linear(config.width, inner, bias=biases)
        # Two projections rather than one: splitting a joint one costs a copy forth and back.
        self.key = nn.Linear(config.width, inner, bias=biases)
        self.value = nn.Linear(config.width, inner, bias=biases)
        self.output = nn.Linear(inner, config.width, bias="attention-output" in config.biases)
        self.relative = nn.ModuleList(
            make_bias(scheme, config.num_heads)
            for scheme in config.positions
            if scheme.encoding in BIASING
        )
        self.scale = None
        if config.query_key_norm:
            # Products of vectors of length 1 lie in -1 … 1; this is how sharp attention starts.
            self.scale = nn.Parameter(torch.full((self.num_heads,), self.head_width**0.5))
        self.length_scale = None
        if config.length_scaling:
            self.length_scale = nn.Parameter(torch.full((self.num_heads,), 0.4))
        self.dropout = config.dropout_of("attention")

    def keys_values(
        self,
        x_TBD: Tensor,
        query_key_positions: QueryKeyPositions | None,
        hook: ActivationHook | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Keys and values, (T, B, H, K) each."""
        heads = (self.num_heads, self.head_width)
        key = hooked(hook, "hook_k", self.key(x_TBD).unflatten(-1, heads))
        value = hooked(hook, "hook_v", self.value(x_TBD).unflatten(-1, heads))
        return self._placed(key, query_key_positions), value

    def forward(
        self,
        x_QBD: Tensor,
        key_TBHK: Tensor,
        value_TBHK: Tensor,
        view: View | FusedView,
        query_key_positions: QueryKeyPositions | None,
        hook: ActivationHook | None = None,
    ) -> Tensor:
        """(Q, B, D); `query_key_positions` is that of the queries. With a hook, on the plain path."""
        query = self.query(x_QBD).unflatten(-1, (self.num_heads, self.head_width))
        query = self._placed(hooked(hook, "hook_q", query), query_key_positions)
        scale = self.head_width**-0.5 if self.scale is None else self.scale.unsqueeze(-1)
        query = query * scale
        if isinstance(view, FusedView):
            assert self.length_scale is None, "the fused kernel does not count what is seen"
            mixed = fused_attention(query, key_TBHK, value_TBHK, self.relative, view)
            fused: Tensor = self.output(mixed.flatten(2))
            return fused
        if self.length_scale is not None:
            query = query * self._sharpening(view, self.length_scale).to(query.dtype)
        bias = self._score_bias(view).to(query.dtype)
        dropout = self.dropout if self.training else 0.0
        if hook is not None:
            assert view.columns is None, "a hook needs the dense path"
            mixed = _plain(query, key_TBHK, value_TBHK, bias, hook)
        elif view.columns is None:
            mixed = _dense(query, key_TBHK, value_TBHK, bias, dropout)
        else:
            mixed = _windowed(query, key_TBHK, value_TBHK, bias, view.columns, dropout)
        out: Tensor = self.output(mixed.flatten(2))
        return out

    def largest_score(self, norm: nn.Module) -> float:
        """A bound on the size of any attention score, whatever the tokens; `norm` feeds this layer.

        A normalised vector has a length of at most the root of the width, times the largest
        gain, plus that of the shift; products and biases are bounded by their norms. For models
        whose queries and keys are neither normalised nor added to.
        """
        parts = dict(norm.named_parameters())
        longest = self.query.in_features**0.5 * float(parts["weight"].abs().max())
        if "bias" in parts:
            longest += float(parts["bias"].norm())
        largest: float = self.head_width**-0.5
        for projection in (self.query, self.key):
            length = float(projection.weight.norm()) * longest
            largest *= length + (0.0 if projection.bias is None else float(projection.bias.norm()))
        return largest + sum(float(table.abs().max()) for table in self.relative.parameters())

    def _placed(self, x_TBHK: Tensor, query_key_positions: QueryKeyPositions | None) -> Tensor:
        if query_key_positions is not None:
            x_TBHK = query_key_positions.apply(x_TBHK)
        if self.scale is not None:
            x_TBHK = nn.functional.normalize(x_TBHK, dim=-1)
        return x_TBHK

    def _sharpening(self, view: View, scale_H: Tensor) -> Tensor:
        """(Q, G, H, 1): scalable softmax, s log n for the n tokens a query sees (at least 2)."""
        seen = view.visible.sum(dim=-1).clamp(min=2).t()
        return (seen.unsqueeze(-1).to(scale_H.dtype).log() * scale_H).unsqueeze(-1)

    def _score_bias(self, view: View) -> Tensor:
        """(G, Q, S or T, H): what the position schemes add; INVISIBLE where nothing is seen."""
        mask = torch.where(view.visible, 0.0, INVISIBLE).unsqueeze(-1)
        for relative, pairs in zip(self.relative, view.pairs, strict=True):
            mask = mask + relative(pairs)
        return mask


def _plain(
    query_QBHK: Tensor,
    key_TBHK: Tensor,
    value_TBHK: Tensor,
    bias_GQTH: Tensor,
    hook: ActivationHook,
) -> Tensor:
    """Attention as it is written in papers, with everything on the way shown to the hook."""
    scores = torch.einsum("qbhk,tbhk->bhqt", query_QBHK, key_TBHK)
    scores = hook("hook_attn_scores", scores + bias_GQTH.permute(0, 3, 1, 2))
    pattern = hook("hook_pattern", scores.softmax(dim=-1))
    return hook("hook_z", torch.einsum("bhqt,tbhk->qbhk", pattern, value_TBHK))


def _dense(
    query_QBHK: Tensor, key_TBHK: Tensor, value_TBHK: Tensor, bias_GQTH: Tensor, dropout: float
) -> Tensor:
    (num_queries, batch, heads, _), num_keys = query_QBHK.shape, len(key_TBHK)
    # Lines and heads side by side make one batch of products, by strides alone.
    query, key, value = (
        x.flatten(1, 2).transpose(0, 1) for x in (query_QBHK, key_TBHK, value_TBHK)
    )
    scores = torch.bmm(query, key.transpose(1, 2)).view(batch, heads, num_queries, num_keys)
    # In place, which saves a tensor as large as the scores; in order, five times as fast.
    pattern = _softmax(scores.add_(bias_GQTH.permute(0, 3, 1, 2).contiguous()))
    if dropout:
        pattern = nn.functional.dropout(pattern, dropout)
    mixed = torch.bmm(pattern.flatten(0, 1), value)
    return mixed.transpose(0, 1).view(num_queries, batch, heads, -1)


def _softmax(scores_BHQT: Tensor) -> Tensor:
    """Attention patterns. Short rows are handled by hand where no gradient is wanted.

    torch's own kernel takes 20 ns a number where a row does not fill a vector, four times as long.
    """
    if scores_BHQT.shape[-1] >= _VECTOR or torch.is_grad_enabled():
        return scores_BHQT.softmax(dim=-1)
    weights = scores_BHQT.sub_(scores_BHQT.amax(dim=-1, keepdim=True)).exp_()
    return weights.div_(weights.sum(dim=-1, keepdim=True))


def _windowed(
    query_QBHK: Tensor,
    key_TBHK: Tensor,
    value_TBHK: Tensor,
    bias_GQSH: Tensor,
    columns_GQS: Tensor,
    dropout: float,
) -> Tensor:
    keys, values = _picked(key_TBHK, columns_GQS), _picked(value_TBHK, columns_GQS)
    scores = (query_QBHK.unsqueeze(1) * keys).sum(dim=-1)
    pattern = (scores + bias_GQSH.permute(1, 2, 0, 3)).softmax(dim=1)
    if dropout:
        pattern = nn.functional.dropout(pattern, dropout)
    return (pattern.unsqueeze(-1) * values).sum(dim=1)


def _picked(x_TBHK: Tensor, columns_GQS: Tensor) -> Tensor:
    """The keys or values of each query's columns, (Q, S, B, H, K)."""
    if len(columns_GQS) == 1:
        # Lines that share their columns are copied side by side, several times as fast.
        queries, slots = columns_GQS.shape[1:]
        picked = x_TBHK.index_select(0, columns_GQS.flatten())
        return picked.view(queries, slots, *x_TBHK.shape[1:])
    line = torch.arange(x_TBHK.shape[1], device=columns_GQS.device)
    return x_TBHK[columns_GQS.permute(1, 2, 0), line]
