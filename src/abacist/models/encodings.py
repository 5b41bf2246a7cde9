"""Encodings: how a coordinate enters the model. There are three kinds.

* Vectors (learned, sinusoidal) are added to the input, or to queries and keys.
* Rotations (rotary) turn queries and keys.
* Biases (relative, ALiBi, FIRE) are added to attention scores.

Functions of a query and a key take the coordinates of both as int tensors that broadcast against
each other; `…` in a shape is the broadcast shape. A negative coordinate means that the token has
none (`Coordinates.NO_PLACE` or `Coordinates.EVERYWHERE`).

An encoding of a user's own is a `VectorEncoding`, a `DifferenceBias` or a `CoordinateBias`:

    @position_encoding("steps")
    class Steps(DifferenceBias):
        def bias(self, difference):
            return -difference.abs().unsqueeze(-1).expand(*difference.shape, self.num_heads)
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from abacist.errors import ConfigurationError, ProblemError
from abacist.extensions import check_name
from abacist.models.config import PositionScheme
from abacist.models.coordinates import Coordinates
from abacist.models.encoding_kinds import ENCODINGS, EncodingKind

INVISIBLE = -1e30
"""Score of a pair that must not attend. It is finite, so a query without any key gives no NaN."""


# Vectors ------------------------------------------------------------------------------------


class VectorEncoding(nn.Module):
    """Base class of encodings that have a vector of `width` numbers for each coordinate.

    A subclass defines `vectors`, and its trained parameters in `__init__`.
    """

    def __init__(self, scheme: PositionScheme, width: int) -> None:
        super().__init__()
        self.scheme, self.width = scheme, width

    def vectors(self, coordinate: Tensor) -> Tensor:
        """Return the vectors, (…, width), of coordinates, int (…); 0 where a token has none."""
        raise NotImplementedError

    def forward(self, values_GT: Tensor) -> Tensor:
        """Return the vectors of coordinates, (G, T, width)."""
        return self.vectors(values_GT.clamp(min=0))


class LearnedEncoding(VectorEncoding):
    """A trained vector for every value of a coordinate.

    Over the index, this is GPT-2's. Over the place with random offsets, it is Abacus (arXiv
    2405.17399 §3) or position coupling (arXiv 2405.20671 §4). Tokens without a coordinate share
    row 0, as in Abacus.
    """

    def __init__(self, scheme: PositionScheme, width: int) -> None:
        super().__init__(scheme, width)
        self.number = 0
        """Number of the scheme in the settings of the model, which an error message names."""
        self.rows = nn.Embedding(scheme.num_positions, width)
        nn.init.normal_(self.rows.weight, std=scheme.init_std or 0.5)

    def vectors(self, coordinate: Tensor) -> Tensor:
        """Return rows of the table, (…, width).

        Raises `ProblemError` where a coordinate has no vector, unless it is clamped.
        """
        if self.scheme.beyond == "clamp":
            coordinate = coordinate.clamp(max=self.scheme.num_positions - 1)
        # A file of another format reads the table itself, and refuses rows that are not there.
        largest = 0 if torch.compiler.is_exporting() else int(coordinate.max())
        if largest >= self.scheme.num_positions:
            raise ProblemError(
                f"this model's learned positions end at {self.scheme.coordinate} "
                f"{self.scheme.num_positions - 1}, but the line reaches {largest}. Type a shorter "
                f"problem, or train with a larger --model.positions.{self.number}.num_positions or "
                f"with --model.positions.{self.number}.beyond clamp."
            )
        vectors: Tensor = self.rows(coordinate)
        return vectors


class SinusoidalEncoding(VectorEncoding):
    """Sines and cosines of a coordinate p (Vaswani et al., arXiv 1706.03762 §3.5).

    PE(p, 2i) = sin(p / base^(2i / width)),  PE(p, 2i + 1) = cos(p / base^(2i / width))
    """

    def vectors(self, coordinate: Tensor) -> Tensor:
        """Return the waves, float64 (…, width)."""
        num_waves = -(-self.width // 2)
        angles = _angles(coordinate, num_waves, self.width, self.scheme.base)
        waves = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)
        return waves[..., : self.width]


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


class BiasEncoding(nn.Module):
    """Base class of encodings that are added to attention scores."""

    def __init__(self, scheme: PositionScheme, num_heads: int) -> None:
        super().__init__()
        self.scheme, self.num_heads = scheme, num_heads

    @staticmethod
    def inputs(scheme: PositionScheme, query: Tensor, key: Tensor, causal: bool = True) -> Tensor:
        """Return what `forward` needs to know of all pairs of query and key, (…) or (…, 2)."""
        raise NotImplementedError

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the biases of pairs, (…, H)."""
        raise NotImplementedError

    def largest(self) -> float:
        """Return an upper bound on the bias of every pair; infinite if none is known."""
        return math.inf

    def _in_own_dtype(self, numbers: Tensor) -> Tensor:
        """Return numbers in the type of the parameters, or in torch's default if there are none."""
        own = next(
            (x for x in (*self.parameters(), *self.buffers()) if x.is_floating_point()), None
        )
        return numbers.to(torch.get_default_dtype() if own is None else own.dtype)


