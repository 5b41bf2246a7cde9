"""Training batches that can be entered at any step.

Training problems are drawn afresh forever, or come from a fixed set in a new order in each epoch.
The format's layout decides which lines share a batch. If lines of one shape have the same layout,
all problems of a batch have one shape, so nothing is padded and one row of coordinates serves the
whole batch. If lines of one shape only have similar lengths, a batch still has one shape, and little
is padded. If layouts differ freely, lines of similar length share a batch.

Batches are generated in blocks of many steps, which makes small tensor operations cheaper. A block
depends on the seed and its number alone, so a resumed run reads the same problems without any saved
state.
"""

import bisect
import itertools
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

import torch
from torch import Tensor

from abacist import generators
from abacist.data.config import SplitConfig
from abacist.data.examples import Examples
from abacist.data.split import draw_from_split
from abacist.errors import ConfigurationError
from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.format import Format
from abacist.tasks.problems import Problems
from abacist.tasks.task import Task

_STEPS_PER_BLOCK = 32
_CPU = torch.device("cpu")
_PREFETCHER = ThreadPoolExecutor(1, "batches")
"""Thread that generates the next block while a GPU computes on the current one."""


class Batches(Protocol):
    """The interface of everything that training can read batches from."""

    seed: int

    @property
    def aligned(self) -> bool:
        """Whether all lines of a batch have the same coordinates, so that one row serves them all."""
        ...

    def batch(self, step: int) -> AnnotatedTokens:
        """Return the batch of one step, (batch_size, T)."""
        ...


