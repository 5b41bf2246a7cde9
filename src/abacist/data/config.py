"""Settings of the split. Imports no torch."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from abacist.config_base import Config, setting

SplitName = Literal["train", "validation", "test"]


@dataclass(frozen=True, kw_only=True)
class SplitConfig(Config):
    """Shares of the splits. A hash of its operands assigns every problem to one split forever."""

    section: ClassVar = "split"

    validation_fraction: float = setting(0.05, low=0.001, high=0.5)
    """Share of all problems reserved for exact-match checks during training."""
    test_fraction: float = setting(0.1, low=0.0, high=0.5)
    """Share of all problems reserved for the scorecard; 0 lets the scorecard use the validation problems."""
    exempt_digits: int = setting(0, low=0, high=1_000_000)
    """Problems without a longer operand belong to all splits, because there are too few of them to split; in digits."""

    @property
    def splits(self) -> tuple[SplitName, ...]:
        """The splits that share no problem: without test problems of its own, test is validation."""
        return ("train", "validation", "test") if self.test_fraction else ("train", "validation")

    def conflicts(self, path: str) -> Iterator[str]:
        if self.validation_fraction + self.test_fraction > 0.9:
            yield (
                f"{path}.validation_fraction and {path}.test_fraction leave less than 0.1 for "
                f"training, got {self.validation_fraction} and {self.test_fraction}. "
                f"Try --{path}.test_fraction 0.1."
            )
