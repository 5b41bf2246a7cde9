"""Encodings: how a coordinate enters the model. There are three kinds.

* Vectors (learned, sinusoidal) are added to the input, or to queries and keys.
* Rotations (rotary) turn queries and keys.
* Biases (relative, ALiBi, FIRE) are added to attention scores.

Functions of a query and a key take the coordinates of both as int tensors that broadcast against
each other; `…` in a shape is the broadcast shape. A negative coordinate means that the token has
none (`Coordinates.NO_PLACE` or `Coordinates.EVERYWHERE`).
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from abacist.errors import ProblemError
from abacist.models.config import PositionScheme
from abacist.models.coordinates import Coordinates

INVISIBLE = -1e30
"""Score of a pair that must not attend. It is finite, so a query without any key gives no NaN."""

_MOST_INDEXED = 64
"""Largest number of rows for which indexing is faster than a product with one-hot rows."""

BIASING = ("relative", "alibi", "fire")
"""Encodings that are added to attention scores."""


# Vectors ------------------------------------------------------------------------------------


class LearnedEncoding(nn.Module):
    """A trained vector for every value of a coordinate.

    Over the index, this is GPT-2's. Over the place with random offsets, it is Abacus (arXiv
    2405.17399 §3) or position coupling (arXiv 2405.20671 §4). Tokens without a coordinate share
    row 0, as in Abacus.
    """

    def __init__(self, scheme: PositionScheme, width: int) -> None:
        super().__init__()
        self.scheme = scheme
        self.rows = nn.Embedding(scheme.num_positions, width)
        nn.init.normal_(self.rows.weight, std=scheme.init_std or 0.5)

    def forward(self, values_GT: Tensor) -> Tensor:
        """Return the vectors of coordinates, (G, T, width).

        Raises `ProblemError` where a coordinate has no vector.
        """
        values_GT = values_GT.clamp(min=0)
        largest = int(values_GT.max())
        if largest >= self.scheme.num_positions:
            raise ProblemError(
                f"this model's learned positions end at {self.scheme.coordinate} "
                f"{self.scheme.num_positions - 1}, but the line reaches {largest}. Type a shorter "
                "problem, or train with a larger --model.positions.0.num_positions."
            )
        vectors: Tensor = self.rows(values_GT)
        return vectors


class SinusoidalEncoding(nn.Module):
    """Sines and cosines of a coordinate p (Vaswani et al., arXiv 1706.03762 §3.5).

    PE(p, 2i) = sin(p / base^(2i / width)),  PE(p, 2i + 1) = cos(p / base^(2i / width))
    """

    def __init__(self, scheme: PositionScheme, width: int) -> None:
        super().__init__()
        self.base, self.width = scheme.base, width

    def forward(self, values_GT: Tensor) -> Tensor:
        """Return the vectors of coordinates, float64 (G, T, width)."""
        num_waves = -(-self.width // 2)
        angles = _angles(values_GT.clamp(min=0), num_waves, self.width, self.base)
        waves = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)
        return waves[..., : self.width]


def make_vector_encoding(scheme: PositionScheme, width: int) -> nn.Module:
    """Build the encoding of a scheme that has a vector of `width` numbers for each coordinate."""
    learned = scheme.encoding == "learned"
    return LearnedEncoding(scheme, width) if learned else SinusoidalEncoding(scheme, width)


def _angles(values: Tensor, num_waves: int, width: int, base: float) -> Tensor:
    """Return values × base^(-2i / width) for i < num_waves, float64 values.shape + (num_waves,)."""
    exponents = torch.arange(num_waves, dtype=torch.float64, device=values.device) * (-2 / width)
    return values.unsqueeze(-1).double() * base**exponents


# Rotations ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class QueryKeyEncoding:
    """What queries and keys receive of their tokens' coordinates, the same in every layer."""

    added: Tensor | None
    """A vector added to queries and keys, (T, G, H, K); None adds nothing."""
    rotations: list[tuple[Tensor, Tensor]]
    """One pair of cosines and sines for each rotary scheme, (T, G, 1, K / 2 / number of rotary schemes) each."""

    def __getitem__(self, tokens: slice) -> "QueryKeyEncoding":
        added = None if self.added is None else self.added[tokens]
        return QueryKeyEncoding(added, [(cos[tokens], sin[tokens]) for cos, sin in self.rotations])

    def apply(self, x_TBHK: Tensor) -> Tensor:
        """Return queries or keys with their positions encoded, (T, B, H, K)."""
        if self.added is not None:
            x_TBHK = x_TBHK + self.added
        if not self.rotations:
            return x_TBHK
        rotated = []
        for share, (cos, sin) in zip(
            x_TBHK.chunk(len(self.rotations), dim=-1), self.rotations, strict=True
        ):
            first, second = share.chunk(2, dim=-1)
            rotated += [first * cos - second * sin, first * sin + second * cos]
        return torch.cat(rotated, dim=-1)


