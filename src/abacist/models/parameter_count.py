"""What a model consists of: parameters by component and multiply-adds, from the sizes alone.

A formula beside the code that builds the model, so that each checks the other: a test compares
the sum with the numbers really trained. Imports no torch.
"""

from dataclasses import dataclass

from abacist.models.config import ABSOLUTE, ModelConfig, PositionScheme


@dataclass(frozen=True)
class Component:
    """One kind of part."""

    name: str
    shape: str
    """The matrices and vectors of one part."""
    count: int
    """How many such parts there are."""
    parameters: int
    """Trained numbers of all of them; 0 where they are shared with another component."""
    multiply_adds: int
    """Of all of them, for one line of the given tokens."""


def components(
    config: ModelConfig, vocabulary_size: int, tokens: int = 0, predicting: int | None = None
) -> list[Component]:
    """All parts in the order a token passes them.

    Multiply-adds are for one line of so many `tokens`, of which only the `predicting` last (all,
    where not given) are carried through the last layer and the head; attention pairs all with all
    unless a window bounds it, which is not counted here.
    """
    D, F, H, K, V = (
        config.width,
        config.mlp_width,
        config.num_heads,
        config.width_of_head,
        vocabulary_size,
    )
    inner, layers = H * K, config.num_layers
    asked = tokens if predicting is None else predicting
    # Queries that the layers carry on, over all recurrences: the last one only what is asked for.
    recurrences = layers * config.recurrences
    queries = (recurrences - 1) * tokens + asked

    def bias(name: str, size: int) -> int:
        return size if name in config.biases else 0

    def shape(*sizes: str, name: str, size: int) -> str:
        return " + ".join([*sizes, *([f"{size}"] if name in config.biases else [])])

    found = [Component("token embedding", f"{V} × {D}", 1, V * D, 0)]
    for scheme in config.positions:
        if scheme.encoding == "learned":
            width = D if scheme.added_to == "input" else inner
            rows = scheme.num_positions
            name = f"learned {scheme.coordinate} embedding"
            found.append(Component(name, f"{rows} × {width}", 1, rows * width, 0))
    norm = 2 * D if config.norm == "layer" else D
    if config.embedding_norm:
        found.append(Component("embedding normalisation", f"{norm}", 1, norm, 0))
    if config.injection == "linear":
        mixed = 2 * D * D
        found.append(
            Component("injection", f"{2 * D} × {D}", 1, mixed, config.recurrences * tokens * mixed)
        )
    projections = 3 * D * inner + bias("queries-keys-values", 3 * inner)
    found.append(
        Component(
            "queries, keys, values",
            shape(f"3 × {D} × {inner}", name="queries-keys-values", size=3 * inner),
            layers,
            layers * projections,
            (2 * recurrences * tokens + queries) * D * inner,
        )
    )
    for scheme in config.positions:
        numbers = _bias_parameters(scheme, H)
        if numbers:
            name = f"{scheme.encoding} bias over {scheme.coordinate}"
            found.append(Component(name, f"{numbers}", layers, layers * numbers, 0))
    scales = H * (config.query_key_norm + config.length_scaling)
    if scales:
        found.append(Component("scales of scores", f"{scales}", layers, layers * scales, 0))
    found.append(Component("scores and mixing", "", layers, 0, 2 * queries * tokens * inner))
    output = inner * D + bias("attention-output", D)
    found.append(
        Component(
            "attention output",
            shape(f"{inner} × {D}", name="attention-output", size=D),
            layers,
            layers * output,
            queries * inner * D,
        )
    )
    wide = 2 if config.activation in ("geglu", "swiglu") else 1
    mlp = wide * (D * F + bias("mlp-hidden", F)) + F * D + bias("mlp-output", D)
    up = shape(f"{wide} × {D} × {F}", name="mlp-hidden", size=wide * F)
    down = shape(f"{F} × {D}", name="mlp-output", size=D)
    found.append(
        Component("MLP", f"{up}, {down}", layers, layers * mlp, queries * (wide + 1) * D * F)
    )
    found.append(Component("normalisation", f"2 × {norm}", layers, layers * 2 * norm, 0))
    if config.final_mlp:
        found.append(Component("final MLP", f"{up}, {down}", 1, mlp, asked * (wide + 1) * D * F))
    if config.final_norm:
        found.append(Component("final normalisation", f"{norm}", 1, norm, 0))
    head = bias("head", V) + (0 if config.tied_head else V * D)
    name = "head, tied to the embedding" if config.tied_head else "head"
    found.append(Component(name, shape(f"{D} × {V}", name="head", size=V), 1, head, asked * D * V))
    return found


def _bias_parameters(scheme: PositionScheme, num_heads: int) -> int:
    """Trained numbers of one layer's score bias."""
    if scheme.encoding in (*ABSOLUTE, "rotary", "alibi"):
        return 0
    if scheme.encoding == "fire":
        return 2 + (32 + 32) + (32 + 1) * num_heads
    low, high = scheme.window or (-scheme.max_distance, scheme.max_distance)
    return ((scheme.num_buckets or high - low + 1) + 1) * num_heads


def num_parameters(config: ModelConfig, vocabulary_size: int) -> int:
    """Trained numbers of a model, shared ones counted once."""
    return sum(part.parameters for part in components(config, vocabulary_size))
