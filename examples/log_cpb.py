"""A position encoding: Swin Transformer V2's continuous bias, by a small network."""

import torch
from torch import nn

from abacist import POSITIONS, DifferenceBias, PositionScheme, position_encoding


@position_encoding("log-cpb")
class LogContinuousBias(DifferenceBias):
    """b(d) = W relu(w sign(d) log(1 + |d|) + c), d = key - query (arXiv 2111.09883)."""

    def __init__(self, scheme, num_heads):
        super().__init__(scheme, num_heads)
        self.hidden = nn.Linear(1, 32)
        self.output = nn.Linear(32, num_heads, bias=False)

    def bias(self, difference):
        """Return the biases (..., heads) of differences (...)."""
        logarithm = difference.sign() * difference.abs().log1p()
        return self.output(torch.relu(self.hidden(logarithm.unsqueeze(-1))))


places = PositionScheme(encoding="log-cpb", coordinate="place", window=(0, 1))
POSITIONS.register("log-cpb", (places,))
