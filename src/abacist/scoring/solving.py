"""Solving problems: a decoder generates the answer token by token, an encoder decodes it in parallel."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from abacist.formats.annotated import AnnotatedTokens, Field
from abacist.formats.continuation import continue_lines
from abacist.formats.format import Format
from abacist.models.attention_tables import AttentionTables
from abacist.models.decoding import generate, make_tables
from abacist.models.teacher_forcing import coordinates_of
from abacist.scoring.exact_match import batches_by_length, line_lengths
from abacist.scoring.measures import measure_each
from abacist.scoring.records import Solution
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.problems import Answer, Problems


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

    tables = make_tables(model)
    lengths_B = line_lengths(format, problems)
    for indices in batches_by_length(lengths_B, quadratic=not model.is_windowed):
        batch = problems[indices]
        expected = _expected(format, batch, task.answer(batch))
        if model.is_causal:
            written = _generate(trained_model, tables, batch, expected, report)
        else:
            written = _decode_in_parallel(trained_model, batch)
        for index, problem, answer, expected_answer, margin, text, expected_text, perplexity in zip(
            indices.tolist(),
            task.expressions(batch),
            written.answers,
            expected.answers,
            written.margins_B.tolist(),
            written.texts,
            expected.texts,
            written.perplexity_B.tolist(),
            strict=True,
        ):
            # JSON has no infinity.
            solutions[index] = Solution(
                problem,
                answer,
                expected_answer,
                margin,
                text,
                expected_text,
                perplexity if perplexity < 1e300 else None,
            )
        done += len(indices)
    return [solution for solution in solutions if solution is not None]


@dataclass(frozen=True)
class _Expected:
    """What the model should write to each of B problems."""

    lines: AnnotatedTokens
    answers: list[str]
    texts: list[str]
    """All targets, scratch work and end token included."""


@dataclass(frozen=True)
class _Written:
    """What the model writes to each of B problems."""

    answers: list[str | None]
    texts: list[str]
    margins_B: Tensor
    """float64: the smallest margin of a written token."""
    perplexity_B: Tensor
    """float64: perplexity of the expected text."""


def _expected(format: Format, problems: Problems, right: Answer) -> _Expected:
    """Write the right lines."""
    lines = format.write(problems, right)
    ids_BT = lines.ids if lines.labels is None else lines.labels
    # The targets of a line follow each other.
    counts, first = lines.target.sum(dim=1), lines.target.byte().argmax(dim=1)
    # One selection for the tokens of all lines: decoding each line alone takes several times as long.
    tokens_BT = np.array(format.vocabulary.tokens, dtype=object)[ids_BT.numpy()].tolist()
    texts = [
        "".join(tokens[begin:end])
        for tokens, begin, end in zip(
            tokens_BT, first.tolist(), (first + counts).tolist(), strict=True
        )
    ]
    return _Expected(lines, right.texts(), texts)


def _generate(
    trained_model: TrainedModel,
    tables: AttentionTables | None,
    problems: Problems,
    expected: _Expected,
    on_step: Callable[[int], None],
) -> _Written:
    """Let a decoder generate all lines token by token."""
    format = trained_model.format
    prompt = format.prompt(problems)
    longest = int(format.target_lengths(problems).max())
    generated = generate(
        trained_model.model,
        prompt,
        continue_lines(format, prompt, longest),
        max_new_tokens=longest,
        end_id=format.end_id,
        on_step=on_step,
        tables=tables,
    )
    ids, ended = generated.ids.cpu(), generated.ended.cpu()
    # A line that is right to the last token needs no reading, and its perplexity is known.
    is_right = _equal_lines(ids, expected.lines) & ended
    num_targets = expected.lines.target.sum(dim=1)
    perplexity_B = (generated.losses.cpu().sum(dim=1) / num_targets).exp()
    answers: list[str | None] = [*expected.answers]
    texts = [*expected.texts]
    others = (~is_right).nonzero().squeeze(1)
    if len(others):
        perplexity_B[others] = measure_each(trained_model, problems[others]).perplexity_B
        num_steps = generated.margins.shape[1]
        for line, answer, length, written in zip(
            others.tolist(),
            format.read(ids[others]),
            prompt.lengths[others].tolist(),
            ids[others].tolist(),
            strict=True,
        ):
            answers[line] = answer if ended[line] else None
            texts[line] = _up_to_the_end(format, written[length : length + num_steps])
    return _Written(answers, texts, generated.margins.amin(dim=1).cpu(), perplexity_B)


def _equal_lines(ids_BT: Tensor, lines: AnnotatedTokens) -> Tensor:
    """Return which lines of tokens equal right lines up to their end, bool (B,)."""
    missing = max(0, lines.ids.shape[1] - ids_BT.shape[1])
    ids_BT = torch.nn.functional.pad(ids_BT, (0, missing), value=-1)[:, : lines.ids.shape[1]]
    return ((ids_BT == lines.ids) | (lines.field == Field.PADDING)).all(dim=1)


@torch.no_grad()
def _decode_in_parallel(trained_model: TrainedModel, problems: Problems) -> _Written:
    """Let an encoder write all answers in one pass."""
    model, format = trained_model.model, trained_model.format
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
    return _Written(
        format.read(written),
        [_up_to_the_end(format, ids) for ids in written.tolist()],
        margins.amin(dim=1).double(),
        measure_each(trained_model, problems).perplexity_B,
    )


def _up_to_the_end(format: Format, ids: list[int]) -> str:
    """Return tokens as text, up to the first end token."""
    count = ids.index(format.end_id) + 1 if format.end_id in ids else len(ids)
    return format.vocabulary.decode(ids[:count])
