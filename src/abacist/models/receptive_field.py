"""Reach: which tokens can influence a logit."""

from abacist.models.config import CoordinateName, ModelConfig


def obstacle_to_finite_receptive_field(config: ModelConfig) -> str | None:
    """Why a logit of such a model may depend on arbitrarily much of its line; None if it cannot.

    Reach is finite, and the same wherever in a number a token stands, when every token sees a
    bounded set of others, chosen by differences of place alone, and is told nothing else.
    """
    remedy = "Train with --model.positions place-relative."
    if config.direction != "causal":
        return "it is an encoder, which sees all of a line. Train with --model.direction causal."
    if config.length_scaling:
        return (
            "its attention grows sharper with the number of tokens. "
            "Train with --model.length_scaling false."
        )
    for scheme in config.positions:
        if scheme.encoding in ("learned", "sinusoidal", "fire"):
            return (
                f"its {scheme.encoding} encoding tells every token its absolute "
                f"{scheme.coordinate}, so no finite set of cases covers all lengths. {remedy}"
            )
        if scheme.encoding == "rotary" and scheme.coordinate != "index":
            return (
                f"its rotary encoding turns a token by its absolute {scheme.coordinate} and leaves "
                f"those that have none, such as the start token, as they are. {remedy}"
            )
        if scheme.coordinate == "index":
            return (
                f"its {scheme.encoding} encoding counts tokens of the line, whose distances grow "
                f"with the numbers. {remedy}"
            )
    if receptive_field_over(config, "place") is None:
        return (
            "none of its position schemes has a window of places, so every token sees the whole "
            f"line. {remedy}"
        )
    return None


def receptive_field_over(config: ModelConfig, coordinate: CoordinateName) -> tuple[int, int] | None:
    """How far below and above a token's own coordinate can influence it through all layers.

    None where no position scheme has a window over that coordinate.
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
