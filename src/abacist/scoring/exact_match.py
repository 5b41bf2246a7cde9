"""Exact match: the whole answer is correct, to the last digit and the end token."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.errors import ProblemError
from abacist.formats.annotated import AnnotatedTokens, Field
from abacist.formats.format import Format
from abacist.intervals import Proportion
from abacist.models.teacher_forcing import Predictions, teacher_forced
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.problems import Problems

TOKENS_PER_BATCH = 65_536
"""Largest number of tokens in a batch, which bounds the memory of scoring at any length."""

TOKENS_PER_ALIKE_BATCH = 12_288
"""The same for lines that share their coordinates: few enough for a layer to stay in the cache."""

FEWEST_ALIKE = 32
"""Smallest number of problems of one shape that are scored in batches of their own."""

FEWEST_OF_ONE_LAYOUT = 4
"""The same for lines with data-dependent layouts, which cost ten times as much in mixed batches."""

TOKENS_PER_WRITING = 1 << 22
"""Largest number of tokens of lines with data-dependent layouts that are written at once."""

LONGEST_LINE = 4_000_000
"""Largest number of tokens in a line."""

PAIRS_PER_BATCH = 1 << 23
"""Largest number of pairs of tokens in a batch of a model without a window."""


@dataclass(frozen=True)
class Verdicts:
    """Which problems of a batch are answered correctly."""

    correct: Tensor
    """bool (B,): whether every target token of a line is predicted correctly."""
    margins: Tensor
    """(B,): the smallest margin over the target tokens of a line, in logits; negative where one is wrong."""

    @property
    def proportion(self) -> Proportion:
        """Share of problems answered correctly."""
        return Proportion(int(self.correct.sum()), len(self.correct))


@dataclass(frozen=True)
class ScoredBatch:
    """One batch of lines and the model's predictions of their answers."""

    indices: Tensor
    """int64 (B,): the position of each line's problem among the problems to be scored."""
    lines: AnnotatedTokens
    """The problems with their correct answers, (B, T)."""
    predictions: Predictions

    @property
    def places(self) -> Tensor:
        """int64 (B, A): the place of each token that `predictions` predicts."""
        first = self.lines.place.shape[1] - self.predictions.labels.shape[1]
        return self.lines.place[:, first:].long()

    def right_answers(self) -> Tensor:
        """Return whether every target outside of scratch work is right, bool (B,), given right scratch work."""
        first = self.lines.field.shape[1] - self.predictions.labels.shape[1]
        is_scratch = self.lines.field[:, first:].cpu() == Field.SCRATCH
        return (self.predictions.correct_tokens() | is_scratch).all(dim=1)


@torch.no_grad()
def scored_batches(trained_model: TrainedModel, problems: Problems) -> Iterator[ScoredBatch]:
    """Predict the answers of all problems, in batches of lines of similar length.

    Lines that share their coordinates are batched together where there are enough of them. One
    row of coordinates then serves the whole batch, and attention is a third faster.
    """
    model, task, format = trained_model.model, trained_model.task, trained_model.format
    lengths_B = line_lengths(format, problems)
    if format.layout == "free":
        yield from _scored_by_layout(trained_model, problems, lengths_B)
        return
    alike, others = group_by_shape(format, problems)
    for indices, share in _batches(alike, others, lengths_B, not model.is_windowed):
        batch = problems[indices]
        lines = format.write(batch, task.answer(batch))
        predictions = teacher_forced(model, lines, equal_lengths=share)
        yield ScoredBatch(indices, lines, predictions.cpu())


def _scored_by_layout(
    trained_model: TrainedModel, problems: Problems, lengths_B: Tensor
) -> Iterator[ScoredBatch]:
    """Do the same for formats whose layout depends on the data, as the rows of a division do.

    Lines must be written before it is known which of them share their coordinates.
    """
    model, task, format = trained_model.model, trained_model.task, trained_model.format
    for written in batches_by_length(
        lengths_B, largest=len(lengths_B), max_tokens=TOKENS_PER_WRITING
    ):
        batch = problems[written]
        lines = format.write(batch, task.answer(batch))
        lengths = lines.lengths
        alike, others = group_by_layout(lines)
        for indices, share in _batches(alike, others, lengths, not model.is_windowed):
            part = lines[indices][:, : int(lengths[indices].max())]
            predictions = teacher_forced(model, part, equal_lengths=share)
            yield ScoredBatch(written[indices], part, predictions.cpu())


def _batches(
    alike: list[Tensor], others: Tensor, lengths_B: Tensor, quadratic: bool
) -> Iterator[tuple[Tensor, bool]]:
    """Yield the indices of each batch's lines, and whether these share their coordinates."""
    for group in alike:
        for indices in _split_evenly(group, _batch_size(int(lengths_B[group[0]]), quadratic)):
            yield indices, True
    for indices in batches_by_length(lengths_B[others], quadratic):
        yield others[indices], False


