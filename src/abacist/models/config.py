"""Settings of the model. Imports no torch."""

from dataclasses import dataclass, field
from typing import Literal

from abacist.errors import ConfigurationError, check_between


@dataclass(frozen=True, kw_only=True)
class PositionScheme:
    """How the model is told one coordinate: an encoding over a coordinate, perhaps randomised."""

    encoding: Literal["learned", "relative"]
    """`learned`: a trained vector added to the input. `relative`: a trained bias on attention scores by difference."""
    coordinate: Literal["index", "place"]
    """What is counted: the token's index in the line, or the place of its digit."""
    num_positions: int = 128
    """Rows of a learned encoding: the largest coordinate it knows, plus one."""
    offset: Literal["none", "batch", "sample"] = "none"
    """Learned only: add a random number to every coordinate while training, one a batch or one a sample."""
    max_offset: int = 0
    """Largest random offset."""
    window: tuple[int, int] | None = None
    """Relative only: a query sees differences from the first to the second of these and nothing else; none sees all."""
    max_distance: int = 16
    """Relative without a window: differences are clipped to this."""

    def __post_init__(self) -> None:
        check_between("model.positions.0.num_positions", self.num_positions, 2, 10_000_000, 128)
        check_between("model.positions.0.max_distance", self.max_distance, 1, 1_000_000, 16)
        if self.encoding == "relative":
            if self.offset != "none":
                raise ConfigurationError(
                    "a random offset changes nothing for a relative encoding, which sees only "
                    f"differences, got offset {self.offset!r}. Try --model.positions.0.offset none."
                )
            if self.window is not None and self.window[0] > self.window[1]:
                raise ConfigurationError(
                    f"window must go from its smaller to its larger difference, got {self.window}. "
                    "Try --model.positions.0.window 0,1."
                )
            if self.window is not None and not self.window[0] <= 0 <= self.window[1]:
                raise ConfigurationError(
                    f"window must hold difference 0, the query's own, got {self.window}. "
                    "Try --model.positions.0.window 0,1."
                )
        else:
            if self.window is not None:
                raise ConfigurationError(
                    "a window belongs to a relative encoding. "
                    "Try --model.positions.0.encoding relative."
                )
            check_between(
                "model.positions.0.max_offset", self.max_offset, 0, self.num_positions - 2, 0
            )
            if (self.offset == "none") != (self.max_offset == 0):
                raise ConfigurationError(
                    "offset and max_offset go together, got "
                    f"offset {self.offset!r} and max_offset {self.max_offset}. "
                    "Try --model.positions.0.offset sample --model.positions.0.max_offset 100."
                )


POSITIONS: dict[str, tuple[PositionScheme, ...]] = {
    "place-relative": (PositionScheme(encoding="relative", coordinate="place", window=(0, 1)),),
    "place-relative-soft": (
        PositionScheme(encoding="relative", coordinate="place", max_distance=2),
    ),
    "index-relative": (PositionScheme(encoding="relative", coordinate="index"),),
    "gpt2": (PositionScheme(encoding="learned", coordinate="index"),),
    "coupling": (
        PositionScheme(encoding="learned", coordinate="place", offset="sample", max_offset=100),
    ),
    "abacus": (
        PositionScheme(encoding="learned", coordinate="place", offset="batch", max_offset=100),
    ),
    "nope": (),
}
"""Names for whole sets of position schemes."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """A causal decoder with pre-normalisation."""

    width: int = 32
    """Width of the residual stream."""
    num_heads: int = 4
    """Attention heads in each layer."""
    head_width: int | None = None
    """Width of one head's queries, keys and values; none means width / num_heads."""
    mlp_width: int = 128
    """Hidden width of each layer's MLP."""
    num_layers: int = 1
    """Layers, each attention followed by an MLP."""
    activation: Literal["relu", "gelu"] = "gelu"
    """Non-linearity of the MLP."""
    norm: Literal["layer", "rms"] = "layer"
    """Normalisation before attention, before the MLP and before the head."""
    biases: bool = True
    """Biases in the projections of attention and out of the MLP; the MLP's hidden layer always has them."""
    tied_head: bool = False
    """Use the token embedding as the output head."""
    positions: tuple[PositionScheme, ...] = field(
        default=POSITIONS["place-relative"], metadata={"named_values": POSITIONS}
    )
    """Position schemes, any number at once; a name or changed field by field."""

    def __post_init__(self) -> None:
        check_between("model.width", self.width, 1, 65_536, 32)
        check_between("model.num_heads", self.num_heads, 1, 1_024, 4)
        check_between("model.mlp_width", self.mlp_width, 1, 1_048_576, 128)
        check_between("model.num_layers", self.num_layers, 1, 1_024, 1)
        if self.head_width is not None:
            check_between("model.head_width", self.head_width, 1, 65_536, 8)
        elif self.width % self.num_heads:
            fitting = self.width - self.width % self.num_heads or self.num_heads
            raise ConfigurationError(
                f"model.width must be a multiple of model.num_heads = {self.num_heads}, "
                f"got {self.width}. Try --model.width {fitting}, or set --model.head_width."
            )

    @property
    def width_of_head(self) -> int:
        """K: the width of one head."""
        return self.head_width or self.width // self.num_heads