class TrainingStream:
    """Batches of the training split, by step."""

    def __init__(
        self,
        task: Task,
        format: Format,
        split: SplitConfig,
        batch_size: int,
        seed: int,
        examples: Examples | None = None,
        device: torch.device = _CPU,
        stage: int | None = None,
        *,
        keep_partial_batches: bool = False,
        mixed_lengths: bool = False,
    ) -> None:
        """Prepare the batches of a task in a format.

        Lines are drawn and written on the CPU, so they are the same for every device.

        Args:
            task: the task that draws the problems.
            format: the format that writes them.
            split: the splits.
            batch_size: number of lines in a batch.
            seed: seed of the problems and of their order.
            examples: fixed problems, through which the stream cycles; None draws fresh problems
                forever.
            device: device of the batches. Blocks are sent to a GPU one block in advance.
            stage: index of the curriculum's stage, which has problems of its own; None for the rest.
            keep_partial_batches: whether each epoch over the fixed problems ends with a smaller
                batch of those that do not fill one.
            mixed_lengths: whether each problem of a batch has lengths of its own, also where the
                format lays out lines of one shape alike.

        Raises:
            ConfigurationError: there are fewer fixed problems than a batch holds, or they are not
                problems to train on (see `Examples`).
        """
        self._purpose: tuple[str | int, ...] = ("train",) if stage is None else ("stage", stage)
        self._device = device
        self._ahead: Future[tuple[AnnotatedTokens, list[int], list[int]]] | None = None
        self.task, self.format, self.split = task, format, split
        self.batch_size, self.seed = batch_size, seed
        self._fixed = None
        if examples is not None:
            self._fixed = examples.problems(task, split, seed)
            if examples.count < batch_size:
                name = "examples" if examples.listed else "num_examples"
                raise ConfigurationError(
                    f"training.{name} must be at least the batch size, {batch_size}, got "
                    f"{examples.count}. Try --training.batch_size {examples.count}."
                )
        self._keeps_partial, self._mixes = keep_partial_batches, mixed_lengths
        self._block_number = -1

    @property
    def aligned(self) -> bool:
        """Whether all lines of a batch have the same coordinates, so that one row serves them all."""
        layout = self.format.layout
        draws_by_shape = self._fixed is None and not self._mixes
        return layout == "constant" or (layout == "shape" and draws_by_shape)

    def batch(self, step: int) -> AnnotatedTokens:
        """Return the batch of one step, (batch_size, T)."""
        block_number, offset = divmod(step, _STEPS_PER_BLOCK)
        if block_number != self._block_number:
            self._block, self._bounds, self._widths = self._read_block(block_number)
            self._block_number = block_number
        first, end = self._bounds[offset : offset + 2]
        return self._block[first:end, : self._widths[offset]]

    def _read_block(self, number: int) -> tuple[AnnotatedTokens, list[int], list[int]]:
        """Return what `_make_block` does, from the device."""
        if self._device.type == "cpu":
            return self._make_block(number)
        if self._ahead is not None and number == self._block_number + 1:
            lines, bounds, widths = self._ahead.result()
        else:
            lines, bounds, widths = self._make_block(number)
        self._ahead = _PREFETCHER.submit(self._make_block, number + 1)
        return lines.to(self._device), bounds, widths

    def _make_block(self, number: int) -> tuple[AnnotatedTokens, list[int], list[int]]:
        """Generate the lines of a block.

        Returns the lines, the index of each batch's first line followed by the number of lines, and
        the width of each batch.
        """
        generator = generators.generator(self.seed, *self._purpose, number)
        sizes = [self.batch_size] * _STEPS_PER_BLOCK
        if self._fixed is None:
            problems = self._draw(generator)
        else:
            problems, sizes = self._recall(number)
        lines = self.format.write(problems, self.task.answer(problems), generator)
        lengths = lines.lengths
        if self.format.layout == "free" and self._fixed is None and not self._mixes:
            order = _by_length(lengths.view(_STEPS_PER_BLOCK, self.batch_size), generator).flatten()
            lines, lengths = lines[order], lengths[order]
        widths = [int(batch.max()) for batch in torch.split(lengths, sizes)]
        return lines, [0, *itertools.accumulate(sizes)], widths

    def _draw(self, generator: torch.Generator) -> Problems:
        """Draw the problems of a block."""
        if self.format.layout in ("shape", "similar") and not self._mixes:
            shapes = self.task.draw_shapes(_STEPS_PER_BLOCK, generator)
            shapes = shapes.repeat_each(self.batch_size)
        else:
            shapes = self.task.draw_shapes(_STEPS_PER_BLOCK * self.batch_size, generator)
        return draw_from_split(self.task, shapes, "train", self.split, generator)

    def _recall(self, number: int) -> tuple[Problems, list[int]]:
        """Return the problems of a block from the fixed set, and the size of each batch.

        Each epoch has its own order. It leaves out the problems that do not fill a batch, or ends
        with them.
        """
        assert self._fixed is not None
        per_epoch, rest = divmod(len(self._fixed), self.batch_size)
        per_epoch += bool(rest) and self._keeps_partial
        rows: list[Tensor] = []
        for step in range(number * _STEPS_PER_BLOCK, (number + 1) * _STEPS_PER_BLOCK):
            epoch, offset = divmod(step, per_epoch)
            if offset == 0 or not rows:
                generator = generators.generator(self.seed, "epoch", epoch)
                order = torch.randperm(len(self._fixed), generator=generator)
            rows.append(order[offset * self.batch_size : (offset + 1) * self.batch_size])
        return self._fixed[torch.cat(rows)], [len(batch) for batch in rows]


class Curriculum:
    """Several streams in succession, each for some steps; the last one continues forever."""

    def __init__(self, streams: Sequence[TrainingStream], num_steps: Sequence[int]) -> None:
        """`num_steps` holds the number of steps of every stream except the last."""
        self.streams, self.seed = streams, streams[-1].seed
        self._begins = [0, *itertools.accumulate(num_steps)]

    @property
    def aligned(self) -> bool:
        """Whether all lines of a batch have the same coordinates, in every batch."""
        return all(stream.aligned for stream in self.streams)

    def batch(self, step: int) -> AnnotatedTokens:
        """Return the batch of one step, (batch_size, T)."""
        number = bisect.bisect_right(self._begins, step) - 1
        return self.streams[number].batch(step - self._begins[number])


def _by_length(lengths_SB: Tensor, generator: torch.Generator) -> Tensor:
    """Return the indices of lines for each step, int64 (S, B), so that lines of similar length meet.

    Padding then costs little even if a few lines are many times longer than most. The order of the
    batches is random.
    """
    steps = torch.randperm(len(lengths_SB), generator=generator)
    return lengths_SB.flatten().argsort(stable=True).view(lengths_SB.shape)[steps]
