"""Views: which keys every query is paired with, and which of these it attends to.

There are two forms. A *dense* view pairs each query with all T keys. A *windowed* view pairs it
with the C candidate keys that its window can hold, which a `KeyTable` finds by coordinate; its
time and memory grow in proportion to the length of the line. Both give the same attention.

In shapes, C stands for the keys that a query is paired with: all T of them in a dense view.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.models import encodings
from abacist.models.config import PositionScheme
from abacist.models.coordinates import Coordinates, SchemeCoordinates


@dataclass(frozen=True)
class View:
    """The keys that every query is paired with, and what is known of each pair."""

    keys: Tensor | None
    """int64 (G, Q, C): indices of the candidate keys in a windowed view; None for a dense view."""
    visible: Tensor
    """bool (G, Q, C): whether the query attends to the key."""
    bias_inputs: list[Tensor]
    """One tensor (G, Q, C) or (G, Q, C, 2) per biasing scheme: the argument of its bias."""


class KeyTable:
    """Finds the tokens of a line that have a given coordinate.

    `table[g, value]` lists the indices of the tokens of line g that have this value, in ascending
    order, filled up with -1. Tokens whose value is EVERYWHERE are in a list of their own.
    """

    def __init__(self, values_GT: Tensor, is_token_GT: Tensor) -> None:
        """Build the table from coordinates.

        Args:
            values_GT: int, the coordinate of every token.
            is_token_GT: bool, False for padding.
        """
        num_lines, num_tokens = values_GT.shape
        device = values_GT.device
        listed = is_token_GT & (values_GT >= 0)
        num_values = int(torch.where(listed, values_GT, 0).max()) + 1
        # Two more rows follow the values: an empty one, which answers for values outside the
        # line, and one for tokens that are in no list, which is never looked up.
        row = torch.where(listed, values_GT, num_values + 1)
        order = row.argsort(dim=1, stable=True)
        ordered = row.gather(1, order)
        rank = torch.arange(num_tokens, device=device) - torch.searchsorted(ordered, ordered)
        depth = int(torch.where(ordered <= num_values, rank, 0).max()) + 1
        self.table = torch.full((num_lines, num_values + 2, depth + 1), -1, device=device)
        line = torch.arange(num_lines, device=device).unsqueeze(1)
        self.table[line, ordered, rank.clamp(max=depth)] = order
        self.table[:, num_values:] = -1
        self.table[:, :, depth] = -1
        self.num_values, self.num_listed = num_values, (self.table >= 0).sum(dim=2)
        is_everywhere = is_token_GT & (values_GT == Coordinates.EVERYWHERE)
        count = int(is_everywhere.sum(dim=1).max())
        index = is_everywhere.long().argsort(dim=1, descending=True, stable=True)[:, :count]
        self.everywhere = torch.where(is_everywhere.gather(1, index), index, -1)

    def find(self, values_GQ: Tensor, low: int, high: int) -> Tensor:
        """Return the indices of tokens with values from v + low to v + high, int64 (G, Q, C).

        Tokens that stand in every column come last. A query with a negative value finds only
        these. Unused entries are -1.
        """
        differences = torch.arange(low, high + 1, device=values_GQ.device)
        rows = values_GQ.unsqueeze(-1) + differences
        outside = (values_GQ.unsqueeze(-1) < 0) | (rows < 0) | (rows >= self.num_values)
        rows = torch.where(outside, self.num_values, rows)
        line = torch.arange(self.table.shape[0], device=values_GQ.device).view(-1, 1, 1)
        # Ranks that no list reaches would only add candidates that are -1.
        longest = max(1, int(self.num_listed[:, : self.num_values].max()))
        indices = self.table[line, rows, :longest].flatten(2)
        everywhere = self.everywhere.unsqueeze(1).expand(-1, values_GQ.shape[1], -1)
        return torch.cat([indices, everywhere], dim=2)

    def num_candidates(self, low: int, high: int) -> int:
        """Return an upper bound of C, the number of indices that `find` returns per query."""
        return (high - low + 1) * self.table.shape[2] + self.everywhere.shape[1]


def visibility(
    schemes: tuple[PositionScheme, ...],
    query: SchemeCoordinates,
    key: SchemeCoordinates,
    causal: bool = True,
) -> Tensor:
    """Return which of all keys, (G, T), each query attends to, (G, Q): bool (G, Q, T)."""
    query_index, key_index = query.index.unsqueeze(-1), key.index.unsqueeze(-2)
    visible = key_index >= 0
    if causal:
        visible = visible & (key_index <= query_index)
    visible = visible.expand(-1, query.num_tokens, -1)
    for scheme, query_values, key_values in zip(schemes, query.values, key.values, strict=True):
        inside = encodings.inside_window(
            scheme, query_values.unsqueeze(-1), key_values.unsqueeze(-2)
        )
        if inside is not None:
            visible = visible & (inside | (key_index == query_index))
    return visible


def dense_view(
    schemes: tuple[PositionScheme, ...],
    query: SchemeCoordinates,
    key: SchemeCoordinates,
    causal: bool = True,
) -> View:
    """Pair every query, (G, Q), with every key, (G, T)."""
    bias_inputs = [
        encodings.bias_input(scheme, query_values.unsqueeze(-1), key_values.unsqueeze(-2), causal)
        for scheme, query_values, key_values in zip(schemes, query.values, key.values, strict=True)
        if scheme.adds == "bias"
    ]
    return View(None, visibility(schemes, query, key, causal), bias_inputs)


def visible_view(
    schemes: tuple[PositionScheme, ...],
    query: SchemeCoordinates,
    key: SchemeCoordinates,
    causal: bool = True,
) -> View:
    """Pair every query with only the keys that it sees: `only_visible` of the dense view, but faster."""
    keys_GQC, visible = _visible_keys(visibility(schemes, query, key, causal))
    bias_inputs = [
        encodings.bias_input(
            scheme, query_values.unsqueeze(-1), _values_of(key_values, keys_GQC), causal
        )
        for scheme, query_values, key_values in zip(schemes, query.values, key.values, strict=True)
        if scheme.adds == "bias"
    ]
    return View(keys_GQC, visible, bias_inputs)


def windowed_view(
    schemes: tuple[PositionScheme, ...],
    query: SchemeCoordinates,
    key: SchemeCoordinates,
    table: KeyTable,
    causal: bool = True,
) -> View:
    """Pair every query, (G, Q), with the keys inside the window of the first windowed scheme.

    `table` holds the keys by the coordinate of that scheme. Tokens must be stored at their index,
    as they are wherever lines are padded on the right.
    """
    first = first_windowed(schemes)
    if first is None:
        raise ValueError("a windowed view needs a scheme with a window")
    window = schemes[first].window
    assert window is not None
    candidates = table.find(query.values[first], *window)
    # A window contains difference 0, so a query finds itself, unless it has no coordinate.
    has_none = query.values[first] == Coordinates.NO_PLACE
    if bool(has_none.any()):
        own = torch.where(has_none, query.index, -1)
        candidates = torch.cat([candidates, own.unsqueeze(-1)], dim=2)
    query_index = query.index.unsqueeze(-1)
    visible = candidates >= 0
    if causal:
        visible = visible & (candidates <= query_index)
    keys_GQC = candidates.clamp(min=0)
    bias_inputs = []
    for number, scheme in enumerate(schemes):
        key_values = _values_of(key.values[number], keys_GQC)
        query_values = query.values[number].unsqueeze(-1)
        if number != first:
            inside = encodings.inside_window(scheme, query_values, key_values)
            if inside is not None:
                visible = visible & (inside | (keys_GQC == query_index))
        if scheme.adds == "bias":
            bias_inputs.append(encodings.bias_input(scheme, query_values, key_values, causal))
    return _visible_first(View(keys_GQC, visible, bias_inputs))


def _visible_first(view: View) -> View:
    """Reorder the candidates so that visible ones come first, and drop those that no query sees.

    This pays where several windows together hide most keys that the first window finds. A view
    of which more than half is visible is returned as it is.
    """
    num_visible = int(view.visible.sum(dim=2).max()) if view.visible.numel() else 0
    return view if 2 * num_visible > view.visible.shape[2] else only_visible(view)


def only_visible(view: View) -> View:
    """Pair every query with only the keys that it sees, in their order; C is the largest number of them.

    Queries that see fewer keys are paired with the first candidate as well, without seeing it.
    """
    order, visible = _visible_keys(view.visible)

    def reordered(pairs: Tensor) -> Tensor:
        """Return (G, Q, num_visible, …) from (G, Q, C, …)."""
        num_lines = max(len(pairs), len(order))
        pairs = pairs.expand(num_lines, *pairs.shape[1:])
        candidates = order.expand(num_lines, -1, -1)
        if pairs.dim() == 4:
            candidates = candidates.unsqueeze(3).expand(-1, -1, -1, pairs.shape[3])
        return pairs.gather(2, candidates)

    keys = order if view.keys is None else reordered(view.keys)
    bias_inputs = [reordered(pairs) for pairs in view.bias_inputs]
    return View(keys, visible, bias_inputs)


def _visible_keys(visible_GQC: Tensor) -> tuple[Tensor, Tensor]:
    """Return the keys that each query sees in their order, int64 (G, Q, C'), and which entries are such.

    C' is the largest number of keys that a query sees. Entries beyond those of a query are 0.
    """
    num_lines, num_queries, _ = visible_GQC.shape
    count = visible_GQC.sum(dim=2)
    num_visible = int(count.max()) if count.numel() else 0
    flat = visible_GQC.flatten(0, 1)
    query, key = flat.nonzero().unbind(dim=1)
    ends = count.flatten().cumsum(0)
    rank = torch.arange(len(query), device=query.device) - (ends - count.flatten())[query]
    keys = torch.zeros(len(flat), num_visible, dtype=torch.int64, device=query.device)
    keys[query, rank] = key
    rank = torch.arange(num_visible, device=query.device)
    return keys.view(num_lines, num_queries, num_visible), rank < count.unsqueeze(2)


def _values_of(values_GT: Tensor, keys_GQC: Tensor) -> Tensor:
    """Return the coordinates of the keys that each query is paired with, (G, Q, C).

    Lines with the same keys can still have different, randomised coordinates.
    """
    values = values_GT.unsqueeze(1).expand(-1, keys_GQC.shape[1], -1)
    num_lines = max(len(values), len(keys_GQC))
    return values.expand(num_lines, -1, -1).gather(2, keys_GQC.expand(num_lines, -1, -1))


def first_windowed(schemes: tuple[PositionScheme, ...]) -> int | None:
    """Return the number of the first scheme with a window; None if attention is not windowed."""
    return next((i for i, scheme in enumerate(schemes) if scheme.window is not None), None)
