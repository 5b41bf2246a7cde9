"""What breaks when parts are switched off: exact match with and without them, on the same problems."""

from collections.abc import Sequence
from dataclasses import dataclass

from abacist.app.exhibits import Exhibit
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


def breakage(exhibit: Exhibit, off: Sequence[str], way: str = "zero") -> Breakage:
    """Score a run with some parts switched off."""
    hooks_for = exhibit.hooks(off, way)
    without = (
        exhibit.whole
        if hooks_for is None
        else exact_match_with(exhibit.subject, exhibit.sample, hooks_for)
    )
    return Breakage(list(off), way, exhibit.whole, without)
