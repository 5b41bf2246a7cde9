"""Generation, one token at a time, with a cache of keys and values.

Lines of a batch may have unequal lengths. Each is padded on the right, a new token takes the
place of its line's first padding token, and the cache stores the key of token t at index t.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from abacist.errors import ConfigurationError, check_between
from abacist.models.block import Block
from abacist.models.coordinates import Coordinates, SchemeCoordinates
from abacist.models.fused import FusedView
from abacist.models.transformer import Transformer
from abacist.models.views import View, dense_view, first_windowed, windowed_view


@dataclass(frozen=True)
class Generated:
    """The lines that `generate` has written."""

    ids: Tensor
    """int32 (B, T): the whole lines, prompts included, padded on the right with the end token."""
    ended: Tensor
    """bool (B,): whether the line ended with an end token, or needs none; False where it was cut off."""
    margins: Tensor
    """float64 (B, S) for S steps: the top logit minus the second one; infinite after a line's end."""


@dataclass(frozen=True)
class Sampling:
    """Draws tokens by their probabilities instead of taking the likeliest."""

    generator: torch.Generator
    temperature: float = 1.0
    """Logits are divided by it: lower is closer to greedy decoding."""
    top_k: int | None = None
    """Draw among the `top_k` likeliest tokens only; None draws among all."""

    def __post_init__(self) -> None:
        check_between("temperature", self.temperature, 1e-6, 1e6, 1.0)
        if self.top_k is not None:
            check_between("top_k", self.top_k, 1, 1_000_000, 5)

    def draw(self, logits_BV: Tensor) -> Tensor:
        """Draw one token for every line, int64 (B,)."""
        # On the CPU, where the generator is, so that every device draws the same tokens.
        logits = logits_BV.double().cpu() / self.temperature
        if self.top_k is not None and self.top_k < logits.shape[1]:
            smallest = logits.topk(self.top_k, dim=-1).values[:, -1:]
            logits = logits.masked_fill(logits < smallest, -torch.inf)
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
    """Continue every line until its end token, or for `max_new_tokens` tokens.

    Args:
        model: a decoder.
        ids_BT: int prompts, padded on the right.
        lengths_B: int number of tokens of each prompt.
        max_new_tokens: largest number of tokens written per line.
        end_id: the end token; None where lines have no end token and all get the full length.
        coordinates_of: returns the coordinates of whole lines, (B, T), from their ids.
        on_step: called after every step with the number of tokens written per line so far.
        sampling: draws the tokens; None takes the likeliest (greedy decoding).

    Raises `ConfigurationError` for an encoder, and `ProblemError` where a line grows too long for
    the model.
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
    padding_id = 0 if end_id is None else end_id
    ids = nn.functional.pad(ids_BT, (0, max_new_tokens), value=padding_id)
    positions = torch.arange(prompt_width, dtype=torch.int32, device=device)
    index_BT = torch.where(positions < lengths_B.unsqueeze(1), positions, -1)
    coordinates = replace(coordinates_of(ids_BT).to(device), index=index_BT)
    prompt = model.coordinates_by_scheme(coordinates)
    cache = _KeyValueCache(model, ids, prompt, max_new_tokens)
    resid = cache.prefill(ids_BT, prompt)
    logits_BV = model.unembed(resid[lengths_B - 1, lines].unsqueeze(0)).squeeze(1)
    lengths, running = lengths_B.clone(), torch.ones(batch, dtype=torch.bool, device=device)
    margins = []
    for step in range(max_new_tokens):
        top = logits_BV.topk(2, dim=-1)
        next_id = top.indices[:, 0] if sampling is None else sampling.draw(logits_BV)
        token_B = torch.where(running, next_id, padding_id)
        margin = (top.values[:, 0] - top.values[:, 1]).double()
        margins.append(torch.where(running, margin, torch.inf))
        ids[lines, lengths] = token_B.to(ids.dtype)
        if end_id is not None:
            running = running & (token_B != end_id)
        if on_step is not None:
            on_step(step + 1)
        # Stop after the last token: there may be no position left for another query.
        if not running.any() or step + 1 == max_new_tokens:
            break
        width = int(lengths.max()) + 1
        coordinates = coordinates_of(ids[:, :width]).to(device)
        written = model.coordinates_by_scheme(coordinates)
        query = SchemeCoordinates(
            lengths.int().unsqueeze(1),
            [values.expand(batch, -1)[lines, lengths].unsqueeze(1) for values in written.values],
        )
        resid = cache.step(token_B, query, running)
        logits_BV = model.unembed(resid).squeeze(1)
        lengths = torch.where(running, lengths + 1, lengths)
    ended = torch.ones_like(running) if end_id is None else ~running
    return Generated(ids[:, : int(lengths.max()) + 1], ended, torch.stack(margins, dim=1))


class _KeyValueCache:
    """Keys, values and coordinates of all tokens so far, (depth, T, B, H, K) and (B, T)."""

    def __init__(
        self, model: Transformer, ids_BT: Tensor, prompt: SchemeCoordinates, max_new_tokens: int
    ) -> None:
        """Make room for lines of the width of `ids_BT`, which begin with `prompt`."""
        batch, width = ids_BT.shape
        self.model, self.lines = model, torch.arange(batch, device=model.device)
        heads, head_width = model.config.num_heads, model.config.width_of_head
        self.dtype = model.embedding.weight.dtype
        self.keys = torch.zeros(
            (model.depth, width, batch, heads, head_width), dtype=self.dtype, device=model.device
        )
        self.values = torch.zeros_like(self.keys)
        self.table = model.key_table(prompt, spare_values=max_new_tokens + 2)
        self.scheme_coordinates = SchemeCoordinates(
            _with_room(prompt.index, batch, max_new_tokens),
            [_with_room(values, batch, max_new_tokens) for values in prompt.values],
        )

    def prefill(self, ids_BT: Tensor, prompt: SchemeCoordinates) -> Tensor:
        """Run the prompts through the model, and return the residual stream, (T, B, D)."""
        num_tokens = ids_BT.shape[1]
        view, _ = self.model.views(prompt, 0, "auto")

        def store(depth: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
            self.keys[depth, :num_tokens] = key
            self.values[depth, :num_tokens] = value
            return key, value

        return self._run(ids_BT, prompt, view, store)

    def step(self, token_B: Tensor, query: SchemeCoordinates, running_B: Tensor) -> Tensor:
        """Append one token to every line, and return its residual stream, (1, B, D).

        `query` has the coordinates of the new tokens, (B, 1). Lines that are not running get
        padding, which no later token sees.
        """
        index_B = query.index.squeeze(1).long()
        for stored, new in zip(
            [self.scheme_coordinates.index, *self.scheme_coordinates.values],
            [query.index, *query.values],
            strict=True,
        ):
            stored[self.lines, index_B] = new.squeeze(1)
        schemes, number = self.model.schemes, first_windowed(self.model.schemes)
        if self.table is None or number is None:
            view = dense_view(schemes, query, self.scheme_coordinates)
        else:
            values_B = query.values[number].squeeze(1)
            self.table.append(torch.where(running_B, values_B, Coordinates.NO_PLACE), index_B)
            view = windowed_view(schemes, query, self.scheme_coordinates, self.table)

        def store(depth: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
            self.keys[depth, index_B, self.lines] = key.squeeze(0)
            self.values[depth, index_B, self.lines] = value.squeeze(0)
            return self.keys[depth], self.values[depth]

        return self._run(token_B.unsqueeze(1), query, view, store)

    def _run(
        self,
        ids_BQ: Tensor,
        query: SchemeCoordinates,
        view: View | FusedView,
        store: Callable[[int, Tensor, Tensor], tuple[Tensor, Tensor]],
    ) -> Tensor:
        """Run tokens through all layers, and return the residual stream, (Q, B, D).

        `store` receives the depth of a layer and the tokens' keys and values, (Q, B, H, K) each,
        and returns the keys and values to attend to, (T, B, H, K) each.
        """
        embedded = self.model.embed(ids_BQ, query)
        query_key_encoding = self.model.query_key_encoding(query, self.dtype)
        state = self.model.initial_state(embedded, None)
        depth = 0
        for _ in range(self.model.config.recurrences):
            state, injected = self.model.begin_recurrence(state, embedded)
            for block in self.model.blocks:
                assert isinstance(block, Block)
                x_QBD = block.attention_input(state, injected)
                key, value = block.attention.keys_values(x_QBD, query_key_encoding)
                keys, values = store(depth, key, value)
                state = block.forward_queries(
                    state, x_QBD, keys, values, view, query_key_encoding, injected
                )
                depth += 1
        return state


def _with_room(values_GT: Tensor, batch: int, num_more: int) -> Tensor:
    """Return the values with a row per line and room for `num_more` tokens, (B, T + num_more)."""
    padded = nn.functional.pad(values_GT, (0, num_more), value=Coordinates.NO_PLACE)
    return padded.expand(batch, -1).clone()
