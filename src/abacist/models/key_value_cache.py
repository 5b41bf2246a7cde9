"""Caches of keys and values for generation, one for each of the two ways of attending.

Both keep the keys and values of a token in a *slot*. In a `DenseCache` every token has one, and a new
token attends to all of them. In a `WindowedCache` only tokens that the windows can still see have one,
and a new token attends to those that it sees, so time per token does not depend on the line's length.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from itertools import chain

import numpy as np
import torch
from torch import Tensor, nn

from abacist.arrays import Flags, Integers
from abacist.models import encodings
from abacist.models.block import Block
from abacist.models.coordinates import Coordinates, SchemeCoordinates
from abacist.models.transformer import Transformer
from abacist.models.views import View, dense_view
from abacist.models.visible_tokens import VisibleTokens

Slots = int | tuple[Tensor, Tensor]
"""Indices of the slots of new tokens: one for all lines, or of slots and lines, (B,) each."""


class KeyValueCache(ABC):
    """Keys and values, (depth, slots, B, H, K) each, of the tokens that later tokens may see."""

    def __init__(self, model: Transformer, prompt: SchemeCoordinates, num_slots: int) -> None:
        """Make room for the prompts, whose coordinates are (B, T), in `num_slots` slots."""
        self.model, self.prompt = model, prompt
        self.batch = len(prompt.index)
        self.device = model.device
        self.dtype = model.embedding.weight.dtype
        heads, head_width = model.config.num_heads, model.config.width_of_head
        shape = (model.depth, num_slots, self.batch, heads, head_width)
        self.keys = torch.zeros(shape, dtype=self.dtype, device=self.device)
        self.values = torch.zeros_like(self.keys)
        self.lines = torch.arange(self.batch, device=self.device)

    def prefill(self, ids_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """Run the prompts through the model, and return the logits of their last tokens, (B, V).

        The last layer is computed for the last tokens only.
        """
        model, prompt = self.model, self.prompt
        last_B = lengths_B - 1
        query = SchemeCoordinates(
            prompt.index.gather(1, last_B.unsqueeze(1)),
            [values.gather(1, last_B.unsqueeze(1)) for values in prompt.values],
        )
        query_view = self._view_at_end(query)
        all_view = None if model.depth == 1 else model.views(prompt, 0, "auto")[0]
        encoding = model.query_key_encoding(prompt, self.dtype)
        query_encoding = model.query_key_encoding(query, self.dtype)

        def layer(depth: int, block: Block, state: Tensor, injected: Tensor | None) -> Tensor:
            x_TBD = block.attention_input(state, injected)
            key, value = block.attention.keys_values(x_TBD, encoding)
            self.keys[depth, : len(key)], self.values[depth, : len(value)] = key, value
            if depth < model.depth - 1:
                assert all_view is not None
                return block.forward_queries(state, x_TBD, key, value, all_view, encoding, injected)
            state_1BD, x_1BD = self._at(last_B, state), self._at(last_B, x_TBD)
            injected = None if injected is None else self._at(last_B, injected)
            return block.forward_queries(
                state_1BD, x_1BD, key, value, query_view, query_encoding, injected
            )

        return self._run(ids_BT, prompt, layer)

    def step(self, token_B: Integers, new: list[Integers], running_B: Flags) -> Tensor:
        """Append one token to every line, and return its logits, (B, V).

        Args:
            token_B: ids of the tokens.
            new: their positions in their lines, then the coordinate that each position scheme
                encodes, (B,) each.
            running_B: which lines have not ended; the tokens of others are never seen.
        """
        query, view, slots = self._append(new, running_B)
        encoding = self.model.query_key_encoding(query, self.dtype)

        def layer(depth: int, block: Block, state: Tensor, injected: Tensor | None) -> Tensor:
            x_1BD = block.attention_input(state, injected)
            key, value = block.attention.keys_values(x_1BD, encoding)
            self.keys[depth][slots], self.values[depth][slots] = key[0], value[0]
            return block.forward_queries(
                state, x_1BD, *self._keys_values(depth), view, encoding, injected
            )

        return self._run(torch.from_numpy(token_B).to(self.device).unsqueeze(1), query, layer)

    @abstractmethod
    def _view_at_end(self, query: SchemeCoordinates) -> View:
        """Return the view of the prompts' last tokens, whose coordinates are (B, 1)."""

    @abstractmethod
    def _append(
        self, new: list[Integers], running_B: Flags
    ) -> tuple[SchemeCoordinates, View, Slots]:
        """Take in new tokens, and return their coordinates, their view, and where to store them."""

    @abstractmethod
    def _keys_values(self, depth: int) -> tuple[Tensor, Tensor]:
        """Return the keys and values of one layer that a view may refer to."""

    def _run(
        self,
        ids_BQ: Tensor,
        coordinates: SchemeCoordinates,
        layer: Callable[[int, Block, Tensor, Tensor | None], Tensor],
    ) -> Tensor:
        """Embed tokens, call `layer` for every layer, and return the logits of its last results, (B, V).

        `layer` receives its depth, the state before it and the injected input.
        """
        model = self.model
        embedded = model.embed(ids_BQ, coordinates)
        state, injected = model.initial_state(embedded, None), None
        for depth in range(model.depth):
            block = model.blocks[depth % len(model.blocks)]
            assert isinstance(block, Block)
            if block is model.blocks[0]:
                state, injected = model.begin_recurrence(state, embedded)
            state = layer(depth, block, state, injected)
        return model.unembed(state).squeeze(1)

    def _at(self, token_B: Tensor, x_TBD: Tensor) -> Tensor:
        """Select one token of every line, (1, B, D)."""
        return x_TBD[token_B, self.lines].unsqueeze(0)


