"""Whether a looped model comes to rest: how far each recurrence is from the fixed point.

The fixed point is what the state is after several times as many recurrences as were trained; a
model that has found an algorithm stays there, one that merely counts its loops walks away.
"""

from dataclasses import dataclass

import torch

from abacist.inspection.cache import name_of, run_with_cache
from abacist.inspection.finding import Array, Finding, array
from abacist.inspection.inspected_problem import InspectedProblem

_TIMES_AS_MANY = 4


@dataclass(frozen=True)
class Recurrences(Finding):
    """Means over the tokens that predict."""

    trained: int
    """Recurrences in training."""
    distance: Array
    """(recurrence,): length of the state minus the last one, over the length of the last one."""
    step: Array
    """(recurrence,): length of the change in this recurrence, over the length of the last state."""
    probability: Array
    """(recurrence,): of the right tokens, read off after it."""


def obstacle(inspected: InspectedProblem) -> str | None:
    """Why a model has no recurrences to look at."""
    if inspected.trained_model.model.config.recurrences == 1:
        return (
            "this model runs its layers once and has no recurrences. "
            "Try --lens logit-lens, or train with --model.recurrences 8."
        )
    return None


@torch.no_grad()
def recurrences(inspected: InspectedProblem) -> Recurrences:
    """Distances to the state after four times the trained number of recurrences."""
    model, lines = inspected.trained_model.model, inspected.lines
    trained, layers = model.config.recurrences, len(model.blocks)
    recurrences = _TIMES_AS_MANY * trained
    _, cache = run_with_cache(
        model,
        lines.tokens.ids,
        lines.coordinates,
        keep=lambda name: name.endswith(("hook_resid_post", "hook_resid_pre")),
        recurrences=recurrences,
    )
    at = inspected.predicting
    ends = [cache[name_of("resid_post", (round + 1) * layers - 1)] for round in range(recurrences)]
    states = torch.stack([cache[name_of("resid_pre", 0)], *ends])[:, 0, at]
    length = states[-1].norm(dim=-1)
    right = lines.labels[0, at].unsqueeze(-1)
    probability = torch.stack(
        [
            model.unembed(end.transpose(0, 1))[0, at].softmax(dim=-1).cpu().gather(-1, right).mean()
            for end in ends
        ]
    )
    distance = ((states[1:] - states[-1]).norm(dim=-1) / length).mean(dim=-1)
    step = ((states[1:] - states[:-1]).norm(dim=-1) / length).mean(dim=-1)
    return Recurrences(
        trained=trained,
        distance=array(distance, "recurrence"),
        step=array(step, "recurrence"),
        probability=array(probability, "recurrence"),
    )
