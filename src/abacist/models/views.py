"""Which keys every query looks at.

Two forms of the same thing: a *dense* view pairs each query with all T keys, a *windowed* view
with the S keys that its window can hold, found by place. The second costs time and memory in
proportion to the length of the line; both give the same attention.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.models import encodings
from abacist.models.config import PositionScheme
from abacist.models.coordinates import Coordinates, SchemeCoordinates


@dataclass(frozen=True)
class View:
    """For every query, the keys it is paired with."""

    columns: Tensor | None
    """int64 (G, Q, S): the key columns of a windowed view; None pairs a query with all T."""
    visible: Tensor
    """bool (G, Q, S or T): whether the pair attends."""
    pairs: list[Tensor]
    """For each scheme that biases scores, (G, Q, S or T, …): what its bias is a function of."""


class ColumnTable:
    """Finds the columns of a line that hold a given coordinate value.

    `table[g, v]` lists the columns whose value is v, in order, filled up with -1.
    """

    def __init__(self, values: Tensor, valid: Tensor, spare_rows: int = 0) -> None:
        """`values` and `valid`: (G, T). `spare_rows`: values beyond the largest, for `append`."""
        lines, num_tokens = values.shape
        device = values.device
        listed = valid & (values >= 0)
        height = int(torch.where(listed, values, 0).max()) + 1 + spare_rows
        # Unlisted tokens go to a row of their own, which stays out of every window.
        row = torch.where(listed, values, height + 1)
        order = row.argsort(dim=1, stable=True)
        ordered = row.gather(1, order)
        rank = torch.arange(num_tokens, device=device) - torch.searchsorted(ordered, ordered)
        depth = int(torch.where(ordered <= height, rank, 0).max()) + 1
        # Row `height` is blank: it answers for values outside the line.
        self.table = torch.full((lines, height + 2, depth + 1), -1, device=device)
        line = torch.arange(lines, device=device).unsqueeze(1)
        self.table[line, ordered, rank.clamp(max=depth)] = order
        self.table[:, height:] = -1
        self.table[:, :, depth] = -1
        self.height, self.num_used = height, (self.table >= 0).sum(dim=2)
        everywhere = valid & (values == Coordinates.EVERYWHERE)
        count = int(everywhere.sum(dim=1).max())
        marked = everywhere.long().argsort(dim=1, descending=True, stable=True)[:, :count]
        self.everywhere = torch.where(everywhere.gather(1, marked), marked, -1)

    def find(self, values: Tensor, low: int, high: int) -> Tensor:
        """Columns holding values + low … values + high, (G, Q, S), -1 where there is none.

        Tokens that stand in every column come last. Queries without a place find only those.
        """
        offsets = torch.arange(low, high + 1, device=values.device)
        rows = values.unsqueeze(-1) + offsets
        outside = (values.unsqueeze(-1) < 0) | (rows < 0) | (rows >= self.height)
        rows = torch.where(outside, self.height, rows)
        line = torch.arange(self.table.shape[0], device=values.device).view(-1, 1, 1)
        # Slots that are blank in all rows need not be looked at.
        most = max(1, int(self.num_used[:, : self.height].max()))
        found = self.table[line, rows, :most].flatten(2)
        everywhere = self.everywhere.unsqueeze(1).expand(-1, values.shape[1], -1)
        return torch.cat([found, everywhere], dim=2)

    def num_slots(self, low: int, high: int) -> int:
        """How many columns `find` gives for each query, empty ones included."""
        return (high - low + 1) * self.table.shape[2] + self.everywhere.shape[1]

    def append(self, values: Tensor, columns: Tensor) -> None:
        """Add one token to every line: its value and its column, (G,) each."""
        line = torch.arange(len(values), device=values.device)
        row = torch.where((values >= 0) & (values < self.height), values, self.height)
        rank = self.num_used[line, row]
        listed = row < self.height
        if bool((listed & (rank >= self.table.shape[2])).any()):
            # Half as deep again, so that a line that fills one row is not copied for every token.
            deeper = (self.table.shape[2] + 1) // 2
            self.table = torch.nn.functional.pad(self.table, (0, deeper), value=-1)
        rank = rank.clamp(max=self.table.shape[2] - 1)
        self.table[line, row, rank] = torch.where(listed, columns, -1)
        self.num_used[line, row] += listed.long()
        everywhere = values == Coordinates.EVERYWHERE
        if bool(everywhere.any()):
            column = torch.where(everywhere, columns, -1).unsqueeze(1)
            self.everywhere = torch.cat([self.everywhere, column], dim=1)


def dense_view(
    schemes: tuple[PositionScheme, ...],
    query: SchemeCoordinates,
    key: SchemeCoordinates,
    causal: bool = True,
) -> View:
    """Every query paired with every key."""
    query_index, key_index = query.index.unsqueeze(-1), key.index.unsqueeze(-2)
    visible = key_index >= 0
    if causal:
        visible = visible & (key_index <= query_index)
    visible = visible.expand(-1, query.num_tokens, -1)
    pairs = []
    for scheme, query_values, key_values in zip(schemes, query.values, key.values, strict=True):
        query_values, key_values = query_values.unsqueeze(-1), key_values.unsqueeze(-2)
        inside = encodings.inside_window(scheme, query_values, key_values)
        if inside is not None:
            visible = visible & (inside | (key_index == query_index))
        if scheme.encoding in encodings.BIASING:
            pairs.append(encodings.features(scheme, query_values, key_values, causal))
    return View(None, visible, pairs)


def windowed_view(
    schemes: tuple[PositionScheme, ...],
    query: SchemeCoordinates,
    key: SchemeCoordinates,
    table: ColumnTable,
    causal: bool = True,
) -> View:
    """Every query paired with the keys that the first windowed scheme lets it see.

    Key columns must be key indices, as they are wherever lines are padded on the right.
    """
    number = window_number(schemes)
    if number is None:
        raise ValueError("a windowed view needs a scheme with a window")
    window = schemes[number].window
    assert window is not None
    columns = table.find(query.values[number], *window)
    # A window holds difference 0, so a query with a place finds itself; one without does not.
    without = query.values[number] == Coordinates.NO_PLACE
    if bool(without.any()):
        own = torch.where(without, query.index, -1)
        columns = torch.cat([columns, own.unsqueeze(-1)], dim=2)
    query_index = query.index.unsqueeze(-1)
    visible = columns >= 0
    if causal:
        visible = visible & (columns <= query_index)
    columns = columns.clamp(min=0)
    pairs = []
    for other, scheme in enumerate(schemes):
        # Lines that share their columns may still have each its own, randomised values.
        values = key.values[other].unsqueeze(1).expand(-1, columns.shape[1], -1)
        lines = max(len(values), len(columns))
        key_values = values.expand(lines, -1, -1).gather(2, columns.expand(lines, -1, -1))
        query_values = query.values[other].unsqueeze(-1)
        if other != number:
            inside = encodings.inside_window(scheme, query_values, key_values)
            if inside is not None:
                visible = visible & (inside | (columns == query_index))
        if scheme.encoding in encodings.BIASING:
            pairs.append(encodings.features(scheme, query_values, key_values, causal))
    return _without_gaps(View(columns, visible, pairs))


def _without_gaps(view: View) -> View:
    """The same view with as few slots as the query that sees most has keys.

    Several windows at once leave few of the keys that the first one finds.
    """
    assert view.columns is not None
    num_visible = int(view.visible.sum(dim=2).max()) if view.visible.numel() else 0
    if 2 * num_visible > view.visible.shape[2]:
        return view
    order = view.visible.int().argsort(dim=2, descending=True, stable=True)[:, :, :num_visible]

    def chosen(slots: Tensor) -> Tensor:
        lines = max(len(slots), len(order))
        where = order.expand(lines, -1, -1)
        slots = slots.expand(lines, *slots.shape[1:])
        if slots.dim() == 3:
            return slots.gather(2, where)
        return slots.gather(2, where.unsqueeze(3).expand(-1, -1, -1, slots.shape[3]))

    pairs = [chosen(pair) for pair in view.pairs]
    return View(chosen(view.columns), chosen(view.visible), pairs)


def window_number(schemes: tuple[PositionScheme, ...]) -> int | None:
    """Which scheme's window bounds what a query can see; None if no scheme has one."""
    return next((i for i, scheme in enumerate(schemes) if scheme.window is not None), None)