class DenseCache(KeyValueCache):
    """Keeps all tokens, each new one in the same slot of every line, and attends to all of them."""

    def __init__(self, model: Transformer, prompt: SchemeCoordinates, max_new_tokens: int) -> None:
        num_slots = prompt.num_tokens + max_new_tokens
        super().__init__(model, prompt, num_slots)
        self.num_tokens = prompt.num_tokens
        # One row of coordinates for all lines as long as they agree.
        tensors = [prompt.index, *prompt.values]
        shared = all(bool((tensor == tensor[:1]).all()) for tensor in tensors)
        rows = 1 if shared else self.batch
        self.stored = [
            nn.functional.pad(tensor[:rows], (0, max_new_tokens), value=Coordinates.NO_PLACE)
            for tensor in tensors
        ]

    def _view_at_end(self, query: SchemeCoordinates) -> View:
        return dense_view(self.model.schemes, query, self.prompt)

    def _append(
        self, new: list[Integers], running_B: Flags
    ) -> tuple[SchemeCoordinates, View, Slots]:
        slot, self.num_tokens = self.num_tokens, self.num_tokens + 1
        if len(self.stored[0]) < self.batch:
            if all((array == array[0]).all() for array in new):
                new = [array[:1] for array in new]
            else:
                self.stored = [tensor.repeat(self.batch, 1) for tensor in self.stored]
        columns = [torch.from_numpy(array).to(self.device).unsqueeze(1) for array in new]
        for stored, column in zip(self.stored, columns, strict=True):
            stored[:, slot : slot + 1] = column
        query = SchemeCoordinates(columns[0], columns[1:])
        index, *coordinates = (stored[:, : slot + 1] for stored in self.stored)
        key = SchemeCoordinates(index, coordinates)
        return query, dense_view(self.model.schemes, query, key), slot

    def _keys_values(self, depth: int) -> tuple[Tensor, Tensor]:
        return self.keys[depth, : self.num_tokens], self.values[depth, : self.num_tokens]