def exact_match(trained_model: TrainedModel, problems: Problems) -> Verdicts:
    """Decide for every problem whether the whole answer is correct, by one teacher-forced pass.

    Raises `ProblemError` where a line is too long for the model.
    """
    margins = torch.empty(len(problems), dtype=torch.float64)
    for batch in scored_batches(trained_model, problems):
        margins[batch.indices] = batch.predictions.margins().amin(dim=1).double()
    return Verdicts(margins > 0, margins)


def group_by_shape(format: Format, problems: Problems) -> tuple[list[Tensor], Tensor]:
    """Return the indices of problems whose lines share their coordinates, by group, and of others.

    Groups of fewer than `FEWEST_ALIKE` problems count as others.
    """
    everything = torch.arange(len(problems))
    if format.layout == "constant" and len(problems):
        return [everything], everything[:0]
    if format.layout != "shape" or not len(problems):
        return [], everything
    shapes = torch.cat([problems.lengths_BN, problems.operation_B.long().unsqueeze(1)], dim=1)
    _, shape, counts = torch.unique(shapes, dim=0, return_inverse=True, return_counts=True)
    groups = torch.split(shape.argsort(stable=True), counts.tolist())
    return _large_and_others(groups, FEWEST_ALIKE)


def group_by_layout(lines: AnnotatedTokens) -> tuple[list[Tensor], Tensor]:
    """Return the indices of lines that share their coordinates, by group, and of all others.

    Groups of fewer than `FEWEST_OF_ONE_LAYOUT` lines count as others.
    """
    generator = torch.Generator().manual_seed(0)
    coordinates = [t for t in (lines.place, lines.row, lines.step) if t is not None]
    keys_B = lines.lengths
    for values_BT in coordinates:
        # A sum with random 62-bit weights, which hardly ever is the same for two layouts.
        weights = torch.randint(2**62, (values_BT.shape[1],), generator=generator)
        keys_B = keys_B + (values_BT * weights).sum(dim=1)
    _, layout, counts = torch.unique(keys_B, return_inverse=True, return_counts=True)
    groups = torch.split(layout.argsort(stable=True), counts.tolist())
    alike, others = _large_and_others(groups, FEWEST_OF_ONE_LAYOUT)
    for group in alike:
        same = all(bool((values[group] == values[group[:1]]).all()) for values in coordinates)
        assert same, "two layouts have the same key"
    return alike, others


def _large_and_others(groups: Sequence[Tensor], fewest: int) -> tuple[list[Tensor], Tensor]:
    """Return the groups of at least `fewest` indices, and the indices of all smaller groups."""
    large = [group for group in groups if len(group) >= fewest]
    small = [group for group in groups if len(group) < fewest]
    return large, torch.cat([torch.zeros(0, dtype=torch.int64), *small])


def _batch_size(length: int, quadratic: bool) -> int:
    """Return the number of lines per batch for lines of one length that share their coordinates."""
    by_pairs = PAIRS_PER_BATCH // length**2 if quadratic else TOKENS_PER_ALIKE_BATCH
    return max(1, min(TOKENS_PER_ALIKE_BATCH // length, by_pairs))


def _split_evenly(indices: Tensor, most: int) -> Iterator[Tensor]:
    """Split into parts of nearly equal size, none larger than `most`."""
    num_parts = -(-len(indices) // most)
    yield from torch.tensor_split(indices, num_parts)


def line_lengths(format: Format, problems: Problems) -> Tensor:
    """Return an upper bound of each line's number of tokens, int64 (B,), which is nearly reached.

    Raises `ProblemError` where a line has more tokens than can be scored.
    """
    lengths = problems.lengths_BN.sum(dim=1) + problems.num_operands + 2
    lengths = lengths + format.target_lengths(problems)
    if len(lengths) and int(lengths.max()) > LONGEST_LINE:
        raise ProblemError(
            f"a line of {int(lengths.max()):,} tokens is too long for any model: at most "
            f"{LONGEST_LINE:,}. Type a shorter problem."
        )
    return lengths


def batches_by_length(
    lengths_B: Tensor,
    quadratic: bool = False,
    largest: int = 2_048,
    max_tokens: int = TOKENS_PER_BATCH,
) -> Iterator[Tensor]:
    """Yield the indices of all lines, in batches of lines of similar length.

    Args:
        lengths_B: number of tokens of each line.
        quadratic: whether to bound the pairs of tokens as well, for models without a window.
        largest: largest number of lines in a batch.
        max_tokens: largest number of tokens in a batch, padding included.
    """
    order = lengths_B.argsort(stable=True)
    ordered = lengths_B[order].tolist()
    begin = 0
    while begin < len(ordered):

        def is_too_large(end: int, begin: int = begin) -> bool:
            # Lines are sorted by length, so the last line of a batch is its longest.
            longest, num_lines = ordered[end - 1], end - begin
            return longest * num_lines > max_tokens or (
                quadratic and longest**2 * num_lines > PAIRS_PER_BATCH
            )

        ends = range(begin + 2, min(begin + largest, len(ordered)) + 1)
        end = begin + 1 + bisect_left(ends, True, key=is_too_large)
        yield order[begin:end]
        begin = end
