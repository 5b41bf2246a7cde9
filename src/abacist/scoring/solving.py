"""Solving problems for real: a decoder writes the answer token by token, an encoder at once."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.formats.format import Format
from abacist.models.decoding import generate
from abacist.models.teacher_forcing import coordinates_of
from abacist.models.transformer import Transformer
from abacist.scoring.exact_match import batches_by_length, line_lengths
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.problems import Problems


@dataclass(frozen=True)
class Solution:
    """A problem, what the model wrote, and what is right."""

    problem: str
    answer: str | None
    """None where the model wrote something that is no answer."""
    expected: str
    margin: float
    """The smallest margin between the token written and the runner-up, in logits."""

    @property
    def correct(self) -> bool:
        return self.answer == self.expected

    def __str__(self) -> str:
        answer = "(no answer)" if self.answer is None else self.answer
        if self.correct:
            return f"{self.problem}={answer} ✓"
        return f"{self.problem}={answer} ✗ expected {self.expected}"

    def to_json(self) -> dict[str, object]:
        """`{"problem": "12+34", "answer": "46", "expected": "46", "correct": true}`"""
        return {
            "problem": self.problem,
            "answer": self.answer,
            "expected": self.expected,
            "correct": self.correct,
        }


def solve(
    trained_model: TrainedModel,
    problems: Problems,
    on_step: Callable[[int, int], None] | None = None,
) -> list[Solution]:
    """Let the model write the answers of all problems, batched by length.

    `on_step` is told the number of problems finished before this batch and the number of tokens
    written in it.
    """
    model, task, format = trained_model.model, trained_model.task, trained_model.format
    solutions: list[Solution | None] = [None] * len(problems)
    done = 0

    def report(written: int) -> None:
        if on_step is not None:
            on_step(done, written)

    sizes = line_lengths(format, problems)
    for rows in batches_by_length(sizes, quadratic=not model.is_windowed):
        batch = problems[rows]
        written = (
            _generated(model, format, batch, report)
            if model.is_causal
            else _written_at_once(model, format, batch)
        )
        for row, problem, answer, expected, margin in zip(
            rows.tolist(),
            task.expressions(batch),
            written.answers,
            task.answer(batch).texts(),
            written.margins_B.tolist(),
            strict=True,
        ):
            solutions[row] = Solution(problem, answer, expected, margin)
        done += len(rows)
    return [solution for solution in solutions if solution is not None]


@dataclass(frozen=True)
class _Written:
    """What a model wrote for a batch."""

    answers: list[str | None]
    margins_B: Tensor
    """The smallest margin between a token written and the runner-up."""


def _generated(
    model: Transformer, format: Format, problems: Problems, on_step: Callable[[int], None]
) -> _Written:
    """By a decoder, token by token."""
    prompt = format.prompt(problems)
    generated = generate(
        model,
        prompt.ids,
        prompt.lengths,
        max_new_tokens=int(format.target_lengths(problems).max()),
        end_id=format.end_id,
        coordinates_of=lambda ids: coordinates_of(format.annotate(ids.cpu())),
        on_step=on_step,
    )
    answers = [
        answer if ended else None
        for answer, ended in zip(
            format.read(generated.ids.cpu()), generated.ended.tolist(), strict=True
        )
    ]
    return _Written(answers, generated.margins.amin(dim=1).cpu())


@torch.no_grad()
def _written_at_once(model: Transformer, format: Format, problems: Problems) -> _Written:
    """By an encoder, all tokens in one pass."""
    prompt = format.prompt(problems)
    here = prompt.to(model.device)
    logits: Tensor = model(here.ids, coordinates_of(here))
    top = logits.cpu().topk(2, dim=-1)
    # The targets of a line follow each other; shorter lines have fewer, and read end tokens there.
    counts = prompt.target.sum(dim=1, keepdim=True)
    columns = torch.arange(int(counts.max()))
    at = (prompt.target.long().argmax(dim=1, keepdim=True) + columns).clamp(
        max=prompt.ids.shape[1] - 1
    )
    assert format.end_id is not None
    written = torch.where(columns < counts, top.indices[..., 0].gather(1, at), format.end_id)
    margins = (top.values[..., 0] - top.values[..., 1]).gather(1, at)
    # What comes behind the end token is not looked at.
    before = (written == format.end_id).long().cumsum(dim=1) <= (written == format.end_id).long()
    margins = margins.masked_fill(~(before & (columns < counts)), torch.inf)
    return _Written(format.read(written), margins.amin(dim=1).double())
