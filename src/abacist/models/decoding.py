"""Generation with a cache of keys and values.

Lines of a batch may have unequal lengths; in every step each gets one token. A few long lines are
written one after the other where `jacobi_decoding` can write many tokens of a line at a time.

Coordinates and the search for visible tokens are a matter of a few integers per token, and are done by
NumPy and Python on the CPU, where a small operation costs much less than in torch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from abacist.arrays import Flags, Integers
from abacist.errors import ConfigurationError, check_between
from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.continuation import Continuation, TokenCoordinates
from abacist.models.attention_tables import AttentionTables, suits_tables
from abacist.models.id_cache import IdCache, LongLines, ShortLines
from abacist.models.jacobi_decoding import write_line
from abacist.models.key_value_cache import DenseCache, KeyValueCache, WindowedCache
from abacist.models.teacher_forcing import coordinates_of
from abacist.models.transformer import Transformer

Floats = npt.NDArray[np.float64]

_LONGEST_COMPARED = 64
"""In longer lines, finding the tokens inside a window is cheaper than comparing with all tokens."""

_LONGEST_COMPARED_IN_BATCH = 512
"""The same for batches, in which NumPy compares the tokens of all lines at once."""

_SMALLEST_BATCH = 8

_STEPS_PER_SUMMARY = 256
"""Number of steps whose logits are kept until margins and losses are computed from them together."""


@dataclass(frozen=True)
class Generated:
    """The lines that `generate` has written."""

    ids: Tensor
    """int32 (B, T): the whole lines, prompts included, padded on the right with the end token."""
    ended: Tensor
    """bool (B,): whether the line ended with an end token, or needs none; False where it was cut off."""
    margins: Tensor
    """float64 (B, S) for S steps: the top logit minus the second one; infinite after a line's end."""
    losses: Tensor
    """float64 (B, S): the cross entropy of each written token in nats; 0 after a line's end."""


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
        """Draw one token for every line, int64 (B,), on the CPU."""
        # On the CPU, where the generator is, so that every device draws the same tokens.
        logits = logits_BV.double().cpu() / self.temperature
        if self.top_k is not None and self.top_k < logits.shape[1]:
            smallest = logits.topk(self.top_k, dim=-1).values[:, -1:]
            logits = logits.masked_fill(logits < smallest, -torch.inf)
        drawn = torch.multinomial(logits.softmax(dim=-1), 1, generator=self.generator)
        return drawn.squeeze(1)


def generate(
    model: Transformer,
    prompt: AnnotatedTokens,
    continuation: Continuation,
    max_new_tokens: int,
    end_id: int | None,
    on_step: Callable[[int], None] | None = None,
    sampling: Sampling | None = None,
    tables: AttentionTables | None = None,
) -> Generated:
    """Continue every line until its end token, or for `max_new_tokens` tokens.

    Args:
        model: a decoder.
        prompt: the beginnings of the lines, padded on the right.
        continuation: finds the coordinates of new tokens; see `continue_lines`.
        max_new_tokens: largest number of tokens written per line.
        end_id: the end token; None where lines have no end token and all get the full length.
        on_step: called after every step with the number of tokens written per line so far.
        sampling: draws the tokens; None takes the likeliest (greedy decoding).
        tables: the result of `make_tables`, which several batches can share; None makes them anew.

    Raises `ConfigurationError` for an encoder and for fewer than one new token, and `ProblemError`
    where a line grows too long for the model.
    """
    if max_new_tokens < 1:
        raise ConfigurationError(
            f"max_new_tokens must be 1 or more, got {max_new_tokens}. Try 100."
        )
    if not model.is_causal:
        raise ConfigurationError(
            "an encoder writes all answer tokens at once and does not generate them one by one. "
            "Let run.solve write its answers."
        )
    tables = tables or make_tables(model)
    known = continuation.known_beforehand
    is_long = prompt.ids.shape[1] + max_new_tokens > _LONGEST_COMPARED
    may_guess = sampling is None and is_long and len(prompt.ids) < _SMALLEST_BATCH
    if may_guess and tables is not None and known is not None:
        written = _write_by_guessing(
            model, prompt, known, continuation.falls, max_new_tokens, end_id, on_step, tables
        )
    else:
        written = _write(
            model, prompt, continuation, max_new_tokens, end_id, on_step, sampling, tables
        )
    tokens_SB, running_B, margins_SB, losses_SB = written
    num_steps, lengths_B = len(tokens_SB), prompt.lengths
    ids = nn.functional.pad(prompt.ids, (0, num_steps), value=0 if end_id is None else end_id)
    new_BS = lengths_B.unsqueeze(1) + torch.arange(num_steps)
    ids.scatter_(1, new_BS, torch.from_numpy(tokens_SB.T).to(ids.dtype))
    is_end = np.zeros_like(tokens_SB, dtype=bool) if end_id is None else tokens_SB == end_id
    is_written = is_end.cumsum(axis=0) <= is_end
    longest = int((lengths_B.numpy() + is_written.sum(axis=0)).max())
    ended_B = np.ones_like(running_B) if end_id is None else ~running_B
    return Generated(
        ids[:, :longest].to(model.device),
        torch.from_numpy(ended_B).to(model.device),
        torch.from_numpy(np.where(is_written, margins_SB, np.inf).T.copy()).to(model.device),
        torch.from_numpy(np.where(is_written, losses_SB, 0.0).T.copy()).to(model.device),
    )