def rotation(
    scheme: PositionScheme, values_GT: Tensor, width: int, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Return the cosines and sines of RoPE (Su et al., arXiv 2104.09864 §3.4), (T, G, 1, width / 2).

    `width` is the number of a head's dimensions that this scheme rotates. Dimension i is paired
    with i + width / 2, as in most code; the paper pairs neighbours, which is the same up to the
    order of dimensions. Tokens without a coordinate are not rotated.
    """
    angles = _angles(values_GT.clamp(min=0), width // 2, width, scheme.base)
    angles = angles.transpose(0, 1).unsqueeze(2)
    return angles.cos().to(dtype), angles.sin().to(dtype)


# Biases -------------------------------------------------------------------------------------


class RelativeBias(nn.Module):
    """A trained bias for each head and each bucket of key coordinate minus query coordinate.

    With `num_buckets`, the buckets are T5's (arXiv 1910.10683 §2.1). Otherwise every difference
    has its own, clipped to the window or to ± `max_distance`; over places, that is new in this
    package. Pairs in which a token has no coordinate share the last bucket.
    """

    def __init__(self, scheme: PositionScheme, num_heads: int) -> None:
        super().__init__()
        low, high = difference_range(scheme)
        num_buckets = scheme.num_buckets or high - low + 1
        table = torch.zeros(num_buckets + 1, num_heads)
        # Without an init_std nothing is drawn, so models that have none keep their random numbers.
        self.table = nn.Parameter(table.normal_(std=scheme.init_std) if scheme.init_std else table)

    def forward(self, buckets: Tensor) -> Tensor:
        """Return the biases of buckets, buckets.shape + (H,)."""
        return select_rows(self.table, buckets)


class AlibiBias(nn.Module):
    """A fixed penalty per step of distance, with another slope for each head (arXiv 2108.12409 §3)."""

    def __init__(self, scheme: PositionScheme, num_heads: int) -> None:
        super().__init__()
        slopes = (
            torch.full((num_heads,), scheme.slope) if scheme.slope else _alibi_slopes(num_heads)
        )
        self.register_buffer("slopes", slopes, persistent=False)

    def forward(self, distance: Tensor) -> Tensor:
        """Return the biases of distances, distance.shape + (H,)."""
        assert isinstance(self.slopes, Tensor)
        return -distance.unsqueeze(-1) * self.slopes


def _alibi_slopes(num_heads: int) -> Tensor:
    """Return 2^(-8/n), 2^(-16/n), … for n heads, (H,), as the authors' code does.

    Where n is not a power of two, take the slopes of the next smaller power, then every other
    slope of the next larger one.
    """
    power = 2 ** math.floor(math.log2(num_heads))
    slopes = [2 ** (-8 * i / power) for i in range(1, power + 1)]
    between = [2 ** (-4 * i / power) for i in range(1, 2 * (num_heads - power), 2)]
    return torch.tensor(slopes + between)


class FireBias(nn.Module):
    """A small trained function of distance relative to the query's position (arXiv 2310.04418 §3).

        b(i, j) = f(ψ(i - j) / ψ(max(L, i))),  ψ(x) = log(c·x + 1)

    c, L and an MLP f with 32 hidden units are trained. The absolute values of c and L are used, so
    both stay positive.
    """

    def __init__(self, scheme: PositionScheme, num_heads: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(0.1))
        self.threshold = nn.Parameter(torch.tensor(512.0))
        self.hidden = nn.Linear(1, 32)
        self.output = nn.Linear(32, num_heads)

    def forward(self, pair: Tensor) -> Tensor:
        """Return the biases of pairs, (…, H); `pair`, (…, 2), holds distance and query coordinate."""
        pair = pair.to(self.scale.dtype)
        scale = self.scale.abs()
        distance = torch.log(scale * pair[..., 0] + 1)
        largest = torch.maximum(self.threshold.abs(), pair[..., 1])
        relative = distance / torch.log(scale * largest + 1)
        bias: Tensor = self.output(torch.relu(self.hidden(relative.unsqueeze(-1))))
        return bias

    def tabulate(self, num_distances: int, num_queries: int) -> Tensor:
        """Return the biases of all smaller distances and query coordinates, (distances, queries, H)."""
        device = self.scale.device
        distances = torch.arange(num_distances, device=device)
        queries = torch.arange(num_queries, device=device)
        pairs = torch.stack(torch.meshgrid(distances, queries, indexing="ij"), dim=-1)
        return self.forward(pairs)


def make_bias(scheme: PositionScheme, num_heads: int) -> nn.Module:
    """Build the encoding of a scheme that is added to attention scores."""
    kind = {"relative": RelativeBias, "alibi": AlibiBias, "fire": FireBias}[scheme.encoding]
    return kind(scheme, num_heads)


def bias_input(scheme: PositionScheme, query: Tensor, key: Tensor, causal: bool = True) -> Tensor:
    """Return the argument of a scheme's bias for all pairs of query and key.

    It is the bucket (…) for a relative bias, the distance (…) for ALiBi, and distance and query
    coordinate (…, 2) for FIRE.
    """
    if scheme.encoding == "relative":
        return buckets(scheme, query, key, causal)
    distances = distance(scheme, query, key)
    if scheme.encoding == "alibi":
        return distances
    return torch.stack([distances, query.clamp(min=0).expand_as(distances)], dim=-1)


def distance(scheme: PositionScheme, query: Tensor, key: Tensor) -> Tensor:
    """Return |key - query|, (…); 0 where a token has no coordinate."""
    distances = (key - query).abs()
    if scheme.coordinate == "index":
        return distances
    return torch.where((query < 0) | (key < 0), 0, distances)


def select_rows(table: Tensor, rows: Tensor) -> Tensor:
    """Return `table[rows]`, rows.shape + (columns,), for a table of few rows.

    It is a product with one-hot rows. The values are the same to the bit, but the gradient of
    indexing is a scatter, which is several times slower on a CPU than the gradient of a product.
    Single tokens without a gradient are indexed, which takes fewer operations.
    """
    if rows.numel() <= _MOST_INDEXED and not torch.is_grad_enabled():
        return nn.functional.embedding(rows.long(), table)
    one_hot = rows.unsqueeze(-1) == torch.arange(len(table), device=rows.device)
    return one_hot.to(table.dtype) @ table


def difference_range(scheme: PositionScheme) -> tuple[int, int]:
    """Return the smallest and largest difference of coordinates that a relative bias distinguishes."""
    return scheme.window or (-scheme.max_distance, scheme.max_distance)


def buckets(scheme: PositionScheme, query: Tensor, key: Tensor, causal: bool = True) -> Tensor:
    """Return the relative bias's row for all pairs of query and key, (…).

    Differences are key minus query. Pairs in which a token has no coordinate get the last row.
    """
    if scheme.num_buckets:
        only_earlier = causal and scheme.coordinate == "index"
        bucket = _t5_bucket(key - query, scheme.num_buckets, scheme.max_distance, only_earlier)
        last = scheme.num_buckets
    else:
        low, high = difference_range(scheme)
        bucket, last = (key - query).clamp(low, high) - low, high - low + 1
    if scheme.coordinate == "index":
        return bucket
    return torch.where((query < 0) | (key < 0), last, bucket)


def _t5_bucket(
    difference: Tensor, num_buckets: int, max_distance: int, only_earlier: bool
) -> Tensor:
    """Return T5's buckets: one for each small distance, then ever wider ones up to `max_distance`.

    With `only_earlier`, keys never come after the query, so all buckets serve earlier keys;
    otherwise each side has half of them.
    """
    num_side = num_buckets if only_earlier else num_buckets // 2
    num_exact = num_side // 2
    distance = (-difference).clamp(min=0) if only_earlier else difference.abs()
    ratio = (distance.clamp(min=1).double() / num_exact).log() / math.log(max_distance / num_exact)
    wide = (num_exact + (ratio * (num_side - num_exact)).long()).clamp(max=num_side - 1)
    bucket = torch.where(distance < num_exact, distance.long(), wide)
    return bucket if only_earlier else bucket + num_side * (difference > 0)


def inside_window(scheme: PositionScheme, query: Tensor, key: Tensor) -> Tensor | None:
    """Return which pairs a scheme's window lets attend, bool (…); None where it has no window.

    A query sees keys whose difference to it is inside the window, and keys that stand in every
    column. It also sees itself, which the caller must add.
    """
    if scheme.window is None:
        return None
    low, high = scheme.window
    inside = (key - query >= low) & (key - query <= high)
    if scheme.coordinate == "index":
        return inside
    return (inside & (query >= 0) & (key >= 0)) | (key == Coordinates.EVERYWHERE)
