"""Ablation: exact match when one head or one MLP is switched off.

Zero ablation replaces the output of a head (z) or of an MLP by 0. Mean ablation replaces it by its
mean over a test sample, so that only the information about this problem is lost. The means of
tokens that predict an answer token and of all other tokens are computed separately.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.formats.annotated import Field
from abacist.inspection.cache import Hook, name_of, run_with_cache
from abacist.inspection.finding import Finding
from abacist.inspection.inspected_lines import InspectedLines, batches
from abacist.inspection.inspected_problem import InspectedProblem
from abacist.intervals import Proportion
from abacist.models.transformer import Transformer
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.problems import Problems

HooksFor = Callable[[InspectedLines], Mapping[str, Hook]]
"""A function that returns the hooks for a batch of lines, by activation name."""


@dataclass(frozen=True)
class AblatedComponent(Finding):
    """Exact match without one component."""

    component: str
    """Label of the head or MLP, such as `head 2` or `MLP`."""
    zero: Proportion
    """Exact match with the component's output set to 0."""
    mean: Proportion
    """Exact match with the component's output set to its mean."""


@dataclass(frozen=True)
class Ablation(Finding):
    """Exact match with all components and without each of them, on the same problems."""

    whole: Proportion
    without: list[AblatedComponent]


@dataclass(frozen=True)
class AblationHooks:
    """Hooks that switch one component off."""

    component: str
    zero: HooksFor
    mean: HooksFor


def ablation(inspected: InspectedProblem) -> Ablation:
    """Return the zero and mean ablation of every head and MLP on one test sample."""
    trained_model, problems = inspected.trained_model, inspected.sample
    without = [
        AblatedComponent(
            hooks.component,
            zero=exact_match_with(trained_model, problems, hooks.zero),
            mean=exact_match_with(trained_model, problems, hooks.mean),
        )
        for hooks in ablation_hooks(trained_model, problems)
    ]
    return Ablation(exact_match_with(trained_model, problems, lambda lines: {}), without)


def ablation_hooks(trained_model: TrainedModel, problems: Problems) -> list[AblationHooks]:
    """Return hooks for every head and MLP; means are computed over `problems`."""
    means = _means(trained_model, problems)
    return [
        AblationHooks(
            label,
            zero=_hooks(name, head, torch.zeros_like(means[name])),
            mean=_hooks(name, head, means[name]),
        )
        for label, name, head in components(trained_model.model)
    ]


def components(model: Transformer) -> list[tuple[str, str, int | None]]:
    """Return the label, the activation's name and the head number (None for an MLP) of every component.

    Components are numbered by depth, which counts recurrences × layers from 0: `head 3.1` is head 1
    at depth 3. Models of depth 1 have no depth in their labels.
    """
    components: list[tuple[str, str, int | None]] = []
    for depth in range(model.depth):
        for head in range(model.config.num_heads):
            label = component_label("head", depth, model.depth, head)
            components.append((label, name_of("z", depth), head))
        label = component_label("MLP", depth, model.depth)
        components.append((label, name_of("mlp_out", depth), None))
    return components


def component_label(kind: str, depth: int, num_depths: int, head: int | None = None) -> str:
    """Return the name of a component or stage that all lenses, reports and the page use.

    >>> component_label("head", 3, 4, 1), component_label("MLP", 3, 4), component_label("MLP", 0, 1)
    ('head 3.1', 'MLP 3', 'MLP')
    """
    numbers = (depth if num_depths > 1 else None, head)
    dotted = ".".join(str(number) for number in numbers if number is not None)
    return f"{kind} {dotted}".rstrip()


def exact_match_with(
    trained_model: TrainedModel, problems: Problems, hooks_for: HooksFor
) -> Proportion:
    """Return the exact match of a model with hooks. `hooks_for` returns them for each batch."""
    right = correct_with(trained_model, problems, hooks_for)
    return Proportion(int(right.sum()), len(problems))


def correct_with(trained_model: TrainedModel, problems: Problems, hooks_for: HooksFor) -> Tensor:
    """Return for each problem whether a model with hooks answers it exactly, bool (B)."""
    right = torch.zeros(len(problems), dtype=torch.bool)
    for rows, lines in batches(trained_model, problems):
        logits, _ = run_with_cache(
            trained_model.model,
            lines.tokens.ids,
            lines.coordinates,
            hooks_for(lines),
            keep=lambda name: False,
        )
        right[rows] = lines.forced(logits).correct_tokens().all(dim=1)
    return right


def _hooks(name: str, head: int | None, ablated: Tensor) -> HooksFor:
    """Return hooks that replace an activation by `ablated`, (2, H, K) or (2, D).

    Row 1 replaces the activation of tokens that predict an answer token, row 0 that of all others.
    """

    def hooks(lines: InspectedLines) -> Mapping[str, Hook]:
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
    """Return the mean activations over tokens without padding, (2, …): row 1 is for tokens that predict."""
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
