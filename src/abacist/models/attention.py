"""Multi-head attention, dense and windowed."""

import torch
from torch import Tensor, nn

from abacist.models.config import ModelConfig
from abacist.models.encodings import INVISIBLE, RelativeBias
from abacist.models.views import View


class Attention(nn.Module):
    """Queries look at the keys of a view; relative encodings add to the scores."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.num_heads, self.head_width = config.num_heads, config.width_of_head
        inner = self.num_heads * self.head_width
        self.query = nn.Linear(config.width, inner, bias=config.biases)
        # Two projections rather than one: splitting a joint one costs a copy forth and back.
        self.key = nn.Linear(config.width, inner, bias=config.biases)
        self.value = nn.Linear(config.width, inner, bias=config.biases)
        self.output = nn.Linear(inner, config.width, bias=config.biases)
        self.relative = nn.ModuleList(
            RelativeBias(scheme, config.num_heads)
            for scheme in config.positions
            if scheme.encoding == "relative"
        )

    def keys_values(self, x_TBD: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values, (T, B, H, K) each."""
        heads = (self.num_heads, self.head_width)
        return self.key(x_TBD).unflatten(-1, heads), self.value(x_TBD).unflatten(-1, heads)

    def forward(self, x_QBD: Tensor, key_TBHK: Tensor, value_TBHK: Tensor, view: View) -> Tensor:
        """(Q, B, D)"""
        query = self.query(x_QBD).unflatten(-1, (self.num_heads, self.head_width))
        query = query * self.head_width**-0.5
        bias = self._score_bias(view).to(query.dtype)
        if view.columns is None:
            mixed = _dense(query, key_TBHK, value_TBHK, bias)
        else:
            mixed = _windowed(query, key_TBHK, value_TBHK, bias, view.columns)
        out: Tensor = self.output(mixed.flatten(2))
        return out

    def largest_score(self, norm: nn.Module) -> float:
        """A bound on the size of any attention score, whatever the tokens; `norm` feeds this layer.

        A normalised vector has a length of at most the root of the width, times the largest
        gain, plus that of the shift; products and biases are bounded by their norms.
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

    def _score_bias(self, view: View) -> Tensor:
        """(G, Q, S or T, H): what the position schemes add; INVISIBLE where nothing is seen."""
        mask = torch.where(view.visible, 0.0, INVISIBLE).unsqueeze(-1)
        for relative, buckets in zip(self.relative, view.buckets, strict=True):
            mask = mask + relative(buckets)
        return mask


def _dense(query_QBHK: Tensor, key_TBHK: Tensor, value_TBHK: Tensor, bias_GQTH: Tensor) -> Tensor:
    (num_queries, batch, heads, _), num_keys = query_QBHK.shape, len(key_TBHK)
    # Lines and heads side by side make one batch of products, by strides alone.
    query, key, value = (
        x.flatten(1, 2).transpose(0, 1) for x in (query_QBHK, key_TBHK, value_TBHK)
    )
    scores = torch.bmm(query, key.transpose(1, 2)).view(batch, heads, num_queries, num_keys)
    pattern = (scores + bias_GQTH.permute(0, 3, 1, 2)).softmax(dim=-1)
    mixed = torch.bmm(pattern.flatten(0, 1), value)
    return mixed.transpose(0, 1).view(num_queries, batch, heads, -1)


def _windowed(
    query_QBHK: Tensor,
    key_TBHK: Tensor,
    value_TBHK: Tensor,
    bias_GQSH: Tensor,
    columns_GQS: Tensor,
) -> Tensor:
    columns_QSG = columns_GQS.permute(1, 2, 0)
    line = torch.arange(query_QBHK.shape[1], device=columns_GQS.device)
    keys, values = key_TBHK[columns_QSG, line], value_TBHK[columns_QSG, line]
    scores = (query_QBHK.unsqueeze(1) * keys).sum(dim=-1)
    pattern = (scores + bias_GQSH.permute(1, 2, 0, 3)).softmax(dim=1)
    return (pattern.unsqueeze(-1) * values).sum(dim=1)
