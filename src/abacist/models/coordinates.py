"""Coordinates: the integers that position schemes encode, up to four for every token.

The line of `12+34=` in the reversed format has two of them:

    token    <start>  2   1   +   4   3   =   6   4  <end>
    index       0     1   2   3   4   5   6   7   8    9
    place      -2     1   2  -1   1   2   0   1   2    3

The format decides the coordinates (`formats/annotated.py`). Each position scheme encodes one of
them, and some schemes randomise it during training.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.errors import ConfigurationError
from abacist.formats import annotated
from abacist.models.config import PositionScheme


@dataclass(frozen=True)
class Coordinates:
    """The coordinates of all tokens of a batch, int32 (G, T) each.

    G is 1 where all lines share their coordinates, else B. Place, row and step use the same
    special values: 0 before the first column, NO_PLACE in no column, EVERYWHERE in every column.
    """

    index: Tensor
    """Position in the line, starting at 0; -1 for padding, which no token attends to."""
    place: Tensor
    """Significance of a digit: 1 for units, 2 for tens, …"""
    row: Tensor | None = None
    """Which of several numbers written below each other, starting at 1; None where a format has no rows."""
    step: Tensor | None = None
    """Which step of a calculation, starting at 1; None where a format has no steps."""

    NO_PLACE = annotated.NO_PLACE
    EVERYWHERE = annotated.EVERYWHERE

    def of(self, name: str, scheme: int = 0) -> Tensor:
        """Return the coordinate called `name`, int32 (G, T).

        Raises `ConfigurationError`, which names the position scheme with this number, where the format
        does not have it.
        """
        values: Tensor | None = getattr(self, name)
        if values is None:
            raise ConfigurationError(
                f"this format gives tokens no {name}. Try --model.positions.{scheme}.coordinate place."
            )
        return values

    def __getitem__(self, tokens: slice) -> "Coordinates":
        return self._map(lambda values: values[:, tokens])

    def to(self, device: torch.device) -> "Coordinates":
        """Return the same coordinates on another device."""
        return self._map(lambda values: values.to(device))

    def _map(self, function: Callable[[Tensor], Tensor]) -> "Coordinates":
        row, step = (None if v is None else function(v) for v in (self.row, self.step))
        return Coordinates(function(self.index), function(self.place), row, step)

    @property
    def num_tokens(self) -> int:
        """T, padding included."""
        return self.index.shape[1]


@dataclass(frozen=True)
class SchemeCoordinates:
    """The coordinate that each position scheme of a model encodes, for all tokens of a batch."""

    index: Tensor
    """int32 (G, T): position in the line; -1 for padding."""
    values: list[Tensor]
    """One int tensor (G, T) per scheme: its coordinate, randomised during training."""

    def __getitem__(self, tokens: slice) -> "SchemeCoordinates":
        return SchemeCoordinates(
            self.index[:, tokens], [values[:, tokens] for values in self.values]
        )

    @property
    def num_tokens(self) -> int:
        """T, padding included."""
        return self.index.shape[1]


def coordinates_by_scheme(
    schemes: tuple[PositionScheme, ...],
    coordinates: Coordinates,
    batch: int = 1,
    generator: torch.Generator | None = None,
) -> SchemeCoordinates:
    """Select the coordinate of each scheme, and randomise it where a `generator` is passed.

    Args:
        schemes: the position schemes of a model.
        coordinates: the coordinates of all tokens, (G, T) each.
        batch: B, the number of lines; a scheme with an offset per line draws B offsets.
        generator: a CPU generator; None leaves the coordinates as they are.
    """
    values = [coordinates.of(scheme.coordinate, number) for number, scheme in enumerate(schemes)]
    if generator is not None:
        values = [
            _randomised(scheme, number, v, batch, generator)
            for number, (scheme, v) in enumerate(zip(schemes, values, strict=True))
        ]
    return SchemeCoordinates(coordinates.index, values)


def _randomised(
    scheme: PositionScheme, number: int, values: Tensor, batch: int, generator: torch.Generator
) -> Tensor:
    """Shift coordinates by a random offset, or map them to a random subset of a larger range.

    An offset shifts coordinates above 0 only: one offset for the batch as in Abacus (arXiv
    2405.17399 §3), or one for each line as in position coupling (arXiv 2405.20671 §4). A sorted
    random subset is drawn once for the batch (arXiv 2305.16843 §3).

    Args:
        scheme: the scheme that encodes the coordinate.
        number: its number among the schemes of the model, starting at 0, for the message of an error.
        values: int (G, T).
        batch: B.
        generator: a CPU generator.

    Returns:
        int (G, T), or (B, T) where the offset differs between lines.
    """
    if scheme.offset != "none":
        num_offsets = batch if scheme.offset == "sample" else 1
        offset = torch.randint(scheme.max_offset + 1, (num_offsets, 1), generator=generator)
        return values + offset.to(values.device) * (values > 0)
    if scheme.subset_of:
        # Index 0 is a position like any other; place 0 is not the place of a digit.
        smallest = 0 if scheme.coordinate == "index" else 1
        num_positions = int(values.max()) + 1 - smallest
        if num_positions < 1:
            return values
        if num_positions > scheme.subset_of:
            raise ConfigurationError(
                f"subset_of must be at least the {num_positions} positions of a line, got "
                f"{scheme.subset_of}. Try --model.positions.{number}.subset_of {4 * num_positions}."
            )
        permuted = torch.randperm(scheme.subset_of, generator=generator)
        subset = permuted[:num_positions].sort().values + smallest
        mapped = subset.to(values.device)[(values - smallest).clamp(min=0).long()]
        return torch.where(values >= smallest, mapped.to(values.dtype), values)
    return values
