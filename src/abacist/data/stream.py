"""An endless stream of training batches that can be entered at any step.

All problems of a batch have the same operand lengths, so nothing is padded and one row of
coordinates serves the whole batch. Batches are drawn in blocks of many steps, which keeps the
cost of small tensor operations off the training loop. A block is a function of the seed and its
number alone: a resumed run reads the very same problems without any saved state.
"""

from dataclasses import dataclass

from abacist import seeds
from abacist.data.config import SplitConfig
from abacist.data.split import draw_from_split
from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.reversed import ReversedFormat
from abacist.tasks.addition import Addition

_STEPS_PER_BLOCK = 32


@dataclass
class TrainingStream:
    """Batches of the training split, by step."""

    task: Addition
    format: ReversedFormat
    split: SplitConfig
    batch_size: int
    seed: int
    _block_number: int = -1

    def batch(self, step: int) -> AnnotatedTokens:
        """The batch of one step, (batch_size, T): lines of equal operand lengths."""
        block_number, offset = divmod(step, _STEPS_PER_BLOCK)
        if block_number != self._block_number:
            self._block, self._widths = self._draw_block(block_number)
            self._block_number = block_number
        rows = slice(offset * self.batch_size, (offset + 1) * self.batch_size)
        return self._block[rows, : self._widths[offset]]

    def _draw_block(self, number: int) -> tuple[AnnotatedTokens, list[int]]:
        generator = seeds.generator(self.seed, "train", number)
        lengths = self.task.draw_lengths(_STEPS_PER_BLOCK, generator)
        lengths = lengths.repeat_interleave(self.batch_size, dim=0)
        problems = draw_from_split(self.task, lengths, "train", self.split, generator)
        lines = self.format.write(problems, self.task.answer(problems))
        widths = lines.lengths.view(_STEPS_PER_BLOCK, self.batch_size).amax(dim=1)
        return lines, widths.tolist()
