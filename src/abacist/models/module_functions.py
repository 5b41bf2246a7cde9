"""The functions that modules compute in evaluation, without the cost of calling modules.

For a single token, calling a module takes longer than its arithmetic. These functions read the weights
once, when they are made.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from abacist.models.block import MLP, Block
from abacist.models.transformer import Transformer

Function = Callable[[Tensor], Tensor]


def logits_after_attention(model: Transformer, block: Block) -> Function:
    """Return the function from the residual stream after the last layer's attention, (B, D), to logits, (B, V).

    `block` is the last layer, without injected input.
    """
    attention_norm, mlp_norm = function_of(block.attention_norm), function_of(block.mlp_norm)
    mlp, final_mlp = function_of(block.mlp), function_of(model.final_mlp)
    final_norm, head = function_of(model.final_norm), function_of(model.head)

    def pre_norm(resid_BD: Tensor) -> Tensor:
        return head(final_norm(final_mlp(resid_BD + mlp(mlp_norm(resid_BD)))))

    def post_norm(resid_BD: Tensor) -> Tensor:
        resid_BD = attention_norm(resid_BD)
        return head(final_norm(final_mlp(mlp_norm(resid_BD + mlp(resid_BD)))))

    return pre_norm if block.is_pre_norm else post_norm


def function_of(module: nn.Module) -> Function:
    """Return the function that a module computes in evaluation."""
    match module:
        case MLP():
            return _mlp(module)
        case nn.Linear():
            return partial(functional.linear, weight=module.weight, bias=module.bias)
        case nn.LayerNorm():
            return partial(
                torch.layer_norm,
                normalized_shape=module.normalized_shape,
                weight=module.weight,
                bias=module.bias,
                eps=module.eps,
            )
        case nn.RMSNorm():
            return partial(
                functional.rms_norm,
                normalized_shape=module.normalized_shape,
                weight=module.weight,
                eps=module.eps,
            )
        case nn.GELU():
            return partial(functional.gelu, approximate=module.approximate)
        case nn.ReLU():
            return functional.relu
        case nn.SiLU():
            return functional.silu
        case nn.Identity():
            return _identity
    return module


def _mlp(mlp: MLP) -> Function:
    up, activation, down = map(function_of, (mlp.up, mlp.activation, mlp.down))
    if mlp.gate is None:
        return lambda x_BD: down(activation(up(x_BD)))
    gate = function_of(mlp.gate)
    return lambda x_BD: down(activation(up(x_BD)) * gate(x_BD))


def _identity(x_BD: Tensor) -> Tensor:
    return x_BD
