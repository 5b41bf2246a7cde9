"""Annotated tokens: everything that the model, the loss, the scorecard and the pictures need to know.

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
"""The coordinate of a token that stands in every column (row, step), and is visible from all of them."""
NO_PLACE = -1
"""The coordinate of a token that stands in no column (row, step)."""
ANCHOR = 0
"""The place of the token before the first column of an answer."""


class Field(IntEnum):
    """The part of the line that a token belongs to. Operands are OPERAND, OPERAND + 1, …"""

    PADDING = 0
    START = 1
    OPERATOR = 2
    EQUALS = 3
    ANSWER = 4
    SCRATCH = 5
    """Work that is written down before the answer is known."""
    SPACE = 6
    LABEL = 7
    """The name of a number to be sorted, with its colon and comma."""
    OPERAND = 8


def field_name(field: int) -> str:
    """Return the name of a field as a reader knows it, such as `answer` or, for the first operand, `operand 1`."""
    if field >= Field.OPERAND:
        return f"operand {field - Field.OPERAND + 1}"
    return Field(field).name.lower()


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
    """bool: whether the model must predict this token from the tokens before it."""
    row: Tensor | None = None
    """int32, for notations that write numbers under each other: the number's row, starting at 1."""
    step: Tensor | None = None
    """int32, for notations that work in steps, such as digits brought down: the step, starting at 1."""
    labels: Tensor | None = None
    """int32, for encoders, which write all answer tokens at once: the right token at each target."""

    @property
    def index(self) -> Tensor:
        """int32 (B, T): the position of each token in its line, starting at 0; -1 for padding."""
        positions = torch.arange(self.ids.shape[1], dtype=torch.int32, device=self.ids.device)
        return torch.where(self.field == Field.PADDING, -1, positions)

    @property
    def lengths(self) -> Tensor:
        """int64 (B,): the number of tokens of each line, without padding."""
        return (self.field != Field.PADDING).sum(dim=1)

    def columns(self, spacing: int) -> Tensor:
        """Return the column of each digit, 1 for units, int32 (B, T); other tokens have their place.

        Args:
            spacing: distance between the places of neighbouring columns.
        """
        return torch.where(self.place > 0, self.place // spacing, self.place)

    def __getitem__(self, key: slice | Tensor | tuple[slice, slice]) -> "AnnotatedTokens":
        return AnnotatedTokens(**{name: tensor[key] for name, tensor in self._tensors().items()})

    def to(self, device: torch.device) -> "AnnotatedTokens":
        """Return the same lines on another device."""
        if self.ids.device == device:
            return self
        # Towards the CPU, a copy that does not block could be read before it has arrived.
        overlaps = device.type != "cpu"
        moved = {
            name: tensor.to(device, non_blocking=overlaps)
            for name, tensor in self._tensors().items()
        }
        return AnnotatedTokens(**moved)

    def _tensors(self) -> dict[str, Any]:
        named = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: tensor for name, tensor in named if tensor is not None}
