"""What a model writes on its own, with parts switched off where wanted, and what led to each token.

The lenses read the line with the right answer, as in training. Here the model reads what it has
written itself, as when it solves, so that a mistake leads to the next one.

>>> written = write(trained_model, problem)
>>> seen = trace(trained_model, written)          # logits and activations at the tokens that were written
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.formats.annotated import AnnotatedTokens
from abacist.inspection.ablation import HooksFor
from abacist.inspection.cache import ActivationCache, Hook, run_with_cache
from abacist.inspection.inspected_lines import Lines
from abacist.models.decoding import generate
from abacist.models.teacher_forcing import IGNORED, coordinates_of
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.problems import Problems


@dataclass(frozen=True)
class Written:
    """One line, with A tokens that the model wrote."""

    whole: AnnotatedTokens
    """The line, (1, T); of an encoder, which writes none of it, the prompt."""
    lines: Lines
    """What the model read: of a decoder all but the last token that it wrote."""
    at: Tensor
    """int64 (A,): numbers of the tokens of the line from which each token was read off."""
    ids: Tensor
    """int64 (A,): the tokens written, up to the end token."""
    answer: str | None
    """As a person writes it; None where the model wrote something that is no answer."""


@dataclass(frozen=True)
class Trace:
    """What happened while a line was written."""

    logits: Tensor
    """(A, V): at each token written, on the CPU."""
    cache: ActivationCache
    """Everything that was asked for, of the whole line."""


def write(
    trained_model: TrainedModel,
    problem: Problems,
    hooks_for: HooksFor | None = None,
    on_step: Callable[[int], None] = lambda written: None,
) -> Written:
    """Let the model write the answer of one problem; `on_step` is told how many tokens it has written.

    Without hooks a decoder keeps its keys and values, which is fast at any length. With hooks the
    whole line is run again for every token, on the path that has hooks: for short lines.
    """
    if not trained_model.model.is_causal:
        return _at_once(trained_model, problem, hooks_for)
    prompt = trained_model.format.prompt(problem)
    ids, ended = (
        _by_cache(trained_model, problem, prompt, on_step)
        if hooks_for is None
        else _by_whole_lines(trained_model, problem, prompt, hooks_for, on_step)
    )
    first, whole = prompt.ids.shape[1], trained_model.format.annotate(ids)
    return Written(
        whole,
        _own_lines(whole[:, :-1], first),
        torch.arange(first - 1, ids.shape[1] - 1),
        ids[0, first:].long(),
        trained_model.format.read(ids)[0] if ended else None,
    )


def trace(
    trained_model: TrainedModel,
    written: Written,
    hooks_for: HooksFor | None = None,
    keep: Callable[[str], bool] = lambda name: True,
) -> Trace:
    """Run a written line once more with everything kept that `keep` wants: for short lines."""
    lines = written.lines
    logits, cache = run_with_cache(
        trained_model.model,
        lines.tokens.ids,
        lines.coordinates,
        {} if hooks_for is None else hooks_for(lines),
        keep=keep,
    )
    return Trace(logits[0].cpu()[written.at], cache)


@torch.no_grad()
def logits_of(trained_model: TrainedModel, written: Written) -> Tensor:
    """(A, V): the logits alone, on the CPU, by the fast path, for lines of any length."""
    here = written.lines.tokens.to(trained_model.model.device)
    first = int(written.at[0])
    logits: Tensor = trained_model.model(here.ids, coordinates_of(here), first)
    return logits[0].cpu()[written.at - first]


def all_of(switches: Sequence[HooksFor]) -> HooksFor:
    """The hooks of several switches at once, also where they turn the same activation."""

    def hooks_for(lines: Lines) -> dict[str, Hook]:
        found: dict[str, Hook] = {}
        for switch in switches:
            for name, hook in switch(lines).items():
                found[name] = _after(found[name], hook) if name in found else hook
        return found

    return hooks_for


def _after(first: Hook, second: Hook) -> Hook:
    return lambda activation: second(first(activation))


def _by_cache(
    trained_model: TrainedModel,
    problem: Problems,
    prompt: AnnotatedTokens,
    on_step: Callable[[int], None],
) -> tuple[Tensor, bool]:
    """The whole line, (1, T), and whether the model ended it."""
    format = trained_model.format
    generated = generate(
        trained_model.model,
        prompt.ids,
        prompt.lengths,
        max_new_tokens=int(format.target_lengths(problem).max()),
        end_id=format.end_id,
        coordinates_of=lambda ids: coordinates_of(format.annotate(ids.cpu())),
        on_step=on_step,
    )
    return generated.ids.cpu(), bool(generated.ended[0])


def _by_whole_lines(
    trained_model: TrainedModel,
    problem: Problems,
    prompt: AnnotatedTokens,
    hooks_for: HooksFor,
    on_step: Callable[[int], None],
) -> tuple[Tensor, bool]:
    format, first, ids = trained_model.format, prompt.ids.shape[1], prompt.ids
    for count in range(int(format.target_lengths(problem).max())):
        lines = _own_lines(format.annotate(ids), first)
        logits, _ = run_with_cache(
            trained_model.model, ids, lines.coordinates, hooks_for(lines), keep=lambda name: False
        )
        token = logits[:, -1:].argmax(dim=-1).cpu()
        ids = torch.cat([ids, token.to(ids.dtype)], dim=1)
        on_step(count + 1)
        if format.end_id is not None and int(token) == format.end_id:
            return ids, True
    return ids, format.end_id is None


def _at_once(trained_model: TrainedModel, problem: Problems, hooks_for: HooksFor | None) -> Written:
    """By an encoder, all tokens in one pass; what comes behind the end token is not looked at."""
    prompt = trained_model.format.prompt(problem)
    labels = torch.where(prompt.target, 0, IGNORED).long()
    at = prompt.target[0].nonzero().squeeze(1)
    written = Written(
        prompt, Lines(prompt, labels, prompt.place.long(), prompt.field), at, at, None
    )
    logits = (
        logits_of(trained_model, written)
        if hooks_for is None
        else trace(trained_model, written, hooks_for, keep=lambda name: False).logits
    )
    ids, end_id = logits.argmax(dim=-1), trained_model.format.end_id
    assert end_id is not None
    is_end = ids == end_id
    count = int(is_end.long().argmax()) + 1 if bool(is_end.any()) else len(ids)
    answer = trained_model.format.read(ids.unsqueeze(0))[0]
    return Written(prompt, written.lines, at[:count], ids[:count], answer)


def _own_lines(tokens: AnnotatedTokens, first: int) -> Lines:
    """A line as far as it is written; all tokens from the one before `first` on predict something."""
    labels = torch.full(tokens.ids.shape, IGNORED)
    # What is right there is not known here, and hooks ask only which tokens predict.
    labels[:, first - 1 :] = 0
    return Lines(tokens, labels, tokens.place.long(), tokens.field)
