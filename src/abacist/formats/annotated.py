"""Annotated tokens: what a format tells the model, the loss, the scorecard and the pictures.

The line of `12+34=` in the reversed format:

    token    <start>  2   1   +   4   3   =   6   4  <end>
    place      -2     1   2  -1   1   2   0   1   2    3
    row        -2     1   1  -1   2   2   3   3   3    3
    field    start   a   a  op   b   b  =  answer … answer
    target                                    x   x    x
"""

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any

import torch
from torch import Tensor

EVERYWHERE = -2
"""The place of a token that stands in every column: whoever looks at a column sees it."""
NO_PLACE = -1
"""The place of a token that stands in no column."""
ANCHOR = 0
"""The place of the token before the first column of an answer."""


class Field(IntEnum):
    """Which part of the line a token belongs to. Operands are OPERAND, OPERAND + 1, …"""

    PADDING = 0
    START = 1
    OPERATOR = 2
    EQUALS = 3
    ANSWER = 4
    SCRATCH = 5
    """Work written down on the way to the answer."""
    SPACE = 6
    LABEL = 7
    """The name of a number to be sorted, with its colon and comma."""
    OPERAND = 8


@dataclass(frozen=True)
class AnnotatedTokens:
    """A batch of lines. All tensors have shape (B, T); lines are padded on the right."""

    ids: Tensor
    """int32 token ids."""
    place: Tensor
    """int32: 1 for a units digit, 2 for tens, …; or ANCHOR, NO_PLACE, EVERYWHERE."""
    field: Tensor
    """uint8 values of `Field`."""
    target: Tensor
    """bool: the model must predict this token from the ones before it."""
    row: Tensor | None = None
    """int32, where a notation writes numbers under each other: which of them; 1 for the first."""
    step: Tensor | None = None
    """int32, where a notation brings down one digit after the other: for which of them; 1 for the first."""
    labels: Tensor | None = None
    """int32, where all answers are read at once: what an encoder must write at each target."""

    @property
    def index(self) -> Tensor:
        """int32 (B, T): where in its line each token stands; -1 for padding."""
        positions = torch.arange(self.ids.shape[1], dtype=torch.int32, device=self.ids.device)
        return torch.where(self.field == Field.PADDING, -1, positions)

    @property
    def lengths(self) -> Tensor:
        """int64 (B,): how many tokens each line has."""
        return (self.field != Field.PADDING).sum(dim=1)

    def __getitem__(self, key: slice | Tensor | tuple[slice, slice]) -> "AnnotatedTokens":
        tensors: dict[str, Any] = {
            field.name: tensor[key]
            for field in fields(self)
            if (tensor := getattr(self, field.name)) is not None
        }
        return AnnotatedTokens(**tensors)

    def to(self, device: torch.device) -> "AnnotatedTokens":
        """The same lines on another device."""
        if self.ids.device == device:
            return self
        tensors: dict[str, Any] = {
            field.name: tensor.to(device, non_blocking=True)
            for field in fields(self)
            if (tensor := getattr(self, field.name)) is not None
        }
        return AnnotatedTokens(**tensors)
