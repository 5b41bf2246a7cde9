"""The interface of all tasks."""

from typing import Protocol

import torch
from torch import Tensor

from abacist.tasks.config import TaskConfig
from abacist.tasks.problems import Answer, Problems, Shapes
from abacist.tasks.space import Space


class Task(Protocol):
    """A task draws problems, knows their exact answers, and reads what a person types."""

    @property
    def config(self) -> TaskConfig:
        """Settings of the task."""

    @property
    def operations(self) -> tuple[str, ...]:
        """Operations that its problems can ask for, of `OPERATIONS`."""

    def draw_shapes(self, num_problems: int, generator: torch.Generator) -> Shapes:
        """Draw shapes of training problems, independently of each other."""

    def draw(self, shapes: Shapes, generator: torch.Generator) -> Problems:
        """Draw one problem of every shape; shapes may be larger than those of training."""

    def answer(self, problems: Problems) -> Answer:
        """Return the exact answers."""

    def measures(self, problems: Problems) -> dict[str, Tensor]:
        """Return what histograms of problems show, each int64 (B,), by name."""

    def space(self) -> Space | None:
        """Return all training problems by index; None if there are too many or they have no index."""

    def parse(self, expressions: list[str], max_digits: int = 100_000) -> Problems:
        """Read problems that a person typed; leading zeros are dropped.

        Raises:
            ProblemError: an expression is not a problem of this task. The message names the first
                one and says what to type.
        """

    def expressions(self, problems: Problems) -> list[str]:
        """Return each problem as a person would type it."""

    @property
    def example(self) -> str:
        """A valid problem, for error messages and help."""

    @property
    def claim(self) -> str:
        """What a model that is always right does, as in `adds all pairs of non-negative integers`."""
