"""One layer: attention, then an MLP, each behind a normalisation and added to the residual."""

from torch import Tensor, nn

from abacist.models.attention import Attention
from abacist.models.config import ModelConfig
from abacist.models.views import View


def make_norm(config: ModelConfig) -> nn.Module:
    """LayerNorm (arXiv 1607.06450) or RMSNorm (arXiv 1910.07467) over the width."""
    if config.norm == "layer":
        return nn.LayerNorm(config.width)
    return nn.RMSNorm(config.width, eps=1e-6)


class MLP(nn.Module):
    """Widen, bend, narrow."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.up = nn.Linear(config.width, config.mlp_width)
        self.activation = nn.ReLU() if config.activation == "relu" else nn.GELU()
        self.down = nn.Linear(config.mlp_width, config.width, bias=config.biases)

    def forward(self, x_TBD: Tensor) -> Tensor:
        """(T, B, D)"""
        out: Tensor = self.down(self.activation(self.up(x_TBD)))
        return out


class Block(nn.Module):
    """Pre-normalised attention and MLP."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention_norm = make_norm(config)
        self.attention = Attention(config)
        self.mlp_norm = make_norm(config)
        self.mlp = MLP(config)

    def forward(self, resid_TBD: Tensor, view: View, first: int = 0) -> Tensor:
        """The residual of tokens `first` … T after this layer, (T - first, B, D).

        All tokens serve as keys; only those from `first` on are carried further.
        """
        normed = self.attention_norm(resid_TBD)
        key, value = self.attention.keys_values(normed)
        return self.carry_on(resid_TBD[first:], normed[first:], key, value, view)

    def carry_on(
        self,
        resid_QBD: Tensor,
        normed_QBD: Tensor,
        key_TBHK: Tensor,
        value_TBHK: Tensor,
        view: View,
    ) -> Tensor:
        """The layer for given queries, keys and values: what cached generation shares."""
        resid = resid_QBD + self.attention(normed_QBD, key_TBHK, value_TBHK, view)
        out: Tensor = resid + self.mlp(self.mlp_norm(resid))
        return out
