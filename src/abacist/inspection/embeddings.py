"""The shape of the embeddings: digits and learned places in three dimensions, and as waves.

Principal components show which way the vectors lie. The spectrum asks how much of their variation
over the digits 0 … 9 is a wave of k periods: models that learnt modular addition keep a few waves
(Nanda et al., arXiv 2301.05217 §4).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.inspection.finding import Array, Finding, array
from abacist.inspection.inspected_problem import InspectedProblem
from abacist.models.config import ABSOLUTE
from abacist.models.encodings import LearnedEncoding
from abacist.vocabulary import DIGITS

_DIMENSIONS = 3
_MOST_PLACES = 40
"""So many rows of a table of learned positions are looked at."""
_TOKENS = "tokens"


@dataclass(frozen=True)
class Table(Finding):
    """One table of embeddings."""

    name: str
    """`digits`, or the coordinate of learned positions."""
    labels: list[str]
    points: Array
    """(row, component): the rows in their principal components, their mean at 0."""
    explained: Array
    """(component,): share of the variance, 0…1."""
    spectrum: Array
    """(frequency,): share of the variance that is a wave of 1, 2, … periods over all rows, 0…1."""


@dataclass(frozen=True)
class Embeddings(Finding):
    """The digits, and learned positions where there are any."""

    tables: list[Table]


@dataclass(frozen=True)
class TableOverTime(Finding):
    """One table at every step that was kept."""

    name: str
    labels: list[str]
    steps: list[int]
    points: Array
    """(step, row, component): in the principal components of the last step."""
    spectrum: Array
    """(step, frequency)"""


@dataclass(frozen=True)
class Evolution(Finding):
    """How the tables came about."""

    tables: list[TableOverTime]


def embeddings(inspected: InspectedProblem) -> Embeddings:
    """The tables as they are."""
    model = inspected.trained_model.model
    tables = {_TOKENS: model.embedding.weight.detach().cpu()}
    for number, encoding in enumerate(model.positions):
        if isinstance(encoding, LearnedEncoding):
            tables[f"positions.{number}"] = encoding.rows.weight.detach().cpu()
    found = []
    for key, table in tables.items():
        name, labels, rows = _chosen(inspected, key, table)
        axes, explained = principal_axes(rows)
        found.append(
            Table(
                name,
                labels,
                points=array((rows - rows.mean(dim=0)) @ axes, "row", "component"),
                explained=array(explained, "component"),
                spectrum=array(spectrum(rows), "frequency"),
            )
        )
    return Embeddings(found)


def no_history(inspected: InspectedProblem) -> str | None:
    """Why there is nothing to be seen over time."""
    if not inspected.history:
        return (
            "no copies of the embeddings were kept while this run was trained. "
            "Try --lens embeddings, or train with --training.record_embeddings_every 100."
        )
    return None


def evolution(inspected: InspectedProblem) -> Evolution:
    """The tables at every step of which a copy was kept, seen along the axes of the last one."""
    history: Mapping[int, Mapping[str, Tensor]] = inspected.history
    steps = list(history)
    found = []
    for key in history[steps[-1]]:
        name, labels, last = _chosen(inspected, key, history[steps[-1]][key])
        axes, _ = principal_axes(last)
        copies = [_chosen(inspected, key, history[step][key])[2] for step in steps]
        points = torch.stack([(rows - rows.mean(dim=0)) @ axes for rows in copies])
        waves = torch.stack([spectrum(rows) for rows in copies])
        found.append(
            TableOverTime(
                name,
                labels,
                steps,
                points=array(points, "step", "row", "component"),
                spectrum=array(waves, "step", "frequency"),
            )
        )
    return Evolution(found)


def principal_axes(rows_ND: Tensor) -> tuple[Tensor, Tensor]:
    """Axes (D, C) of the largest variance of rows, and the share of it along each, (C,).

    An axis points to where its largest number is positive, so that it is the same every time.
    """
    centred = rows_ND - rows_ND.mean(dim=0)
    _, sizes, axes_CD = torch.linalg.svd(centred, full_matrices=False)
    largest = axes_CD.gather(1, axes_CD.abs().argmax(dim=1, keepdim=True))
    axes = (axes_CD * largest.sign()).t()[:, :_DIMENSIONS]
    variance = sizes**2
    return axes, (variance / variance.sum().clamp(min=1e-30))[:_DIMENSIONS]


def spectrum(rows_ND: Tensor) -> Tensor:
    """Share of the rows' variance that is a wave of k periods, k = 1 … N // 2."""
    centred = rows_ND - rows_ND.mean(dim=0)
    power = torch.fft.rfft(centred, dim=0).abs().square().sum(dim=1)[1:]
    # All waves but the fastest of an even number have a mirror image among those left out.
    doubled = torch.full_like(power, 2.0)
    if len(rows_ND) % 2 == 0:
        doubled[-1] = 1.0
    share: Tensor = power * doubled / (power * doubled).sum().clamp(min=1e-30)
    return share


def _chosen(inspected: InspectedProblem, key: str, table: Tensor) -> tuple[str, list[str], Tensor]:
    """The rows worth looking at, float64: the ten digits, or the first positions behind row 0."""
    if key == _TOKENS:
        return "digits", list(DIGITS), table[: len(DIGITS)].double()
    learned = [s for s in inspected.trained_model.model.schemes if s.encoding in ABSOLUTE]
    scheme = learned[int(key.removeprefix("positions."))]
    first = 0 if scheme.coordinate == "index" else 1
    last = min(len(table), _MOST_PLACES + first)
    labels = [str(position) for position in range(first, last)]
    return f"learned {scheme.coordinate}", labels, table[first:last].double()