@torch.inference_mode()
def _write(
    model: Transformer,
    prompt: AnnotatedTokens,
    continuation: Continuation,
    max_new_tokens: int,
    end_id: int | None,
    on_step: Callable[[int], None] | None,
    sampling: Sampling | None,
    tables: AttentionTables | None,
) -> tuple[Integers, Flags, Floats, Floats]:
    """Return the written tokens, (S, B), which lines have not ended, (B,), and margins and losses, (S, B).

    The tokens after a line's end are padding, and their margins and losses mean nothing.
    """
    cache = _make_cache(model, prompt, continuation, max_new_tokens, tables)
    lengths_B = prompt.lengths
    logits_BV = cache.prefill(prompt.ids.to(model.device), lengths_B.to(model.device))
    batch, padding_id = len(prompt.ids), 0 if end_id is None else end_id
    tokens_SB = np.full((max_new_tokens, batch), padding_id)
    index_B, running_B = lengths_B.numpy().copy(), np.ones(batch, dtype=bool)
    num_running = batch
    encoded = ["index", *(scheme.coordinate for scheme in model.schemes)]
    summary = _Summary(tokens_SB)
    for step in range(max_new_tokens):
        token_B = _likeliest(logits_BV) if sampling is None else sampling.draw(logits_BV).numpy()
        if num_running < batch:
            token_B = np.where(running_B, token_B, padding_id)
        tokens_SB[step] = token_B
        summary.add(logits_BV)
        if end_id is not None:
            running_B = running_B & (token_B != end_id)
            num_running = int(np.count_nonzero(running_B))
        if on_step is not None:
            on_step(step + 1)
        # Stop after the last token: there may be no position left for another query.
        if step + 1 == max_new_tokens or not num_running:
            break
        new = continuation.append(token_B)
        query = [index_B if name == "index" else getattr(new, name) for name in encoded]
        if num_running < batch:
            # Lines that have ended get the coordinates of one that has not, so that they cannot
            # run out of positions.
            first = int(running_B.argmax())
            query = [np.where(running_B, values, values[first]) for values in query]
        logits_BV = cache.step(token_B, query, running_B)
        index_B = index_B + 1
    return tokens_SB[: step + 1], running_B, *summary.finish()


