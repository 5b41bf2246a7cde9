"""The lenses there are.

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
    """One way to look inside."""

    summary: str
    look: Callable[[InspectedProblem], Finding]
    obstacle: Callable[[InspectedProblem], str | None] = _none
    """Why it has no use for a inspected, with what to type instead; None where it has."""


LENSES: dict[str, Lens] = {
    "next-tokens": Lens("the likeliest tokens at every position, with probabilities", next_tokens),
    "attention": Lens("which tokens every head looks at, over the written line", attention),
    "place-attention": Lens("mean attention by field and by difference of place", place_attention),
    "logit-lens": Lens("what would be answered after each layer and recurrence", logit_lens),
    "recurrences": Lens(
        "how near a looped model comes to its fixed point",
        convergence.recurrences,
        convergence.obstacle,
    ),
    "attribution": Lens("what each part adds to the right digit's lead", attribution),
    "ablation": Lens("exact match without each head and each MLP", ablation),
    "patching": Lens(
        "which activations carry a carry, from a problem that differs in one",
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
        "the same at every step that a copy was kept of",
        embeddings.evolution,
        embeddings.no_history,
    ),
    "first-mistake": Lens("the first wrong digit, or the least certain, explained", first_mistake),
}


def chosen(names: list[str], inspected: InspectedProblem) -> dict[str, Lens]:
    """The lenses of these names; `all` is every one that has a use for the inspected.

    Raises `ConfigurationError` for a name there is not, or a lens without use, saying why.
    """
    if names == ["all"]:
        return {name: lens for name, lens in LENSES.items() if lens.obstacle(inspected) is None}
    for name in names:
        if name not in LENSES:
            raise ConfigurationError(f"unknown lens {name!r}: {nearest(name, [*LENSES, 'all'])}")
        obstacle = LENSES[name].obstacle(inspected)
        if obstacle is not None:
            raise ConfigurationError(f"lens {name}: {obstacle}")
    return {name: LENSES[name] for name in names}
