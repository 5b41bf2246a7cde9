"""The outcome of a proof, as stored in `certificate.json`: read and written without torch."""

from dataclasses import dataclass

from abacist.configuration import to_json
from abacist.scoring.records import Solution


@dataclass(frozen=True)
class Certificate:
    """The outcome of checking every neighbourhood."""

    certified: bool
    reason: str
    """What was proved, or why nothing was proved."""
    patterns: int = 0
    """Number of different shapes of a receptive field."""
    neighbourhoods: int = 0
    """Number of different contexts of a receptive field, over all patterns."""
    wrong: int = 0
    """Number of neighbourhoods after which the model's next token is wrong."""
    smallest_margin: float | None = None
    """Right logit minus the best wrong one in the worst neighbourhood, as float64 computes it."""
    proved_margin: float | None = None
    """Lower bound on that margin in the function of real numbers that the weights define."""
    rounding_bound: float | None = None
    """Upper bound on the part of any margin that an implementation in `precision` can lose."""
    precision: str = "float32"
    """The arithmetic for which the claim holds, on any device and in any order of summation."""
    locality_error: float | None = None
    """Largest difference between a logit in a long line and the logit of its receptive field alone, in float64."""
    counterexample: Solution | None = None
    """A whole problem with a wrong answer, made from the worst neighbourhood."""
    seconds: float = 0.0
    """Time of the check in seconds."""
    step: int | None = None
    """Training step of the checkpoint; None if the model belongs to no run."""
    weights_sha256: str | None = None
    """SHA-256 of the checkpoint's `model.safetensors`; None if the model belongs to no run."""
    configuration_sha256: str | None = None
    """SHA-256 of the recipe in `run.json` as canonical JSON; None if the model belongs to no run."""
    abacist_version: str | None = None
    """Version of the package that made the certificate."""
    source_sha256: str | None = None
    """SHA-256 of the package's source."""

    def to_json(self) -> dict[str, object]:
        """All fields by name."""
        return {name: to_json(value) for name, value in vars(self).items()}
