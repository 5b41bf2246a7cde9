"""What breaks when parts are switched off: exact match with and without them, on the same problems."""

from collections.abc import Sequence
from dataclasses import dataclass

from abacist.app.shown_runs import ShownRun
from abacist.inspection.ablation import exact_match_with
from abacist.inspection.finding import Finding
from abacist.intervals import Proportion


@dataclass(frozen=True)
class Breakage(Finding):
    """Exact match on test problems."""

    off: list[str]
    way: str
    whole: Proportion
    without: Proportion


def breakage(shown_run: ShownRun, off: Sequence[str], way: str = "zero") -> Breakage:
    """Score a run with some parts switched off."""
    hooks_for = shown_run.hooks(off, way)
    without = (
        shown_run.whole
        if hooks_for is None
        else exact_match_with(shown_run.trained_model, shown_run.sample, hooks_for)
    )
    return Breakage(list(off), way, shown_run.whole, without)
