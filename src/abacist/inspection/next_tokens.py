"""The likeliest next tokens at every position of a line, with their probabilities."""

from dataclasses import dataclass

from abacist.inspection.cache import run_with_cache
from abacist.inspection.finding import Array, Finding, array
from abacist.inspection.inspected_problem import InspectedProblem

_LIKELIEST = 3


@dataclass(frozen=True)
class NextTokens(Finding):
    """On the line with the right answer, so the first wrong one is where the model goes wrong."""

    tokens: list[str]
    """What is written."""
    predicting: list[int]
    """Numbers of the tokens from which an answer token is read off."""
    right: list[str]
    """What should be read off from each of these."""
    likeliest: list[list[str]]
    """Of every token, the likeliest first."""
    probability: Array
    """(token, rank)"""


def next_tokens(inspected: InspectedProblem, count: int = _LIKELIEST) -> NextTokens:
    """The `count` likeliest tokens at every position."""
    model, lines = inspected.trained_model.model, inspected.lines
    logits, _ = run_with_cache(model, lines.tokens.ids, lines.coordinates, keep=lambda name: False)
    count = min(count, logits.shape[-1])
    top = logits[0].softmax(dim=-1).topk(count, dim=-1)
    names = inspected.trained_model.format.vocabulary.tokens
    return NextTokens(
        tokens=inspected.written,
        predicting=inspected.predicting,
        right=inspected.right,
        likeliest=[[names[token] for token in row] for row in top.indices.tolist()],
        probability=array(top.values, "token", "rank"),
    )
