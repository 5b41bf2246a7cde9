"""Settings of the scorecard. Imports no torch."""

from dataclasses import dataclass
from typing import ClassVar

from abacist.config_base import Config, setting

LARGEST_SPACE = 10_000_000_000
"""Largest number of problems that can be scored exhaustively."""


@dataclass(frozen=True, kw_only=True)
class ScoringConfig(Config):
    """Sample sizes and limits of the suites."""

    section: ClassVar = "scoring"

    num_problems: int = setting(1_000, low=1, high=10_000_000)
    """Number of test problems in each row of a suite; the row of all training lengths has 10 times as many."""
    longest: int = setting(10_000, low=1, high=1_000_000)
    """Suite lengths: length of the longest operands, in digits. Beyond training, there are rows for 20, 50, 100, 1,000, 10,000 and 100,000 digits, of which long ones get fewer problems."""  # noqa: E501
    grid_size: int | None = setting(None, low=1, high=10_000, suggestion=40)
    """Suite grid: length of the longest operands, in digits; by default twice the longest in training, at most 40."""
    grid_problems: int = setting(100, low=1, high=100_000)
    """Suite grid: number of test problems in each cell."""
    recurrences: tuple[int, ...] = setting((), low=1, high=1_024, suggestion=8)
    """Suites grid and recurrences: numbers of recurrences of a looped model, besides that of training; by default none for the grid, and 1, 2, 4, 8, 16 and 32 for the other suite."""  # noqa: E501
    exhaustive_digits: int | None = setting(None, low=1, high=18, suggestion=3)
    """Suite exhaustive: length of the longest operands, in digits; by default the longest in training."""
    largest_space: int = setting(20_000_000, low=1, high=LARGEST_SPACE)
    """Suite exhaustive: largest number of problems that it scores one by one."""
    budget: int = setting(20_000, low=1, high=1_000_000_000)
    """Suite counterexamples: number of problems tried."""
