"""The registry of lenses.

>>> LENSES["next-tokens"].look(inspected).likeliest
"""

from collections.abc import Callable
from dataclasses import dataclass

from abacist.errors import ConfigurationError, nearest
from abacist.inspection import carry_probe, convergence, embeddings, patching
from abacist.inspection.ablation import ablation
from abacist.inspection.attention import attention
from abacist.inspection.attribution import attribution
from abacist.inspection.finding import Finding
from abacist.inspection.first_mistake import first_mistake
from abacist.inspection.inspected_problem import InspectedProblem
from abacist.inspection.logit_lens import logit_lens
from abacist.inspection.next_tokens import next_tokens
from abacist.inspection.place_attention import place_attention


def _none(inspected: InspectedProblem) -> None:
    return None


@dataclass(frozen=True)
class Lens:
    """One way to look inside a model."""

    summary: str
    """What the lens shows, in one line."""
    look: Callable[[InspectedProblem], Finding]
    """Compute the result of the lens."""
    obstacle: Callable[[InspectedProblem], str | None] = _none
    """Return why the lens does not apply, and what to type instead; None if it applies."""


LENSES: dict[str, Lens] = {
    "next-tokens": Lens("the likeliest tokens at every position, with probabilities", next_tokens),
    "attention": Lens("which tokens every head looks at, for every token of the line", attention),
    "place-attention": Lens("mean attention by field and by difference of place", place_attention),
    "logit-lens": Lens("what the model would answer after each layer and recurrence", logit_lens),
    "convergence": Lens(
        "how close a looped model comes to its fixed point",
        convergence.convergence,
        convergence.obstacle,
    ),
    "attribution": Lens(
        "what each component contributes to the lead of the right digit", attribution
    ),
    "ablation": Lens("exact match without each head and each MLP", ablation),
    "patching": Lens(
        "which activations transport a carry, by exchange with a second problem",
        patching.patching,
        patching.obstacle,
    ),
    "carry-probe": Lens(
        "where a linear probe can read the carry",
        carry_probe.carry_probe,
        carry_probe.obstacle,
    ),
    "embeddings": Lens(
        "digits and learned places in principal components and waves", embeddings.embeddings
    ),
    "evolution": Lens(
        "the embeddings at every recorded training step",
        embeddings.evolution,
        embeddings.no_history,
    ),
    "first-mistake": Lens("the first wrong digit, or the least certain, explained", first_mistake),
}

ALL = "all"
"""Stands for all lenses that apply to the problem."""


def select_lenses(names: list[str], inspected: InspectedProblem) -> dict[str, Lens]:
    """Return the lenses of these names; `all` among them selects every lens that applies to the problem.

    Raises `ConfigurationError` for an unknown name, and for a lens that does not apply.
    """
    if ALL in names:
        return {name: lens for name, lens in LENSES.items() if lens.obstacle(inspected) is None}
    for name in names:
        if name not in LENSES:
            raise ConfigurationError(f"unknown lens {name!r}: {nearest(name, [*LENSES, ALL])}")
        obstacle = LENSES[name].obstacle(inspected)
        if obstacle is not None:
            raise ConfigurationError(f"lens {name}: {obstacle}")
    return {name: LENSES[name] for name in names}
