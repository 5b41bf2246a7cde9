"""Solving problems: a decoder generates the answer token by token, an encoder decodes it in parallel."""

from collections.abc import Callable

import torch
from torch import Tensor

from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.continuation import continue_lines
from abacist.formats.format import Format
from abacist.models.decoding import generate
from abacist.models.teacher_forcing import coordinates_of
from abacist.models.transformer import Transformer
from abacist.scoring.exact_match import batches_by_length, line_lengths
from abacist.scoring.measures import measure_each
from abacist.scoring.records import Solution
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.problems import Problems


def solve(
    trained_model: TrainedModel,
    problems: Problems,
    on_step: Callable[[int, int], None] | None = None,
) -> list[Solution]:
    """Let the model write the answers to all problems, in batches of similar length.

    Args:
        trained_model: the model.
        problems: the problems.
        on_step: called after every generated token with the number of problems in finished
            batches and the number of tokens written per line in the current batch.

    Raises `ProblemError` where a line is too long for the model.
    """
    model, task, format = trained_model.model, trained_model.task, trained_model.format
    solutions: list[Solution | None] = [None] * len(problems)
    done = 0

    def report(written: int) -> None:
        if on_step is not None:
            on_step(done, written)

    lengths_B = line_lengths(format, problems)
    for indices in batches_by_length(lengths_B, quadratic=not model.is_windowed):
        batch = problems[indices]
        answers, margins_B, texts = (
            _generate(model, format, batch, report)
            if model.is_causal
            else _decode_in_parallel(model, format, batch)
        )
        right = task.answer(batch)
        perplexities = measure_each(trained_model, batch).perplexity_B.tolist()
        for index, problem, answer, expected, margin, text, expected_text, perplexity in zip(
            indices.tolist(),
            task.expressions(batch),
            answers,
            right.texts(),
            margins_B.tolist(),
            texts,
            _expected_texts(format, format.write(batch, right)),
            perplexities,
            strict=True,
        ):
            # JSON has no infinity.
            solutions[index] = Solution(
                problem,
                answer,
                expected,
                margin,
                text,
                expected_text,
                perplexity if perplexity < 1e300 else None,
            )
        done += len(indices)
    return [solution for solution in solutions if solution is not None]


def _expected_texts(format: Format, lines: AnnotatedTokens) -> list[str]:
    """Return the targets of whole lines as text."""
    right_BT = lines.ids if lines.labels is None else lines.labels
    return [
        format.vocabulary.decode(right[is_target].tolist())
        for right, is_target in zip(right_BT, lines.target, strict=True)
    ]


def _up_to_the_end(format: Format, ids: list[int]) -> str:
    """Return tokens as text, up to the first end token."""
    count = ids.index(format.end_id) + 1 if format.end_id in ids else len(ids)
    return format.vocabulary.decode(ids[:count])


def _generate(
    model: Transformer, format: Format, problems: Problems, on_step: Callable[[int], None]
) -> tuple[list[str | None], Tensor, list[str]]:
    """Return a decoder's answers, generated token by token, their smallest margins, (B,), and texts."""
    prompt = format.prompt(problems)
    longest = int(format.target_lengths(problems).max())
    generated = generate(
        model,
        prompt,
        continue_lines(format, prompt, longest),
        max_new_tokens=longest,
        end_id=format.end_id,
        on_step=on_step,
    )
    answers = [
        answer if ended else None
        for answer, ended in zip(
            format.read(generated.ids.cpu()), generated.ended.tolist(), strict=True
        )
    ]
    num_steps = generated.margins.shape[1]
    texts = [
        _up_to_the_end(format, ids[length : length + num_steps])
        for ids, length in zip(generated.ids.tolist(), prompt.lengths.tolist(), strict=True)
    ]
    return answers, generated.margins.amin(dim=1).cpu(), texts


@torch.no_grad()
def _decode_in_parallel(
    model: Transformer, format: Format, problems: Problems
) -> tuple[list[str | None], Tensor, list[str]]:
    """Return an encoder's answers, all tokens from one pass, their smallest margins, (B,), and texts."""
    prompt = format.prompt(problems)
    lines = prompt.to(model.device)
    logits_BTV: Tensor = model(lines.ids, coordinates_of(lines))
    top = logits_BTV.cpu().topk(2, dim=-1)
    # A line's targets are contiguous. Shorter lines have fewer, and are filled up with end tokens.
    counts = prompt.target.sum(dim=1, keepdim=True)
    columns = torch.arange(int(counts.max()))
    targets_BA = (prompt.target.long().argmax(dim=1, keepdim=True) + columns).clamp(
        max=prompt.ids.shape[1] - 1
    )
    assert format.end_id is not None
    written = torch.where(
        columns < counts, top.indices[..., 0].gather(1, targets_BA), format.end_id
    )
    margins = (top.values[..., 0] - top.values[..., 1]).gather(1, targets_BA)
    # Tokens after the first end token do not count.
    is_end = (written == format.end_id).long()
    counted = (is_end.cumsum(dim=1) <= is_end) & (columns < counts)
    margins = margins.masked_fill(~counted, torch.inf)
    texts = [_up_to_the_end(format, ids) for ids in written.tolist()]
    return format.read(written), margins.amin(dim=1).double(), texts
