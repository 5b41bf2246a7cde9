"""The logit lens: what the model would answer if it stopped after an earlier layer.

The final norm and the unembedding are applied to the residual before the first layer, between
attention and MLP, and after every layer and recurrence (nostalgebraist 2020).
"""

from dataclasses import dataclass

import torch

from abacist.inspection.ablation import component_label
from abacist.inspection.cache import ActivationCache, name_of, run_with_cache
from abacist.inspection.finding import Array, Finding, array
from abacist.inspection.inspected_problem import InspectedProblem


@dataclass(frozen=True)
class LogitLens(Finding):
    """Predictions at the tokens that predict, after every stage."""

    right: list[str]
    stages: list[str]
    """Names of the stages: `embedding`, then attention and MLP at each depth."""
    likeliest: list[list[str]]
    """The likeliest token, by stage and predicting token."""
    probability: Array
    """(stage, predicting): probability of the right token."""


@torch.no_grad()
def logit_lens(inspected: InspectedProblem) -> LogitLens:
    """Return the probability of the right token after every stage."""
    model, lines = inspected.trained_model.model, inspected.lines
    _, cache = run_with_cache(model, lines.tokens.ids, lines.coordinates)
    names = stages(cache)
    predicting = inspected.predicting
    right = lines.labels[0, predicting].unsqueeze(-1)
    vocabulary = inspected.trained_model.format.vocabulary.tokens
    likeliest, probabilities = [], []
    for name in names.values():
        resid_TBD = cache[name].transpose(0, 1)
        probability = model.unembed(resid_TBD)[0, predicting].softmax(dim=-1).cpu()
        likeliest.append([vocabulary[token] for token in probability.argmax(dim=-1).tolist()])
        probabilities.append(probability.gather(-1, right).squeeze(-1))
    return LogitLens(
        right=inspected.right_tokens,
        stages=list(names),
        likeliest=likeliest,
        probability=array(torch.stack(probabilities), "stage", "predicting"),
    )


def stages(cache: ActivationCache) -> dict[str, str]:
    """Return the name of the residual's activation by stage; stages are numbered as components are."""
    activations = {"embedding": name_of("resid_pre", 0)}
    for depth in range(cache.depth):
        for part, short in (("attention", "resid_mid"), ("MLP", "resid_post")):
            activations[component_label(part, depth, cache.depth)] = name_of(short, depth)
    return activations
