"""One layer: attention, then an MLP, each added to the residual and normalised."""

import torch
from torch import Tensor, nn

from abacist.models.attention import Attention
from abacist.models.config import ModelConfig
from abacist.models.encodings import QueryKeyPositions
from abacist.models.fused import FusedView
from abacist.models.hooks import ActivationHook, hooked, within
from abacist.models.views import View


def make_norm(config: ModelConfig) -> nn.Module:
    """LayerNorm (arXiv 1607.06450) or RMSNorm (arXiv 1910.07467) over the width."""
    if config.norm == "layer":
        return nn.LayerNorm(config.width)
    return nn.RMSNorm(config.width, eps=1e-6)


class MLP(nn.Module):
    """Widen, bend, narrow. Gated kinds multiply by a second map (Shazeer, arXiv 2002.05202)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        biases = "mlp-hidden" in config.biases
        self.up = nn.Linear(config.width, config.mlp_width, bias=biases)
        gated = config.activation in ("geglu", "swiglu")
        self.gate = nn.Linear(config.width, config.mlp_width, bias=biases) if gated else None
        kinds = {"relu": nn.ReLU, "gelu": nn.GELU, "geglu": nn.GELU, "swiglu": nn.SiLU}
        self.activation = kinds[config.activation]()
        self.dropout = nn.Dropout(config.dropout_of("mlp-hidden"))
        self.down = nn.Linear(config.mlp_width, config.width, bias="mlp-output" in config.biases)

    def forward(self, x_TBD: Tensor, hook: ActivationHook | None = None) -> Tensor:
        """(T, B, D)"""
        hidden = self.activation(hooked(hook, "hook_pre", self.up(x_TBD)))
        if self.gate is not None:
            hidden = hidden * self.gate(x_TBD)
        out: Tensor = self.down(self.dropout(hooked(hook, "hook_post", hidden)))
        return out


class Block(nn.Module):
    """Attention and MLP, normalised before or after."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention_norm = make_norm(config)
        self.attention = Attention(config)
        self.mlp_norm = make_norm(config)
        self.mlp = MLP(config)
        self.is_pre_norm = config.norm_order == "pre"
        self.dropout = nn.Dropout(config.dropout_of("outputs"))

    def forward(
        self,
        resid_TBD: Tensor,
        view: View | FusedView,
        query_key_positions: QueryKeyPositions | None = None,
        injected_TBD: Tensor | None = None,
        first: int = 0,
        hook: ActivationHook | None = None,
    ) -> Tensor:
        """The residual of tokens `first` … T after this layer, (T - first, B, D).

        All tokens serve as keys; only those from `first` on are carried further. `injected` is
        added to what goes into attention and MLP.
        """
        resid_TBD = hooked(hook, "hook_resid_pre", resid_TBD)
        told = self.told(resid_TBD, injected_TBD)
        key, value = self.attention.keys_values(told, query_key_positions, within(hook, "attn"))
        if first:
            query_key_positions = (
                None if query_key_positions is None else query_key_positions[first:]
            )
            injected_TBD = None if injected_TBD is None else injected_TBD[first:]
        return self.carry_on(
            resid_TBD[first:],
            told[first:],
            key,
            value,
            view,
            query_key_positions,
            injected_TBD,
            hook,
        )

    def told(self, resid_TBD: Tensor, injected_TBD: Tensor | None) -> Tensor:
        """What goes into attention."""
        told: Tensor = self.attention_norm(resid_TBD) if self.is_pre_norm else resid_TBD
        return told if injected_TBD is None else told + injected_TBD

    def carry_on(
        self,
        resid_QBD: Tensor,
        told_QBD: Tensor,
        key_TBHK: Tensor,
        value_TBHK: Tensor,
        view: View | FusedView,
        query_key_positions: QueryKeyPositions | None,
        injected_QBD: Tensor | None,
        hook: ActivationHook | None = None,
    ) -> Tensor:
        """The layer for given queries, keys and values: what cached generation shares."""
        inner = within(hook, "attn")
        found = self.attention(told_QBD, key_TBHK, value_TBHK, view, query_key_positions, inner)
        resid = resid_QBD + self.dropout(hooked(hook, "hook_attn_out", found))
        if not self.is_pre_norm:
            resid = self.attention_norm(resid)
        resid = hooked(hook, "hook_resid_mid", resid)
        told: Tensor = self.mlp_norm(resid) if self.is_pre_norm else resid
        if injected_QBD is not None:
            told = told + injected_QBD
        thought = hooked(hook, "hook_mlp_out", self.mlp(told, within(hook, "mlp")))
        out: Tensor = resid + self.dropout(thought)
        if not self.is_pre_norm:
            out = self.mlp_norm(out)
        return hooked(hook, "hook_resid_post", out)


class Injection(nn.Module):
    """A state and the embedded input, mixed by a trained matrix before each recurrence."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.mix = nn.Linear(2 * config.width, config.width, bias=False)

    def forward(self, state_TBD: Tensor, embedded_TBD: Tensor) -> Tensor:
        """(T, B, D)"""
        mixed: Tensor = self.mix(torch.cat([state_TBD, embedded_TBD], dim=-1))
        return mixed
