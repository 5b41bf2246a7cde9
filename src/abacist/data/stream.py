"""Training batches that can be entered at any step.

Problems are drawn afresh for ever, or come from a fixed set in a new order each epoch. Where a
format lays lines of one shape out alike, all problems of a batch have one shape, so nothing is
padded and one row of coordinates serves the whole batch; where it makes them about as long, little
is padded; where lines differ freely, lines of similar length share a batch. Batches are made in
blocks of many steps, which keeps the cost of small tensor operations off the training loop. A block
is a function of the seed and its number alone: a resumed run reads the very same problems without
any saved state.
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
from abacist.data.split import draw_from_split, hash_problems
from abacist.errors import ConfigurationError
from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.format import Format
from abacist.tasks.problems import Problems, first_of_equal, joined
from abacist.tasks.task import Task

_STEPS_PER_BLOCK = 32
_DRAWN_AT_ONCE = 65_536
_FRUITLESS_DRAWS = 50
_CPU = torch.device("cpu")
_BEHIND_THE_SCENES = ThreadPoolExecutor(1, "batches")
"""One thread that makes the next block while a GPU is busy with this one."""


class Batches(Protocol):
    """What training reads."""

    seed: int

    @property
    def aligned(self) -> bool:
        """Whether all lines of a batch have the same places, so that one row tells them."""
        ...

    def batch(self, step: int) -> AnnotatedTokens:
        """The batch of one step, (batch_size, T)."""
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
        num_examples: int | None = None,
        device: torch.device = _CPU,
        stage: int | None = None,
    ) -> None:
        """With `num_examples`, the same first so many problems of the split again and again.

        Lines are drawn and written on the CPU, the same for every device, and brought to
        `device`; to others than the CPU block by block, the next one ahead of time. `stage` is
        the number of a curriculum's stage, whose problems are its own.
        """
        self._purpose: tuple[str | int, ...] = ("train",) if stage is None else ("stage", stage)
        self._device = device
        self._ahead: Future[tuple[AnnotatedTokens, list[int]]] | None = None
        self.task, self.format, self.split = task, format, split
        self.batch_size, self.seed = batch_size, seed
        self._fixed = None
        if num_examples is not None:
            if num_examples < batch_size:
                raise ConfigurationError(
                    f"training.num_examples must be at least the batch size, {batch_size}, got "
                    f"{num_examples}. Try --training.num_examples {batch_size} or a smaller "
                    "--training.batch_size."
                )
            self._fixed = first_problems(task, split, num_examples, seed)
        self._block_number = -1

    @property
    def aligned(self) -> bool:
        """Whether all lines of a batch have the same places, so that one row tells them."""
        layout = self.format.layout
        return layout == "constant" or (layout == "shape" and self._fixed is None)

    def batch(self, step: int) -> AnnotatedTokens:
        """The batch of one step, (batch_size, T)."""
        block_number, offset = divmod(step, _STEPS_PER_BLOCK)
        if block_number != self._block_number:
            self._block, self._widths = self._read_block(block_number)
            self._block_number = block_number
        rows = slice(offset * self.batch_size, (offset + 1) * self.batch_size)
        return self._block[rows, : self._widths[offset]]

    def _read_block(self, number: int) -> tuple[AnnotatedTokens, list[int]]:
        if self._device.type == "cpu":
            return self._make_block(number)
        ready = number == self._block_number + 1 and self._ahead is not None
        lines, widths = self._ahead.result() if ready and self._ahead else self._make_block(number)
        self._ahead = _BEHIND_THE_SCENES.submit(self._make_block, number + 1)
        return lines.to(self._device), widths

    def _make_block(self, number: int) -> tuple[AnnotatedTokens, list[int]]:
        generator = generators.generator(self.seed, *self._purpose, number)
        problems = self._draw(generator) if self._fixed is None else self._recall(number)
        lines = self.format.write(problems, self.task.answer(problems), generator)
        lengths = lines.lengths.view(_STEPS_PER_BLOCK, self.batch_size)
        if self.format.layout == "free" and self._fixed is None:
            order = _by_length(lengths, generator)
            lines, lengths = lines[order.flatten()], lines.lengths[order]
        widths = lengths.amax(dim=1)
        return lines, widths.tolist()

    def _draw(self, generator: torch.Generator) -> Problems:
        if self.format.layout in ("shape", "similar"):
            shapes = self.task.draw_shapes(_STEPS_PER_BLOCK, generator)
            shapes = shapes.repeat_each(self.batch_size)
        else:
            shapes = self.task.draw_shapes(_STEPS_PER_BLOCK * self.batch_size, generator)
        return draw_from_split(self.task, shapes, "train", self.split, generator)

    def _recall(self, number: int) -> Problems:
        """Problems of a fixed set: each epoch has its own order and leaves out what fills no batch."""
        assert self._fixed is not None
        per_epoch = len(self._fixed) // self.batch_size
        rows: list[Tensor] = []
        for step in range(number * _STEPS_PER_BLOCK, (number + 1) * _STEPS_PER_BLOCK):
            epoch, offset = divmod(step, per_epoch)
            if offset == 0 or not rows:
                generator = generators.generator(self.seed, "epoch", epoch)
                order = torch.randperm(len(self._fixed), generator=generator)
            rows.append(order[offset * self.batch_size : (offset + 1) * self.batch_size])
        return self._fixed[torch.cat(rows)]


class Curriculum:
    """Streams one after the other, each for some steps; the last goes on for ever."""

    def __init__(self, streams: Sequence[TrainingStream], num_steps: Sequence[int]) -> None:
        """`num_steps` are those of all streams but the last."""
        self.streams, self.seed = streams, streams[-1].seed
        self._begins = [0, *itertools.accumulate(num_steps)]

    @property
    def aligned(self) -> bool:
        """Whether all lines of any batch have the same places."""
        return all(stream.aligned for stream in self.streams)

    def batch(self, step: int) -> AnnotatedTokens:
        """The batch of one step, (batch_size, T)."""
        number = bisect.bisect_right(self._begins, step) - 1
        return self.streams[number].batch(step - self._begins[number])


def _by_length(lengths_SB: Tensor, generator: torch.Generator) -> Tensor:
    """Which lines stand in which batch, int64 (S, B), so that a batch's lines are of similar length.

    Padding then costs little, also where a few lines are many times as long as most. Which batch
    comes when is left to chance.
    """
    steps = torch.randperm(len(lengths_SB), generator=generator)
    return lengths_SB.flatten().argsort(stable=True).view(lengths_SB.shape)[steps]


def first_problems(task: Task, split: SplitConfig, num_problems: int, seed: int) -> Problems:
    """The first so many different problems of the training split, in the order of a seed.

    Commuted problems are different ones here, as in lists of random pairs.
    """
    found: list[Problems] = []
    seen = torch.empty(0, dtype=torch.int64)
    fruitless, block = 0, 0
    while len(seen) < num_problems and fruitless < _FRUITLESS_DRAWS:
        generator = generators.generator(seed, "examples", block)
        shapes = task.draw_shapes(_DRAWN_AT_ONCE, generator)
        problems = draw_from_split(task, shapes, "train", split, generator)
        hashes = hash_problems(problems, ordered=True)
        new = first_of_equal(hashes)
        new = new[~torch.isin(hashes[new], seen)][: num_problems - len(seen)]
        seen = torch.cat([seen, hashes[new]])
        found.append(problems[new])
        fruitless = 0 if len(new) else fruitless + 1
        block += 1
    if len(seen) < num_problems:
        raise ConfigurationError(
            f"training.num_examples must be at most the {len(seen):,} problems that the training "
            f"split has, got {num_problems}. Try --training.num_examples none."
        )
    return joined(found)
