"""What position schemes count."""

from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.errors import ConfigurationError
from abacist.formats import annotated
from abacist.models.config import PositionScheme


@dataclass(frozen=True)
class Coordinates:
    """Where every token of a batch stands, int32 (G, T) each.

    G is 1 where all lines share their coordinates and B where they do not. An index of -1 marks
    padding, which nobody sees. A place of 1 or more is a digit's significance; 0 stands before
    the first column; -1 stands in no column; -2 stands in every column; rows and steps likewise.
    """

    index: Tensor
    place: Tensor
    row: Tensor | None = None
    step: Tensor | None = None

    NO_PLACE = annotated.NO_PLACE
    EVERYWHERE = annotated.EVERYWHERE

    def of(self, name: str) -> Tensor:
        """The coordinate of that name."""
        values: Tensor | None = getattr(self, name)
        if values is None:
            raise ConfigurationError(
                f"this format gives tokens no {name}. Try --model.positions.0.coordinate place."
            )
        return values

    def __getitem__(self, tokens: slice) -> "Coordinates":
        row = None if self.row is None else self.row[:, tokens]
        step = None if self.step is None else self.step[:, tokens]
        return Coordinates(self.index[:, tokens], self.place[:, tokens], row, step)

    def to(self, device: torch.device) -> "Coordinates":
        """The same on another device."""
        row = None if self.row is None else self.row.to(device)
        step = None if self.step is None else self.step.to(device)
        return Coordinates(self.index.to(device), self.place.to(device), row, step)

    @property
    def num_tokens(self) -> int:
        return self.index.shape[1]


@dataclass(frozen=True)
class SchemeCoordinates:
    """Tokens as the position schemes of a model see them."""

    index: Tensor
    """int32 (G, T); -1 for padding."""
    values: list[Tensor]
    """For each scheme int (G, T): its coordinate, randomised while training."""

    def __getitem__(self, tokens: slice) -> "SchemeCoordinates":
        return SchemeCoordinates(
            self.index[:, tokens], [values[:, tokens] for values in self.values]
        )

    @property
    def num_tokens(self) -> int:
        return self.index.shape[1]


def scheme_coordinates(
    schemes: tuple[PositionScheme, ...],
    coordinates: Coordinates,
    batch: int = 1,
    generator: torch.Generator | None = None,
) -> SchemeCoordinates:
    """The coordinates that each scheme uses; those that training randomises are drawn from `generator`."""
    values = [coordinates.of(scheme.coordinate) for scheme in schemes]
    if generator is not None:
        values = [
            _randomised(scheme, v, batch, generator)
            for scheme, v in zip(schemes, values, strict=True)
        ]
    return SchemeCoordinates(coordinates.index, values)


def _randomised(
    scheme: PositionScheme, values: Tensor, batch: int, generator: torch.Generator
) -> Tensor:
    """Values with a random offset, or spread over a random subset of a larger range.

    An offset moves coordinates above 0 only, one for the batch as in Abacus (arXiv 2405.17399 §3)
    or one for each of its lines as in position coupling (arXiv 2405.20671 §4). A subset is drawn
    once a batch (arXiv 2305.16843 §3); in evaluation coordinates stay as they are.
    """
    if scheme.offset != "none":
        count = batch if scheme.offset == "sample" else 1
        offset = torch.randint(scheme.max_offset + 1, (count, 1), generator=generator)
        return values + offset.to(values.device) * (values > 0)
    if scheme.subset_of:
        # Index 0 is a position like others; place 0 is not.
        first = 0 if scheme.coordinate == "index" else 1
        count = int(values.max()) + 1 - first
        if count < 1:
            return values
        if count > scheme.subset_of:
            raise ConfigurationError(
                f"subset_of must be at least the {count} positions of a line, got "
                f"{scheme.subset_of}. Try --model.positions.0.subset_of {4 * count}."
            )
        chosen = torch.randperm(scheme.subset_of, generator=generator)[:count].sort().values + first
        spread = chosen.to(values.device)[(values - first).clamp(min=0).long()]
        return torch.where(values >= first, spread.to(values.dtype), values)
    return values
