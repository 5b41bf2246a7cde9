"""Settings of the model. Imports no torch."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from abacist.config_base import Config, setting
from abacist.errors import range_complaint
from abacist.extensions import Registry
from abacist.models.encoding_kinds import ENCODINGS

CoordinateName = Literal["index", "place", "row", "step"]
Dropped = Literal["embedding", "attention", "mlp-hidden", "outputs"]
Biases = Literal["queries-keys-values", "attention-output", "mlp-hidden", "mlp-output", "head"]


@dataclass(frozen=True, kw_only=True)
class PositionScheme(Config):
    """An encoding over a coordinate, perhaps randomised during training."""

    section: ClassVar = "model.positions.0"

    encoding: str = setting(choices=ENCODINGS)
    """`learned`, `sinusoidal`: a vector for each coordinate. `rotary`: rotations of queries and keys. `relative`, `alibi`, `fire`: a bias on attention scores, by difference. An extension can add others."""  # noqa: E501
    coordinate: CoordinateName
    """What the encoding encodes: the token's index in the line, or the place, row or step that the format gives it."""
    added_to: Literal["input", "queries-keys"] = "input"
    """Learned and sinusoidal: whether the vector is added once to the input, or to queries and keys in every layer."""
    num_positions: int = setting(128, low=2, high=10_000_000)
    """Learned: number of vectors; the largest coordinate is one less."""
    beyond: Literal["refuse", "clamp"] = "refuse"
    """Learned: whether lines with larger coordinates are refused, or all of these share the last vector."""
    base: float = setting(10_000.0, low=1.0, high=1e9)
    """Sinusoidal and rotary: about how many times longer the slowest wave is than the fastest."""
    offset: Literal["none", "batch", "sample"] = "none"
    """Learned and sinusoidal: add a random number to coordinates during training, one per batch or one per sample."""
    max_offset: int = 0
    """Largest random offset."""
    subset_of: int = setting(0, low=0, high=10_000_000)
    """During training, replace the coordinates of a line by a sorted random subset of this many (arXiv 2305.16843); 0 keeps them."""  # noqa: E501
    window: tuple[int, int] | None = None
    """Smallest and largest difference, key minus query, at which a query sees a key; none sees all."""
    max_distance: int = setting(16, low=1, high=1_000_000)
    """Relative without a window: largest distance with a bias of its own; larger ones share it."""
    num_buckets: int = 0
    """Relative: number of trained biases, for ranges of differences that widen logarithmically (T5); 0 trains one for each difference."""  # noqa: E501
    init_std: float = setting(0.0, low=0.0, high=100.0)
    """Standard deviation at initialisation. Relative: of biases, so that heads start out looking at different tokens; 0 makes them equal. Learned: of vectors; 0 means `model.init_std`, or without it 0.5."""  # noqa: E501
    slope: float = setting(0.0, low=0.0, high=1e6)
    """ALiBi: decrease of the score per unit of distance; 0 means a different slope for each head, as published."""

    @property
    def adds(self) -> Literal["vector", "rotation", "bias"]:
        """What the encoding adds to the model."""
        return ENCODINGS[self.encoding].adds

    def conflicts(self, path: str) -> Iterator[str]:
        yield from (
            self._conflicts_of_vectors(path)
            if self.adds == "vector"
            else self._conflicts_of_differences(path)
        )
        if self.num_buckets:
            yield from self._conflicts_of_buckets(path)
        own = ENCODINGS[self.encoding].settings
        if self.init_std and "init_std" not in own:
            yield (
                f"init_std belongs to a relative or learned encoding, got encoding {self.encoding}. "
                f"Try --{path}.init_std 0."
            )
        if self.beyond != "refuse" and self.encoding != "learned":
            yield (
                f"beyond belongs to a learned encoding, got encoding {self.encoding}. "
                f"Try --{path}.beyond refuse."
            )
        if self.slope and "slope" not in own:
            yield f"slope belongs to alibi, got encoding {self.encoding}. Try --{path}.slope 0."

    def _conflicts_of_buckets(self, path: str) -> Iterator[str]:
        buckets = self.num_buckets
        complaint = range_complaint(f"{path}.num_buckets", buckets, 4, 250_000, 32)
        complaint = complaint or range_complaint(
            f"{path}.max_distance", self.max_distance, buckets, 1_000_000, 4 * buckets
        )
        if complaint:
            yield complaint
        if "num_buckets" not in ENCODINGS[self.encoding].settings or self.window is not None:
            got = f"encoding {self.encoding}"
            got += "" if self.window is None else f" with the window {self.window}"
            yield (
                f"num_buckets belongs to a relative encoding without a window, got {got}. "
                f"Try --{path}.num_buckets 0."
            )

    def _conflicts_of_vectors(self, path: str) -> Iterator[str]:
        if self.window is not None:
            yield (
                f"a window needs differences, and {self.encoding} encodes coordinates. "
                f"Try --{path}.encoding relative."
            )
        # Index 0 is the first of a subset; places begin at 1, and row 0 is for tokens without one.
        rows = self.subset_of + (self.coordinate != "index")
        if self.encoding == "learned" and self.subset_of and rows > self.num_positions:
            yield (
                f"subset_of {self.subset_of} needs {rows} rows of a learned encoding, got "
                f"num_positions {self.num_positions}. Try --{path}.num_positions {rows}."
            )
        largest = self.num_positions - 2 if self.encoding == "learned" else 10_000_000
        complaint = range_complaint(f"{path}.max_offset", self.max_offset, 0, largest, largest)
        if complaint:
            yield complaint
        elif (self.offset == "none") != (self.max_offset == 0):
            yield (
                "offset and max_offset go together, got "
                f"offset {self.offset!r} and max_offset {self.max_offset}. "
                f"Try --{path}.offset sample --{path}.max_offset {min(100, largest)}."
            )
        if self.offset != "none" and self.subset_of:
            yield (
                "a scheme is randomised by an offset or by a subset, got both. "
                f"Try --{path}.subset_of 0."
            )

    def _conflicts_of_differences(self, path: str) -> Iterator[str]:
        if self.offset != "none" or self.max_offset:
            yield (
                f"a random offset changes nothing for a {self.encoding} encoding, which sees only "
                f"differences, got offset {self.offset!r} and max_offset {self.max_offset}. "
                f"Try --{path}.offset none --{path}.max_offset 0."
            )
        if self.added_to != "input":
            yield (
                f"{self.encoding} adds no vector, got added_to {self.added_to}. "
                f"Try --{path}.added_to input."
            )
        if self.window is not None and self.window[0] > self.window[1]:
            yield (
                f"window must go from its smaller to its larger difference, got {self.window}. "
                f"Try --{path}.window 0,1."
            )
        elif self.window is not None and not self.window[0] <= 0 <= self.window[1]:
            yield (
                f"window must contain difference 0, the query's own, got {self.window}. "
                f"Try --{path}.window 0,1."
            )


