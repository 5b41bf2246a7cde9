"""What the model would answer if it stopped early: every stage's residual, read by the head.

The logit lens (nostalgebraist 2020): the final norm and the head are applied to the residual
before the first layer, between attention and MLP, and behind every layer and recurrence.
"""

from dataclasses import dataclass

import torch

from abacist.inspection.cache import ActivationCache, name_of, run_with_cache
from abacist.inspection.finding import Array, Finding, array
from abacist.inspection.inspected_problem import InspectedProblem


@dataclass(frozen=True)
class LogitLens(Finding):
    """At the tokens that predict, after every stage."""

    right: list[str]
    stages: list[str]
    """`embedded`, then attention and MLP of each layer passed through."""
    likeliest: list[list[str]]
    """By stage and predicting token."""
    probability: Array
    """(stage, predicting): of the right token."""


@torch.no_grad()
def logit_lens(inspected: InspectedProblem) -> LogitLens:
    """The right token's probability after every stage."""
    model, lines = inspected.trained_model.model, inspected.lines
    _, cache = run_with_cache(model, lines.tokens.ids, lines.coordinates)
    names = stages(cache)
    at = inspected.predicting
    right = lines.labels[0, at].unsqueeze(-1)
    vocabulary = inspected.trained_model.format.vocabulary.tokens
    likeliest, probabilities = [], []
    for name in names.values():
        resid_TBD = cache[name].transpose(0, 1)
        probability = model.unembed(resid_TBD)[0, at].softmax(dim=-1).cpu()
        likeliest.append([vocabulary[token] for token in probability.argmax(dim=-1).tolist()])
        probabilities.append(probability.gather(-1, right).squeeze(-1))
    return LogitLens(
        right=inspected.right,
        stages=list(names),
        likeliest=likeliest,
        probability=array(torch.stack(probabilities), "stage", "predicting"),
    )


def stages(cache: ActivationCache) -> dict[str, str]:
    """Where the residual can be read, by what a person calls it."""
    found = {"embedded": name_of("resid_pre", 0)}
    for depth in range(cache.depth):
        found[f"{depth} attention"] = name_of("resid_mid", depth)
        found[f"{depth} MLP"] = name_of("resid_post", depth)
    return found