class DifferenceBias(BiasEncoding):
    """Base class of biases that depend on the difference of two coordinates, key minus query.

    A subclass defines `bias`, and its trained parameters in `__init__`. With a window, only the
    differences inside it occur, so a certificate is possible.
    """

    @staticmethod
    def inputs(scheme: PositionScheme, query: Tensor, key: Tensor, causal: bool = True) -> Tensor:
        """Return the differences, (…), clipped to the window; 0 where a token has no coordinate."""
        difference = key - query
        if scheme.window is not None:
            # Pairs outside the window do not attend, whatever their bias.
            difference = difference.clamp(*scheme.window)
        if scheme.coordinate == "index":
            return difference
        return torch.where((query < 0) | (key < 0), 0, difference)

    def bias(self, difference: Tensor) -> Tensor:
        """Return the biases, (…, H), of differences (…), which have the type of the parameters."""
        raise NotImplementedError

    def forward(self, inputs: Tensor) -> Tensor:
        return self.bias(self._in_own_dtype(inputs))

    def in_window(self) -> Tensor:
        """Return the biases of all differences in the window, in ascending order, (differences, H)."""
        assert self.scheme.window is not None
        low, high = self.scheme.window
        device = next((x.device for x in (*self.parameters(), *self.buffers())), None)
        return self.forward(torch.arange(low, high + 1, device=device))

    def largest(self) -> float:
        return math.inf if self.scheme.window is None else float(self.in_window().abs().max())


class CoordinateBias(BiasEncoding):
    """Base class of biases that depend on the coordinates of query and key.

    A subclass defines `bias`, and its trained parameters in `__init__`. No certificate covers all
    lengths, since coordinates grow with the length of a line.
    """

    @staticmethod
    def inputs(scheme: PositionScheme, query: Tensor, key: Tensor, causal: bool = True) -> Tensor:
        """Return the coordinates of query and key, (…, 2); 0 where a token has none."""
        return torch.stack([query + 0 * key, key + 0 * query], dim=-1).clamp(min=0)

    def bias(self, query: Tensor, key: Tensor) -> Tensor:
        """Return the biases, (…, H), of pairs of coordinates, (…) each, in the type of the parameters."""
        raise NotImplementedError

    def forward(self, inputs: Tensor) -> Tensor:
        query, key = self._in_own_dtype(inputs).unbind(-1)
        return self.bias(query, key)


