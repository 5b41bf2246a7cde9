"""Run a model, keep its activations by name, and replace some of them by hooks.

>>> logits, cache = run_with_cache(model, ids, coordinates)
>>> cache["blocks.0.attn.hook_pattern"].shape      # or cache["pattern", 0]
torch.Size([1, 4, 28, 28])
>>> def without_head_2(z): return z.index_fill(2, torch.tensor(2), 0.0)
>>> logits, _ = run_with_cache(model, ids, coordinates, {"blocks.0.attn.hook_z": without_head_2})

Attention takes the dense path, with explicit scores and softmax; a test compares it with the fast
paths. Names and shapes are those of TransformerLens; `models/hooks.py` lists their names.
"""

from collections.abc import Callable, Iterator, KeysView, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.errors import ConfigurationError, nearest
from abacist.models.coordinates import Coordinates
from abacist.models.transformer import Transformer
from abacist.notebook_html import html_table

Hook = Callable[[Tensor], Tensor]
"""A function of an activation, batch first, that returns the activation with which the model continues."""

_WITHIN_ATTENTION = ("q", "k", "v", "attn_scores", "pattern", "z")
_WITHIN_MLP = ("pre", "post")
_BATCH_FIRST = ("hook_attn_scores", "hook_pattern")


@dataclass(frozen=True, repr=False)
class ActivationCache:
    """Activations of one forward pass by name, on the device of the model.

    Residuals are (B, T, D), queries, keys, values and z (B, T, H, K), scores and patterns
    (B, H, T, T) with the query before the key, MLP activations (B, T, F).
    """

    activations: Mapping[str, Tensor]
    depth: int
    """Number of layers passed through: recurrences × layers."""

    def __getitem__(self, key: str | tuple[str, int]) -> Tensor:
        """Return one activation by its full name or as `"pattern", depth`.

        Raises `ConfigurationError` for an unknown name, with the nearest known one.
        """
        name = key if isinstance(key, str) else name_of(*key)
        if name not in self.activations:
            raise ConfigurationError(f"no activation {name!r}: {nearest(name, self.activations)}")
        return self.activations[name]

    def __len__(self) -> int:
        return len(self.activations)

    def __iter__(self) -> Iterator[str]:
        return iter(self.activations)

    def keys(self) -> KeysView[str]:
        """Return the names of all activations, in the order in which the model computed them."""
        return self.activations.keys()

    def __repr__(self) -> str:
        if not self.activations:
            return "ActivationCache(empty)"
        first, *_, last = [*self.activations, *self.activations]
        return f"ActivationCache({len(self)} activations, {first} … {last}; see keys())"

    def _repr_html_(self) -> str:
        rows = ((name, tuple(value.shape)) for name, value in self.activations.items())
        return html_table(f"{len(self)} activations", ("name", "shape"), rows)

    def stack(self, short: str) -> Tensor:
        """Return the activations of one kind in all layers passed through, (depth, …)."""
        return torch.stack([self[short, depth] for depth in range(self.depth)])


def name_of(short: str, depth: int) -> str:
    """Return the full name of an activation: `blocks.0.attn.hook_z` for `"z", 0`."""
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
    """Return the logits (B, T, V) of all tokens, and the activations that are kept.

    Args:
        hooks: functions that replace activations, by activation name.
        keep: whether to keep the activation of that name.
        recurrences: number of recurrences; None for the number in training.

    Raises `ConfigurationError` for a hook on an activation that the model does not have.
    """
    activations: dict[str, Tensor] = {}
    passed: list[str] = []
    hooks = hooks or {}

    def hook(name: str, value: Tensor) -> Tensor:
        passed.append(name)
        tokens_first = not name.endswith(_BATCH_FIRST)
        activation = value.transpose(0, 1) if tokens_first else value
        if name in hooks:
            activation = hooks[name](activation)
            value = activation.transpose(0, 1) if tokens_first else activation
        if keep(name):
            activations[name] = activation
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
    return logits, ActivationCache(activations, recurrences * len(model.blocks))
