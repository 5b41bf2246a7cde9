"""Settings of the model. Imports no torch."""

from dataclasses import dataclass, field
from typing import Literal

from abacist.errors import ConfigurationError, check_between

Encoding = Literal["learned", "sinusoidal", "rotary", "alibi", "fire", "relative"]
CoordinateName = Literal["index", "place", "row", "step"]
Dropped = Literal["embedding", "attention", "mlp-hidden", "outputs"]
Biases = Literal["queries-keys-values", "attention-output", "mlp-hidden", "mlp-output", "head"]

ABSOLUTE = ("learned", "sinusoidal")
"""Encodings that tell a token where it stands; the others tell only what is how far apart."""


@dataclass(frozen=True, kw_only=True)
class PositionScheme:
    """How the model is told one coordinate: an encoding over a coordinate, perhaps randomised."""

    encoding: Encoding
    """`learned`, `sinusoidal`: a vector for each coordinate. `rotary`: queries and keys are turned by angles. `relative`, `alibi`, `fire`: a bias on attention scores by difference."""  # noqa: E501
    coordinate: CoordinateName
    """What is counted: the token's index in the line, or the place, row or step that the format gives it."""
    added_to: Literal["input", "queries-keys"] = "input"
    """Learned and sinusoidal: where the vector is added, once to the input or to queries and keys in every layer."""
    num_positions: int = 128
    """Learned: the largest coordinate it knows, plus one."""
    base: float = 10_000.0
    """Sinusoidal and rotary: the slowest wave is about so many times as long as the fastest."""
    offset: Literal["none", "batch", "sample"] = "none"
    """Learned and sinusoidal: a random number is added to coordinates while training, one a batch or one a sample."""
    max_offset: int = 0
    """Largest random offset."""
    subset_of: int = 0
    """While training, coordinates of a line are a sorted random subset of so many (arXiv 2305.16843); 0: not."""
    window: tuple[int, int] | None = None
    """A query sees differences from the first to the second of these and nothing else; none sees all."""
    max_distance: int = 16
    """Relative without a window: differences are clipped to this."""
    num_buckets: int = 0
    """Relative: as many trained numbers, for differences that grow with the logarithm (T5); 0: one for each."""
    init_std: float = 0.0
    """Standard deviation of what training begins with. Relative: of biases, so that heads begin by looking at different things; 0: all alike. Learned: of vectors; 0: 0.5."""  # noqa: E501
    slope: float = 0.0
    """ALiBi: what a score loses for each step of distance; 0: another for each head, as published."""

    def __post_init__(self) -> None:
        check_between("model.positions.0.num_positions", self.num_positions, 2, 10_000_000, 128)
        check_between("model.positions.0.max_distance", self.max_distance, 1, 1_000_000, 16)
        check_between("model.positions.0.base", self.base, 1.0, 1e9, 10_000.0)
        check_between("model.positions.0.subset_of", self.subset_of, 0, 10_000_000, 0)
        check_between("model.positions.0.slope", self.slope, 0.0, 1e6, 0.0)
        check_between("model.positions.0.init_std", self.init_std, 0.0, 100.0, 0.0)
        if self.encoding in ABSOLUTE:
            self._check_absolute()
        else:
            self._check_relative()
        if self.num_buckets:
            check_between("model.positions.0.num_buckets", self.num_buckets, 4, 250_000, 32)
            check_between(
                "model.positions.0.max_distance",
                self.max_distance,
                self.num_buckets,
                1_000_000,
                4 * self.num_buckets,
            )
            if self.encoding != "relative" or self.window is not None:
                raise ConfigurationError(
                    "num_buckets belongs to a relative encoding without a window, got encoding "
                    f"{self.encoding}. Try --model.positions.0.num_buckets 0."
                )
        if self.init_std and self.encoding not in ("relative", "learned"):
            raise ConfigurationError(
                f"init_std belongs to a relative or learned encoding, got encoding {self.encoding}. "
                "Try --model.positions.0.init_std 0."
            )
        if self.slope and self.encoding != "alibi":
            raise ConfigurationError(
                f"slope belongs to alibi, got encoding {self.encoding}. "
                "Try --model.positions.0.slope 0."
            )

    def _check_absolute(self) -> None:
        if self.window is not None:
            raise ConfigurationError(
                f"a window needs differences, and {self.encoding} encodes coordinates. "
                "Try --model.positions.0.encoding relative."
            )
        largest = self.num_positions - 2 if self.encoding == "learned" else 10_000_000
        check_between("model.positions.0.max_offset", self.max_offset, 0, largest, largest)
        # Index 0 is the first of a subset; places begin at 1, and row 0 is for those without.
        rows = self.subset_of + (self.coordinate != "index")
        if self.encoding == "learned" and self.subset_of and rows > self.num_positions:
            raise ConfigurationError(
                f"subset_of {self.subset_of} needs {rows} rows of a learned encoding, got "
                f"num_positions {self.num_positions}. Try --model.positions.0.num_positions {rows}."
            )
        if (self.offset == "none") != (self.max_offset == 0):
            raise ConfigurationError(
                "offset and max_offset go together, got "
                f"offset {self.offset!r} and max_offset {self.max_offset}. "
                "Try --model.positions.0.offset sample --model.positions.0.max_offset "
                f"{min(100, largest)}."
            )
        if self.offset != "none" and self.subset_of:
            raise ConfigurationError(
                "a scheme is randomised by an offset or by a subset, got both. "
                "Try --model.positions.0.subset_of 0."
            )

    def _check_relative(self) -> None:
        if self.offset != "none" or self.max_offset:
            raise ConfigurationError(
                f"a random offset changes nothing for a {self.encoding} encoding, which sees only "
                f"differences, got offset {self.offset!r} and max_offset {self.max_offset}. "
                "Try --model.positions.0.offset none --model.positions.0.max_offset 0."
            )
        if self.added_to != "input":
            raise ConfigurationError(
                f"{self.encoding} adds no vector, got added_to {self.added_to}. "
                "Try --model.positions.0.added_to input."
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


_FIRE = PositionScheme(encoding="fire", coordinate="index")

POSITIONS: dict[str, tuple[PositionScheme, ...]] = {
    "place-relative": (PositionScheme(encoding="relative", coordinate="place", window=(0, 1)),),
    "place-row-relative": (
        PositionScheme(encoding="relative", coordinate="place", window=(0, 1)),
        PositionScheme(encoding="relative", coordinate="row", window=(-2, 0)),
    ),
    "place-relative-soft": (
        PositionScheme(encoding="relative", coordinate="place", max_distance=2),
    ),
    "cell-relative": (
        PositionScheme(encoding="relative", coordinate="place", window=(0, 1)),
        PositionScheme(encoding="relative", coordinate="row", window=(-1, 0)),
    ),
    "row-place-step-relative": (
        PositionScheme(encoding="relative", coordinate="row", window=(-2, 0)),
        PositionScheme(encoding="relative", coordinate="place", window=(0, 2)),
        PositionScheme(encoding="relative", coordinate="step", window=(0, 2)),
    ),
    "pointer-relative": (
        PositionScheme(encoding="relative", coordinate="row", window=(0, 0)),
        PositionScheme(encoding="relative", coordinate="place", window=(0, 0)),
        PositionScheme(encoding="relative", coordinate="step", window=(0, 0)),
    ),
    "index-relative": (PositionScheme(encoding="relative", coordinate="index"),),
    "place-nearest": (
        PositionScheme(encoding="alibi", coordinate="place", slope=1.0),
        PositionScheme(encoding="relative", coordinate="place", max_distance=2),
    ),
    "gpt2": (PositionScheme(encoding="learned", coordinate="index"),),
    "sinusoidal": (PositionScheme(encoding="sinusoidal", coordinate="index"),),
    "rope": (PositionScheme(encoding="rotary", coordinate="index"),),
    "alibi": (PositionScheme(encoding="alibi", coordinate="index"),),
    "t5": (
        PositionScheme(encoding="relative", coordinate="index", num_buckets=32, max_distance=128),
    ),
    "fire": (_FIRE,),
    "randomised-fire": (PositionScheme(encoding="fire", coordinate="index", subset_of=512),),
    "abacus": (
        PositionScheme(encoding="learned", coordinate="place", offset="batch", max_offset=100),
    ),
    "abacus-fire": (
        PositionScheme(encoding="learned", coordinate="place", offset="batch", max_offset=100),
        _FIRE,
    ),
    "coupling": (
        PositionScheme(encoding="learned", coordinate="place", offset="sample", max_offset=100),
    ),
    "nope": (),
}
"""Names for whole sets of position schemes."""

BIASES: dict[str, tuple[Biases, ...]] = {
    "all": ("queries-keys-values", "attention-output", "mlp-hidden", "mlp-output"),
    "none": (),
}
"""Names for sets of biases; `all` leaves out the head's, as nearly all models do."""


DROPOUT_ON: dict[str, tuple[Dropped, ...]] = {
    "gpt2": ("embedding", "attention", "outputs"),
    "torch": ("attention", "mlp-hidden", "outputs"),
}
"""Names for where dropout stands: in GPT-2, and in torch's own encoder layer."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """A transformer: a causal decoder, or an encoder that writes all answer tokens at once."""

    direction: Literal["causal", "both"] = "causal"
    """Who is seen: earlier tokens (a decoder), or all (an encoder, for formats with parallel targets)."""
    width: int = 32
    """Width of the residual stream."""
    num_heads: int = 4
    """Attention heads in each layer."""
    head_width: int | None = None
    """Width of one head's queries, keys and values; none means width / num_heads."""
    mlp_width: int = 128
    """Hidden width of each layer's MLP; gated ones have as wide a gate beside it."""
    num_layers: int = 1
    """Different layers, each attention followed by an MLP."""
    recurrences: int = 1
    """How often the layers are run one after the other (looped transformer)."""
    injection: Literal["none", "add", "linear", "sublayers"] = "none"
    """How each recurrence is given the embedded input again: added to the state, mixed in by a trained matrix, or added behind every normalisation."""  # noqa: E501
    initial_state: Literal["input", "noise"] = "input"
    """What the first recurrence starts from: the embedded input, or small noise (0 in evaluation)."""
    activation: Literal["relu", "gelu", "geglu", "swiglu"] = "gelu"
    """Non-linearity of the MLP; geglu and swiglu are gated (arXiv 2002.05202)."""
    norm: Literal["layer", "rms"] = "layer"
    """Normalisation around attention and MLP."""
    norm_order: Literal["pre", "post"] = "pre"
    """Normalise what goes into attention and MLP, or their sum with the residual."""
    embedding_norm: bool = False
    """Normalise the embedded input."""
    final_mlp: bool = False
    """Pass what comes out of the last layer through one more MLP, whose output replaces it."""
    final_norm: bool = True
    """Normalise before the head."""
    query_key_norm: bool = False
    """Normalise queries and keys of each head to length 1 times a trained scale (arXiv 2010.04245)."""
    length_scaling: bool = False
    """Multiply scores by a trained factor of each head times the logarithm of how many tokens are seen (arXiv 2501.19399)."""  # noqa: E501
    biases: tuple[Biases, ...] = field(default=BIASES["all"], metadata={"named_values": BIASES})
    """Which linear maps have a bias."""
    tied_head: bool = False
    """Use the token embedding as the output head."""
    embedding_init_std: float = 0.0
    """Standard deviation of the token embedding that training begins with; 0: 1, or width^-0.5 for a tied head."""
    dropout: float = 0.0
    """Share that is dropped while training, 0 to 0.95."""
    dropout_on: tuple[Dropped, ...] = field(
        default=DROPOUT_ON["gpt2"], metadata={"named_values": DROPOUT_ON}
    )
    """What dropout drops a share of: the embedded input, attention weights, the MLP's hidden activations, what attention and MLP add to the residual stream."""  # noqa: E501
    positions: tuple[PositionScheme, ...] = field(
        default=POSITIONS["place-relative"], metadata={"named_values": POSITIONS}
    )
    """Position schemes, any number at once; a name or changed field by field."""

    def __post_init__(self) -> None:
        check_between("model.width", self.width, 1, 65_536, 32)
        check_between("model.num_heads", self.num_heads, 1, 1_024, 4)
        check_between("model.mlp_width", self.mlp_width, 1, 1_048_576, 128)
        check_between("model.num_layers", self.num_layers, 1, 1_024, 1)
        check_between("model.recurrences", self.recurrences, 1, 1_024, 1)
        check_between("model.embedding_init_std", self.embedding_init_std, 0.0, 100.0, 0.0)
        check_between("model.dropout", self.dropout, 0.0, 0.95, 0.0)
        if self.head_width is not None:
            check_between("model.head_width", self.head_width, 1, 65_536, 8)
        elif self.width % self.num_heads:
            fitting = self.width - self.width % self.num_heads or self.num_heads
            raise ConfigurationError(
                f"model.width must be a multiple of model.num_heads = {self.num_heads}, "
                f"got {self.width}. Try --model.width {fitting}, or set --model.head_width."
            )
        turning = sum(scheme.encoding == "rotary" for scheme in self.positions)
        if turning and self.width_of_head % (2 * turning):
            fitting = self.width_of_head + -self.width_of_head % (2 * turning)
            raise ConfigurationError(
                f"rotary encodings turn pairs of numbers, so a head's width must be a multiple of "
                f"{2 * turning}, got {self.width_of_head}. Try --model.head_width {fitting}."
            )
        if self.initial_state == "noise" and self.injection == "none":
            raise ConfigurationError(
                "model.initial_state noise without injection would never see the input. "
                "Try --model.injection add."
            )

    def dropout_of(self, dropped: Dropped) -> float:
        """What share of these is dropped while training."""
        return self.dropout if dropped in self.dropout_on else 0.0

    @property
    def width_of_head(self) -> int:
        """K: the width of one head."""
        return self.head_width or self.width // self.num_heads