class RelativeBias(BiasEncoding):
    """A trained bias for each head and each bucket of key coordinate minus query coordinate.

    With `num_buckets`, the buckets are T5's (arXiv 1910.10683 §2.1). Otherwise every difference
    has its own, clipped to the window or to ± `max_distance`; over places, that is new in this
    package. Pairs in which a token has no coordinate share the last bucket.
    """

    def __init__(self, scheme: PositionScheme, num_heads: int) -> None:
        super().__init__(scheme, num_heads)
        low, high = difference_range(scheme)
        num_buckets = scheme.num_buckets or high - low + 1
        table = torch.zeros(num_buckets + 1, num_heads)
        # Without an init_std nothing is drawn, so models that have none keep their random numbers.
        self.table = nn.Parameter(table.normal_(std=scheme.init_std) if scheme.init_std else table)

    @staticmethod
    def inputs(scheme: PositionScheme, query: Tensor, key: Tensor, causal: bool = True) -> Tensor:
        """Return the buckets, (…)."""
        return buckets(scheme, query, key, causal)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the biases of buckets, (…, H)."""
        return select_rows(self.table, inputs)

    def largest(self) -> float:
        return float(self.table.abs().max())


class AlibiBias(BiasEncoding):
    """A fixed penalty per step of distance, with another slope for each head (arXiv 2108.12409 §3)."""

    def __init__(self, scheme: PositionScheme, num_heads: int) -> None:
        super().__init__(scheme, num_heads)
        slopes = (
            torch.full((num_heads,), scheme.slope) if scheme.slope else _alibi_slopes(num_heads)
        )
        self.register_buffer("slopes", slopes, persistent=False)

    @staticmethod
    def inputs(scheme: PositionScheme, query: Tensor, key: Tensor, causal: bool = True) -> Tensor:
        """Return the distances, (…)."""
        return distance(scheme, query, key)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the biases of distances, (…, H)."""
        assert isinstance(self.slopes, Tensor)
        return -inputs.unsqueeze(-1) * self.slopes

    def largest(self) -> float:
        return 0.0


def _alibi_slopes(num_heads: int) -> Tensor:
    """Return 2^(-8/n), 2^(-16/n), … for n heads, (H,), as the authors' code does.

    Where n is not a power of two, take the slopes of the next smaller power, then every other
    slope of the next larger one.
    """
    power = 2 ** math.floor(math.log2(num_heads))
    slopes = [2 ** (-8 * i / power) for i in range(1, power + 1)]
    between = [2 ** (-4 * i / power) for i in range(1, 2 * (num_heads - power), 2)]
    return torch.tensor(slopes + between)


class FireBias(BiasEncoding):
    """A small trained function of distance relative to the query's position (arXiv 2310.04418 §3).

        b(i, j) = f(ψ(i - j) / ψ(max(L, i))),  ψ(x) = log(c·x + 1)

    c, L and an MLP f with 32 hidden units are trained. The absolute values of c and L are used, so
    both stay positive.
    """

    def __init__(self, scheme: PositionScheme, num_heads: int) -> None:
        super().__init__(scheme, num_heads)
        self.scale = nn.Parameter(torch.tensor(0.1))
        self.threshold = nn.Parameter(torch.tensor(512.0))
        self.hidden = nn.Linear(1, 32)
        self.output = nn.Linear(32, num_heads)

    @staticmethod
    def inputs(scheme: PositionScheme, query: Tensor, key: Tensor, causal: bool = True) -> Tensor:
        """Return the distance and the query's coordinate, (…, 2)."""
        distances = distance(scheme, query, key)
        return torch.stack([distances, query.clamp(min=0).expand_as(distances)], dim=-1)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the biases of pairs, (…, H)."""
        pair = inputs.to(self.scale.dtype)
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


def bias_input(scheme: PositionScheme, query: Tensor, key: Tensor, causal: bool = True) -> Tensor:
    """Return the argument of a scheme's bias for all pairs of query and key, (…) or (…, 2)."""
    cls: type[BiasEncoding] = ENCODINGS[scheme.encoding].find_class()
    return cls.inputs(scheme, query, key, causal)


