"""The geometry of the embeddings: principal components and Fourier spectrum.

The spectrum is the share of the variance over the digits 0 … 9 that is a wave of k periods. Models
that have learned modular addition keep only a few waves (Nanda et al., arXiv 2301.05217 §4).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.inspection.finding import Array, Finding, array
from abacist.inspection.inspected_problem import InspectedProblem
from abacist.models.encodings import LearnedEncoding
from abacist.models.transformer import Transformer
from abacist.vocabulary import DIGITS

_DIMENSIONS = 3
_MOST_PLACES = 40
"""Maximum number of rows of a table of learned positions that is analysed."""
_TOKENS = "tokens"
_ALL = "all symbols"
_RAW_DIMENSIONS = 2


@dataclass(frozen=True)
class Table(Finding):
    """One set of embeddings, such as those of the digits, with their principal components."""

    name: str
    """`digits`, `all symbols`, or `learned` and the coordinate of the positions."""
    labels: list[str]
    """Name of each row."""
    points: Array
    """(row, component): coordinates of the centred rows along their principal components."""
    explained: Array
    """(component,): share of the variance along each component, 0…1."""
    spectrum: Array
    """(frequency,): share of the variance that is a wave of 1, 2, … periods over all rows, 0…1.

    It is empty for `all symbols`, which have no order."""
    dimensions: Array
    """(row, dimension): the first two numbers of each row, as they are."""


@dataclass(frozen=True)
class Embeddings(Finding):
    """The tables of the digits, of all symbols, and of learned positions, if the model has any."""

    tables: list[Table]


@dataclass(frozen=True)
class TableOverTime(Finding):
    """One table of embeddings at every recorded training step."""

    name: str
    labels: list[str]
    steps: list[int]
    points: Array
    """(step, row, component): coordinates along the principal components of the last step."""
    spectrum: Array
    """(step, frequency): share of the variance, as in `Table.spectrum`."""
    dimensions: Array
    """(step, row, dimension): the first two numbers of each row, as they are."""


@dataclass(frozen=True)
class Evolution(Finding):
    """The same sets of embeddings at every step of which a copy was kept."""

    tables: list[TableOverTime]


def embeddings(inspected: InspectedProblem) -> Embeddings:
    """Analyse the tables of the model."""
    tables = embedding_tables(inspected.trained_model.model)
    analysed = []
    for name, labels, rows in (
        named for key, table in tables.items() for named in _named_rows(inspected, key, table)
    ):
        axes, explained = principal_axes(rows)
        analysed.append(
            Table(
                name,
                labels,
                points=array((rows - rows.mean(dim=0)) @ axes, "row", "component"),
                explained=array(explained, "component"),
                spectrum=array(_waves(name, rows), "frequency"),
                dimensions=array(rows[:, :_RAW_DIMENSIONS], "row", "dimension"),
            )
        )
    return Embeddings(analysed)


def embedding_tables(model: Transformer) -> dict[str, Tensor]:
    """Return the embeddings of tokens (V, D) as `tokens`, and learned positions as `positions.0` …, on the CPU."""
    tables = {_TOKENS: model.embedding.weight.detach().cpu()}
    for number, encoding in enumerate(model.positions):
        if isinstance(encoding, LearnedEncoding):
            tables[f"positions.{number}"] = encoding.rows.weight.detach().cpu()
    return tables


def no_history(inspected: InspectedProblem) -> str | None:
    """Return why there is no history of the embeddings; None if there is one."""
    if not inspected.history:
        return (
            "this run recorded no embeddings during training. "
            "Try --lens embeddings, or train with --training.record_embeddings_every 100."
        )
    return None


def evolution(inspected: InspectedProblem) -> Evolution:
    """Analyse the tables at every recorded step, along the principal axes of the last step."""
    history: Mapping[int, Mapping[str, Tensor]] = inspected.history
    steps = list(history)
    tables = []
    for key in history[steps[-1]]:
        by_step = [_named_rows(inspected, key, history[step][key]) for step in steps]
        for number, (name, labels, last) in enumerate(by_step[-1]):
            axes, _ = principal_axes(last)
            copies = [tables_of_step[number][2] for tables_of_step in by_step]
            points = torch.stack([(rows - rows.mean(dim=0)) @ axes for rows in copies])
            waves = torch.stack([_waves(name, rows) for rows in copies])
            dimensions = torch.stack([rows[:, :_RAW_DIMENSIONS] for rows in copies])
            tables.append(
                TableOverTime(
                    name,
                    labels,
                    steps,
                    points=array(points, "step", "row", "component"),
                    spectrum=array(waves, "step", "frequency"),
                    dimensions=array(dimensions, "step", "row", "dimension"),
                )
            )
    return Evolution(tables)


def _waves(name: str, rows_VD: Tensor) -> Tensor:
    """Return the spectrum of rows that have an order, and nothing for the others."""
    return rows_VD.new_zeros(0) if name == _ALL else spectrum(rows_VD)


def principal_axes(rows_VD: Tensor) -> tuple[Tensor, Tensor]:
    """Return the principal axes of rows, (D, 3), and the share of the variance along each, (3,).

    The sign of an axis makes its largest entry positive, so that the result is reproducible.
    """
    centred = rows_VD - rows_VD.mean(dim=0)
    _, sizes, axes = torch.linalg.svd(centred, full_matrices=False)
    largest = axes.gather(1, axes.abs().argmax(dim=1, keepdim=True))
    axes = (axes * largest.sign()).t()[:, :_DIMENSIONS]
    variance = sizes**2
    return axes, (variance / variance.sum().clamp(min=1e-30))[:_DIMENSIONS]


def spectrum(rows_VD: Tensor) -> Tensor:
    """Return the share of the rows' variance that is a wave of k periods, for k = 1 … V // 2."""
    centred = rows_VD - rows_VD.mean(dim=0)
    power = torch.fft.rfft(centred, dim=0).abs().square().sum(dim=1)[1:]
    # rfft leaves out the negative frequencies, which double all waves but the fastest of an even V.
    doubled = torch.full_like(power, 2.0)
    if len(rows_VD) % 2 == 0:
        doubled[-1] = 1.0
    share: Tensor = power * doubled / (power * doubled).sum().clamp(min=1e-30)
    return share


def _named_rows(
    inspected: InspectedProblem, key: str, table: Tensor
) -> list[tuple[str, list[str], Tensor]]:
    """Return names, labels and float64 rows to analyse: digits and all symbols, or the first positions."""
    if key == _TOKENS:
        symbols = list(inspected.trained_model.format.vocabulary.tokens)
        rows = table.double()
        base = getattr(inspected.trained_model.task, "base", len(DIGITS))
        return [("digits", symbols[:base], rows[:base]), (_ALL, symbols, rows)]
    learned = [s for s in inspected.trained_model.model.schemes if s.adds == "vector"]
    scheme = learned[int(key.removeprefix("positions."))]
    first = 0 if scheme.coordinate == "index" else 1
    last = min(len(table), _MOST_PLACES + first)
    labels = [str(position) for position in range(first, last)]
    return [(f"learned {scheme.coordinate}", labels, table[first:last].double())]
