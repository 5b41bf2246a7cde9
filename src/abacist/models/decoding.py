"""Generation, one token at a time, with a cache of keys and values.

Lines of a batch may have unequal lengths: each is padded on the right, every new token is
written right behind its line, and the cache keeps the key of token t in column t.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from abacist.models import encodings
from abacist.models.block import Block
from abacist.models.coordinates import Coordinates
from abacist.models.transformer import Transformer
from abacist.models.views import dense_view, window_scheme, windowed_view


@dataclass(frozen=True)
class Generated:
    """What generation gives."""

    ids: Tensor
    """int32 (B, T): the whole lines, padded on the right with the end token."""
    ended: Tensor
    """bool (B,): whether the model wrote an end token, or needs none, rather than being cut off."""
    margins: Tensor
    """float (B, number of steps): top logit minus the runner-up at every step; infinite after the end."""


@torch.no_grad()
def generate(
    model: Transformer,
    ids_BT: Tensor,
    lengths_B: Tensor,
    max_new_tokens: int,
    end_id: int | None,
    coordinates_of: Callable[[Tensor], Coordinates],
    on_step: Callable[[int], None] | None = None,
) -> Generated:
    """Greedy continuation of every line until its end token, or to the full length without one.

    `ids_BT` holds prompts of lengths `lengths_B`, padded on the right; `coordinates_of` annotates
    whole lines (the format's one function). `on_step` is told the number of tokens written.
    """
    batch, prompt_width = ids_BT.shape
    lines = torch.arange(batch)
    filler = 0 if end_id is None else end_id
    ids = nn.functional.pad(ids_BT, (0, max_new_tokens), value=filler)
    prompt = coordinates_of(ids_BT)
    positions = torch.arange(prompt_width, dtype=torch.int32)
    prompt = Coordinates(
        torch.where(positions < lengths_B.unsqueeze(1), positions, -1), prompt.place
    )
    cache = _Cache(model, ids, prompt, max_new_tokens)
    resid = cache.prefill(ids_BT, prompt)
    logits = model.unembed(resid[lengths_B - 1, lines].unsqueeze(0)).squeeze(1)
    lengths, running = lengths_B.clone(), torch.ones(batch, dtype=torch.bool)
    margins = []
    for step in range(max_new_tokens):
        top = logits.topk(2, dim=-1)
        token = torch.where(running, top.indices[:, 0], filler)
        margin = (top.values[:, 0] - top.values[:, 1]).double()
        margins.append(torch.where(running, margin, torch.inf))
        ids[lines, lengths] = token.to(ids.dtype)
        if end_id is not None:
            running = running & (token != end_id)
        if on_step is not None:
            on_step(step + 1)
        if not running.any():
            break
        width = int(lengths.max()) + 1
        annotated = coordinates_of(ids[:, :width])
        place = annotated.place[lines, lengths].unsqueeze(1)
        query = Coordinates(lengths.int().unsqueeze(1), place)
        resid = cache.step(token, query, running)
        logits = model.unembed(resid).squeeze(1)
        lengths = torch.where(running, lengths + 1, lengths)
    ended = torch.ones_like(running) if end_id is None else ~running
    return Generated(ids[:, : int(lengths.max()) + 1], ended, torch.stack(margins, dim=1))


class _Cache:
    """Keys, values and coordinates of all tokens so far, by column."""

    def __init__(
        self, model: Transformer, ids: Tensor, prompt: Coordinates, max_new_tokens: int
    ) -> None:
        batch, width = ids.shape
        self.model, self.lines = model, torch.arange(batch)
        heads, head_width = model.config.num_heads, model.config.width_of_head
        dtype = model.embedding.weight.dtype
        self.keys = torch.zeros(len(model.blocks), width, batch, heads, head_width, dtype=dtype)
        self.values = torch.zeros_like(self.keys)
        pad = (0, max_new_tokens)
        self.coordinates = Coordinates(
            nn.functional.pad(prompt.index, pad, value=-1),
            nn.functional.pad(prompt.place, pad, value=Coordinates.NO_PLACE),
        )
        self.table = model.column_table(prompt, spare_rows=max_new_tokens + 2)

    def prefill(self, ids: Tensor, prompt: Coordinates) -> Tensor:
        """Run the prompts through the model, (T, B, D), and remember their keys and values."""
        resid = self.model.embed(ids, prompt)
        whole, _ = self.model.views(prompt, 0, "auto")
        for layer, block in enumerate(self.model.blocks):
            assert isinstance(block, Block)
            normed = block.attention_norm(resid)
            key, value = block.attention.keys_values(normed)
            self.keys[layer, : ids.shape[1]] = key
            self.values[layer, : ids.shape[1]] = value
            resid = block.carry_on(resid, normed, key, value, whole)
        return resid

    def step(self, token: Tensor, query: Coordinates, running: Tensor) -> Tensor:
        """Append one token to every running line and run it through the model, (1, B, D)."""
        columns = query.index.squeeze(1).long()
        self.coordinates.index[self.lines, columns] = query.index.squeeze(1)
        self.coordinates.place[self.lines, columns] = query.place.squeeze(1)
        schemes = self.model.relative_schemes
        if self.table is None:
            view = dense_view(schemes, query, self.coordinates)
        else:
            window = window_scheme(schemes)
            assert window is not None
            values = encodings.raw(window, query).squeeze(1)
            self.table.append(torch.where(running, values, Coordinates.NO_PLACE), columns)
            view = windowed_view(schemes, query, self.coordinates, self.table)
        resid = self.model.embed(token.unsqueeze(1), query)
        for layer, block in enumerate(self.model.blocks):
            assert isinstance(block, Block)
            normed = block.attention_norm(resid)
            key, value = block.attention.keys_values(normed)
            self.keys[layer, columns, self.lines] = key.squeeze(0)
            self.values[layer, columns, self.lines] = value.squeeze(0)
            resid = block.carry_on(resid, normed, self.keys[layer], self.values[layer], view)
        return resid
