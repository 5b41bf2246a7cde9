"""The receptive field of a model: which tokens can influence a logit. Imports no torch."""

from abacist.models.config import CoordinateName, ModelConfig
from abacist.models.encoding_kinds import ENCODINGS


def obstacle_to_finite_receptive_field(config: ModelConfig) -> str | None:
    """Return why a logit of such a model can depend on arbitrarily many tokens; None if it cannot.

    The receptive field is finite, and the same wherever in a number a token stands, if every token
    sees a bounded set of others that is chosen by differences of place alone, and if nothing else
    about its position enters the model.
    """
    remedy = "Train with --model.positions place-relative."
    if config.direction != "causal":
        return "it is an encoder, which sees all of a line; only decoders can be certified."
    if config.length_scaling:
        return (
            "its attention becomes sharper as the number of tokens grows. "
            "Train with --model.length_scaling false."
        )
    for number, scheme in enumerate(config.positions):
        kind = ENCODINGS[scheme.encoding]
        if kind.depends_on == "coordinates":
            return (
                f"its {scheme.encoding} encoding depends on the absolute {scheme.coordinate} of a "
                f"token, so no finite set of cases covers all lengths. {remedy}"
            )
        if kind.adds == "rotation" and scheme.coordinate != "index":
            return (
                f"its rotary encoding rotates a token by its absolute {scheme.coordinate} and does "
                f"not rotate tokens without one, such as the start token. {remedy}"
            )
        if scheme.coordinate == "index":
            return (
                f"its {scheme.encoding} encoding counts tokens of the line, whose distances grow "
                f"with the numbers. {remedy}"
            )
        if scheme.window is None and not kind.is_bounded:
            return (
                f"its {scheme.encoding} encoding has no window of {scheme.coordinate}s, so its biases "
                f"are not bounded. Train with --model.positions.{number}.window 0,1."
            )
    if receptive_field_over(config, "place") is None:
        return (
            "none of its position schemes has a window of places, so every token sees the whole "
            f"line. {remedy}"
        )
    return None


def receptive_field_over(config: ModelConfig, coordinate: CoordinateName) -> tuple[int, int] | None:
    """Return how far below and above its own coordinate a token sees through all layers.

    Both numbers are 0 or more. Returns None if no position scheme has a window over that coordinate.
    """
    windows = [
        scheme.window
        for scheme in config.positions
        if scheme.window is not None and scheme.coordinate == coordinate
    ]
    if not windows:
        return None
    low, high = max(low for low, _ in windows), min(high for _, high in windows)
    depth = config.num_layers * config.recurrences
    return -low * depth, high * depth
