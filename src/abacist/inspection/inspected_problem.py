"""What lenses are pointed at: a trained model, one problem, perhaps a second one, a test sample."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from torch import Tensor

from abacist.errors import ProblemError
from abacist.inspection.inspected_lines import LONGEST_LINE, Lines, write_lines
from abacist.scoring.exact_match import line_lengths
from abacist.scoring.samples import as_in_training
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.problems import Problems


@dataclass(frozen=True)
class InspectedProblem:
    """A problem under the lens."""

    trained_model: TrainedModel
    problem: Problems
    """One."""
    partner: Problems | None = None
    """One to patch with; None makes one that differs in one carry."""
    history: Mapping[int, Mapping[str, Tensor]] = field(default_factory=dict)
    """Copies of the embedding tables by training step; empty where none were kept."""
    num_problems: int = 200
    """How many test problems averages, ablations and probes are made of."""

    @cached_property
    def lines(self) -> Lines:
        """The problem as the model reads it."""
        return write_lines(self.trained_model, self.problem)

    @cached_property
    def sample(self) -> Problems:
        """Distinct test problems, distributed as those in training; lines too long are left out.

        Raises `ProblemError` where none is left.
        """
        drawn = as_in_training(self.trained_model, self.num_problems, "look")
        kept = drawn[line_lengths(self.trained_model.format, drawn) <= LONGEST_LINE]
        if not len(kept):
            raise ProblemError(
                f"no line of {len(drawn)} test problems has {LONGEST_LINE} tokens or fewer, so there "
                "is nothing to take means of. Try --lens next-tokens,attention with a short problem."
            )
        return kept

    @property
    def text(self) -> str:
        """The problem as a person types it."""
        return self.trained_model.task.expressions(self.problem)[0]

    @property
    def written(self) -> list[str]:
        """The tokens of the line."""
        tokens = self.trained_model.format.vocabulary.tokens
        return [tokens[token] for token in self.lines.tokens.ids[0].tolist()]

    @property
    def predicting(self) -> list[int]:
        """Numbers of the tokens that predict something."""
        columns: list[int] = self.lines.predicts[0].nonzero().squeeze(1).tolist()
        return columns

    @property
    def right(self) -> list[str]:
        """What each of them has to predict."""
        tokens = self.trained_model.format.vocabulary.tokens
        return [tokens[label] for label in self.lines.labels[0, self.predicting].tolist()]