def distance(scheme: PositionScheme, query: Tensor, key: Tensor) -> Tensor:
    """Return |key - query|, (…); 0 where a token has no coordinate."""
    distances = (key - query).abs()
    if scheme.coordinate == "index":
        return distances
    return torch.where((query < 0) | (key < 0), 0, distances)


def select_rows(table: Tensor, rows: Tensor) -> Tensor:
    """Return `table[rows]`, rows.shape + (columns,), for a table of few rows.

    The gradient of `index_select` adds whole rows, which on a CPU takes half the time of a product
    with one-hot rows, and a fifth of the gradient of indexing. On a GPU it would add them in any
    order, so that the same seed gave other bits, and the product is as fast.
    """
    if table.device.type == "cpu":
        return table.index_select(0, rows.flatten().long()).view(*rows.shape, -1)
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
    difference = key - query
    inside = (difference >= low) & (difference <= high)
    if scheme.coordinate == "index":
        return inside
    return (inside & (query >= 0) & (key >= 0)) | (key == Coordinates.EVERYWHERE)


# Encodings by name --------------------------------------------------------------------------


def make_encoding(scheme: PositionScheme, size: int) -> nn.Module:
    """Build the encoding of a scheme.

    Args:
        scheme: a scheme that adds a vector or a bias.
        size: the width of a vector, or the number of heads that have a bias.

    Raises `ConfigurationError` if an encoding of an extension fails, or returns the wrong shape.
    """
    kind = ENCODINGS[scheme.encoding]
    cls = kind.find_class()
    if isinstance(kind.implementation, str):
        built_in: nn.Module = cls(scheme, size)
        return built_in
    name = f"the position encoding {scheme.encoding!r}"
    example = torch.arange(3)
    if issubclass(cls, BiasEncoding):
        example = cls.inputs(scheme, example, example)
    try:
        encoding: nn.Module = cls(scheme, size)
        with torch.no_grad():
            numbers = encoding(example)
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigurationError(f"{name} failed: {reason}. Correct {cls.__name__}.") from error
    if not isinstance(numbers, Tensor) or tuple(numbers.shape) != (3, size):
        got = tuple(numbers.shape) if isinstance(numbers, Tensor) else type(numbers).__name__
        raise ConfigurationError(
            f"{name} must return a tensor of shape (3, {size}) for 3 tokens, got {got}. "
            f"Correct {cls.__name__}."
        )
    return encoding


Encoding = TypeVar(
    "Encoding", bound=type[VectorEncoding] | type[DifferenceBias] | type[CoordinateBias]
)


def position_encoding(name: str, *settings: str) -> Callable[[Encoding], Encoding]:
    """Register the decorated class as a position encoding.

    Args:
        name: what a position scheme calls the encoding, as in `--model.positions.0.encoding NAME`.
        settings: settings of `PositionScheme` that only some encodings use and this one does:
            `init_std` or `slope`.

    Raises `ConfigurationError` if the name is taken or the class is no encoding.
    """
    check_name("position encoding", name)

    def register(cls: Encoding) -> Encoding:
        bases: dict[type[Any], EncodingKind] = {
            VectorEncoding: EncodingKind("vector", "coordinates", cls, settings),
            DifferenceBias: EncodingKind("bias", "differences", cls, settings),
            CoordinateBias: EncodingKind("bias", "coordinates", cls, settings),
        }
        kinds = [
            kind for base, kind in bases.items() if isinstance(cls, type) and issubclass(cls, base)
        ]
        if not kinds:
            raise ConfigurationError(
                f"the position encoding {name!r} must be a class derived from VectorEncoding, "
                f"DifferenceBias or CoordinateBias, got {getattr(cls, '__name__', cls)}."
            )
        ENCODINGS.register(name, kinds[0])
        return cls

    return register
