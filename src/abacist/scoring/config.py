"""Settings of the scorecard. Imports no torch."""

from dataclasses import dataclass, fields

from abacist.errors import check_between


@dataclass(frozen=True, kw_only=True)
class ScoringConfig:
    """How much is scored, by which suite."""

    num_problems: int = 1_000
    """Test problems for each row of a suite (10 times as many over all trained lengths together)."""
    longest: int = 10_000
    """Suite lengths: longest operands scored, in digits; long lengths get fewer problems."""
    grid_size: int | None = None
    """Suite grid: longest operands, in digits; none means twice the longest in training, at most 40."""
    grid_problems: int = 100
    """Suite grid: test problems in each cell."""
    largest_space: int = 20_000_000
    """Suite exhaustive: most problems that are scored one by one."""
    budget: int = 20_000
    """Suite counterexamples: problems tried."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            low, high, example = RANGES[field.name]
            if value is not None:
                check_between(f"scoring.{field.name}", value, low, high, example)


RANGES = {
    "num_problems": (1, 10_000_000, 1_000),
    "longest": (1, 1_000_000, 10_000),
    "grid_size": (1, 10_000, 40),
    "grid_problems": (1, 100_000, 100),
    "largest_space": (1, 10_000_000_000, 20_000_000),
    "budget": (1, 1_000_000_000, 20_000),
}
"""Smallest and largest value of every setting, and one to type."""
