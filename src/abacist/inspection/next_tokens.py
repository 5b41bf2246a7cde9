"""The likeliest next tokens at every position of a line, with their probabilities."""

from dataclasses import dataclass

from abacist.inspection.cache import run_with_cache
from abacist.inspection.finding import Array, Finding, array
from abacist.inspection.inspected_problem import InspectedProblem

_LIKELIEST = 3


@dataclass(frozen=True)
class NextTokens(Finding):
    """Likeliest tokens on the line with the right answer, as in training."""

    tokens: list[str]
    """The tokens of the line."""
    predicting: list[int]
    """Indices of the tokens from which an answer token is read."""
    right: list[str]
    """The right answer token for each of them."""
    likeliest: list[list[str]]
    """The likeliest next tokens of every token, likeliest first."""
    probability: Array
    """(token, rank): probabilities of these tokens."""


def next_tokens(inspected: InspectedProblem, count: int = _LIKELIEST) -> NextTokens:
    """Return the `count` likeliest next tokens at every position."""
    model, lines = inspected.trained_model.model, inspected.lines
    logits, _ = run_with_cache(model, lines.tokens.ids, lines.coordinates, keep=lambda name: False)
    count = min(count, logits.shape[-1])
    top = logits[0].softmax(dim=-1).topk(count, dim=-1)
    names = inspected.trained_model.format.vocabulary.tokens
    return NextTokens(
        tokens=inspected.tokens,
        predicting=inspected.predicting,
        right=inspected.right_tokens,
        likeliest=[[names[token] for token in row] for row in top.indices.tolist()],
        probability=array(top.values, "token", "rank"),
    )
