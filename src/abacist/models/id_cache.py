"""Caches of token ids, for generation with `AttentionTables`.

In a model that suits these tables, keys and values follow from ids. A prompt needs no pass through the
layer then: its tokens are remembered, and only tokens whose logits are wanted are computed.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np
from torch import Tensor

from abacist.arrays import Flags, Integers
from abacist.models.attention_tables import AttentionTables, BiasRows
from abacist.models.coordinates import Coordinates, SchemeCoordinates
from abacist.models.visible_tokens import VisibleTokens


class IdCache(ABC):
    """Finds the ids that a new token sees, and computes its logits from the tables."""

    def __init__(self, tables: AttentionTables, prompt: SchemeCoordinates) -> None:
        """Begin lines whose prompts have these coordinates, (B, T) each."""
        self.tables = tables
        self.index_BT = prompt.index.cpu().numpy()
        self.values_BT: list[Integers] = [v.cpu().long().numpy() for v in prompt.values]
        self.batch = len(self.index_BT)

    def prefill(self, ids_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """Remember the prompts, and return the logits of their last tokens, (B, V)."""
        ids_array_BT = ids_BT.cpu().long().numpy()
        lines, last_B = np.arange(self.batch), lengths_B.cpu().numpy() - 1
        self._begin(ids_array_BT, np.arange(ids_BT.shape[1]) < last_B[:, None])
        new = [values[lines, last_B] for values in self.values_BT]
        return self.step(
            ids_array_BT[lines, last_B], [last_B, *new], np.ones(self.batch, dtype=bool)
        )

    def step(self, token_B: Integers, new: list[Integers], running_B: Flags) -> Tensor:
        """Append one token to every line, and return its logits, (B, V).

        Args:
            token_B: ids of the tokens.
            new: their positions in their lines, then the coordinate that each position scheme
                encodes, (B,) each.
            running_B: which lines have not ended; the logits of others mean nothing.
        """
        keys_CB, rows_CG = self._append(token_B, new[1:], running_B)
        return self.tables.logits(token_B, keys_CB, rows_CG)

    @abstractmethod
    def _begin(self, ids_BT: Integers, is_past_BT: Flags) -> None:
        """Remember the tokens of the prompts where `is_past_BT`."""

    @abstractmethod
    def _append(
        self, token_B: Integers, new: list[Integers], running_B: Flags
    ) -> tuple[Integers, Integers]:
        """Remember new tokens, and return the ids that each sees, (C, B), and their rows, (C, G)."""


class ShortLines(IdCache):
    """Keeps the ids of all tokens, and compares the coordinates of a new token with all of them."""

    def __init__(
        self, tables: AttentionTables, prompt: SchemeCoordinates, max_new_tokens: int
    ) -> None:
        super().__init__(tables, prompt)
        width = self.index_BT.shape[1]
        self.num_tokens = width
        self.ids_TB = np.zeros((width + 1 + max_new_tokens, self.batch), np.int64)
        # One row of coordinates for all lines as long as they agree.
        tensors = [self.index_BT, *self.values_BT]
        rows = 1 if all((values == values[:1]).all() for values in tensors) else self.batch
        self.stored_GT = [
            np.full((rows, len(self.ids_TB)), Coordinates.NO_PLACE) for _ in self.values_BT
        ]

    def _begin(self, ids_BT: Integers, is_past_BT: Flags) -> None:
        width = ids_BT.shape[1]
        self.ids_TB[:width] = ids_BT.T
        for stored, values in zip(self.stored_GT, self.values_BT, strict=True):
            past = np.where(is_past_BT, values, Coordinates.NO_PLACE)
            stored[:, :width] = past[: len(stored)]

    def _append(
        self, token_B: Integers, new: list[Integers], running_B: Flags
    ) -> tuple[Integers, Integers]:
        slot, self.num_tokens = self.num_tokens, self.num_tokens + 1
        self.ids_TB[slot] = token_B
        if len(self.stored_GT[0]) < self.batch:
            if all((array == array[0]).all() for array in new):
                new = [array[:1] for array in new]
            else:
                self.stored_GT = [stored.repeat(self.batch, axis=0) for stored in self.stored_GT]
        for stored, array in zip(self.stored_GT, new, strict=True):
            stored[:, slot] = array
        keys = [stored[:, : slot + 1] for stored in self.stored_GT]
        rows_GT = self.tables.rows.of_lines(new, keys)
        visible = rows_GT != self.tables.rows.invisible
        if len(rows_GT) == 1:
            columns = visible[0].nonzero()[0]
            return self.ids_TB[columns], rows_GT[:, columns].T
        lines, columns = visible.nonzero()
        counts = visible.sum(axis=1)
        number = np.arange(len(lines)) - np.repeat(counts.cumsum() - counts, counts)
        keys_CB = np.zeros((counts.max(), self.batch), np.int64)
        rows_CB = np.full_like(keys_CB, self.tables.rows.invisible)
        keys_CB[number, lines] = self.ids_TB[columns, lines]
        rows_CB[number, lines] = rows_GT[lines, columns]
        return keys_CB, rows_CB


class LongLines(IdCache):
    """Keeps the ids that the windows can still see, and looks up those that a new token sees."""

    def __init__(
        self, tables: AttentionTables, prompt: SchemeCoordinates, falls: Mapping[str, int]
    ) -> None:
        super().__init__(tables, prompt)
        self.lines = [VisibleTokens(tables.schemes, falls) for _ in range(self.batch)]
        # Coordinates fall no further among generated tokens, which come after the prompt's last one.
        self._is_generated = False

    def _begin(self, ids_BT: Integers, is_past_BT: Flags) -> None:
        for line, tokens in enumerate(self.lines):
            past = is_past_BT[line]
            columns = [values[line, past].tolist() for values in self.values_BT]
            for token, coordinates in zip(
                ids_BT[line, past].tolist(), zip(*columns, strict=True), strict=True
            ):
                tokens.add(token, coordinates)

    def _append(
        self, token_B: Integers, new: list[Integers], running_B: Flags
    ) -> tuple[Integers, Integers]:
        keys: list[list[int]] = []
        rows: list[list[int]] = []
        for tokens, token, runs, coordinates in zip(
            self.lines,
            token_B.tolist(),
            running_B.tolist(),
            zip(*(array.tolist() for array in new), strict=True),
            strict=True,
        ):
            line_keys, line_rows = [token], [self.tables.rows.of_pair(coordinates, coordinates)]
            if runs:
                if self._is_generated:
                    tokens.forget(coordinates)
                line_keys, line_rows = see_from(tokens, self.tables.rows, token, coordinates)
            keys.append(line_keys)
            rows.append(line_rows)
        self._is_generated = True
        return filled_up(keys, 0), filled_up(rows, self.tables.rows.invisible)


def see_from(
    tokens: VisibleTokens, rows: BiasRows, number: int, coordinates: tuple[int, ...]
) -> tuple[list[int], list[int]]:
    """List a new token with its number, and return the numbers of the tokens that it sees.

    The second list has the row of each of these pairs. The token itself comes first.
    """
    numbers, pairs = [number], [rows.of_pair(coordinates, coordinates)]
    for key, listed in tokens.find(coordinates):
        numbers += listed
        pairs += [rows.of_pair(coordinates, key)] * len(listed)
    tokens.add(number, coordinates)
    return numbers, pairs


def filled_up(lists: list[list[int]], value: int) -> Integers:
    """Return lists as the columns of an array, the shorter ones filled up with a value."""
    longest = max(map(len, lists))
    return np.array([line + [value] * (longest - len(line)) for line in lists]).T
