"""Running a model with everything on the way kept, and replaced where a hook says so.

>>> logits, cache = run_with_cache(model, ids, coordinates)
>>> cache["blocks.0.attn.hook_pattern"].shape      # or cache["pattern", 0]
torch.Size([1, 4, 28, 28])
>>> def without_head_2(z): return z.index_fill(2, torch.tensor(2), 0.0)
>>> logits, _ = run_with_cache(model, ids, coordinates, {"blocks.0.attn.hook_z": without_head_2})

This is the plain path of attention: explicit scores and softmax. A test holds it against the fast
paths. Names and shapes are those of TransformerLens; `models/hooks.py` lists them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.errors import ConfigurationError, nearest
from abacist.models.coordinates import Coordinates
from abacist.models.transformer import Transformer

Hook = Callable[[Tensor], Tensor]
"""Given an activation, lines first, returns the one to go on with."""

_WITHIN_ATTENTION = ("q", "k", "v", "attn_scores", "pattern", "z")
_WITHIN_MLP = ("pre", "post")
_LINES_FIRST = ("hook_attn_scores", "hook_pattern")


@dataclass(frozen=True)
class ActivationCache:
    """Activations of one run by name, on the device of the model.

    Residuals are (B, T, D), queries, keys, values and z (B, T, H, K), scores and patterns
    (B, H, T, T) with the query before the key, MLP activations (B, T, F).
    """

    activations: Mapping[str, Tensor]
    depth: int
    """Layers passed through: recurrences × layers."""

    def __getitem__(self, key: str | tuple[str, int]) -> Tensor:
        """One activation, by its full name or as `"pattern", depth`."""
        name = key if isinstance(key, str) else name_of(*key)
        if name not in self.activations:
            raise ConfigurationError(f"no activation {name!r}: {nearest(name, self.activations)}")
        return self.activations[name]

    def stack(self, short: str) -> Tensor:
        """The activations of one kind in all layers passed through, (depth, …)."""
        return torch.stack([self[short, depth] for depth in range(self.depth)])


def name_of(short: str, depth: int) -> str:
    """The full name of an activation: `"z", 0` is `blocks.0.attn.hook_z`."""
    part = "attn." * (short in _WITHIN_ATTENTION) + "mlp." * (short in _WITHIN_MLP)
    return f"blocks.{depth}.{part}hook_{short}"


@torch.no_grad()
def run_with_cache(
    model: Transformer,
    ids_BT: Tensor,
    coordinates: Coordinates,
    hooks: Mapping[str, Hook] | None = None,
    *,
    keep: Callable[[str], bool] = lambda name: True,
    recurrences: int | None = None,
) -> tuple[Tensor, ActivationCache]:
    """Logits (B, T, V) of all tokens, and the activations whose names `keep` wants.

    `hooks` replaces activations by name. Raises `ConfigurationError` for a hook that nothing
    passes, naming the nearest activation there is.
    """
    kept: dict[str, Tensor] = {}
    passed: list[str] = []
    hooks = hooks or {}

    def hook(name: str, value: Tensor) -> Tensor:
        passed.append(name)
        turned = not name.endswith(_LINES_FIRST)
        shown = value.transpose(0, 1) if turned else value
        if name in hooks:
            shown = hooks[name](shown)
            value = shown.transpose(0, 1) if turned else shown
        if keep(name):
            kept[name] = shown
        return value

    logits = model(
        ids_BT.to(model.device),
        coordinates.to(model.device),
        path="dense",
        recurrences=recurrences,
        hook=hook,
    )
    for name in hooks:
        if name not in passed:
            raise ConfigurationError(f"no activation {name!r} to hook: {nearest(name, passed)}")
    recurrences = model.config.recurrences if recurrences is None else recurrences
    return logits, ActivationCache(kept, recurrences * len(model.blocks))
