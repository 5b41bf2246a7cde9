"""The vectors of the digits during training, along their first two principal components."""

from dataclasses import dataclass

import torch

from abacist.app.shown_runs import ShownRun
from abacist.inspection.embeddings import principal_axes
from abacist.inspection.finding import Finding
from abacist.reports.run_records import num_symbols

_MOST_STEPS = 60
"""Maximum number of training steps; if more were recorded, some are left out."""


@dataclass(frozen=True)
class Vectors(Finding):
    """Centred points of every symbol at every step."""

    labels: list[str]
    """Names of the symbols: digits, or all residues."""
    steps: list[int]
    """Training steps; only the last one if the run recorded no embeddings."""
    points: list[list[list[float]]]
    """Coordinates along components 1 and 2 of the last step, indexed `[step][symbol]`."""
    explained: float
    """Share of the last step's variance along these components, 0…1."""


def vectors(shown_run: ShownRun) -> Vectors:
    """Return the vectors that training recorded, or else those of the checkpoint."""
    tables = {step: torch.from_numpy(table) for step, table in shown_run.records.embeddings.items()}
    if not tables:
        weight = shown_run.trained_model.model.embedding.weight.detach().cpu().double()
        tables = {shown_run.run.step: weight}
    num_digits = num_symbols(shown_run.run.recipe)
    tables = {step: table[:num_digits] for step, table in tables.items()}
    steps = list(tables)
    count = min(_MOST_STEPS, len(steps))
    shown_steps = [steps[round(i * (len(steps) - 1) / max(1, count - 1))] for i in range(count)]
    shown_steps[-1] = steps[-1]
    axes, explained = principal_axes(tables[steps[-1]])
    points = [
        ((tables[step] - tables[step].mean(dim=0)) @ axes[:, :2]).round(decimals=4).tolist()
        for step in shown_steps
    ]
    labels = list(shown_run.run.format.vocabulary.tokens[:num_digits])
    return Vectors(labels, shown_steps, points, float(explained[:2].sum()))
