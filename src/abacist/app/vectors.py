"""The vectors of the digits while training went on, along the two directions they spread most in."""

from dataclasses import dataclass

import torch

from abacist.app.shown_runs import ShownRun
from abacist.inspection.embeddings import principal_axes
from abacist.inspection.finding import Finding
from abacist.reports.run_records import num_symbols

_MOST_STEPS = 60
"""Largest number of symbols; of more, some are left out."""


@dataclass(frozen=True)
class Vectors(Finding):
    """Points of every symbol at every step, their mean at 0."""

    labels: list[str]
    """The digits, or all residues."""
    steps: list[int]
    """One, the last, where no copies were kept while training."""
    points: list[list[list[float]]]
    """Components 1 and 2 of the last step, by step and symbol."""
    explained: float
    """Share of the last step's variance that they hold, 0…1."""


def vectors(shown_run: ShownRun) -> Vectors:
    """From the copies kept while training, or the weights as they are."""
    kept = {step: torch.from_numpy(table) for step, table in shown_run.records.embeddings.items()}
    if not kept:
        kept = {
            shown_run.run.step: shown_run.trained_model.model.embedding.weight.detach()
            .cpu()
            .double()
        }
    digits = num_symbols(shown_run.run.recipe)
    kept = {step: table[:digits] for step, table in kept.items()}
    steps = list(kept)
    count = min(_MOST_STEPS, len(steps))
    chosen = [steps[round(i * (len(steps) - 1) / max(1, count - 1))] for i in range(count)]
    chosen[-1] = steps[-1]
    axes, explained = principal_axes(kept[steps[-1]])
    points = [
        ((kept[step] - kept[step].mean(dim=0)) @ axes[:, :2]).round(decimals=4).tolist()
        for step in chosen
    ]
    labels = [str(number) for number in range(len(kept[steps[-1]]))]
    return Vectors(labels, chosen, points, float(explained[:2].sum()))
