"""Exact match of a run with some parts switched off, and with all of them, on the same problems."""

from collections.abc import Sequence
from dataclasses import dataclass

from abacist.app.shown_runs import ShownRun
from abacist.inspection.ablation import exact_match_with
from abacist.inspection.finding import Finding
from abacist.intervals import Proportion


@dataclass(frozen=True)
class AblationScore(Finding):
    """Exact match on test problems."""

    off: list[str]
    """Labels of the parts that were switched off."""
    way: str
    """What replaced their output: `zero`, or their `mean` over test problems."""
    whole: Proportion
    """Exact match with all parts on."""
    without: Proportion
    """Exact match with these parts off."""


def ablation_score(shown_run: ShownRun, off: Sequence[str], way: str = "zero") -> AblationScore:
    """Score a run with some parts switched off.

    Raises `ConfigurationError` for unknown parts and ways.
    """
    hooks_for = shown_run.hooks(off, way)
    without = (
        shown_run.whole
        if hooks_for is None
        else exact_match_with(shown_run.trained_model, shown_run.sample, hooks_for)
    )
    return AblationScore(list(off), way, shown_run.whole, without)
