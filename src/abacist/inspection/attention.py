"""The attention patterns of every head in every layer and recurrence over one line."""

from dataclasses import dataclass

from abacist.inspection.cache import run_with_cache
from abacist.inspection.finding import Array, Finding, array
from abacist.inspection.inspected_problem import InspectedProblem


@dataclass(frozen=True)
class Attention(Finding):
    """Attention patterns of one line; each row over the keys sums to 1."""

    tokens: list[str]
    predicting: list[int]
    """Indices of the tokens from which an answer token is read."""
    right: list[str]
    """The right answer token for each of them."""
    pattern: Array
    """(depth, head, query, key), where depth counts recurrences × layers."""


def attention(inspected: InspectedProblem) -> Attention:
    """Return the patterns of all heads."""
    lines = inspected.lines
    _, cache = run_with_cache(
        inspected.trained_model.model,
        lines.tokens.ids,
        lines.coordinates,
        keep=lambda name: name.endswith("hook_pattern"),
    )
    pattern = array(cache.stack("pattern")[:, 0], "depth", "head", "query", "key")
    return Attention(inspected.tokens, inspected.predicting, inspected.right_tokens, pattern)
