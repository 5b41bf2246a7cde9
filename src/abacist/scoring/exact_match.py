"""Exact match: the whole answer is right, to the last digit and the end token."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.errors import ProblemError
from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.format import Format
from abacist.intervals import Proportion
from abacist.models.teacher_forcing import Forced, teacher_forced
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.problems import Problems

TOKENS_PER_BATCH = 65_536
"""Tokens put through a model at once; bounds the memory of scoring at any length."""

TOKENS_PER_ALIKE_BATCH = 12_288
"""The same for lines that share their coordinates: few enough that layers stay in the cache."""

FEWEST_ALIKE = 32
"""So many problems of one shape are put through a model on their own."""

FEWEST_OF_ONE_LAYOUT = 4
"""The same for lines of free layout, each of which costs ten times as much among others."""

TOKENS_PER_WRITING = 1 << 22
"""Tokens of lines of free layout written at once, to find those that are laid out alike."""

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
def passes(trained_model: TrainedModel, problems: Problems) -> Iterator[Pass]:
    """Put every problem with its right answer through the model, in batches of similar lines.

    Where a format lays lines of one shape out alike, batches hold one shape as far as there are
    enough of it: then one row of coordinates serves a batch, and attention is a third faster.
    """
    model, task, format = trained_model.model, trained_model.task, trained_model.format
    sizes = line_lengths(format, problems)
    if format.layout == "free":
        yield from _passes_by_layout(trained_model, problems, sizes)
        return
    quadratic = not model.is_windowed
    alike, others = lines_alike(format, problems)
    for rows, equal_lengths in _batches(alike, others, sizes, quadratic):
        chosen = problems[rows]
        lines = format.write(chosen, task.answer(chosen))
        forced = teacher_forced(model, lines, equal_lengths=equal_lengths)
        yield Pass(rows, lines, forced.cpu())


def _passes_by_layout(
    trained_model: TrainedModel, problems: Problems, sizes: Tensor
) -> Iterator[Pass]:
    """The same where a line's layout is known only when it is written: a quotient makes its rows."""
    model, task, format = trained_model.model, trained_model.task, trained_model.format
    for rows in batches_by_length(sizes, largest=len(sizes), tokens=TOKENS_PER_WRITING):
        chosen = problems[rows]
        lines = format.write(chosen, task.answer(chosen))
        lengths = lines.lengths
        alike, others = lines_of_one_layout(lines)
        for part, equal_lengths in _batches(alike, others, lengths, not model.is_windowed):
            batch = lines[part][:, : int(lengths[part].max())]
            forced = teacher_forced(model, batch, equal_lengths=equal_lengths)
            yield Pass(rows[part], batch, forced.cpu())


def _batches(
    alike: list[Tensor], others: Tensor, sizes: Tensor, quadratic: bool
) -> Iterator[tuple[Tensor, bool]]:
    """Row numbers of every batch, and whether its lines share their coordinates."""
    for rows in alike:
        for batch in _evenly(rows, _lines_at_once(int(sizes[rows[0]]), quadratic)):
            yield batch, True
    for batch in batches_by_length(sizes[others], quadratic):
        yield others[batch], False


def exact_match(
    trained_model: TrainedModel,
    problems: Problems,
    on_progress: Callable[[int], None] | None = None,
) -> Verdicts:
    """Judge every problem by one teacher-forced pass.

    `on_progress` is told the number of problems judged so far.
    """
    margins = torch.empty(len(problems), dtype=torch.float64)
    done = 0
    for batch in passes(trained_model, problems):
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
    return _large_and_others(grouped, FEWEST_ALIKE)


def lines_of_one_layout(lines: AnnotatedTokens) -> tuple[list[Tensor], Tensor]:
    """Row numbers of lines that share their coordinates, group by group, and of all others."""
    generator = torch.Generator().manual_seed(0)
    coordinates = [t for t in (lines.place, lines.row, lines.step) if t is not None]
    keys = lines.lengths
    for tensor in coordinates:
        # Sums of 63-bit weights: that two layouts have the same is not to be expected.
        weights = torch.randint(2**62, (tensor.shape[1],), generator=generator)
        keys = keys + (tensor * weights).sum(dim=1)
    _, layout, counts = torch.unique(keys, return_inverse=True, return_counts=True)
    grouped = torch.split(layout.argsort(stable=True), counts.tolist())
    alike, others = _large_and_others(grouped, FEWEST_OF_ONE_LAYOUT)
    for rows in alike:
        same = all(bool((tensor[rows] == tensor[rows[:1]]).all()) for tensor in coordinates)
        assert same, "two layouts have the same key"
    return alike, others


def _large_and_others(grouped: Sequence[Tensor], fewest: int) -> tuple[list[Tensor], Tensor]:
    """Groups of `fewest` rows and more, and the rows of all smaller ones."""
    large = [rows for rows in grouped if len(rows) >= fewest]
    small = [rows for rows in grouped if len(rows) < fewest]
    return large, torch.cat([torch.zeros(0, dtype=torch.int64), *small])


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
    lengths_B: Tensor,
    quadratic: bool = False,
    largest: int = 2_048,
    tokens: int = TOKENS_PER_BATCH,
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
            and ordered[end] * (end - begin + 1) <= tokens
            and not (quadratic and ordered[end] ** 2 * (end - begin + 1) > PAIRS_PER_BATCH)
        ):
            end += 1
        yield order[begin:end]
        begin = end
