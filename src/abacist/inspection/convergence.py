"""Convergence of a looped model: how far the state after each recurrence is from the fixed point.

The fixed point is approximated by the state after four times the trained number of recurrences. A
model that has learned an iterative algorithm stays there; one that counts recurrences does not.
"""

from dataclasses import dataclass

import torch

from abacist.inspection.cache import name_of, run_with_cache
from abacist.inspection.finding import Array, Finding, array
from abacist.inspection.inspected_problem import InspectedProblem

_FACTOR = 4
"""Number of recurrences that are run, divided by the number in training."""


@dataclass(frozen=True)
class Convergence(Finding):
    """Distances to the fixed point, as means over the tokens that predict."""

    trained: int
    """Number of recurrences in training."""
    distance: Array
    """(recurrence,): norm of the state minus the last state, relative to the norm of the last state."""
    step: Array
    """(recurrence,): norm of the change in this recurrence, relative to the norm of the last state."""
    probability: Array
    """(recurrence,): probability of the right tokens when the state after it is unembedded."""


def obstacle(inspected: InspectedProblem) -> str | None:
    """Return why a model has no recurrences; None if it has some."""
    if inspected.trained_model.model.config.recurrences == 1:
        return (
            "this model runs its layers once and has no recurrences. "
            "Try --lens logit-lens, or train with --model.recurrences 8."
        )
    return None


@torch.no_grad()
def convergence(inspected: InspectedProblem) -> Convergence:
    """Return the distances to the state after four times the trained number of recurrences."""
    model, lines = inspected.trained_model.model, inspected.lines
    trained, layers = model.config.recurrences, len(model.blocks)
    recurrences = _FACTOR * trained
    _, cache = run_with_cache(
        model,
        lines.tokens.ids,
        lines.coordinates,
        keep=lambda name: name.endswith(("hook_resid_post", "hook_resid_pre")),
        recurrences=recurrences,
    )
    predicting = inspected.predicting
    ends = [
        cache[name_of("resid_post", recurrence * layers - 1)]
        for recurrence in range(1, recurrences + 1)
    ]
    states = torch.stack([cache[name_of("resid_pre", 0)], *ends])[:, 0, predicting]
    norm = states[-1].norm(dim=-1)
    right = lines.labels[0, predicting].unsqueeze(-1)
    probability = torch.stack(
        [
            model.unembed(end.transpose(0, 1))[0, predicting]
            .softmax(dim=-1)
            .cpu()
            .gather(-1, right)
            .mean()
            for end in ends
        ]
    )
    distance = ((states[1:] - states[-1]).norm(dim=-1) / norm).mean(dim=-1)
    step = ((states[1:] - states[:-1]).norm(dim=-1) / norm).mean(dim=-1)
    return Convergence(
        trained=trained,
        distance=array(distance, "recurrence"),
        step=array(step, "recurrence"),
        probability=array(probability, "recurrence"),
    )
