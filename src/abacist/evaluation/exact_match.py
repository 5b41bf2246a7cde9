"""Exact match: the whole answer is right, to the last digit and the end token."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.errors import ProblemError
from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.format import Format
from abacist.intervals import Proportion
from abacist.models.teacher_forcing import Forced, teacher_forced
from abacist.models.transformer import Transformer
from abacist.tasks.problems import Problems
from abacist.tasks.task import Task

TOKENS_PER_BATCH = 65_536
"""Tokens put through a model at once; bounds the memory of scoring at any length."""

TOKENS_PER_ALIKE_BATCH = 12_288
"""The same for lines that share their coordinates: few enough that layers stay in the cache."""

FEWEST_ALIKE = 32
"""So many problems of one shape are put through a model on their own."""

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


@dataclass(frozen=True)
class Pass:
    """One batch of a scoring."""

    rows: Tensor
    """int64: which of the problems."""
    lines: AnnotatedTokens
    forced: Forced

    @property
    def places(self) -> Tensor:
        """int64 (B, A): where the tokens that `forced` predicts stand."""
        first = self.lines.place.shape[1] - self.forced.labels.shape[1]
        return self.lines.place[:, first:].long()


@torch.no_grad()
def passes(model: Transformer, task: Task, format: Format, problems: Problems) -> Iterator[Pass]:
    """Put every problem with its right answer through the model, in batches of similar lines.

    Where a format lays lines of one shape out alike, batches hold one shape as far as there are
    enough of it: then one row of coordinates serves a batch, and attention is a third faster.
    """
    sizes = line_lengths(format, problems)
    quadratic = not model.is_windowed
    alike, others = lines_alike(format, problems)
    batches = [
        (batch, True)
        for rows in alike
        for batch in _evenly(rows, _lines_at_once(int(sizes[rows[0]]), quadratic))
    ]
    batches += [(others[batch], False) for batch in batches_by_length(sizes[others], quadratic)]
    for rows, equal_lengths in batches:
        chosen = problems[rows]
        lines = format.write(chosen, task.answer(chosen))
        forced = teacher_forced(model, lines, equal_lengths=equal_lengths)
        yield Pass(rows, lines, forced.cpu())


def exact_match(
    model: Transformer,
    task: Task,
    format: Format,
    problems: Problems,
    on_progress: Callable[[int], None] | None = None,
) -> Verdicts:
    """Judge every problem by one teacher-forced pass.

    `on_progress` is told the number of problems judged so far.
    """
    margins = torch.empty(len(problems), dtype=torch.float64)
    done = 0
    for batch in passes(model, task, format, problems):
        margins[batch.rows] = batch.forced.margins().amin(dim=1).double()
        done += len(batch.rows)
        if on_progress is not None:
            on_progress(done)
    return Verdicts(margins > 0, margins)


def lines_alike(format: Format, problems: Problems) -> tuple[list[Tensor], Tensor]:
    """Row numbers of problems whose lines share their coordinates, group by group, and of all others."""
    everything = torch.arange(len(problems))
    if format.layout == "constant" and len(problems):
        return [everything], everything[:0]
    if format.layout != "shape" or not len(problems):
        return [], everything
    shapes = torch.cat([problems.lengths_BN, problems.operation_B.long().unsqueeze(1)], dim=1)
    _, shape, counts = torch.unique(shapes, dim=0, return_inverse=True, return_counts=True)
    order = shape.argsort(stable=True)
    grouped = torch.split(order, counts.tolist())
    large = [rows for rows in grouped if len(rows) >= FEWEST_ALIKE]
    small = [rows for rows in grouped if len(rows) < FEWEST_ALIKE]
    return large, torch.cat([everything[:0], *small])


def _lines_at_once(length: int, quadratic: bool) -> int:
    """How many lines of one length that share their coordinates make a batch."""
    pairs = PAIRS_PER_BATCH // length**2 if quadratic else TOKENS_PER_ALIKE_BATCH
    return max(1, min(TOKENS_PER_ALIKE_BATCH // length, pairs))


def _evenly(rows: Tensor, most: int) -> Iterator[Tensor]:
    """Parts of nearly one size, none with more than `most` rows."""
    count = -(-len(rows) // most)
    yield from torch.tensor_split(rows, count)


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
