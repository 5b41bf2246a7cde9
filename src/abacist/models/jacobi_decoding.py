"""Jacobi decoding: the tokens of one line, many at a time and the same as one by one.

Where the coordinates of new tokens do not depend on the tokens before them, the model can continue a
line at many positions at once, from guesses of the tokens between. A token is final when all tokens
before it are, so each pass makes one more token final, and all others whose guesses have turned out
right; the next pass guesses what this one has written. Nothing is approximated: a token counts only
when the model has written it after the very tokens that stand before it.

In the worst case each pass makes one token final. In arithmetic few tokens depend on distant ones: a
guess about a column is settled as soon as its carry is known, and most carries come from the column
before. Santilli et al. (arXiv 2305.10427) decode translations like this, in blocks of a fixed size;
here blocks grow and shrink with the number of passes that they need.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from abacist.arrays import Integers
from abacist.models.attention_tables import AttentionTables
from abacist.models.id_cache import filled_up, see_from
from abacist.models.visible_tokens import VisibleTokens

_FIRST_BLOCK, _LARGEST_BLOCK = 16, 256

_PASSES_TO_GROW = 4
"""A block that needs no more passes than this is followed by a larger one, any other by a smaller one."""


def write_line(
    tables: AttentionTables,
    ids_T: Integers,
    coordinates: list[Integers],
    falls: Mapping[str, int],
    end_id: int | None,
) -> Iterator[tuple[Integers, Tensor]]:
    """Yield the new tokens of a line and the logits of each, (n,) and (n, V), in blocks of n tokens.

    The last token is the end token, or the last one for which there are coordinates.

    Args:
        tables: the tables of a model.
        ids_T: the prompt.
        coordinates: the coordinate that each position scheme encodes, for the tokens of the prompt
            and all S new ones but the last, (T + S - 1,) each.
        falls: see `Continuation.falls`.
        end_id: the end token; None where lines have no end token.
    """
    line = _Line(tables, ids_T, coordinates, falls)
    size, has_ended = _FIRST_BLOCK, False
    while line.num_left and not has_ended:
        tokens, logits, num_passes = line.write(min(size, line.num_left))
        if end_id is not None and end_id in tokens:
            has_ended = True
            count = int((tokens == end_id).argmax()) + 1
            tokens, logits = tokens[:count], logits[:count]
        yield tokens, logits
        size = min(2 * size, _LARGEST_BLOCK) if num_passes <= _PASSES_TO_GROW else size // 2


class _Line:
    """A line that is being written, with guesses of the tokens to come."""

    def __init__(
        self,
        tables: AttentionTables,
        ids_T: Integers,
        coordinates: list[Integers],
        falls: Mapping[str, int],
    ) -> None:
        self._tables, self._coordinates = tables, coordinates
        self._prompt_length = len(ids_T)
        self._query = self._prompt_length - 1
        """Index of the last final token, whose logits decide the next one."""
        self._ids = np.zeros(len(coordinates[0]) + 1, np.int64)
        self._ids[: self._prompt_length] = ids_T
        self._tokens = VisibleTokens(tables.schemes, falls)
        for number, values in enumerate(self._columns(0, self._query)):
            self._tokens.add(number, values)

    @property
    def num_left(self) -> int:
        """Number of tokens that can still be written."""
        return len(self._ids) - 1 - self._query

    def write(self, size: int) -> tuple[Integers, Tensor, int]:
        """Return the next `size` tokens, their logits, (size, V), and the number of passes they took."""
        begin, end = self._query, self._query + size
        keys_CQ, rows_CQ = self._see(begin, end)
        final: list[Tensor] = []
        while self._query < end:
            seen = slice(self._query - begin, None)
            query_Q = self._ids[self._query : end]
            logits = self._tables.logits(query_Q, self._ids[keys_CQ[:, seen]], rows_CQ[:, seen])
            next_Q = logits.argmax(dim=1).cpu().numpy()
            guesses = self._ids[self._query + 1 : end + 1]
            # The first token that differs from its guess still follows tokens that are all final.
            wrong = (next_Q != guesses).nonzero()[0]
            num_final = int(wrong[0]) + 1 if len(wrong) else len(next_Q)
            guesses[:] = next_Q
            final.append(logits[:num_final])
            self._query += num_final
        return self._ids[begin + 1 : end + 1].copy(), torch.cat(final), len(final)

    def _see(self, begin: int, end: int) -> tuple[Integers, Integers]:
        """Return the indices of the tokens that each of some queries sees, and their rows, (C, Q) each."""
        keys: list[list[int]] = []
        rows: list[list[int]] = []
        for number, values in enumerate(self._columns(begin, end), begin):
            # Coordinates fall no further among new tokens, which come after the prompt's last one.
            if number >= self._prompt_length:
                self._tokens.forget(values)
            token_keys, token_rows = see_from(self._tokens, self._tables.rows, number, values)
            keys.append(token_keys)
            rows.append(token_rows)
        return filled_up(keys, 0), filled_up(rows, self._tables.rows.invisible)

    def _columns(self, begin: int, end: int) -> Iterator[tuple[int, ...]]:
        """Yield the coordinates of some tokens, one of every scheme together."""
        return zip(*(values[begin:end].tolist() for values in self._coordinates), strict=True)
