"""What lenses return: plain numbers and arrays, each array with the names of its axes."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from torch import Tensor

from abacist.intervals import Proportion


@dataclass(frozen=True)
class Array:
    """Numbers with a name for every axis."""

    values: np.ndarray[Any, Any]
    axes: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.values.ndim != len(self.axes):
            raise ValueError(f"{self.values.ndim} axes cannot be named {self.axes}")

    def to_json(self) -> dict[str, object]:
        """`{"axes": ["token", "rank"], "values": [[…], …]}`"""
        return {"axes": list(self.axes), "values": self.values.tolist()}


def array(values: Tensor, *axes: str) -> Array:
    """A tensor's numbers with names for its axes."""
    return Array(values.detach().cpu().double().numpy(), axes)


@dataclass(frozen=True)
class Finding:
    """What one lens saw; every lens has its own kind with its own fields."""

    def to_json(self) -> dict[str, Any]:
        """The fields by name; arrays with their axes, proportions with n and interval."""
        return {field.name: _as_json(getattr(self, field.name)) for field in fields(self)}


def _as_json(value: object) -> object:
    if isinstance(value, Array | Proportion | Finding):
        return value.to_json()
    if isinstance(value, list | tuple):
        return [_as_json(part) for part in value]
    return value
