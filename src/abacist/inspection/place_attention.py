"""Attention by difference of place: does a head fetch its own column, the next one, or another?

The average over all tokens of a test sample that predict. The token that predicts the digit of
place p stands at place p - 1 itself in a reversed format, so `+1` are the digits to be added next.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.formats.annotated import EVERYWHERE, Field
from abacist.inspection.cache import run_with_cache
from abacist.inspection.finding import Array, Finding, array
from abacist.inspection.inspected_lines import Lines, batches
from abacist.inspection.inspected_problem import InspectedProblem

WIDEST = 4
"""Differences are told apart up to this many columns; what is farther counts as that far."""

DIFFERENCES = (
    f"≤-{WIDEST}",
    *(f"{difference:+d}" if difference else "0" for difference in range(1 - WIDEST, WIDEST)),
    f"≥+{WIDEST}",
    "every column",
    "no column",
)
"""Place of the key minus place of the query, and two more kinds of pairs."""

_FIELD_NAMES = {
    Field.START: "start",
    Field.OPERATOR: "operator",
    Field.EQUALS: "equals",
    Field.ANSWER: "answer",
    Field.SCRATCH: "scratch",
    Field.SPACE: "space",
    Field.LABEL: "label",
}


@dataclass(frozen=True)
class PlaceAttention(Finding):
    """Over fields and differences, the attention of a head sums to 1."""

    fields: list[str]
    """What the keys are: `operand 1`, `answer` …"""
    differences: list[str]
    weight: Array
    """(depth, head, field, difference): mean attention."""
    num_problems: int
    num_tokens: int
    """How many predicting tokens the mean is over."""


@torch.no_grad()
def place_attention(inspected: InspectedProblem) -> PlaceAttention:
    """Mean attention of every head by field and by difference of place."""
    trained_model = inspected.trained_model
    num_fields = int(Field.OPERAND) + inspected.sample.num_operands
    total, count = torch.zeros(()), 0
    for _, lines in batches(trained_model, inspected.sample):
        _, cache = run_with_cache(
            trained_model.model,
            lines.tokens.ids,
            lines.coordinates,
            keep=lambda name: name.endswith("hook_pattern"),
        )
        predicts = lines.predicts
        difference = difference_numbers(lines)
        kind = lines.tokens.field.long().unsqueeze(1) * len(DIFFERENCES) + difference
        chosen = kind[predicts]
        summed = []
        for pattern in cache.stack("pattern").cpu().double():
            # (B, H, T, T) to (predicting tokens, H, T)
            rows = pattern.transpose(1, 2)[predicts]
            bins = rows.new_zeros(*rows.shape[:2], num_fields * len(DIFFERENCES))
            at = chosen.unsqueeze(1).expand_as(rows)
            summed.append(bins.scatter_add_(2, at, rows).sum(dim=0))
        total = total + torch.stack(summed)
        count += int(predicts.sum())
    weight = (total / count).view(*total.shape[:2], num_fields, len(DIFFERENCES))
    names = [
        _FIELD_NAMES.get(Field(number), "padding")
        if number < Field.OPERAND
        else f"operand {number - Field.OPERAND + 1}"
        for number in range(num_fields)
    ]
    used = weight.amax(dim=(0, 1, 3)) > 0
    return PlaceAttention(
        fields=[name for name, is_used in zip(names, used.tolist(), strict=True) if is_used],
        differences=list(DIFFERENCES),
        weight=array(weight[:, :, used], "depth", "head", "field", "difference"),
        num_problems=len(inspected.sample),
        num_tokens=count,
    )


def difference_numbers(lines: Lines) -> Tensor:
    """int64 (B, T, T): for every query and key, which of `DIFFERENCES`."""
    place = lines.tokens.place.long()
    query, key = place.unsqueeze(2), place.unsqueeze(1)
    number = (key - query).clamp(-WIDEST, WIDEST) + WIDEST
    without = (query < 0) | (key < 0)
    number = torch.where(without, DIFFERENCES.index("no column"), number)
    return torch.where(key == EVERYWHERE, DIFFERENCES.index("every column"), number)
