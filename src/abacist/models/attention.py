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

    def keys_values(self, x_BTD: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values, (B, T, H, K) each."""
        heads = (self.num_heads, self.head_width)
        return self.key(x_BTD).unflatten(-1, heads), self.value(x_BTD).unflatten(-1, heads)

    def forward(self, x_BQD: Tensor, key_BTHK: Tensor, value_BTHK: Tensor, view: View) -> Tensor:
        """(B, Q, D)"""
        query = self.query(x_BQD).unflatten(-1, (self.num_heads, self.head_width))
        query = query * self.head_width**-0.5
        bias = self._score_bias(view).to(query.dtype)
        if view.columns is None:
            mixed = _dense(query, key_BTHK, value_BTHK, bias)
        else:
            mixed = _windowed(query, key_BTHK, value_BTHK, bias, view.columns)
        out: Tensor = self.output(mixed.flatten(2))
        return out

    def _score_bias(self, view: View) -> Tensor:
        """(G, Q, S or T, H): what the position schemes add; INVISIBLE where nothing is seen."""
        mask = torch.where(view.visible, 0.0, INVISIBLE).unsqueeze(-1)
        for relative, buckets in zip(self.relative, view.buckets, strict=True):
            mask = mask + relative(buckets)
        return mask


def _dense(query_BQHK: Tensor, key_BTHK: Tensor, value_BTHK: Tensor, bias_GQTH: Tensor) -> Tensor:
    scores = query_BQHK.transpose(1, 2) @ key_BTHK.permute(0, 2, 3, 1)
    pattern = (scores + bias_GQTH.permute(0, 3, 1, 2)).softmax(dim=-1)
    return (pattern @ value_BTHK.transpose(1, 2)).transpose(1, 2)


def _windowed(
    query_BQHK: Tensor,
    key_BTHK: Tensor,
    value_BTHK: Tensor,
    bias_GQSH: Tensor,
    columns_GQS: Tensor,
) -> Tensor:
    if columns_GQS.shape[0] == 1:
        keys, values = key_BTHK[:, columns_GQS[0]], value_BTHK[:, columns_GQS[0]]
    else:
        line = torch.arange(columns_GQS.shape[0], device=columns_GQS.device).view(-1, 1, 1)
        keys, values = key_BTHK[line, columns_GQS], value_BTHK[line, columns_GQS]
    scores = (query_BQHK.unsqueeze(2) * keys).sum(dim=-1)
    pattern = (scores + bias_GQSH).softmax(dim=2)
    return (pattern.unsqueeze(-1) * values).sum(dim=2)
