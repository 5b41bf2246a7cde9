"""Settings of the scorecard. Imports no torch."""

from dataclasses import dataclass

from abacist.errors import check_between


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """Which lengths are scored, and on how many test problems each."""

    num_problems: int = 1_000
    """Test problems for each length (10 times as many over all trained lengths together)."""
    longest: int = 10_000
    """Longest operands scored, in digits; long lengths get fewer problems."""

    def __post_init__(self) -> None:
        check_between("evaluation.num_problems", self.num_problems, 1, 10_000_000, 1000)
        check_between("evaluation.longest", self.longest, 1, 1_000_000, 10000)
