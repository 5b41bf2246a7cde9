"""Batches of the rounds of repairs, in which a trained model learns what it gets wrong.

The check of the certificate finds every neighbourhood in which a model is wrong, and a problem for
each. To train on those alone would make a model forget others, so half of the batches of a round are
those of ordinary training. The other half have the lengths of one listed problem, and a quarter of their
rows are listed problems of these lengths; the rest are drawn. A batch thus has one shape, as ordinary
ones have.

This is counterexample-guided training, as in the synthesis of programs (Solar-Lezama et al.,
"Combinatorial sketching for finite programs", 2006), where a verifier's counterexamples become inputs
for the next attempt.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from abacist import generators
from abacist.data.config import SplitConfig
from abacist.data.split import draw_from_split
from abacist.data.stream import Batches
from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.format import Format
from abacist.tasks.problems import Problems, Shapes, concatenate
from abacist.tasks.task import Task

_LISTED_SHARE = 0.25
"""Share of listed problems in the batches that have some."""


class RepairBatches:
    """Ordinary batches up to a step, and from there on every second one with listed problems."""

    def __init__(
        self,
        ordinary: Batches,
        task: Task,
        format: Format,
        split: SplitConfig,
        batch_size: int,
        begin: int,
        device: torch.device,
    ) -> None:
        """Prepare the batches; no problem is listed yet.

        Args:
            ordinary: the batches of the training.
            task: the task that draws the other problems of a batch.
            format: the format that writes them.
            split: the splits.
            batch_size: number of lines in a batch.
            begin: the step from which on listed problems take part.
            device: device of the batches.
        """
        self.ordinary, self.seed = ordinary, ordinary.seed
        self.task, self.format, self.split = task, format, split
        self.batch_size, self.begin, self.device = batch_size, begin, device
        self._expressions: dict[str, None] = {}
        self._listed: Problems | None = None

    @property
    def aligned(self) -> bool:
        """Whether all lines of a batch have the same coordinates, in every batch."""
        return self.ordinary.aligned

    def add(self, expressions: Sequence[str]) -> None:
        """List problems of the training split, as a person types them; those listed before stay."""
        self._expressions |= dict.fromkeys(expressions)
        self._listed = self.task.parse(list(self._expressions)) if self._expressions else None

    def batch(self, step: int) -> AnnotatedTokens:
        """Return the batch of one step, (batch_size, T)."""
        if step < self.begin or (step - self.begin) % 2 == 0 or self._listed is None:
            return self.ordinary.batch(step)
        generator = generators.generator(self.seed, "repair", step)
        problems = _with_listed(self._listed, self.batch_size, self.task, self.split, generator)
        lines = self.format.write(problems, self.task.answer(problems), generator)
        return lines.to(self.device)


def _with_listed(
    listed: Problems, count: int, task: Task, split: SplitConfig, generator: torch.Generator
) -> Problems:
    """Return `count` problems with the lengths of one listed problem, some of them listed."""
    chosen = torch.randint(len(listed), (1,), generator=generator)
    alike = _same_shape(listed, chosen).nonzero().squeeze(1)
    num_listed = max(1, int(_LISTED_SHARE * count))
    rows = alike[torch.randint(len(alike), (num_listed,), generator=generator)]
    shapes = Shapes(listed.lengths_BN[chosen], listed.operation_B[chosen])
    drawn = draw_from_split(task, shapes.repeat_each(count - num_listed), "train", split, generator)
    return concatenate([listed[rows], drawn])


def _same_shape(problems: Problems, row: Tensor) -> Tensor:
    """Return which problems have the lengths and the operation of that in `row`, bool (B,)."""
    same_lengths = (problems.lengths_BN == problems.lengths_BN[row]).all(dim=1)
    return same_lengths & (problems.operation_B == problems.operation_B[row])
