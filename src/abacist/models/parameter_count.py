"""Parameters and multiply-adds of a model by component, from its settings alone.

Imports torch only for the position encodings of extensions, whose parameters are counted.

These formulas stand beside the code that builds the model, so that each checks the other: a test
compares their sum with the number of parameters of real models.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from abacist.models.config import ModelConfig, PositionScheme

BYTES_PER_PARAMETER = 4
"""Parameters are stored as float32."""


@dataclass(frozen=True)
class Component:
    """One kind of component of a model."""

    name: str
    shape: str
    """Sizes of the matrices and vectors of one such component, such as `32 × 128 + 128`."""
    count: int
    """Number of such components in the model."""
    parameters: int
    """Trained parameters of all of them; 0 where they are shared with another component."""
    multiply_adds: int
    """Multiply-adds of all of them for one line."""
    input: str
    """Shape of what one of them reads of one line, such as `22 × 32` for 22 tokens."""
    output: str
    """Shape of what it writes."""


@dataclass(frozen=True)
class Block:
    """A part of a model in the order in which a token passes through them."""

    name: str
    """`input`, `layer 1` …, or `output`."""
    input: str
    """Shape of what it reads of one line."""
    output: str
    """Shape of what it writes."""
    parameters: int
    """Number of trained parameters in it; shared ones are counted where they are first used."""

    @property
    def bytes(self) -> int:
        """Number of bytes of its parameters, which are stored as float32."""
        return BYTES_PER_PARAMETER * self.parameters


def components(
    config: ModelConfig,
    vocabulary_size: int,
    num_tokens: int = 0,
    num_predicting: int | None = None,
) -> list[Component]:
    """Return all components in the order in which a token passes through them.

    Args:
        config: the model's settings.
        vocabulary_size: V.
        num_tokens: length of the line whose multiply-adds are counted. Attention is counted as if
            it paired all tokens with all, also where a window bounds it.
        num_predicting: number of last tokens that pass through the last layer and the head; None
            means all.
    """
    counted = _Counted(config, vocabulary_size, num_tokens, num_predicting)
    return [*counted.input(), *counted.attention(), *counted.mlp(), *counted.output()]


class _Counted:
    """A model whose components are counted, for one line."""

    def __init__(
        self,
        config: ModelConfig,
        vocabulary_size: int,
        num_tokens: int,
        num_predicting: int | None,
    ) -> None:
        """See `components` for the arguments."""
        self._config = config
        self._V = vocabulary_size
        self._T = num_tokens
        self._A = num_tokens if num_predicting is None else num_predicting
        """Number of tokens that pass through the last layer and the head."""
        self._depth = config.num_layers * config.recurrences
        self._queries = (self._depth - 1) * self._T + self._A
        """Sum of the numbers of queries over all layers passed through."""
        self._norm = 2 * config.width if config.norm == "layer" else config.width
        # Shapes of one line between components, in numbers where the length of the line is known.
        self._text = str(self._T or "T")
        self._stream = f"{self._text} × {config.width}"
        self._heads = f"{self._text} × {config.num_heads * config.width_of_head}"
        self._pairs = f"{config.num_heads} × {self._text} × {self._text}"

    def input(self) -> Iterator[Component]:
        """Yield what stands before the first layer."""
        config, D, text, stream = self._config, self._config.width, self._text, self._stream
        yield Component("token embedding", f"{self._V} × {D}", 1, self._V * D, 0, text, stream)
        for scheme in config.positions:
            width = D if scheme.added_to == "input" else config.num_heads * config.width_of_head
            size = _num_parameters(scheme, width) if scheme.adds == "vector" else 0
            if size:
                name = f"{scheme.encoding} {scheme.coordinate} embedding"
                shape = f"{size // width} × {width}" if size % width == 0 else f"{size}"
                yield Component(name, shape, 1, size, 0, text, f"{text} × {width}")
        if config.embedding_norm:
            norm = self._norm
            yield Component("embedding normalisation", f"{norm}", 1, norm, 0, stream, stream)
        if config.injection == "linear":
            mixing = 2 * D * D
            work = config.recurrences * self._T * mixing
            both = f"{text} × {2 * D}"
            yield Component("injection", f"{2 * D} × {D}", 1, mixing, work, both, stream)

    def attention(self) -> Iterator[Component]:
        """Yield the attention of all layers."""
        config, stream, heads, pairs = self._config, self._stream, self._heads, self._pairs
        D, H, L = config.width, config.num_heads, config.num_layers
        HK = H * config.width_of_head
        yield Component(
            "queries, keys, values",
            self._shape(f"3 × {D} × {HK}", "queries-keys-values", 3 * HK),
            L,
            L * (3 * D * HK + self._bias("queries-keys-values", 3 * HK)),
            (2 * self._depth * self._T + self._queries) * D * HK,
            stream,
            f"3 × {heads}",
        )
        for scheme in config.positions:
            size = _num_parameters(scheme, H) if scheme.adds == "bias" else 0
            if size:
                name = f"{scheme.encoding} bias over {scheme.coordinate}"
                square = f"{self._text} × {self._text}"
                yield Component(name, f"{size}", L, L * size, 0, square, pairs)
        scales = H * (config.query_key_norm + config.length_scaling)
        if scales:
            yield Component("scales of scores", f"{scales}", L, L * scales, 0, pairs, pairs)
        work = 2 * self._queries * self._T * HK
        yield Component("scores and mixing", "", L, 0, work, f"3 × {heads}", heads)
        yield Component(
            "attention output",
            self._shape(f"{HK} × {D}", "attention-output", D),
            L,
            L * (HK * D + self._bias("attention-output", D)),
            self._queries * HK * D,
            heads,
            stream,
        )

    def mlp(self) -> Iterator[Component]:
        """Yield the MLPs of all layers with the normalisations, and the final MLP."""
        config, norm, stream = self._config, self._norm, self._stream
        D, F, L = config.width, config.mlp_width, config.num_layers
        num_up = 2 if config.is_gated else 1
        up = self._shape(f"{num_up} × {D} × {F}", "mlp-hidden", num_up * F)
        down = self._shape(f"{F} × {D}", "mlp-output", D)
        biases = num_up * self._bias("mlp-hidden", F) + self._bias("mlp-output", D)
        work = (num_up + 1) * D * F
        size, shape = work + biases, f"{up}, {down}"
        yield Component("MLP", shape, L, L * size, self._queries * work, stream, stream)
        yield Component("normalisation", f"2 × {norm}", L, L * 2 * norm, 0, stream, stream)
        if config.final_mlp:
            yield Component("final MLP", shape, 1, size, self._A * work, stream, stream)

    def output(self) -> Iterator[Component]:
        """Yield what stands after the layers and the final MLP."""
        config, V, D, stream = self._config, self._V, self._config.width, self._stream
        if config.final_norm:
            norm = self._norm
            yield Component("final normalisation", f"{norm}", 1, norm, 0, stream, stream)
        predicted = str(self._A or "T")
        yield Component(
            "head, tied to the embedding" if config.tied_head else "head",
            self._shape(f"{D} × {V}", "head", V),
            1,
            self._bias("head", V) + (0 if config.tied_head else V * D),
            self._A * D * V,
            f"{predicted} × {D}",
            f"{predicted} × {V}",
        )

    def _bias(self, name: str, size: int) -> int:
        """Return the parameters of a bias of `size` numbers: 0 if the model lacks it."""
        return size if name in self._config.biases else 0

    def _shape(self, matrix: str, bias: str, size: int) -> str:
        """Return the shape of a matrix, with that of its bias if the model has it."""
        return f"{matrix} + {size}" if self._bias(bias, size) else matrix


def blocks(parts: list[Component]) -> list[Block]:
    """Return the parameters of the input, of each layer and of the output, from `components`.

    A component belongs to the layers if attention or an MLP is among those before and after it; all
    layers have the same sizes.
    """
    names = [part.name for part in parts]
    first, last = names.index("queries, keys, values"), names.index("normalisation")
    inside = parts[first : last + 1]
    stream = inside[-1].output
    count = inside[0].count
    size = sum(part.parameters for part in inside) // count
    return [
        Block("input", parts[0].input, stream, sum(part.parameters for part in parts[:first])),
        *(Block(f"layer {number}", stream, stream, size) for number in range(1, count + 1)),
        Block(
            "output", stream, parts[-1].output, sum(part.parameters for part in parts[last + 1 :])
        ),
    ]


def _num_parameters(scheme: PositionScheme, size: int) -> int:
    """Return the number of trained parameters of a scheme's vectors, or of its biases in one layer.

    `size` is the width of a vector, or the number of heads that have a bias.
    """
    if scheme.encoding in _FORMULAS:
        return _FORMULAS[scheme.encoding](scheme, size)
    from abacist.models.encodings import make_encoding

    return sum(parameter.numel() for parameter in make_encoding(scheme, size).parameters())


def _relative_biases(scheme: PositionScheme, num_heads: int) -> int:
    low, high = scheme.window or (-scheme.max_distance, scheme.max_distance)
    return ((scheme.num_buckets or high - low + 1) + 1) * num_heads


_FORMULAS: dict[str, Callable[[PositionScheme, int], int]] = {
    "learned": lambda scheme, width: scheme.num_positions * width,
    "sinusoidal": lambda scheme, width: 0,
    "alibi": lambda scheme, num_heads: 0,
    "fire": lambda scheme, num_heads: 2 + (32 + 32) + (32 + 1) * num_heads,
    "relative": _relative_biases,
}


def num_parameters(config: ModelConfig, vocabulary_size: int) -> int:
    """Return the number of trained parameters of a model; shared ones count once."""
    return sum(part.parameters for part in components(config, vocabulary_size))
