"""Generation of one answer, optionally with hooks, and the activations at every generated token.

Lenses read the line with the right answer, as in training. Here the model reads the tokens that it
has generated itself, so one mistake can cause the next.

>>> generated = generate_answer(trained_model, problem)
>>> trace = trace_generation(trained_model, generated)  # logits and activations at these tokens
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.continuation import continue_lines
from abacist.inspection.ablation import HooksFor
from abacist.inspection.cache import ActivationCache, Hook, run_with_cache
from abacist.inspection.inspected_lines import InspectedLines
from abacist.models.decoding import generate
from abacist.models.teacher_forcing import IGNORED, coordinates_of
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.problems import Problems


@dataclass(frozen=True)
class GeneratedAnswer:
    """One line, of which the model has generated A tokens."""

    whole: AnnotatedTokens
    """The whole line of a decoder, or the prompt of an encoder, (1, T)."""
    lines: InspectedLines
    """The input of the model: for a decoder, the line without its last token."""
    predicting: Tensor
    """int64 (A,): indices of the tokens from which each generated token was read."""
    ids: Tensor
    """int64 (A,): the generated tokens, up to the end token."""
    answer: str | None
    """The answer in the usual notation; None if the generated tokens are no answer."""


@dataclass(frozen=True)
class GenerationTrace:
    """Logits and activations of a generated line."""

    logits: Tensor
    """(A, V): logits from which each generated token was read, on the CPU."""
    cache: ActivationCache
    """The activations that were kept, over the whole line."""


def generate_answer(
    trained_model: TrainedModel,
    problem: Problems,
    hooks_for: HooksFor | None = None,
    on_step: Callable[[int], None] = lambda written: None,
) -> GeneratedAnswer:
    """Generate the answer of one problem and call `on_step` with the number of tokens after each token.

    Without hooks a decoder caches keys and values, which is fast at any length. With hooks the whole
    line is run again for every token, on the path that has hooks, which suits short lines.
    """
    if not trained_model.model.is_causal:
        return _generate_in_parallel(trained_model, problem, hooks_for)
    prompt = trained_model.format.prompt(problem)
    ids, ended = (
        _generate_with_key_cache(trained_model, problem, prompt, on_step)
        if hooks_for is None
        else _generate_with_hooks(trained_model, problem, prompt, hooks_for, on_step)
    )
    first, whole = prompt.ids.shape[1], trained_model.format.annotate(ids)
    return GeneratedAnswer(
        whole,
        _own_lines(whole[:, :-1], first),
        torch.arange(first - 1, ids.shape[1] - 1),
        ids[0, first:].long(),
        trained_model.format.read(ids)[0] if ended else None,
    )


def trace_generation(
    trained_model: TrainedModel,
    generated: GeneratedAnswer,
    hooks_for: HooksFor | None = None,
    keep: Callable[[str], bool] = lambda name: True,
) -> GenerationTrace:
    """Run a generated line once more and keep the activations selected by `keep`, for short lines."""
    lines = generated.lines
    logits, cache = run_with_cache(
        trained_model.model,
        lines.tokens.ids,
        lines.coordinates,
        {} if hooks_for is None else hooks_for(lines),
        keep=keep,
    )
    return GenerationTrace(logits[0].cpu()[generated.predicting], cache)


@torch.no_grad()
def generated_logits(trained_model: TrainedModel, generated: GeneratedAnswer) -> Tensor:
    """Return the logits (A, V) of the generated tokens on the CPU, by the fast path for any length."""
    tokens = generated.lines.tokens.to(trained_model.model.device)
    first = int(generated.predicting[0])
    logits: Tensor = trained_model.model(tokens.ids, coordinates_of(tokens), first)
    return logits[0].cpu()[generated.predicting - first]


def combine_hooks(parts: Sequence[HooksFor]) -> HooksFor:
    """Return the hooks of all `parts`; hooks on the same activation are applied one after the other."""

    def hooks_for(lines: InspectedLines) -> dict[str, Hook]:
        hooks: dict[str, Hook] = {}
        for part in parts:
            for name, hook in part(lines).items():
                hooks[name] = _composed(hooks[name], hook) if name in hooks else hook
        return hooks

    return hooks_for


def _composed(first: Hook, second: Hook) -> Hook:
    return lambda activation: second(first(activation))


def _generate_with_key_cache(
    trained_model: TrainedModel,
    problem: Problems,
    prompt: AnnotatedTokens,
    on_step: Callable[[int], None],
) -> tuple[Tensor, bool]:
    """Return the whole line, (1, T), and whether the model ended it."""
    format = trained_model.format
    longest = int(format.target_lengths(problem).max())
    generation = generate(
        trained_model.model,
        prompt,
        continue_lines(format, prompt, longest),
        max_new_tokens=longest,
        end_id=format.end_id,
        on_step=on_step,
    )
    return generation.ids.cpu(), bool(generation.ended[0])


def _generate_with_hooks(
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


def _generate_in_parallel(
    trained_model: TrainedModel, problem: Problems, hooks_for: HooksFor | None
) -> GeneratedAnswer:
    """Generate all tokens in one pass of an encoder, and ignore those after the end token."""
    prompt = trained_model.format.prompt(problem)
    labels = torch.where(prompt.target, 0, IGNORED).long()
    predicting = prompt.target[0].nonzero().squeeze(1)
    generated = GeneratedAnswer(
        prompt,
        InspectedLines(prompt, labels, prompt.place.long(), prompt.field),
        predicting,
        predicting,
        None,
    )
    logits = (
        generated_logits(trained_model, generated)
        if hooks_for is None
        else trace_generation(trained_model, generated, hooks_for, keep=lambda name: False).logits
    )
    ids, end_id = logits.argmax(dim=-1), trained_model.format.end_id
    assert end_id is not None
    is_end = ids == end_id
    length = int(is_end.long().argmax()) + 1 if bool(is_end.any()) else len(ids)
    answer = trained_model.format.read(ids.unsqueeze(0))[0]
    return GeneratedAnswer(prompt, generated.lines, predicting[:length], ids[:length], answer)


def _own_lines(tokens: AnnotatedTokens, first: int) -> InspectedLines:
    """Return an unfinished line, in which all tokens from index `first - 1` on predict something."""
    labels = torch.full(tokens.ids.shape, IGNORED)
    # Hooks only need to know which tokens predict, so any label will do.
    labels[:, first - 1 :] = 0
    return InspectedLines(tokens, labels, tokens.place.long(), tokens.field)
