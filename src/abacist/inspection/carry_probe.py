"""Linear probes for the carry at every stage of every token that predicts.

The probe reads the residual at the token that predicts the digit of place p, and decides whether
there is a carry into place p. It is a ridge regression to ±1 in closed form, trained on one half of a
test sample and scored on the other (Alain and Bengio, arXiv 1610.01644).
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
"""Regularisation relative to features of size 1, for features that hardly vary."""


@dataclass(frozen=True)
class ProbeAccuracy(Finding):
    """Accuracy of one probe on held-out problems."""

    stage: str
    """Name of the stage at which the residual is read."""
    place: int | None
    """Place of the predicted digit; None for one probe over all places."""
    accuracy: Proportion
    """Proportion of tokens whose carry the probe reads correctly."""
    majority: float
    """Accuracy of always choosing the more frequent class."""


@dataclass(frozen=True)
class CarryProbe(Finding):
    """Probes for each stage over all places, followed by probes for each stage and place."""

    num_training_problems: int
    num_held_out_problems: int
    probes: list[ProbeAccuracy]


def obstacle(inspected: InspectedProblem) -> str | None:
    """Return why the task has no carry to probe; None if it has one."""
    if not has_carries(inspected.trained_model.task):
        return (
            "a probe for the carry needs a task of sums only, or of differences only. "
            "Try --lens logit-lens."
        )
    return None


def carry_probe(inspected: InspectedProblem) -> CarryProbe:
    """Train probes at every stage: one over all places, and one for each place with both classes."""
    trained_model, problems = inspected.trained_model, inspected.sample
    has_carry = carries(trained_model, problems) > 0
    features: dict[str, list[Tensor]] = {}
    bits, places, rows_of_tokens = [], [], []
    for rows, lines in batches(trained_model, problems):
        _, cache = run_with_cache(
            trained_model.model,
            lines.tokens.ids,
            lines.coordinates,
            keep=lambda name: "hook_resid" in name,
        )
        place = lines.predicted_place
        has_column = lines.answers & (place >= 1) & (place <= has_carry.shape[1])
        for stage, name in stages(cache).items():
            features.setdefault(stage, []).append(cache[name].cpu()[has_column].double())
        row = rows.unsqueeze(1).expand_as(place)[has_column]
        bits.append(has_carry[row, place[has_column] - 1])
        places.append(place[has_column])
        rows_of_tokens.append(row)
    bit, place, row = torch.cat(bits), torch.cat(places), torch.cat(rows_of_tokens)
    half = len(problems) // 2
    training = row < half
    probes = []
    groups: list[tuple[int | None, Tensor]] = [(None, torch.ones_like(training))]
    groups += [(number, place == number) for number in torch.unique(place).tolist()]
    for stage, batches_of_features in features.items():
        x = torch.cat(batches_of_features)
        for number, group in groups:
            fitted, held_out = group & training, group & ~training
            if len(torch.unique(bit[fitted])) < 2 or not bool(held_out.any()):
                continue
            weights = fit(x[fitted], bit[fitted])
            right = (decide(x[held_out], weights) == bit[held_out]).sum()
            accuracy = Proportion(int(right), int(held_out.sum()))
            share = float(bit[held_out].double().mean())
            probes.append(ProbeAccuracy(stage, number, accuracy, max(share, 1 - share)))
    return CarryProbe(half, len(problems) - half, probes)


def fit(x_AD: Tensor, bit_A: Tensor) -> Tensor:
    """Return the weights (D + 1,) of a ridge regression to ±1; the last is the unpenalised constant."""
    x = torch.cat([x_AD, torch.ones_like(x_AD[:, :1])], dim=1)
    penalty = _RIDGE * len(x) * torch.eye(x.shape[1], dtype=x.dtype)
    penalty[-1, -1] = 0
    weights: Tensor = torch.linalg.solve(x.t() @ x + penalty, x.t() @ (2.0 * bit_A.to(x.dtype) - 1))
    return weights


def decide(x_AD: Tensor, weights: Tensor) -> Tensor:
    """Return the decisions of a probe, bool (A,): whether there is a carry."""
    return x_AD @ weights[:-1] + weights[-1] > 0
