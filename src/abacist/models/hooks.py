"""Taps: what is let out of a model, or put into it, while it calculates.

A hook is given the name and the value of every activation on the plain path and returns the value
to go on with. Names are those of TransformerLens (Nanda and Bloom, 2022), where the number of a
block counts every pass through a layer: recurrence × number of layers + layer.

    hook_embed                 positions.0.hook_pos_embed
    blocks.0.hook_resid_pre    blocks.0.hook_attn_out     blocks.0.hook_resid_mid
    blocks.0.attn.hook_q       blocks.0.attn.hook_k       blocks.0.attn.hook_v
    blocks.0.attn.hook_attn_scores    blocks.0.attn.hook_pattern    blocks.0.attn.hook_z
    blocks.0.mlp.hook_pre      blocks.0.mlp.hook_post     blocks.0.hook_mlp_out
    blocks.0.hook_resid_post   ln_final.hook_scale
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

ActivationHook = Callable[[str, Tensor], Tensor]
"""Name and value of an activation to the value to go on with. Tokens come first, (T, B, …); scores
and patterns are (B, H, T, T)."""


def within(hook: ActivationHook | None, part: str) -> ActivationHook | None:
    """The same hook for one part of a model, whose names begin with that of the part."""
    if hook is None:
        return None
    return lambda name, value: hook(f"{part}.{name}", value)


def hooked(hook: ActivationHook | None, name: str, value: Tensor) -> Tensor:
    """The value to go on with."""
    return value if hook is None else hook(name, value)


def hooked_norm(norm: nn.Module, x: Tensor, hook: ActivationHook | None) -> Tensor:
    """A normalisation whose divisor can be seen and held: `hook_scale`, (…, 1)."""
    if hook is None or isinstance(norm, nn.Identity):
        out: Tensor = norm(x)
        return out
    shifted, scale, weight, bias = normalised(norm, x)
    x = shifted / hook("hook_scale", scale) * weight
    return x if bias is None else x + bias


def normalised(norm: nn.Module, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """What a LayerNorm or RMSNorm divides, by what, the gain, and the shift where there is one."""
    if isinstance(norm, nn.LayerNorm):
        centred = x - x.mean(dim=-1, keepdim=True)
        variance = (centred * centred).mean(dim=-1, keepdim=True)
        return centred, torch.sqrt(variance + norm.eps), norm.weight, norm.bias
    assert isinstance(norm, nn.RMSNorm)
    assert norm.eps is not None
    scale = torch.sqrt((x * x).mean(dim=-1, keepdim=True) + norm.eps)
    return x, scale, norm.weight, None
