"""Settings of the split. Imports no torch."""

from dataclasses import dataclass
from typing import Literal

from abacist.errors import ConfigurationError, check_between

SplitName = Literal["train", "validation", "test"]


@dataclass(frozen=True, kw_only=True)
class SplitConfig:
    """Every problem belongs to one split for ever, by a hash of its operands."""

    validation_fraction: float = 0.05
    """Share of all problems kept for decisions while training, 0…1."""
    test_fraction: float = 0.1
    """Share of all problems kept for the scorecard, 0…1."""
    exempt_digits: int = 0
    """Problems with no longer operand are in all splits at once: for spaces too small to split."""

    def __post_init__(self) -> None:
        check_between("split.validation_fraction", self.validation_fraction, 0.001, 0.5, 0.05)
        check_between("split.test_fraction", self.test_fraction, 0.001, 0.5, 0.1)
        check_between("split.exempt_digits", self.exempt_digits, 0, 1_000_000, 0)
        if self.validation_fraction + self.test_fraction > 0.9:
            raise ConfigurationError(
                "split.validation_fraction and split.test_fraction leave less than 0.1 for "
                f"training, got {self.validation_fraction} and {self.test_fraction}. "
                "Try --split.test_fraction 0.1."
            )
