"""Generation, one token at a time, with a cache of keys and values.

Lines of a batch may have unequal lengths; in every step each gets one token. Coordinates and the search
for visible tokens are a matter of a few integers per token, and are done by NumPy and Python on the
CPU, where a small operation costs much less than in torch.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from abacist.errors import ConfigurationError, check_between
from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.continuation import Continuation
from abacist.models.key_value_cache import make_cache
from abacist.models.teacher_forcing import coordinates_of
from abacist.models.transformer import Transformer


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
    prompt: AnnotatedTokens,
    continuation: Continuation,
    max_new_tokens: int,
    end_id: int | None,
    on_step: Callable[[int], None] | None = None,
    sampling: Sampling | None = None,
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

    Raises `ConfigurationError` for an encoder, and `ProblemError` where a line grows too long for
    the model.
    """
    if not model.is_causal:
        raise ConfigurationError(
            "an encoder writes all answer tokens at once and does not generate. "
            "Train with --model.direction causal."
        )
    device = model.device
    coordinates = coordinates_of(prompt).to(device)
    cache = make_cache(
        model, model.coordinates_by_scheme(coordinates), max_new_tokens, continuation.falls
    )
    lengths_B = prompt.lengths
    resid_1BD = cache.prefill(prompt.ids.to(device), lengths_B.to(device))
    batch, padding_id = len(prompt.ids), 0 if end_id is None else end_id
    margins = np.full((max_new_tokens, batch), np.inf)
    tokens = np.full((max_new_tokens, batch), padding_id)
    index_B, running_B = lengths_B.numpy().copy(), np.ones(batch, dtype=bool)
    num_written_B = np.zeros(batch, dtype=np.int64)
    for step in range(max_new_tokens):
        logits_BV = model.unembed(resid_1BD).squeeze(1)
        top = logits_BV.topk(2, dim=-1)
        next_id = top.indices[:, 0] if sampling is None else sampling.draw(logits_BV)
        largest = top.values.double().cpu().numpy()
        margins[step, running_B] = (largest[:, 0] - largest[:, 1])[running_B]
        tokens[step, running_B] = next_id.cpu().numpy()[running_B]
        num_written_B += running_B
        if end_id is not None:
            running_B = running_B & (tokens[step] != end_id)
        if on_step is not None:
            on_step(step + 1)
        # Stop after the last token: there may be no position left for another query.
        if step + 1 == max_new_tokens or not running_B.any():
            break
        new = continuation.append(tokens[step])
        query = [index_B]
        for scheme in model.schemes:
            values = index_B if scheme.coordinate == "index" else getattr(new, scheme.coordinate)
            query.append(values)
        if not running_B.all():
            # Lines that have ended get the coordinates of one that has not, so that they cannot
            # run out of positions.
            first = int(running_B.argmax())
            query = [np.where(running_B, values, values[first]) for values in query]
        token_B = torch.from_numpy(tokens[step]).to(device)
        resid_1BD = cache.step(token_B, query, running_B)
        index_B = index_B + 1
    num_steps = step + 1
    ids = nn.functional.pad(prompt.ids, (0, num_steps), value=padding_id)
    new_BS = lengths_B.unsqueeze(1) + torch.arange(num_steps)
    ids.scatter_(1, new_BS, torch.from_numpy(tokens[:num_steps].T).to(ids.dtype))
    longest = int((lengths_B.numpy() + num_written_B).max())
    return Generated(
        ids[:, :longest].to(device),
        torch.from_numpy(np.ones_like(running_B) if end_id is None else ~running_B).to(device),
        torch.from_numpy(margins[:num_steps].T.copy()).to(device),
    )
