"""Encodings: how a coordinate enters the model.

Vectors (learned, sinusoidal) are added to the input or to queries and keys; rotations turn queries
and keys; biases (relative, ALiBi, FIRE) are added to attention scores.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from abacist.errors import ProblemError
from abacist.models.config import PositionScheme
from abacist.models.coordinates import Coordinates

INVISIBLE = -1e30
"""Score of a pair that must not attend. Finite, so that a row without any key is no NaN."""

BIASING = ("relative", "alibi", "fire")
"""Encodings that add to attention scores."""


# Vectors ------------------------------------------------------------------------------------


class LearnedEncoding(nn.Module):
    """A trained vector for every value of a coordinate.

    Over the index: GPT-2. Over the place, with random offsets: Abacus (arXiv 2405.17399 §3) and
    position coupling (arXiv 2405.20671 §4). Tokens without a place share row 0, as in Abacus.
    """

    def __init__(self, scheme: PositionScheme, width: int) -> None:
        super().__init__()
        self.scheme = scheme
        self.rows = nn.Embedding(scheme.num_positions, width)
        nn.init.normal_(self.rows.weight, std=scheme.init_std or 0.5)

    def forward(self, values: Tensor) -> Tensor:
        """(G, T) to (G, T, width)"""
        values = values.clamp(min=0)
        largest = int(values.max())
        if largest >= self.scheme.num_positions:
            raise ProblemError(
                f"this model's learned positions end at {self.scheme.coordinate} "
                f"{self.scheme.num_positions - 1}, the line reaches {largest}. Type a shorter "
                "problem, or train with a larger --model.positions.0.num_positions."
            )
        embedded: Tensor = self.rows(values)
        return embedded


class SinusoidalEncoding(nn.Module):
    """Sines and cosines of geometrically growing wave length (Vaswani et al., arXiv 1706.03762 §3.5)."""

    def __init__(self, scheme: PositionScheme, width: int) -> None:
        super().__init__()
        self.base, self.width = scheme.base, width

    def forward(self, values: Tensor) -> Tensor:
        """(G, T) to (G, T, width), float64"""
        angles = _angles(values.clamp(min=0), -(-self.width // 2), self.width, self.base)
        waves = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)
        return waves[..., : self.width]


def make_vectors(scheme: PositionScheme, width: int) -> nn.Module:
    """The encoding of a scheme that has a vector for each coordinate."""
    learned = scheme.encoding == "learned"
    return LearnedEncoding(scheme, width) if learned else SinusoidalEncoding(scheme, width)


def _angles(values: Tensor, pairs: int, width: int, base: float) -> Tensor:
    """values.shape + (pairs,): each value times base^(-2i / width), float64."""
    exponents = torch.arange(pairs, dtype=torch.float64, device=values.device) * (-2 / width)
    return values.unsqueeze(-1).double() * base**exponents


# Rotations ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class QueryKeyPositions:
    """What queries and keys are told of their own token, in every layer."""

    added: Tensor | None
    """(T, G, H, K): a vector added to both."""
    rotations: list[tuple[Tensor, Tensor]]
    """Cosine and sine, (T, G, 1, K / 2 / number of rotations) each: every rotation has its share of a head."""

    def __getitem__(self, tokens: slice) -> "QueryKeyPositions":
        added = None if self.added is None else self.added[tokens]
        return QueryKeyPositions(added, [(cos[tokens], sin[tokens]) for cos, sin in self.rotations])

    def apply(self, x_TBHK: Tensor) -> Tensor:
        """Queries or keys that know where they stand."""
        if self.added is not None:
            x_TBHK = x_TBHK + self.added
        if not self.rotations:
            return x_TBHK
        parts = []
        for part, (cos, sin) in zip(
            x_TBHK.chunk(len(self.rotations), dim=-1), self.rotations, strict=True
        ):
            first, second = part.chunk(2, dim=-1)
            parts += [first * cos - second * sin, first * sin + second * cos]
        return torch.cat(parts, dim=-1)


def rotation(
    scheme: PositionScheme, values: Tensor, width: int, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Cosine and sine of RoPE (Su et al., arXiv 2104.09864 §3.4) for a share `width` of a head.

    Number i is paired with number i + width / 2, as in most code; the paper pairs neighbours,
    which is the same up to the order of a head's numbers. Tokens without a coordinate stay.
    """
    angles = _angles(values.clamp(min=0), width // 2, width, scheme.base)
    angles = angles.transpose(0, 1).unsqueeze(2)
    return angles.cos().to(dtype), angles.sin().to(dtype)


# Biases -------------------------------------------------------------------------------------


class RelativeBias(nn.Module):
    """A trained bias on attention scores, per head, by key coordinate minus query coordinate.

    With buckets: T5's (arXiv 1910.10683 §2.1). Without, one number for every difference, clipped to
    the window or to ± `max_distance`; over places that is this package's own. Pairs in which a
    token has no place share one bucket.
    """

    def __init__(self, scheme: PositionScheme, num_heads: int) -> None:
        super().__init__()
        low, high = difference_range(scheme)
        count = scheme.num_buckets or high - low + 1
        table = torch.zeros(count + 1, num_heads)
        # Random numbers are drawn only where asked, so that other models begin as they always did.
        self.table = nn.Parameter(table.normal_(std=scheme.init_std) if scheme.init_std else table)

    def forward(self, buckets: Tensor) -> Tensor:
        """buckets.shape + (H,)"""
        return select_rows(self.table, buckets)


class AlibiBias(nn.Module):
    """A fixed loss of score for every step of distance, another for each head (arXiv 2108.12409 §3)."""

    def __init__(self, scheme: PositionScheme, num_heads: int) -> None:
        super().__init__()
        slopes = torch.full((num_heads,), scheme.slope) if scheme.slope else _slopes(num_heads)
        self.register_buffer("slopes", slopes, persistent=False)

    def forward(self, distance: Tensor) -> Tensor:
        """distance.shape + (H,)"""
        assert isinstance(self.slopes, Tensor)
        return -distance.unsqueeze(-1) * self.slopes


def _slopes(num_heads: int) -> Tensor:
    """2^(-8/n), 2^(-16/n) …; for numbers that are no power of two filled up as the authors do."""
    power = 2 ** math.floor(math.log2(num_heads))
    slopes = [2 ** (-8 * i / power) for i in range(1, power + 1)]
    between = [2 ** (-4 * i / power) for i in range(1, 2 * (num_heads - power), 2)]
    return torch.tensor(slopes + between)


class FireBias(nn.Module):
    """A small trained function of distance relative to the query's position (arXiv 2310.04418 §3).

        b(i, j) = f(ψ(i - j) / ψ(max(L, i))),  ψ(x) = log(c·x + 1)

    with c, L and an MLP f of 32 hidden numbers trained. c is kept positive by its absolute value.
    """

    def __init__(self, scheme: PositionScheme, num_heads: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(0.1))
        self.threshold = nn.Parameter(torch.tensor(512.0))
        self.hidden = nn.Linear(1, 32)
        self.output = nn.Linear(32, num_heads)

    def forward(self, pair: Tensor) -> Tensor:
        """pair: (…, 2), distance and query coordinate; (…, H)"""
        pair = pair.to(self.scale.dtype)
        scale = self.scale.abs()
        distance = torch.log(scale * pair[..., 0] + 1)
        largest = torch.maximum(self.threshold.abs(), pair[..., 1])
        relative = distance / torch.log(scale * largest + 1)
        bias: Tensor = self.output(torch.relu(self.hidden(relative.unsqueeze(-1))))
        return bias

    def listed(self, num_distances: int, num_queries: int) -> Tensor:
        """The bias of every distance 0 … and query coordinate 0 …, (distances, queries, H)."""
        device = self.scale.device
        apart = torch.arange(num_distances, device=device)
        query = torch.arange(num_queries, device=device)
        pairs = torch.stack(torch.meshgrid(apart, query, indexing="ij"), dim=-1)
        return self.forward(pairs)


def make_bias(scheme: PositionScheme, num_heads: int) -> nn.Module:
    """The bias of a scheme that adds to attention scores."""
    kind = {"relative": RelativeBias, "alibi": AlibiBias, "fire": FireBias}[scheme.encoding]
    return kind(scheme, num_heads)


def features(scheme: PositionScheme, query: Tensor, key: Tensor, causal: bool = True) -> Tensor:
    """What the bias of a scheme is a function of, for every pair; the arguments broadcast."""
    if scheme.encoding == "relative":
        return buckets(scheme, query, key, causal)
    apart = distance(scheme, query, key)
    if scheme.encoding == "alibi":
        return apart
    return torch.stack([apart, query.clamp(min=0).expand_as(apart)], dim=-1)


def distance(scheme: PositionScheme, query: Tensor, key: Tensor) -> Tensor:
    """How far apart two values are; 0 where a token has no place."""
    apart = (key - query).abs()
    if scheme.coordinate == "index":
        return apart
    return torch.where((query < 0) | (key < 0), 0, apart)


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


def buckets(scheme: PositionScheme, query: Tensor, key: Tensor, causal: bool = True) -> Tensor:
    """Bucket of every pair of values; the arguments broadcast."""
    if scheme.num_buckets:
        behind = causal and scheme.coordinate == "index"
        bucket = _logarithmic(key - query, scheme.num_buckets, scheme.max_distance, behind)
        without = scheme.num_buckets
    else:
        low, high = difference_range(scheme)
        bucket, without = (key - query).clamp(low, high) - low, high - low + 1
    if scheme.coordinate == "index":
        return bucket
    return torch.where((query < 0) | (key < 0), without, bucket)


def _logarithmic(difference: Tensor, num_buckets: int, max_distance: int, behind: bool) -> Tensor:
    """T5's buckets: one for each small distance, then ever wider ones up to `max_distance`.

    All of them are for keys behind the query where there are no others, else half for either side.
    """
    side = num_buckets if behind else num_buckets // 2
    exact = side // 2
    distance = (-difference).clamp(min=0) if behind else difference.abs()
    ratio = (distance.clamp(min=1).double() / exact).log() / math.log(max_distance / exact)
    larger = (exact + (ratio * (side - exact)).long()).clamp(max=side - 1)
    bucket = torch.where(distance < exact, distance.long(), larger)
    return bucket if behind else bucket + side * (difference > 0)


def inside_window(scheme: PositionScheme, query: Tensor, key: Tensor) -> Tensor | None:
    """Which pairs of values a window lets through; None where there is no window.

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
