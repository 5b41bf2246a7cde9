"""The tokens of one line with their annotations, column by column.

>>> tokens = run.tokens("12+34")
>>> tokens["token"]
['<start>', '2', '1', '+', '4', '3', '=', '6', '4', '<end>']
>>> tokens["place"]
['*', 1, 2, None, 1, 2, 0, 1, 2, 3]
>>> pandas.DataFrame(tokens.columns)
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from abacist.errors import ConfigurationError, nearest
from abacist.formats.annotated import EVERYWHERE, NO_PLACE, field_name
from abacist.notebook_html import html_table
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.problems import Problems


@dataclass(frozen=True, repr=False)
class TokenTable:
    """One line as a table with a row for each token."""

    columns: Mapping[str, list[Any]]
    """Values by column: `token`, `id`, `field`, the coordinates that the format gives, `target`, and for
    encoders `label`, the right token at a target. A coordinate is a number, None for a token that
    stands in no column, or `*` for one that stands in every column."""

    def __getitem__(self, column: str) -> list[Any]:
        """Return one column. Raises `ConfigurationError` for an unknown one, with the nearest."""
        if column not in self.columns:
            raise ConfigurationError(f"no column {column!r}: {nearest(column, self.columns)}")
        return self.columns[column]

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self.columns["token"])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the row of each token."""
        for values in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, values, strict=True))

    def __repr__(self) -> str:
        cells = [["", *map(str, range(len(self)))]]
        for name, values in self.columns.items():
            cells.append([name, *("·" if value is None else str(value) for value in values)])
        padded = [[cell.rjust(max(map(len, column))) for cell in column] for column in cells]
        return "\n".join("  ".join(row).rstrip() for row in zip(*padded, strict=True))

    def _repr_html_(self) -> str:
        rows = ([number, *row.values()] for number, row in enumerate(self))
        return html_table(f"{len(self)} tokens", ["", *self.columns], rows)


def token_table(trained_model: TrainedModel, problem: Problems) -> TokenTable:
    """Return the line of a problem with its right answer; `problem` is a batch of one."""
    format = trained_model.format
    lines = format.write(problem, trained_model.task.answer(problem))
    texts = format.vocabulary.tokens
    ids: list[int] = lines.ids[0].tolist()
    targets: list[bool] = lines.target[0].tolist()
    columns: dict[str, list[Any]] = {
        "token": [texts[id] for id in ids],
        "id": ids,
        "field": [field_name(field) for field in lines.field[0].tolist()],
    }
    for name in ("place", "row", "step"):
        values: Tensor | None = getattr(lines, name)
        if values is not None:
            special = {NO_PLACE: None, EVERYWHERE: "*"}
            columns[name] = [special.get(value, value) for value in values[0].tolist()]
    columns["target"] = targets
    if lines.labels is not None:
        labels = zip(lines.labels[0].tolist(), targets, strict=True)
        columns["label"] = [texts[label] if is_target else None for label, is_target in labels]
    return TokenTable(columns)
