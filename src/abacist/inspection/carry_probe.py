"""Where the model knows the carry: a linear probe at every stage of every predicting token.

At the token that predicts the digit of place p, does the residual tell whether a carry goes into
place p? The probe is ridge regression to ±1 in closed form, trained on one half of a test sample
and judged on the other (Alain and Bengio, arXiv 1610.01644).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.inspection.cache import run_with_cache
from abacist.inspection.carries import carries, has_carries
from abacist.inspection.finding import Finding
from abacist.inspection.inspected_lines import batches
from abacist.inspection.inspected_problem import InspectedProblem
from abacist.inspection.logit_lens import stages
from abacist.intervals import Proportion

_RIDGE = 1e-2
"""Against features that hardly vary; features have a size of about 1."""


@dataclass(frozen=True)
class ProbeAccuracy(Finding):
    """One place, or all together, on held-out problems."""

    stage: str
    place: int | None
    """Of the digit that is predicted; None for all places, with one probe for them all."""
    accuracy: Proportion
    """Of tokens."""
    majority: float
    """Accuracy of always saying what is more frequent."""


@dataclass(frozen=True)
class CarryProbe(Finding):
    """A probe for each stage over all places, then one for each stage and place."""

    num_training_problems: int
    num_held_out_problems: int
    probes: list[ProbeAccuracy]


def obstacle(inspected: InspectedProblem) -> str | None:
    """Why there is no carry to look for."""
    if not has_carries(inspected.trained_model.task):
        return (
            "a probe for the carry needs a task of sums only, or of differences only. "
            "Try --lens logit-lens."
        )
    return None


def carry_probe(inspected: InspectedProblem) -> CarryProbe:
    """Probes at every stage, over all places and for each place in which both cases occur."""
    trained_model, problems = inspected.trained_model, inspected.sample
    into = carries(trained_model, problems) > 0
    features: dict[str, list[Tensor]] = {}
    bits, places, owners = [], [], []
    for rows, lines in batches(trained_model, problems):
        _, cache = run_with_cache(
            trained_model.model,
            lines.tokens.ids,
            lines.coordinates,
            keep=lambda name: "hook_resid" in name,
        )
        place = lines.predicted_place
        inside = lines.answers & (place >= 1) & (place <= into.shape[1])
        for stage, name in stages(cache).items():
            features.setdefault(stage, []).append(cache[name].cpu()[inside].double())
        owner = rows.unsqueeze(1).expand_as(place)[inside]
        bits.append(into[owner, place[inside] - 1])
        places.append(place[inside])
        owners.append(owner)
    bit, place, owner = torch.cat(bits), torch.cat(places), torch.cat(owners)
    half = len(problems) // 2
    training = owner < half
    probes = []
    everywhere = torch.ones_like(training)
    groups: list[tuple[int | None, Tensor]] = [(None, everywhere)]
    groups += [(number, place == number) for number in torch.unique(place).tolist()]
    for stage, parts in features.items():
        x = torch.cat(parts)
        for number, chosen in groups:
            seen, held_out = chosen & training, chosen & ~training
            if len(torch.unique(bit[seen])) < 2 or not bool(held_out.any()):
                continue
            weights = fit(x[seen], bit[seen])
            right = (decide(x[held_out], weights) == bit[held_out]).sum()
            accuracy = Proportion(int(right), int(held_out.sum()))
            share = float(bit[held_out].double().mean())
            probes.append(ProbeAccuracy(stage, number, accuracy, max(share, 1 - share)))
    return CarryProbe(half, len(problems) - half, probes)


def fit(x_ND: Tensor, bit_N: Tensor) -> Tensor:
    """Ridge regression to ±1: weights (D + 1,), the last of them the constant, which is not shrunk."""
    x = torch.cat([x_ND, torch.ones_like(x_ND[:, :1])], dim=1)
    penalty = _RIDGE * len(x) * torch.eye(x.shape[1], dtype=x.dtype)
    penalty[-1, -1] = 0
    weights: Tensor = torch.linalg.solve(x.t() @ x + penalty, x.t() @ (2.0 * bit_N.to(x.dtype) - 1))
    return weights


def decide(x_ND: Tensor, weights: Tensor) -> Tensor:
    """bool (N,): what the probe says."""
    return x_ND @ weights[:-1] + weights[-1] > 0
