"""Hooks: read or replace a model's activations while it runs.

A hook is a function that receives the name and the value of every activation and returns the
value to continue with. Hooks need the dense path. Names follow TransformerLens (Nanda and Bloom,
2022), where the number of a block counts every pass through a layer: recurrence × number of
layers + layer.

    hook_embed, blocks.0.hook_resid_pre / _resid_mid / _resid_post        (T, B, D)
    blocks.0.hook_attn_out, blocks.0.hook_mlp_out                         (T, B, D)
    blocks.0.attn.hook_q / hook_k / hook_v / hook_z                       (T, B, H, K)
    blocks.0.attn.hook_attn_scores / hook_pattern                         (B, H, T, T), query by key
    blocks.0.mlp.hook_pre / hook_post                                     (T, B, F)
    positions.0.hook_pos_embed                                            (T, G, D)
    ln_final.hook_scale                                                   (T, B, 1)

In the last block, queries and everything computed from them cover only the Q tokens whose logits
are wanted, so T is Q there.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

ActivationHook = Callable[[str, Tensor], Tensor]
"""Takes the name and value of an activation, and returns the value to continue with."""


def with_prefix(hook: ActivationHook | None, prefix: str) -> ActivationHook | None:
    """Return a hook for one component of the model, which adds `prefix.` to all names."""
    if hook is None:
        return None
    return lambda name, value: hook(f"{prefix}.{name}", value)


def apply_hook(hook: ActivationHook | None, name: str, value: Tensor) -> Tensor:
    """Return what the hook returns for this activation, or `value` itself without a hook."""
    return value if hook is None else hook(name, value)


def apply_norm(norm: nn.Module, x: Tensor, hook: ActivationHook | None) -> Tensor:
    """Normalise x, (…, D), letting the hook see and replace the divisor as `hook_scale`, (…, 1)."""
    if hook is None or isinstance(norm, nn.Identity):
        out: Tensor = norm(x)
        return out
    numerator, scale, weight, bias = decompose_norm(norm, x)
    x = numerator / hook("hook_scale", scale) * weight
    return x if bias is None else x + bias


def decompose_norm(norm: nn.Module, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Split LayerNorm or RMSNorm of x, (…, D), into parts: numerator / scale * weight + bias.

    Returns:
        The numerator (…, D), the scale (…, 1), the weight (D,), and the bias (D,) or None.
    """
    if isinstance(norm, nn.LayerNorm):
        centred = x - x.mean(dim=-1, keepdim=True)
        variance = (centred * centred).mean(dim=-1, keepdim=True)
        return centred, torch.sqrt(variance + norm.eps), norm.weight, norm.bias
    assert isinstance(norm, nn.RMSNorm)
    assert norm.eps is not None
    scale = torch.sqrt((x * x).mean(dim=-1, keepdim=True) + norm.eps)
    return x, scale, norm.weight, None