_FIRE = PositionScheme(encoding="fire", coordinate="index")

POSITIONS: Registry[tuple[PositionScheme, ...]] = Registry(
    "list of position schemes",
    {
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
            PositionScheme(
                encoding="relative", coordinate="index", num_buckets=32, max_distance=128
            ),
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
    },
    check=lambda entry: (
        None
        if isinstance(entry, tuple) and all(isinstance(item, PositionScheme) for item in entry)
        else "must be a tuple of PositionScheme, with a comma after a single one."
    ),
)
"""Named lists of position schemes."""

BIASES: dict[str, tuple[Biases, ...]] = {
    "all": ("queries-keys-values", "attention-output", "mlp-hidden", "mlp-output"),
    "none": (),
}
"""Named sets of biases; `all` leaves out the head's, as nearly all models do."""

DROPOUT_ON: dict[str, tuple[Dropped, ...]] = {
    "gpt2": ("embedding", "attention", "outputs"),
    "torch": ("attention", "mlp-hidden", "outputs"),
}
"""Named sets of what dropout applies to: as in GPT-2, and as in torch's own encoder layer."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig(Config):
    """A transformer: a causal decoder, or an encoder that writes all answer tokens at once."""

    section: ClassVar = "model"

    direction: Literal["causal", "both"] = "causal"
    """Tokens that a token attends to: earlier ones (a decoder), or all (an encoder, for formats with parallel targets)."""  # noqa: E501
    width: int = setting(32, low=1, high=65_536)
    """Width of the residual stream."""
    num_heads: int = setting(4, low=1, high=1_024)
    """Number of attention heads in each layer."""
    head_width: int | None = setting(None, low=1, high=65_536, suggestion=8)
    """Width of one head's queries, keys and values; none means width / num_heads."""
    mlp_width: int = setting(128, low=1, high=1_048_576)
    """Hidden width of each layer's MLP; the gate of a gated one has the same width."""
    num_layers: int = setting(1, low=1, high=1_024)
    """Number of different layers, each attention followed by an MLP."""
    recurrences: int = setting(1, low=1, high=1_024)
    """Number of times that the layers are applied one after the other (looped transformer)."""
    injection: Literal["none", "add", "linear", "sublayers"] = "none"
    """How each recurrence receives the embedded input again: added to the state, mixed in by a trained matrix, or added after every normalisation."""  # noqa: E501
    initial_state: Literal["input", "noise"] = "input"
    """State before the first recurrence: the embedded input, or small noise (0 in evaluation)."""
    activation: Literal["relu", "gelu", "gelu-tanh", "geglu", "swiglu"] = "gelu"
    """Non-linearity of the MLP; gelu-tanh is GPT-2's approximation of GELU, geglu and swiglu are gated (arXiv 2002.05202)."""  # noqa: E501
    norm: Literal["layer", "rms"] = "layer"
    """Normalisation around attention and MLP."""
    norm_epsilon: float = setting(0.0, low=0.0, high=0.1, suggestion=1e-5)
    """Number added to the mean square under the root of a normalisation; 0 means 1e-5 (`layer`) or 1e-6 (`rms`)."""
    norm_order: Literal["pre", "post"] = "pre"
    """Normalise the input of attention and MLP, or the sum of their output and the residual."""
    embedding_norm: bool = False
    """Normalise the embedded input."""
    final_mlp: bool = False
    """Pass the output of the last layer through one more MLP, whose output replaces it."""
    final_norm: bool = True
    """Normalise before the head."""
    query_key_norm: bool = False
    """Normalise queries and keys of each head to length 1 times a trained scale (arXiv 2010.04245)."""
    length_scaling: bool = False
    """Multiply scores by a trained factor of each head times the logarithm of the number of visible tokens (arXiv 2501.19399)."""  # noqa: E501
    biases: tuple[Biases, ...] = setting(BIASES["all"], named_values=BIASES)
    """Linear maps that have a bias."""
    tied_head: bool = False
    """Use the token embedding as the output head."""
    init_std: float = setting(0.0, low=0.0, high=100.0, suggestion=0.02)
    """Standard deviation of all matrices and vectors of tokens and positions at initialisation, with biases of 0; 0 means torch's defaults."""  # noqa: E501
    scaled_residual_init: bool = False
    """With `init_std`: divide it by the square root of twice the depth for the matrices that write to the residual stream, as GPT-2 does."""  # noqa: E501
    embedding_init_std: float = setting(0.0, low=0.0, high=100.0)
    """Standard deviation of the token embedding at initialisation; 0 means `init_std`, or without it 1, or width^-0.5 for a tied head."""  # noqa: E501
    dropout: float = setting(0.0, low=0.0, high=0.95)
    """Share of numbers that dropout sets to 0 during training."""
    dropout_on: tuple[Dropped, ...] = setting(DROPOUT_ON["gpt2"], named_values=DROPOUT_ON)
    """What dropout applies to: the embedded input, attention weights, the MLP's hidden activations, the outputs of attention and MLP."""  # noqa: E501
    positions: tuple[PositionScheme, ...] = setting(
        POSITIONS["place-relative"], named_values=POSITIONS
    )
    """Position schemes, any number of them: a name, or each set field by field."""

    def conflicts(self, path: str) -> Iterator[str]:
        if self.head_width is None and self.width % self.num_heads:
            fitting = self.width - self.width % self.num_heads or self.num_heads
            yield (
                f"{path}.width must be a multiple of {path}.num_heads = {self.num_heads}, "
                f"got {self.width}. Try --{path}.width {fitting}, or set --{path}.head_width."
            )
        rotations = sum(scheme.adds == "rotation" for scheme in self.positions)
        if rotations and self.width_of_head % (2 * rotations):
            fitting = self.width_of_head + -self.width_of_head % (2 * rotations)
            yield (
                f"rotary encodings turn pairs of numbers, so a head's width must be a multiple of "
                f"{2 * rotations}, got {self.width_of_head}. Try --{path}.head_width {fitting}."
            )
        if self.scaled_residual_init and not self.init_std:
            yield (
                f"{path}.scaled_residual_init scales {path}.init_std, got {path}.init_std 0. "
                f"Try --{path}.init_std 0.02."
            )
        if self.initial_state == "noise" and self.injection == "none":
            yield (
                f"{path}.initial_state noise without injection would never see the input. "
                f"Try --{path}.injection add."
            )

    def dropout_of(self, dropped: Dropped) -> float:
        """Return the share of these numbers that dropout sets to 0 during training."""
        return self.dropout if dropped in self.dropout_on else 0.0

    @property
    def epsilon(self) -> float:
        """Number added to the mean square under the root of a normalisation."""
        return self.norm_epsilon or {"layer": 1e-5, "rms": 1e-6}[self.norm]

    @property
    def is_gated(self) -> bool:
        """Whether a second map of an MLP's input multiplies its hidden activations."""
        return self.activation in ("geglu", "swiglu")

    @property
    def width_of_head(self) -> int:
        """K, the width of one head."""
        return self.head_width or self.width // self.num_heads
