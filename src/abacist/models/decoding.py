"""Generation, one token at a time, with a cache of keys and values.

Lines of a batch may have unequal lengths: each is padded on the right, every new token is
written right behind its line, and the cache keeps the key of token t in column t.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from abacist.errors import ConfigurationError, check_between
from abacist.models.block import Block
from abacist.models.coordinates import Coordinates, SchemeCoordinates
from abacist.models.transformer import Transformer
from abacist.models.views import dense_view, window_number, windowed_view


@dataclass(frozen=True)
class Generated:
    """What generation gives."""

    ids: Tensor
    """int32 (B, T): the whole lines, padded on the right with the end token."""
    ended: Tensor
    """bool (B,): whether the model wrote an end token, or needs none, rather than being cut off."""
    margins: Tensor
    """float (B, number of steps): top logit minus the runner-up at every step; infinite after the end."""


@dataclass(frozen=True)
class Sampling:
    """Draw tokens by their probabilities instead of taking the likeliest."""

    generator: torch.Generator
    temperature: float = 1.0
    """Logits are divided by it: lower is closer to greedy."""
    top_k: int | None = None
    """Draw among so many likeliest tokens only."""

    def __post_init__(self) -> None:
        check_between("temperature", self.temperature, 1e-6, 1e6, 1.0)
        if self.top_k is not None:
            check_between("top_k", self.top_k, 1, 1_000_000, 5)

    def draw(self, logits_BV: Tensor) -> Tensor:
        """int64 (B,): one token for every line."""
        # On the CPU, where the generator is: the same draws on every device.
        logits = logits_BV.double().cpu() / self.temperature
        if self.top_k is not None and self.top_k < logits.shape[1]:
            least = logits.topk(self.top_k, dim=-1).values[:, -1:]
            logits = logits.masked_fill(logits < least, -torch.inf)
        drawn = torch.multinomial(logits.softmax(dim=-1), 1, generator=self.generator)
        return drawn.squeeze(1).to(logits_BV.device)


@torch.no_grad()
def generate(
    model: Transformer,
    ids_BT: Tensor,
    lengths_B: Tensor,
    max_new_tokens: int,
    end_id: int | None,
    coordinates_of: Callable[[Tensor], Coordinates],
    on_step: Callable[[int], None] | None = None,
    sampling: Sampling | None = None,
) -> Generated:
    """Continue every line until its end token, or to the full length without one: greedily, or by chance.

    `ids_BT` holds prompts of lengths `lengths_B`, padded on the right; `coordinates_of` annotates
    whole lines (the format's one function). `on_step` is told the number of tokens written.
    """
    if not model.is_causal:
        raise ConfigurationError(
            "an encoder writes all answer tokens at once and does not generate. "
            "Train with --model.direction causal."
        )
    batch, prompt_width = ids_BT.shape
    device = model.device
    lines = torch.arange(batch, device=device)
    ids_BT, lengths_B = ids_BT.to(device), lengths_B.to(device)
    filler = 0 if end_id is None else end_id
    ids = nn.functional.pad(ids_BT, (0, max_new_tokens), value=filler)
    told = coordinates_of(ids_BT).to(device)
    positions = torch.arange(prompt_width, dtype=torch.int32, device=device)
    index = torch.where(positions < lengths_B.unsqueeze(1), positions, -1)
    prompt = model.place(replace(told, index=index))
    cache = _Cache(model, ids, prompt, max_new_tokens)
    resid = cache.prefill(ids_BT, prompt)
    logits = model.unembed(resid[lengths_B - 1, lines].unsqueeze(0)).squeeze(1)
    lengths, running = lengths_B.clone(), torch.ones(batch, dtype=torch.bool, device=device)
    margins = []
    for step in range(max_new_tokens):
        top = logits.topk(2, dim=-1)
        chosen = top.indices[:, 0] if sampling is None else sampling.draw(logits)
        token = torch.where(running, chosen, filler)
        margin = (top.values[:, 0] - top.values[:, 1]).double()
        margins.append(torch.where(running, margin, torch.inf))
        ids[lines, lengths] = token.to(ids.dtype)
        if end_id is not None:
            running = running & (token != end_id)
        if on_step is not None:
            on_step(step + 1)
        # Nothing is asked behind the last token, for which there may be no position left.
        if not running.any() or step + 1 == max_new_tokens:
            break
        width = int(lengths.max()) + 1
        told = coordinates_of(ids[:, :width]).to(device)
        here = model.place(replace(told, index=told.index.expand(batch, -1)))
        query = SchemeCoordinates(
            lengths.int().unsqueeze(1),
            [values.expand(batch, -1)[lines, lengths].unsqueeze(1) for values in here.values],
        )
        resid = cache.step(token, query, running)
        logits = model.unembed(resid).squeeze(1)
        lengths = torch.where(running, lengths + 1, lengths)
    ended = torch.ones_like(running) if end_id is None else ~running
    return Generated(ids[:, : int(lengths.max()) + 1], ended, torch.stack(margins, dim=1))


class _Cache:
    """Keys, values and coordinates of all tokens so far, by column, for every layer of the depth."""

    def __init__(
        self, model: Transformer, ids: Tensor, prompt: SchemeCoordinates, max_new_tokens: int
    ) -> None:
        batch, width = ids.shape
        self.model, self.lines = model, torch.arange(batch, device=model.device)
        heads, head_width = model.config.num_heads, model.config.width_of_head
        self.dtype = model.embedding.weight.dtype
        self.keys = torch.zeros(
            (model.depth, width, batch, heads, head_width), dtype=self.dtype, device=model.device
        )
        self.values = torch.zeros_like(self.keys)
        self.table = model.column_table(prompt, spare_rows=max_new_tokens + 2)
        self.scheme_coordinates = SchemeCoordinates(
            _widened(prompt.index, batch, max_new_tokens),
            [_widened(values, batch, max_new_tokens) for values in prompt.values],
        )

    def prefill(self, ids: Tensor, prompt: SchemeCoordinates) -> Tensor:
        """Run the prompts through the model, (T, B, D), and remember their keys and values."""
        embedded = self.model.embed(ids, prompt)
        whole, _ = self.model.views(prompt, 0, "auto")
        query_key_positions = self.model.query_key_positions(prompt, self.dtype)

        def layer(depth: int, block: Block, resid: Tensor, injected: Tensor | None) -> Tensor:
            told = block.told(resid, injected)
            key, value = block.attention.keys_values(told, query_key_positions)
            self.keys[depth, : ids.shape[1]] = key
            self.values[depth, : ids.shape[1]] = value
            return block.carry_on(resid, told, key, value, whole, query_key_positions, injected)

        return self._through_all(embedded, layer)

    def step(self, token: Tensor, query: SchemeCoordinates, running: Tensor) -> Tensor:
        """Append one token to every running line and run it through the model, (1, B, D)."""
        columns = query.index.squeeze(1).long()
        for kept, new in zip(
            [self.scheme_coordinates.index, *self.scheme_coordinates.values],
            [query.index, *query.values],
            strict=True,
        ):
            kept[self.lines, columns] = new.squeeze(1)
        schemes, number = self.model.schemes, window_number(self.model.schemes)
        if self.table is None or number is None:
            view = dense_view(schemes, query, self.scheme_coordinates)
        else:
            values = query.values[number].squeeze(1)
            self.table.append(torch.where(running, values, Coordinates.NO_PLACE), columns)
            view = windowed_view(schemes, query, self.scheme_coordinates, self.table)
        embedded = self.model.embed(token.unsqueeze(1), query)
        query_key_positions = self.model.query_key_positions(query, self.dtype)

        def layer(depth: int, block: Block, resid: Tensor, injected: Tensor | None) -> Tensor:
            told = block.told(resid, injected)
            key, value = block.attention.keys_values(told, query_key_positions)
            self.keys[depth, columns, self.lines] = key.squeeze(0)
            self.values[depth, columns, self.lines] = value.squeeze(0)
            keys, values = self.keys[depth], self.values[depth]
            return block.carry_on(resid, told, keys, values, view, query_key_positions, injected)

        return self._through_all(embedded, layer)

    def _through_all(
        self, embedded: Tensor, layer: Callable[[int, Block, Tensor, Tensor | None], Tensor]
    ) -> Tensor:
        state = self.model.initial_state(embedded, None)
        depth = 0
        for _ in range(self.model.config.recurrences):
            state, injected = self.model.begin_recurrence(state, embedded)
            for block in self.model.blocks:
                assert isinstance(block, Block)
                state = layer(depth, block, state, injected)
                depth += 1
        return state


def _widened(values: Tensor, batch: int, more: int) -> Tensor:
    """One row for each line, with room for tokens to come."""
    padded = nn.functional.pad(values, (0, more), value=Coordinates.NO_PLACE)
    return padded.expand(batch, -1).clone()