class WindowedCache(KeyValueCache):
    """Keeps the tokens that the windows can still see, and attends to those that a token sees."""

    def __init__(
        self, model: Transformer, prompt: SchemeCoordinates, falls: Mapping[str, int]
    ) -> None:
        super().__init__(model, prompt, prompt.num_tokens)
        lengths = (prompt.index >= 0).sum(dim=1).tolist()
        self.stored = [values.cpu().long().numpy().copy() for values in prompt.values]
        self.tokens = [VisibleTokens(model.schemes, falls) for _ in range(self.batch)]
        self.free: list[list[int]] = []
        for line, (tokens, length) in enumerate(zip(self.tokens, lengths, strict=True)):
            columns = [values[line].tolist() for values in self.stored]
            unseen = list(range(length, prompt.num_tokens))
            # The last token is added when its own view has been made.
            for slot, token in enumerate(
                zip(*(column[: length - 1] for column in columns), strict=True)
            ):
                if not tokens.add(slot, token):
                    unseen.append(slot)
            self.free.append(unseen)
        self.row = np.arange(self.batch)[:, None]

    def _view_at_end(self, query: SchemeCoordinates) -> View:
        columns = [values.squeeze(1).tolist() for values in query.values]
        slots = []
        for line, (slot, token) in enumerate(
            zip(query.index.squeeze(1).tolist(), zip(*columns, strict=True), strict=True)
        ):
            slots.append([*chain.from_iterable(s for _, s in self.tokens[line].find(token)), slot])
            if not self.tokens[line].add(slot, token):
                self.free[line].append(slot)
        return self._view(query, slots)

    def _append(
        self, new: list[Integers], running_B: Flags
    ) -> tuple[SchemeCoordinates, View, Slots]:
        coordinates = list(zip(*(array.tolist() for array in new[1:]), strict=True))
        visible: list[list[int]] = [[0]] * self.batch
        slots_B = np.zeros(self.batch, np.int64)
        for line in running_B.nonzero()[0].tolist():
            tokens, token, free = self.tokens[line], coordinates[line], self.free[line]
            free.extend(tokens.forget(token))
            visible[line] = [*chain.from_iterable(slots for _, slots in tokens.find(token))]
            if not free:
                self._grow()
            slot = free.pop()
            visible[line].append(slot)
            slots_B[line] = slot
            if not tokens.add(slot, token):
                free.append(slot)
        for stored, array in zip(self.stored, new[1:], strict=True):
            stored[self.row[:, 0], slots_B] = array
        columns = [torch.from_numpy(array).to(self.device).unsqueeze(1) for array in new]
        query = SchemeCoordinates(columns[0], columns[1:])
        return (
            query,
            self._view(query, visible),
            (torch.from_numpy(slots_B).to(self.device), self.lines),
        )

    def _keys_values(self, depth: int) -> tuple[Tensor, Tensor]:
        return self.keys[depth], self.values[depth]

    def _grow(self) -> None:
        """Make half as many slots again, so that the copies cost a constant time per token."""
        num_slots = self.keys.shape[1]
        more = num_slots // 2 + 1
        self.keys, self.values = (
            nn.functional.pad(tensor, (0, 0, 0, 0, 0, 0, 0, more))
            for tensor in (self.keys, self.values)
        )
        self.stored = [np.pad(values, ((0, 0), (0, more))) for values in self.stored]
        for free in self.free:
            free.extend(range(num_slots, num_slots + more))

    def _view(self, query: SchemeCoordinates, slots: list[list[int]]) -> View:
        """Return the view of one token of every line that sees the tokens in `slots`."""
        longest = max(map(len, slots))
        keys_BC = np.array([line + [-1] * (longest - len(line)) for line in slots])
        visible = torch.from_numpy(keys_BC >= 0).to(self.device).unsqueeze(1)
        keys_BC = np.maximum(keys_BC, 0)
        bias_inputs = []
        for number, scheme in enumerate(self.model.schemes):
            if scheme.adds == "bias":
                key_values = torch.from_numpy(self.stored[number][self.row, keys_BC])
                key_values = key_values.to(self.device).unsqueeze(1)
                query_values = query.values[number].unsqueeze(-1)
                bias_inputs.append(encodings.bias_input(scheme, query_values, key_values))
        return View(torch.from_numpy(keys_BC).to(self.device).unsqueeze(1), visible, bias_inputs)
