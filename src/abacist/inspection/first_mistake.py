"""The first mistake explained: where it is, how far a carry had come, which parts moved it.

A right answer has no mistake; then the digit the model was least sure of is explained.
"""

from dataclasses import dataclass

import numpy as np
import torch

from abacist.inspection.attribution import attribution
from abacist.inspection.carries import carries, has_carries
from abacist.inspection.finding import Array, Finding, array
from abacist.inspection.inspected_problem import InspectedProblem


@dataclass(frozen=True)
class FirstMistake(Finding):
    """One token of the answer."""

    is_mistake: bool
    """False where the whole answer is right."""
    before: str
    """What stands before it in the answer, as written."""
    right: str
    rival: str
    """The likeliest wrong token: what the model writes where it is mistaken."""
    place: int | None
    """1 for units; None for a token that has none."""
    carry_chain: int | None
    """Columns in a row with a carry into them, this one the last; None where nothing is carried: in
    tasks without carries, and in work written before the answer."""
    margin: float
    """The right logit minus the rival's."""
    components: list[str]
    """Those that pull most towards the rival first."""
    contribution: Array
    """(component,): to the right logit minus the rival's."""


def first_mistake(inspected: InspectedProblem) -> FirstMistake:
    """Explain the first wrong token, or the least certain one."""
    parts = attribution(inspected)
    leads = parts.lead.values
    wrong = np.flatnonzero(leads <= 0)
    number = int(wrong[0]) if len(wrong) else int(leads.argmin())
    token = inspected.predicting[number]
    place = int(inspected.lines.predicted_place[0, token])
    contribution = parts.contribution.values[:, number]
    order = contribution.argsort()
    return FirstMistake(
        is_mistake=bool(len(wrong)),
        before="".join(inspected.right[:number]),
        right=parts.right[number],
        rival=parts.runner_up[number],
        place=place if place >= 1 else None,
        carry_chain=_chain(inspected, token),
        margin=float(leads[number]),
        components=[parts.components[i] for i in order.tolist()],
        contribution=array(torch.from_numpy(contribution[order]), "component"),
    )


def _chain(inspected: InspectedProblem, token: int) -> int | None:
    """How many columns of the answer in a row, up to the one that is predicted, receive a carry."""
    place = int(inspected.lines.predicted_place[0, token])
    is_answer = bool(inspected.lines.answers[0, token])
    if not has_carries(inspected.trained_model.task) or not is_answer or place < 1:
        return None
    into = (carries(inspected.trained_model, inspected.problem)[0] > 0).tolist()
    length = 0
    while place - 1 - length >= 0 and place - 1 - length < len(into) and into[place - 1 - length]:
        length += 1
    return length
