"""Multi-head attention, dense and windowed."""

import torch
from torch import Tensor, nn

from abacist.models.config import ModelConfig
from abacist.models.encodings import BIASING, INVISIBLE, Placement, make_bias
from abacist.models.views import View


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
        self.dropout = config.dropout

    def keys_values(self, x_TBD: Tensor, placement: Placement | None) -> tuple[Tensor, Tensor]:
        """Keys and values, (T, B, H, K) each."""
        heads = (self.num_heads, self.head_width)
        key = self._placed(self.key(x_TBD).unflatten(-1, heads), placement)
        return key, self.value(x_TBD).unflatten(-1, heads)

    def forward(
        self,
        x_QBD: Tensor,
        key_TBHK: Tensor,
        value_TBHK: Tensor,
        view: View,
        placement: Placement | None,
    ) -> Tensor:
        """(Q, B, D); `placement` is that of the queries."""
        query = self.query(x_QBD).unflatten(-1, (self.num_heads, self.head_width))
        query = self._placed(query, placement)
        scale = self.head_width**-0.5 if self.scale is None else self.scale.unsqueeze(-1)
        query = query * scale
        if self.length_scale is not None:
            query = query * self._sharpening(view, self.length_scale).to(query.dtype)
        bias = self._score_bias(view).to(query.dtype)
        dropout = self.dropout if self.training else 0.0
        if view.columns is None:
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

    def _placed(self, x_TBHK: Tensor, placement: Placement | None) -> Tensor:
        if placement is not None:
            x_TBHK = placement.apply(x_TBHK)
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


def _dense(
    query_QBHK: Tensor, key_TBHK: Tensor, value_TBHK: Tensor, bias_GQTH: Tensor, dropout: float
) -> Tensor:
    (num_queries, batch, heads, _), num_keys = query_QBHK.shape, len(key_TBHK)
    # Lines and heads side by side make one batch of products, by strides alone.
    query, key, value = (
        x.flatten(1, 2).transpose(0, 1) for x in (query_QBHK, key_TBHK, value_TBHK)
    )
    scores = torch.bmm(query, key.transpose(1, 2)).view(batch, heads, num_queries, num_keys)
    pattern = (scores + bias_GQTH.permute(0, 3, 1, 2)).softmax(dim=-1)
    if dropout:
        pattern = nn.functional.dropout(pattern, dropout)
    mixed = torch.bmm(pattern.flatten(0, 1), value)
    return mixed.transpose(0, 1).view(num_queries, batch, heads, -1)


def _windowed(
    query_QBHK: Tensor,
    key_TBHK: Tensor,
    value_TBHK: Tensor,
    bias_GQSH: Tensor,
    columns_GQS: Tensor,
    dropout: float,
) -> Tensor:
    if len(columns_GQS) == 1:
        # All lines see alike: whole slices are copied, and their gradients added.
        shared = columns_GQS.flatten()
        shape = (*columns_GQS.shape[1:], *key_TBHK.shape[1:])
        keys, values = (x.index_select(0, shared).view(shape) for x in (key_TBHK, value_TBHK))
    else:
        columns_QSG = columns_GQS.permute(1, 2, 0)
        line = torch.arange(query_QBHK.shape[1], device=columns_GQS.device)
        keys, values = key_TBHK[columns_QSG, line], value_TBHK[columns_QSG, line]
    scores = (query_QBHK.unsqueeze(1) * keys).sum(dim=-1)
    pattern = (scores + bias_GQSH.permute(1, 2, 0, 3)).softmax(dim=1)
    if dropout:
        pattern = nn.functional.dropout(pattern, dropout)
    return (pattern.unsqueeze(-1) * values).sum(dim=1)
