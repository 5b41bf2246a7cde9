"""The outcome of a proof, as stored in `certificate.json`: read and written without torch."""

import math
from dataclasses import dataclass

from abacist.configuration import to_json
from abacist.notebook_html import html_table
from abacist.scoring.records import Solution


@dataclass(frozen=True, repr=False)
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
    """Upper bound on what rounding in `precision` can take off the margin of which it leaves least."""
    remaining_margin: float | None = None
    """Lower bound on every margin in every implementation in `precision`; None if there is none."""
    precision: str = "float32"
    """The arithmetic for which the claim holds."""
    rounding_is_proved: bool = False
    """Whether the claim holds for every implementation, on any device and in any order of summation.

    Otherwise it is proved for the function of real numbers, and rounding was measured on one machine.
    """
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

    @property
    def rounding(self) -> str:
        """A clause that says what rounding leaves of the margins."""
        if self.rounding_is_proved:
            assert self.remaining_margin is not None
            left = _rounded_down(self.remaining_margin)
            return f"at least {left} after rounding in {self.precision} on any machine"
        return f"and rounding in {self.precision} was measured on this machine, not bounded"

    def __repr__(self) -> str:
        return f"Certificate({'' if self.certified else 'not '}certified: {self.reason})"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [
            ("neighbourhoods checked", f"{self.neighbourhoods:,}"),
            ("wrong", f"{self.wrong:,}"),
        ]
        if self.smallest_margin is not None:
            rows.append(("smallest margin", f"{self.smallest_margin:.2f} logits"))
        if self.counterexample is not None:
            rows.append(("a wrong answer", self.counterexample))
        if self.weights_sha256 is not None:
            rows.append(("weights", self.weights_sha256))
        heading = "Certified" if self.certified else "Not certified"
        return html_table(f"{heading}: {self.reason}", (), rows)

    def to_json(self) -> dict[str, object]:
        """All fields by name."""
        return {name: to_json(value) for name, value in vars(self).items()}


def _rounded_down(bound: float) -> str:
    """Return a positive lower bound with two or three digits; 10.61 is at least 10.6, not 11."""
    if float(text := f"{bound:.2g}") <= bound:
        return text
    unit = 10.0 ** (2 - math.floor(math.log10(bound)))
    return f"{math.floor(bound * unit) / unit:.3g}"
