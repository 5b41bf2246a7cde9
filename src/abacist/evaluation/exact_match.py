"""Exact match: the whole answer is right, to the last digit and the end token."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.formats.reversed import ReversedFormat
from abacist.intervals import Proportion
from abacist.models.teacher_forcing import teacher_forced
from abacist.models.transformer import Transformer
from abacist.tasks.addition import Addition
from abacist.tasks.problems import Problems

TOKENS_PER_BATCH = 65_536
"""Tokens put through a model at once; bounds the memory of scoring at any length."""

PAIRS_PER_BATCH = 1 << 23
"""Pairs of tokens put through a model without a window at once."""


@dataclass(frozen=True)
class Verdicts:
    """Right or wrong, for every problem of a batch."""

    correct: Tensor
    """bool (B,)"""
    margins: Tensor
    """(B,): the smallest margin over the answer's tokens, in logits; negative where wrong."""

    @property
    def proportion(self) -> Proportion:
        return Proportion(int(self.correct.sum()), len(self.correct))


@torch.no_grad()
def exact_match(
    model: Transformer,
    task: Addition,
    format: ReversedFormat,
    problems: Problems,
    on_progress: Callable[[int], None] | None = None,
) -> Verdicts:
    """Judge every problem by one teacher-forced pass, in batches of similar length.

    `on_progress` is told the number of problems judged so far.
    """
    margins = torch.empty(len(problems), dtype=torch.float64)
    done = 0
    for rows in batches_by_length(problems, quadratic=not model.is_windowed):
        chosen = problems[rows]
        forced = teacher_forced(model, format.write(chosen, task.answer(chosen)))
        margins[rows] = forced.margins().amin(dim=1).double()
        done += len(rows)
        if on_progress is not None:
            on_progress(done)
    return Verdicts(margins > 0, margins)


def batches_by_length(
    problems: Problems, quadratic: bool = False, largest: int = 2_048
) -> Iterator[Tensor]:
    """Row numbers of all problems, grouped so that lines of similar length stand together.

    `quadratic` bounds the pairs of tokens as well, for models that pair all with all.
    """
    sizes = problems.lengths_BN.sum(dim=1) + problems.lengths_BN.amax(dim=1) + 5
    order = sizes.argsort(stable=True)
    ordered = sizes[order].tolist()
    begin = 0
    while begin < len(ordered):
        end = begin + 1
        # Sorted, so the last line of a batch is its longest.
        while (
            end < len(ordered)
            and end - begin < largest
            and ordered[end] * (end - begin + 1) <= TOKENS_PER_BATCH
            and not (quadratic and ordered[end] ** 2 * (end - begin + 1) > PAIRS_PER_BATCH)
        ):
            end += 1
        yield order[begin:end]
        begin = end
