"""All neighbourhoods of a model that calculates column by column, numbered so that they can be looked up.

>>> table = neighbourhood_table(trained_model)
>>> table.num_neighbourhoods
24518
>>> table.numbers_in(trained_model.model, line)  # of the tokens that a line writes, one after the other
[20431, 3187, …]
"""

from dataclasses import dataclass

import torch

from abacist.certificates.calculation_layout import PlainLayout, find_layout
from abacist.certificates.column_addition import ColumnAdditionEnumeration
from abacist.certificates.receptive_fields import NotProvable, pattern_of, visibility_in
from abacist.formats.annotated import AnnotatedTokens
from abacist.models.transformer import Transformer
from abacist.scoring.trained_model import TrainedModel

_MOST_CASES = 200_000
"""Maximum number of cases of a table that is built; larger ones cannot be shown."""


@dataclass(frozen=True)
class NeighbourhoodTable:
    """The neighbourhoods of a certificate, pattern by pattern, those with most contexts first."""

    layout: PlainLayout
    sizes: list[int]
    """Number of neighbourhoods of each pattern."""
    numbers: dict[bytes, dict[tuple[int, ...], int]]
    """Number of each neighbourhood, starting at 0, by the key of its pattern and its token ids."""

    @property
    def num_neighbourhoods(self) -> int:
        return sum(self.sizes)

    def numbers_in(self, model: Transformer, line: AnnotatedTokens) -> list[int | None]:
        """Return the number of the neighbourhood of each token that a line, (1, T), writes.

        None for a token whose neighbourhood occurs in no right line.
        """
        calculation = self.layout.calculation_in(line)
        visibility = visibility_in(model, line)
        ids = line.ids[0].tolist()
        patterns = [pattern_of(calculation, visibility, query) for query in calculation.queries]
        return [
            self.numbers.get(pattern.key, {}).get(tuple(ids[token] for token in pattern.tokens))
            for pattern in patterns
        ]


def neighbourhood_table(trained_model: TrainedModel) -> NeighbourhoodTable | None:
    """Return the table of a model that adds or subtracts two numbers; None if it has no such table."""
    model, task, format = trained_model.model, trained_model.task, trained_model.format
    try:
        layout = find_layout(task, format, model.config)
        if not isinstance(layout, PlainLayout):
            return None
        enumeration = ColumnAdditionEnumeration(model, layout, _MOST_CASES)
    except NotProvable:
        return None
    rows_by_key: dict[bytes, list[torch.Tensor]] = {}
    for part, _ in enumeration.parts():
        for context in part:
            rows_by_key.setdefault(context.pattern.key, []).append(context.ids)
    distinct = {key: torch.unique(torch.cat(rows), dim=0) for key, rows in rows_by_key.items()}
    numbers: dict[bytes, dict[tuple[int, ...], int]] = {}
    sizes: list[int] = []
    for key, rows in sorted(distinct.items(), key=lambda pair: -len(pair[1])):
        first = sum(sizes)
        numbers[key] = {tuple(row): first + i for i, row in enumerate(rows.tolist())}
        sizes.append(len(rows))
    return NeighbourhoodTable(layout, sizes, numbers)
