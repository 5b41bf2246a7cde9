"""What a position scheme counts."""

from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.formats import annotated


@dataclass(frozen=True)
class Coordinates:
    """Index and place of every token of a batch, int32 (G, T).

    G is 1 where all lines share their coordinates and B where they do not. An index of -1 marks
    padding, which nobody sees. A place of 1 or more is a digit's significance; 0 stands before
    the first column; -1 stands in no column; -2 stands in every column.
    """

    index: Tensor
    place: Tensor

    NO_PLACE = annotated.NO_PLACE
    EVERYWHERE = annotated.EVERYWHERE

    def of(self, coordinate: str) -> Tensor:
        """The coordinate of the given name, for an encoding that has a row for each value.

        Tokens without a place, and padding, share row 0, as in Abacus (arXiv 2405.17399).
        """
        values = self.index if coordinate == "index" else self.place
        return torch.where(self.index < 0, 0, values.clamp(min=0))

    def __getitem__(self, tokens: slice) -> "Coordinates":
        return Coordinates(self.index[:, tokens], self.place[:, tokens])

    @property
    def num_tokens(self) -> int:
        return self.index.shape[1]
