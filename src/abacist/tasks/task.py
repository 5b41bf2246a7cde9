"""What every task can do, and which there are."""

from typing import Protocol

import torch
from torch import Tensor

from abacist.tasks.config import TaskConfig
from abacist.tasks.problems import Answer, Problems, Shapes
from abacist.tasks.space import Space


class Task(Protocol):
    """Draws problems, knows their exact answers, reads what a person types."""

    @property
    def config(self) -> TaskConfig: ...

    @property
    def operations(self) -> tuple[str, ...]:
        """What its problems ask, of `OPERATIONS`."""

    def draw_shapes(self, num_problems: int, generator: torch.Generator) -> Shapes:
        """Shapes of training problems, independently drawn."""

    def draw(self, shapes: Shapes, generator: torch.Generator) -> Problems:
        """One problem of every shape, of any size: also beyond those in training."""

    def answer(self, problems: Problems) -> Answer:
        """The exact answers."""

    def measures(self, problems: Problems) -> dict[str, Tensor]:
        """What histograms of problems show: int64 (B,) by name."""

    def space(self) -> Space | None:
        """All problems of training, by number; None where they are too many, or not numbered."""

    def parse(self, expressions: list[str], max_digits: int = 100_000) -> Problems:
        """Problems from what a person typed; leading zeros are dropped.

        Raises `ProblemError`, naming the first expression that cannot be read or was not trained
        for, and what can.
        """

    def expressions(self, problems: Problems) -> list[str]:
        """Problems as a person would type them."""

    @property
    def example(self) -> str:
        """A problem to show someone who typed something else."""

    @property
    def claim(self) -> str:
        """What a model that is always right does."""
