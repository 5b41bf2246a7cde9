"""Attention by difference of place: whether a head reads its own column, the next one, or another.

The weights are averages over all tokens of a test sample that predict. In a reversed format the token
that predicts the digit of place p has place p - 1, so `+1` are the digits to be added next.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.formats.annotated import EVERYWHERE, Field, field_name
from abacist.inspection.cache import run_with_cache
from abacist.inspection.finding import Array, Finding, array
from abacist.inspection.inspected_lines import InspectedLines, batches
from abacist.inspection.inspected_problem import InspectedProblem

WIDEST = 4
"""Largest difference of place, in columns, with a bin of its own; larger ones share a bin."""

DIFFERENCES = (
    f"≤-{WIDEST}",
    *(f"{difference:+d}" if difference else "0" for difference in range(1 - WIDEST, WIDEST)),
    f"≥+{WIDEST}",
    "every column",
    "no column",
)
"""Names of the bins: place of the key minus place of the query, and two bins for other tokens."""


@dataclass(frozen=True)
class PlaceAttention(Finding):
    """Mean attention of each head by field and difference of place; each head's weights sum to 1."""

    fields: list[str]
    """Fields of the keys: `operand 1`, `answer` …"""
    differences: list[str]
    """Bins of differences of place, as in `DIFFERENCES`."""
    weight: Array
    """(depth, head, field, difference): mean attention."""
    num_problems: int
    """Number of test problems in the mean."""
    num_tokens: int
    """Number of tokens that predict in the mean."""


@torch.no_grad()
def place_attention(inspected: InspectedProblem) -> PlaceAttention:
    """Return the mean attention of every head by field and by difference of place."""
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
        kind_AT = kind[predicts]
        sums = []
        for pattern in cache.stack("pattern").cpu().double():
            # (B, H, T, T) to (A, H, T)
            rows = pattern.transpose(1, 2)[predicts]
            bins = rows.new_zeros(*rows.shape[:2], num_fields * len(DIFFERENCES))
            index = kind_AT.unsqueeze(1).expand_as(rows)
            sums.append(bins.scatter_add_(2, index, rows).sum(dim=0))
        total = total + torch.stack(sums)
        count += int(predicts.sum())
    weight = (total / count).view(*total.shape[:2], num_fields, len(DIFFERENCES))
    names = [field_name(number) for number in range(num_fields)]
    used = weight.amax(dim=(0, 1, 3)) > 0
    return PlaceAttention(
        fields=[name for name, is_used in zip(names, used.tolist(), strict=True) if is_used],
        differences=list(DIFFERENCES),
        weight=array(weight[:, :, used], "depth", "head", "field", "difference"),
        num_problems=len(inspected.sample),
        num_tokens=count,
    )


def difference_numbers(lines: InspectedLines) -> Tensor:
    """Return the index into `DIFFERENCES` for every query and key, int64 (B, T, T)."""
    place = lines.tokens.place.long()
    query, key = place.unsqueeze(2), place.unsqueeze(1)
    number = (key - query).clamp(-WIDEST, WIDEST) + WIDEST
    without = (query < 0) | (key < 0)
    number = torch.where(without, DIFFERENCES.index("no column"), number)
    return torch.where(key == EVERYWHERE, DIFFERENCES.index("every column"), number)
