"""One layer of the transformer: attention, then an MLP, each added to the residual stream."""

import torch
from torch import Tensor, nn

from abacist.models.attention import Attention
from abacist.models.config import ModelConfig
from abacist.models.encodings import QueryKeyEncoding
from abacist.models.fused import FusedView
from abacist.models.hooks import ActivationHook, apply_hook, with_prefix
from abacist.models.views import View


def make_norm(config: ModelConfig) -> nn.Module:
    """Build a LayerNorm (arXiv 1607.06450) or RMSNorm (arXiv 1910.07467) over the width D."""
    if config.norm == "layer":
        return nn.LayerNorm(config.width, eps=config.epsilon)
    return nn.RMSNorm(config.width, eps=config.epsilon)


class MLP(nn.Module):
    """down(act(up(x))), or down(act(up(x)) * gate(x)) where it is gated (arXiv 2002.05202)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        biases = "mlp-hidden" in config.biases
        self.up = nn.Linear(config.width, config.mlp_width, bias=biases)
        self.gate = (
            nn.Linear(config.width, config.mlp_width, bias=biases) if config.is_gated else None
        )
        kinds = {"relu": nn.ReLU, "gelu": nn.GELU, "geglu": nn.GELU, "swiglu": nn.SiLU}
        self.activation = (
            nn.GELU(approximate="tanh")
            if config.activation == "gelu-tanh"
            else kinds[config.activation]()
        )
        self.dropout = nn.Dropout(config.dropout_of("mlp-hidden"))
        self.down = nn.Linear(config.mlp_width, config.width, bias="mlp-output" in config.biases)

    def forward(self, x_TBD: Tensor, hook: ActivationHook | None = None) -> Tensor:
        """Return the output of the MLP, (T, B, D)."""
        hidden_TBF = self.activation(apply_hook(hook, "hook_pre", self.up(x_TBD)))
        if self.gate is not None:
            hidden_TBF = hidden_TBF * self.gate(x_TBD)
        out: Tensor = self.down(self.dropout(apply_hook(hook, "hook_post", hidden_TBF)))
        return out


class Block(nn.Module):
    """Attention and MLP around the residual stream x.

    pre-norm:   x = x + attention(norm(x) + i);  x = x + MLP(norm(x) + i)
    post-norm:  x = norm(x + attention(x + i));  x = norm(x + MLP(x + i))

    The injected input i is there in looped models with `injection: sublayers` only.
    """

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
        query_key_encoding: QueryKeyEncoding | None = None,
        injected_TBD: Tensor | None = None,
        first: int = 0,
        hook: ActivationHook | None = None,
    ) -> Tensor:
        """Return the residual stream after this layer for tokens from `first` on, (T - first, B, D).

        Args:
            resid_TBD: residual stream before this layer. All tokens serve as keys.
            view: the pairs of the queries from `first` on and all keys.
            query_key_encoding: position encoding of all T tokens.
            injected_TBD: added to the input of attention and of the MLP; None adds nothing.
            first: index of the first token that is needed after this layer.
            hook: receives every activation.
        """
        resid_TBD = apply_hook(hook, "hook_resid_pre", resid_TBD)
        x_TBD = self.attention_input(resid_TBD, injected_TBD)
        key, value = self.attention.keys_values(
            x_TBD, query_key_encoding, with_prefix(hook, "attn")
        )
        if first:
            if query_key_encoding is not None:
                query_key_encoding = query_key_encoding[first:]
            if injected_TBD is not None:
                injected_TBD = injected_TBD[first:]
        return self.forward_queries(
            resid_TBD[first:],
            x_TBD[first:],
            key,
            value,
            view,
            query_key_encoding,
            injected_TBD,
            hook,
        )

    def attention_input(self, resid_TBD: Tensor, injected_TBD: Tensor | None) -> Tensor:
        """Return the input of attention, (T, B, D)."""
        return self._sublayer_input(self.attention_norm, resid_TBD, injected_TBD)

    def forward_queries(
        self,
        resid_QBD: Tensor,
        x_QBD: Tensor,
        key_TBHK: Tensor,
        value_TBHK: Tensor,
        view: View | FusedView,
        query_key_encoding: QueryKeyEncoding | None,
        injected_QBD: Tensor | None,
        hook: ActivationHook | None = None,
    ) -> Tensor:
        """Return the residual stream after this layer for Q queries, (Q, B, D).

        This is the part of the layer that generation shares, which takes keys and values from
        its cache.

        Args:
            resid_QBD: residual stream of the query tokens before this layer.
            x_QBD: the query tokens' `attention_input`.
            key_TBHK: keys of all tokens.
            value_TBHK: values of all tokens.
            view: the pairs of queries and keys.
            query_key_encoding: position encoding of the query tokens.
            injected_QBD: added to the input of the MLP; None adds nothing.
            hook: receives every activation.
        """
        attention_out = self.attention(
            x_QBD, key_TBHK, value_TBHK, view, query_key_encoding, with_prefix(hook, "attn")
        )
        attention_out = self.dropout(apply_hook(hook, "hook_attn_out", attention_out))
        return self.after_attention(resid_QBD + attention_out, injected_QBD, hook)

    def after_attention(
        self, resid_QBD: Tensor, injected_QBD: Tensor | None, hook: ActivationHook | None = None
    ) -> Tensor:
        """Return the residual stream after this layer, from the one with attention's output, (Q, B, D)."""
        resid = resid_QBD if self.is_pre_norm else self.attention_norm(resid_QBD)
        resid = apply_hook(hook, "hook_resid_mid", resid)
        mlp_input = self._sublayer_input(self.mlp_norm, resid, injected_QBD)
        mlp_out = apply_hook(hook, "hook_mlp_out", self.mlp(mlp_input, with_prefix(hook, "mlp")))
        out: Tensor = resid + self.dropout(mlp_out)
        if not self.is_pre_norm:
            out = self.mlp_norm(out)
        return apply_hook(hook, "hook_resid_post", out)

    def _sublayer_input(
        self, norm: nn.Module, resid_TBD: Tensor, injected_TBD: Tensor | None
    ) -> Tensor:
        x_TBD: Tensor = norm(resid_TBD) if self.is_pre_norm else resid_TBD
        return x_TBD if injected_TBD is None else x_TBD + injected_TBD


class Injection(nn.Module):
    """Mixes the state and the embedded input by a trained matrix, before each recurrence."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.mix = nn.Linear(2 * config.width, config.width, bias=False)

    def forward(self, state_TBD: Tensor, embedded_TBD: Tensor) -> Tensor:
        """Return the state that the recurrence starts from, (T, B, D)."""
        mixed: Tensor = self.mix(torch.cat([state_TBD, embedded_TBD], dim=-1))
        return mixed
