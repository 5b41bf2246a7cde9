"""Parameters and multiply-adds of a model by component, from its settings alone.

Imports torch only for the position encodings of extensions, whose parameters are counted.

These formulas stand beside the code that builds the model, so that each checks the other: a test
compares their sum with the number of parameters of real models.
"""

from collections.abc import Callable
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
    D, F, H, K, V = (
        config.width,
        config.mlp_width,
        config.num_heads,
        config.width_of_head,
        vocabulary_size,
    )
    T = num_tokens
    A = num_tokens if num_predicting is None else num_predicting
    L = config.num_layers
    # Shapes of one line between components, in numbers where the length of the line is known.
    tokens = str(T or "T")
    text, stream, heads = tokens, f"{tokens} × {D}", f"{tokens} × {H * K}"
    pairs = f"{H} × {tokens} × {tokens}"
    predicted = str(A or "T")
    depth = L * config.recurrences
    # Sum of the numbers of queries over all layers passed through; the last one has A.
    queries = (depth - 1) * T + A

    def bias(name: str, size: int) -> int:
        return size if name in config.biases else 0

    def shape(*sizes: str, name: str, size: int) -> str:
        return " + ".join([*sizes, *([f"{size}"] if name in config.biases else [])])

    parts = [Component("token embedding", f"{V} × {D}", 1, V * D, 0, text, stream)]
    for scheme in config.positions:
        width = D if scheme.added_to == "input" else H * K
        size = _num_parameters(scheme, width) if scheme.adds == "vector" else 0
        if size:
            name = f"{scheme.encoding} {scheme.coordinate} embedding"
            shape_of_all = f"{size // width} × {width}" if size % width == 0 else f"{size}"
            parts.append(Component(name, shape_of_all, 1, size, 0, text, f"{tokens} × {width}"))
    norm = 2 * D if config.norm == "layer" else D
    if config.embedding_norm:
        parts.append(Component("embedding normalisation", f"{norm}", 1, norm, 0, stream, stream))
    if config.injection == "linear":
        mixing = 2 * D * D
        parts.append(
            Component(
                "injection",
                f"{2 * D} × {D}",
                1,
                mixing,
                config.recurrences * T * mixing,
                f"{tokens} × {2 * D}",
                stream,
            )
        )
    projections = 3 * D * H * K + bias("queries-keys-values", 3 * H * K)
    parts.append(
        Component(
            "queries, keys, values",
            shape(f"3 × {D} × {H * K}", name="queries-keys-values", size=3 * H * K),
            L,
            L * projections,
            (2 * depth * T + queries) * D * H * K,
            stream,
            f"3 × {heads}",
        )
    )
    for scheme in config.positions:
        size = _num_parameters(scheme, H) if scheme.adds == "bias" else 0
        if size:
            name = f"{scheme.encoding} bias over {scheme.coordinate}"
            parts.append(Component(name, f"{size}", L, L * size, 0, f"{tokens} × {tokens}", pairs))
    scales = H * (config.query_key_norm + config.length_scaling)
    if scales:
        parts.append(Component("scales of scores", f"{scales}", L, L * scales, 0, pairs, pairs))
    parts.append(
        Component("scores and mixing", "", L, 0, 2 * queries * T * H * K, f"3 × {heads}", heads)
    )
    output = H * K * D + bias("attention-output", D)
    parts.append(
        Component(
            "attention output",
            shape(f"{H * K} × {D}", name="attention-output", size=D),
            L,
            L * output,
            queries * H * K * D,
            heads,
            stream,
        )
    )
    num_up = 2 if config.activation in ("geglu", "swiglu") else 1
    mlp = num_up * (D * F + bias("mlp-hidden", F)) + F * D + bias("mlp-output", D)
    up = shape(f"{num_up} × {D} × {F}", name="mlp-hidden", size=num_up * F)
    down = shape(f"{F} × {D}", name="mlp-output", size=D)
    mlp_work = (num_up + 1) * D * F
    parts.append(Component("MLP", f"{up}, {down}", L, L * mlp, queries * mlp_work, stream, stream))
    parts.append(Component("normalisation", f"2 × {norm}", L, L * 2 * norm, 0, stream, stream))
    if config.final_mlp:
        parts.append(Component("final MLP", f"{up}, {down}", 1, mlp, A * mlp_work, stream, stream))
    if config.final_norm:
        parts.append(Component("final normalisation", f"{norm}", 1, norm, 0, stream, stream))
    head = bias("head", V) + (0 if config.tied_head else V * D)
    name = "head, tied to the embedding" if config.tied_head else "head"
    parts.append(
        Component(
            name,
            shape(f"{D} × {V}", name="head", size=V),
            1,
            head,
            A * D * V,
            f"{predicted} × {D}",
            f"{predicted} × {V}",
        )
    )
    return parts


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