@torch.inference_mode()
def _write_by_guessing(
    model: Transformer,
    prompt: AnnotatedTokens,
    known: TokenCoordinates,
    falls: Mapping[str, int],
    max_new_tokens: int,
    end_id: int | None,
    on_step: Callable[[int], None] | None,
    tables: AttentionTables,
) -> tuple[Integers, Flags, Floats, Floats]:
    """Return what `_write` returns, one line after the other by Jacobi decoding.

    `on_step` receives the mean number of tokens written per line.
    """
    batch = len(prompt.ids)
    tokens_SB = np.full((max_new_tokens, batch), 0 if end_id is None else end_id)
    margins_SB, losses_SB = np.zeros((2, max_new_tokens, batch))
    running_B = np.ones(batch, dtype=bool)
    prompt_values = model.coordinates_by_scheme(coordinates_of(prompt)).values
    names = [scheme.coordinate for scheme in model.schemes]
    num_written, longest = 0, 0
    for line, length in enumerate(prompt.lengths.tolist()):
        new = slice(max_new_tokens - 1), line
        coordinates = [
            np.arange(length + max_new_tokens - 1)
            if name == "index"
            else np.concatenate([values[line, :length].numpy(), getattr(known, name)[new]])
            for name, values in zip(names, prompt_values, strict=True)
        ]
        ids_T = prompt.ids[line, :length].long().numpy()
        begin = 0
        for tokens, logits in write_line(tables, ids_T, coordinates, falls, end_id):
            block = slice(begin, begin := begin + len(tokens))
            tokens_SB[block, line] = tokens
            margins_SB[block, line], losses_SB[block, line] = _margins_and_losses(logits, tokens)
            num_written += len(tokens)
            if on_step is not None:
                on_step(num_written // batch)
        running_B[line] = end_id is None or tokens_SB[begin - 1, line] != end_id
        longest = max(longest, begin)
    return tokens_SB[:longest], running_B, margins_SB[:longest], losses_SB[:longest]


def _likeliest(logits_BV: Tensor) -> Integers:
    """Return the likeliest token of every line."""
    is_cheap = len(logits_BV) == 1 and logits_BV.device.type == "cpu"
    tokens: Integers
    tokens = logits_BV.numpy().argmax(axis=1) if is_cheap else logits_BV.argmax(dim=1).cpu().numpy()
    return tokens


def make_tables(model: Transformer) -> AttentionTables | None:
    """Return the tables by which a model generates with its present weights.

    None for a model that needs keys and values instead.
    """
    return AttentionTables(model) if suits_tables(model) else None


def _make_cache(
    model: Transformer,
    prompt: AnnotatedTokens,
    continuation: Continuation,
    max_new_tokens: int,
    tables: AttentionTables | None,
) -> IdCache | KeyValueCache:
    """Return the cache that suits a model and the length of its lines."""
    coordinates = model.coordinates_by_scheme(coordinates_of(prompt).to(model.device))
    batch, length = prompt.ids.shape[0], prompt.ids.shape[1] + max_new_tokens
    if tables is not None:
        compared = _LONGEST_COMPARED if batch < _SMALLEST_BATCH else _LONGEST_COMPARED_IN_BATCH
        if length <= compared:
            return ShortLines(tables, coordinates, max_new_tokens)
        return LongLines(tables, coordinates, continuation.falls)
    if model.is_windowed and length > _LONGEST_COMPARED:
        return WindowedCache(model, coordinates, continuation.falls)
    return DenseCache(model, coordinates, max_new_tokens)


class _Summary:
    """Margins and losses of all steps, computed from the logits of many steps at once."""

    def __init__(self, tokens_SB: Integers) -> None:
        """`tokens_SB` receives the written tokens before `add` is called."""
        self._tokens_SB, self._num_done = tokens_SB, 0
        self._logits: list[Tensor] = []
        self._margins: list[Floats] = []
        self._losses: list[Floats] = []

    def add(self, logits_BV: Tensor) -> None:
        """Take in the logits of the next step."""
        self._logits.append(logits_BV)
        if len(self._logits) == _STEPS_PER_SUMMARY:
            self._compute()

    def finish(self) -> tuple[Floats, Floats]:
        """Return margins and losses, (S, B) each."""
        self._compute()
        return np.concatenate(self._margins), np.concatenate(self._losses)

    def _compute(self) -> None:
        if not self._logits:
            return
        begin, self._num_done = self._num_done, self._num_done + len(self._logits)
        margins, losses = _margins_and_losses(
            torch.stack(self._logits), self._tokens_SB[begin : self._num_done]
        )
        self._margins.append(margins)
        self._losses.append(losses)
        self._logits = []


def _margins_and_losses(logits: Tensor, tokens: Integers) -> tuple[Floats, Floats]:
    """Return the margins and losses of tokens, (…), from their logits, (…, V)."""
    logits = logits.double()
    written = torch.from_numpy(tokens).to(logits.device)
    top = logits.topk(2, dim=-1).values
    chosen = logits.gather(-1, written.unsqueeze(-1)).squeeze(-1)
    margins = (top[..., 0] - top[..., 1]).cpu().numpy()
    return margins, (logits.logsumexp(dim=-1) - chosen).cpu().numpy()
