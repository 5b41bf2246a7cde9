"""Who looks at whom: the attention of every head in every layer and recurrence over one line."""

from dataclasses import dataclass

from abacist.inspection.cache import run_with_cache
from abacist.inspection.finding import Array, Finding, array
from abacist.inspection.inspected_problem import InspectedProblem


@dataclass(frozen=True)
class Attention(Finding):
    """Every row over the keys sums to 1."""

    tokens: list[str]
    predicting: list[int]
    """Numbers of the tokens from which an answer token is read off."""
    right: list[str]
    """What should be read off from each of these."""
    pattern: Array
    """(depth, head, query, key); depth counts recurrences × layers."""


def attention(inspected: InspectedProblem) -> Attention:
    """The patterns of all heads."""
    lines = inspected.lines
    _, cache = run_with_cache(
        inspected.trained_model.model,
        lines.tokens.ids,
        lines.coordinates,
        keep=lambda name: name.endswith("hook_pattern"),
    )
    pattern = array(cache.stack("pattern")[:, 0], "depth", "head", "query", "key")
    return Attention(inspected.written, inspected.predicting, inspected.right, pattern)
