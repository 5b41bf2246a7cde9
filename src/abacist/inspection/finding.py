"""The results of lenses: plain numbers, and arrays with named axes."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from torch import Tensor

from abacist.intervals import Proportion


@dataclass(frozen=True)
class Array:
    """An array with a name for every axis."""

    values: np.ndarray[Any, Any]
    axes: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.values.ndim != len(self.axes):
            raise ValueError(f"{self.values.ndim} axes cannot be named {self.axes}")

    def to_json(self) -> dict[str, object]:
        """Return `{"axes": ["token", "rank"], "values": [[…], …]}`."""
        return {"axes": list(self.axes), "values": self.values.tolist()}


def array(values: Tensor, *axes: str) -> Array:
    """Convert a tensor to an `Array` of float64 with these axis names."""
    return Array(values.detach().cpu().double().numpy(), axes)


@dataclass(frozen=True)
class Finding:
    """The result of one lens. Every lens has its own subclass with its own fields."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields by name: arrays with their axes, proportions with n and interval."""
        return {field.name: _as_json(getattr(self, field.name)) for field in fields(self)}


def _as_json(value: object) -> object:
    if isinstance(value, Array | Proportion | Finding):
        return value.to_json()
    if isinstance(value, list | tuple):
        return [_as_json(part) for part in value]
    return value
