"""Exact match: the whole answer is right, to the last digit and the end token."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.errors import ProblemError
from abacist.formats.format import Format
from abacist.intervals import Proportion
from abacist.models.teacher_forcing import teacher_forced
from abacist.models.transformer import Transformer
from abacist.tasks.problems import Problems
from abacist.tasks.task import Task

TOKENS_PER_BATCH = 65_536
"""Tokens put through a model at once; bounds the memory of scoring at any length."""

LONGEST_LINE = 4_000_000
"""Tokens of the longest line that is put through a model."""

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
    task: Task,
    format: Format,
    problems: Problems,
    on_progress: Callable[[int], None] | None = None,
) -> Verdicts:
    """Judge every problem by one teacher-forced pass, in batches of similar length.

    `on_progress` is told the number of problems judged so far.
    """
    margins = torch.empty(len(problems), dtype=torch.float64)
    done = 0
    sizes = line_lengths(format, problems)
    for rows in batches_by_length(sizes, quadratic=not model.is_windowed):
        chosen = problems[rows]
        forced = teacher_forced(
            model,
            format.write(chosen, task.answer(chosen)),
            equal_lengths=model.is_causal and _lie_alike(format, chosen),
        )
        margins[rows] = forced.margins().amin(dim=1).double()
        done += len(rows)
        if on_progress is not None:
            on_progress(done)
    return Verdicts(margins > 0, margins)


def _lie_alike(format: Format, problems: Problems) -> bool:
    """Whether all lines have the same places, so that one row tells them: far less to look up."""
    if format.layout != "shape":
        return format.layout == "constant"
    lengths, operation = problems.lengths_BN, problems.operation_B
    return bool((lengths == lengths[:1]).all() and (operation == operation[:1]).all())


def line_lengths(format: Format, problems: Problems) -> Tensor:
    """int64 (B,): about how many tokens each line has, at most.

    Raises `ProblemError` where one has more than can be scored.
    """
    lengths = problems.lengths_BN.sum(dim=1) + problems.num_operands + 2
    lengths = lengths + format.target_lengths(problems)
    if len(lengths) and int(lengths.max()) > LONGEST_LINE:
        raise ProblemError(
            f"a line of {int(lengths.max()):,} tokens is longer than the {LONGEST_LINE:,} that "
            "are put through a model"
        )
    return lengths


def batches_by_length(
    lengths_B: Tensor, quadratic: bool = False, largest: int = 2_048
) -> Iterator[Tensor]:
    """Row numbers of all lines, grouped so that lines of similar length stand together.

    `quadratic` bounds the pairs of tokens as well, for models that pair all with all.
    """
    order = lengths_B.argsort(stable=True)
    ordered = lengths_B[order].tolist()
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
