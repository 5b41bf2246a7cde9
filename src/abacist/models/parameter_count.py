"""Parameters and multiply-adds of a model by component, from its settings alone.

Imports torch only for the position encodings of extensions, whose parameters are counted.

These formulas stand beside the code that builds the model, so that each checks the other: a test
compares their sum with the number of parameters of real models.
"""

from collections.abc import Callable
from dataclasses import dataclass

from abacist.models.config import ModelConfig, PositionScheme


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
    depth = L * config.recurrences
    # Sum of the numbers of queries over all layers passed through; the last one has A.
    queries = (depth - 1) * T + A

    def bias(name: str, size: int) -> int:
        return size if name in config.biases else 0

    def shape(*sizes: str, name: str, size: int) -> str:
        return " + ".join([*sizes, *([f"{size}"] if name in config.biases else [])])

    parts = [Component("token embedding", f"{V} × {D}", 1, V * D, 0)]
    for scheme in config.positions:
        width = D if scheme.added_to == "input" else H * K
        size = _num_parameters(scheme, width) if scheme.adds == "vector" else 0
        if size:
            name = f"{scheme.encoding} {scheme.coordinate} embedding"
            shape_of_all = f"{size // width} × {width}" if size % width == 0 else f"{size}"
            parts.append(Component(name, shape_of_all, 1, size, 0))
    norm = 2 * D if config.norm == "layer" else D
    if config.embedding_norm:
        parts.append(Component("embedding normalisation", f"{norm}", 1, norm, 0))
    if config.injection == "linear":
        mixing = 2 * D * D
        parts.append(
            Component("injection", f"{2 * D} × {D}", 1, mixing, config.recurrences * T * mixing)
        )
    projections = 3 * D * H * K + bias("queries-keys-values", 3 * H * K)
    parts.append(
        Component(
            "queries, keys, values",
            shape(f"3 × {D} × {H * K}", name="queries-keys-values", size=3 * H * K),
            L,
            L * projections,
            (2 * depth * T + queries) * D * H * K,
        )
    )
    for scheme in config.positions:
        size = _num_parameters(scheme, H) if scheme.adds == "bias" else 0
        if size:
            name = f"{scheme.encoding} bias over {scheme.coordinate}"
            parts.append(Component(name, f"{size}", L, L * size, 0))
    scales = H * (config.query_key_norm + config.length_scaling)
    if scales:
        parts.append(Component("scales of scores", f"{scales}", L, L * scales, 0))
    parts.append(Component("scores and mixing", "", L, 0, 2 * queries * T * H * K))
    output = H * K * D + bias("attention-output", D)
    parts.append(
        Component(
            "attention output",
            shape(f"{H * K} × {D}", name="attention-output", size=D),
            L,
            L * output,
            queries * H * K * D,
        )
    )
    num_up = 2 if config.activation in ("geglu", "swiglu") else 1
    mlp = num_up * (D * F + bias("mlp-hidden", F)) + F * D + bias("mlp-output", D)
    up = shape(f"{num_up} × {D} × {F}", name="mlp-hidden", size=num_up * F)
    down = shape(f"{F} × {D}", name="mlp-output", size=D)
    mlp_work = (num_up + 1) * D * F
    parts.append(Component("MLP", f"{up}, {down}", L, L * mlp, queries * mlp_work))
    parts.append(Component("normalisation", f"2 × {norm}", L, L * 2 * norm, 0))
    if config.final_mlp:
        parts.append(Component("final MLP", f"{up}, {down}", 1, mlp, A * mlp_work))
    if config.final_norm:
        parts.append(Component("final normalisation", f"{norm}", 1, norm, 0))
    head = bias("head", V) + (0 if config.tied_head else V * D)
    name = "head, tied to the embedding" if config.tied_head else "head"
    parts.append(Component(name, shape(f"{D} × {V}", name="head", size=V), 1, head, A * D * V))
    return parts


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
