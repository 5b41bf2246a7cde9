"""What breaks when one part is switched off: exact match without each head and each MLP.

Zero ablation replaces what a head mixes (z), or what an MLP writes, by 0. Mean ablation replaces
it by its mean over a test sample, taken apart for tokens that predict and for all others: what is
lost then is only what the part says about this problem.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.formats.annotated import Field
from abacist.inspection.cache import Hook, name_of, run_with_cache
from abacist.inspection.finding import Finding
from abacist.inspection.inspected_lines import Lines, batches
from abacist.inspection.inspected_problem import InspectedProblem
from abacist.intervals import Proportion
from abacist.models.transformer import Transformer
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.problems import Problems

HooksFor = Callable[[Lines], Mapping[str, Hook]]
"""The hooks for a batch of lines."""


@dataclass(frozen=True)
class Without(Finding):
    """Exact match without one part, on the same problems."""

    component: str
    zero: Proportion
    mean: Proportion


@dataclass(frozen=True)
class Ablation(Finding):
    """Exact match with all parts, and without each."""

    whole: Proportion
    without: list[Without]


@dataclass(frozen=True)
class Switch:
    """Hooks that switch one part off."""

    component: str
    zero: HooksFor
    mean: HooksFor


def ablation(inspected: InspectedProblem) -> Ablation:
    """Zero and mean ablation of every head and MLP, on one test sample."""
    trained_model, problems = inspected.trained_model, inspected.sample
    without = [
        Without(
            switch.component,
            zero=exact_match_with(trained_model, problems, switch.zero),
            mean=exact_match_with(trained_model, problems, switch.mean),
        )
        for switch in switches(trained_model, problems)
    ]
    return Ablation(exact_match_with(trained_model, problems, lambda lines: {}), without)


def switches(trained_model: TrainedModel, problems: Problems) -> list[Switch]:
    """One for every head and MLP; means are taken over these problems."""
    means = _means(trained_model, problems)
    return [
        Switch(
            label,
            zero=_hooks(name, head, torch.zeros_like(means[name])),
            mean=_hooks(name, head, means[name]),
        )
        for label, name, head in components(trained_model.model)
    ]


def components(model: Transformer) -> list[tuple[str, str, int | None]]:
    """Every head and MLP passed through: its label, its activation's name, the head's number."""
    found: list[tuple[str, str, int | None]] = []
    for depth in range(model.depth):
        label = f"{depth}." if model.depth > 1 else ""
        for head in range(model.config.num_heads):
            found.append((f"head {label}{head}", name_of("z", depth), head))
        found.append((f"MLP {label}".strip(" ."), name_of("mlp_out", depth), None))
    return found


def exact_match_with(
    trained_model: TrainedModel, problems: Problems, hooks_for: HooksFor
) -> Proportion:
    """Exact match of a model with hooks."""
    right = 0
    for _, lines in batches(trained_model, problems):
        logits, _ = run_with_cache(
            trained_model.model,
            lines.tokens.ids,
            lines.coordinates,
            hooks_for(lines),
            keep=lambda name: False,
        )
        right += int(lines.forced(logits).correct_tokens().all(dim=1).sum())
    return Proportion(right, len(problems))


def _hooks(name: str, head: int | None, ablated: Tensor) -> HooksFor:
    """Puts one of two values at each token: `ablated` is (2, H, K) or (2, D), for tokens that predict second."""

    def hooks(lines: Lines) -> Mapping[str, Hook]:
        value = ablated[lines.predicts.long()]
        return {name: lambda activation: _replaced(activation, value, head)}

    return hooks


def _replaced(activation: Tensor, value: Tensor, head: int | None) -> Tensor:
    value = value.to(activation)
    if head is None:
        return value
    changed = activation.clone()
    changed[:, :, head] = value[:, :, head]
    return changed


def _means(trained_model: TrainedModel, problems: Problems) -> dict[str, Tensor]:
    """Mean activations over tokens, padding left out: first of those that predict nothing, (2, …)."""
    names = {name for _, name, _ in components(trained_model.model)}
    totals: dict[str, Tensor] = {}
    counts = torch.zeros(2, dtype=torch.float64)
    for _, lines in batches(trained_model, problems):
        _, cache = run_with_cache(
            trained_model.model,
            lines.tokens.ids,
            lines.coordinates,
            keep=lambda name: name in names,
        )
        kinds = (~lines.predicts & (lines.tokens.field != Field.PADDING), lines.predicts)
        counts += torch.tensor([int(kind.sum()) for kind in kinds])
        for name in names:
            activation = cache[name].cpu().double()
            summed = torch.stack([activation[kind].sum(dim=0) for kind in kinds])
            totals[name] = totals.get(name, 0) + summed
    return {
        name: total / counts.clamp(min=1).view(2, *[1] * (total.dim() - 1))
        for name, total in totals.items()
    }
