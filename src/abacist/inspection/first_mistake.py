"""Explanation of the first mistake: its place, the carry chain before it, and the components that caused it.

If the answer is right, the digit of which the model was least sure is explained.
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
    """Explanation of one token of the answer."""

    is_mistake: bool
    """Whether the token is wrong; False if the whole answer is right."""
    before: str
    """The answer tokens before it, in the order in which they are written."""
    right: str
    rival: str
    """The likeliest wrong token, which is what the model writes if it is mistaken."""
    place: int | None
    """Place of the token, 1 for units; None if it has no place."""
    carry_chain: int | None
    """Number of consecutive columns with an incoming carry, ending with this one.

    None for tasks without carries and for scratch work before the answer.
    """
    margin: float
    """The right logit minus the rival's."""
    components: list[str]
    """Components, sorted so that those most in favour of the rival come first."""
    contribution: Array
    """(component,): contribution to the right logit minus the rival's."""


def first_mistake(inspected: InspectedProblem) -> FirstMistake:
    """Explain the first wrong token, or the least certain one."""
    attributed = attribution(inspected)
    leads = attributed.lead.values
    wrong = np.flatnonzero(leads <= 0)
    number = int(wrong[0]) if len(wrong) else int(leads.argmin())
    token = inspected.predicting[number]
    place = int(inspected.lines.predicted_place[0, token])
    contribution = attributed.contribution.values[:, number]
    order = contribution.argsort()
    return FirstMistake(
        is_mistake=bool(len(wrong)),
        before="".join(inspected.right_tokens[:number]),
        right=attributed.right[number],
        rival=attributed.runner_up[number],
        place=place if place >= 1 else None,
        carry_chain=_carry_chain(inspected, token),
        margin=float(leads[number]),
        components=[attributed.components[i] for i in order.tolist()],
        contribution=array(torch.from_numpy(contribution[order]), "component"),
    )


def _carry_chain(inspected: InspectedProblem, token: int) -> int | None:
    """Return the number of consecutive columns with an incoming carry, up to the predicted one."""
    place = int(inspected.lines.predicted_place[0, token])
    is_answer = bool(inspected.lines.answers[0, token])
    if not has_carries(inspected.trained_model.task) or not is_answer or place < 1:
        return None
    has_carry = (carries(inspected.trained_model, inspected.problem)[0] > 0).tolist()
    length = 0
    while 0 <= place - 1 - length < len(has_carry) and has_carry[place - 1 - length]:
        length += 1
    return length
