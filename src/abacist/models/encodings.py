"""Encodings: how a coordinate enters the model."""

import torch
from torch import Tensor, nn

from abacist.errors import ProblemError
from abacist.models.config import PositionScheme
from abacist.models.coordinates import Coordinates

INVISIBLE = -1e30
"""Score of a pair that must not attend. Finite, so that a row without any key is no NaN."""


class LearnedEncoding(nn.Module):
    """A trained vector for every value of a coordinate, added to the token embedding.

    With coordinate `index` and no offset: GPT-2. With `place` and one random offset a batch:
    Abacus (arXiv 2405.17399 §3); with one a sample: position coupling (arXiv 2405.20671 §4).
    The offset moves coordinates above 0 only, as in both papers.
    """

    def __init__(self, scheme: PositionScheme, width: int) -> None:
        super().__init__()
        self.scheme = scheme
        self.rows = nn.Embedding(scheme.num_positions, width)
        nn.init.normal_(self.rows.weight, std=0.5)

    def forward(self, coordinates: Coordinates, batch: int, seed: torch.Generator | None) -> Tensor:
        """(G, T, D), where G becomes `batch` under per-sample offsets.

        Offsets are drawn from `seed`, or are 0 where it is None (evaluation).
        """
        values = coordinates.of(self.scheme.coordinate)
        if seed is not None and self.scheme.offset != "none":
            count = batch if self.scheme.offset == "sample" else 1
            offset = torch.randint(self.scheme.max_offset + 1, (count, 1), generator=seed)
            values = values + offset.to(values.device) * (values > 0)
        largest = int(values.max())
        if largest >= self.scheme.num_positions:
            raise ProblemError(
                f"this model's learned positions end at {self.scheme.coordinate} "
                f"{self.scheme.num_positions - 1}, the line reaches {largest}. Type a shorter "
                "problem, or train with a larger --model.positions.0.num_positions."
            )
        embedded: Tensor = self.rows(values)
        return embedded


class RelativeBias(nn.Module):
    """A trained bias on attention scores, per head, by key coordinate minus query coordinate.

    As T5's relative bias (arXiv 1910.10683 §2.1) without its logarithmic buckets; over places it
    is this package's own. Differences are clipped to the window, or to ± `max_distance`; pairs in
    which a token has no column share one bucket.
    """

    def __init__(self, scheme: PositionScheme, num_heads: int) -> None:
        super().__init__()
        low, high = difference_range(scheme)
        self.table = nn.Parameter(torch.zeros(high - low + 2, num_heads))

    def forward(self, buckets: Tensor) -> Tensor:
        """buckets.shape + (H,)"""
        return select_rows(self.table, buckets)


def select_rows(table: Tensor, rows: Tensor) -> Tensor:
    """`table[rows]` for a table of few rows, by a product with one-hot rows.

    The values are the same to the bit. The gradient of indexing scatters, which is several times
    slower on a CPU than the gradient of a product.
    """
    one_hot = rows.unsqueeze(-1) == torch.arange(len(table), device=rows.device)
    return one_hot.to(table.dtype) @ table


def difference_range(scheme: PositionScheme) -> tuple[int, int]:
    """The smallest and largest difference of coordinates that a relative encoding tells apart."""
    return scheme.window or (-scheme.max_distance, scheme.max_distance)


def raw(scheme: PositionScheme, coordinates: Coordinates) -> Tensor:
    """The values a relative encoding subtracts, (G, T)."""
    return coordinates.index if scheme.coordinate == "index" else coordinates.place


def buckets(scheme: PositionScheme, query: Tensor, key: Tensor) -> Tensor:
    """Bucket of every pair of raw values; the arguments broadcast."""
    low, high = difference_range(scheme)
    difference = (key - query).clamp(low, high) - low
    if scheme.coordinate == "index":
        return difference
    return torch.where((query < 0) | (key < 0), high - low + 1, difference)


def inside_window(scheme: PositionScheme, query: Tensor, key: Tensor) -> Tensor | None:
    """Which pairs of raw values a window lets through; None where there is no window.

    A query sees keys whose difference lies inside the window and keys that stand in every
    column. (It also sees itself, which is for the caller to add.)
    """
    if scheme.window is None:
        return None
    low, high = scheme.window
    inside = (key - query >= low) & (key - query <= high)
    if scheme.coordinate == "index":
        return inside
    return (inside & (query >= 0) & (key >= 0)) | (key == Coordinates.EVERYWHERE)
