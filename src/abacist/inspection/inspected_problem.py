"""The input of every lens: a trained model, one problem, a partner to patch with, and a test sample."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from torch import Tensor

from abacist.errors import ProblemError
from abacist.formats.annotated import Field
from abacist.inspection.inspected_lines import LONGEST_LINE, InspectedLines, write_lines
from abacist.scoring.exact_match import line_lengths
from abacist.scoring.samples import as_in_training
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.problems import Problems


@dataclass(frozen=True)
class InspectedProblem:
    """A problem that lenses inspect, together with the model that solves it."""

    trained_model: TrainedModel
    problem: Problems
    """A batch of one problem."""
    partner: Problems | None = None
    """A second problem to patch with; None generates one that differs in one carry."""
    history: Mapping[int, Mapping[str, Tensor]] = field(default_factory=dict)
    """Copies of the embedding tables by training step; empty if training recorded none."""
    num_problems: int = 200
    """Number of test problems for averages, ablations and probes."""

    @cached_property
    def lines(self) -> InspectedLines:
        """The problem with its right answer, as the model reads it."""
        return write_lines(self.trained_model, self.problem)

    @cached_property
    def sample(self) -> Problems:
        """Distinct test problems, distributed as in training, without lines that are too long.

        Raises `ProblemError` if all lines are too long.
        """
        problems = as_in_training(self.trained_model, self.num_problems, "look")
        short = problems[line_lengths(self.trained_model.format, problems) <= LONGEST_LINE]
        if not len(short):
            raise ProblemError(
                f"all lines of {len(problems)} test problems have more than {LONGEST_LINE} tokens, so "
                "there are no means. Try --lens next-tokens,attention with a short problem."
            )
        return short

    @property
    def text(self) -> str:
        """The problem in the usual notation."""
        return self.trained_model.task.expressions(self.problem)[0]

    @property
    def tokens(self) -> list[str]:
        """The tokens of the line, as texts."""
        texts = self.trained_model.format.vocabulary.tokens
        return [texts[token] for token in self.lines.tokens.ids[0].tolist()]

    @property
    def digit_order(self) -> str:
        """How numbers are written in the line, such as `units first`; empty if no number has two digits."""
        lines = self.lines
        field, place = lines.tokens.field[0], lines.tokens.place[0]
        numbers = sorted({number for number in field.tolist() if number >= Field.OPERAND})
        operands = (place[field == number].tolist() for number in numbers)
        answer = lines.predicted_place[0, lines.predicted_field[0] == Field.ANSWER].tolist()
        orders = [_rises(next((p for p in operands if len(p) > 1), [])), _rises(answer)]
        known = {order for order in orders if order is not None}
        if len(known) == 2:
            return "the answer units first" if orders[1] else "operands units first"
        return "" if not known else "units first" if known == {True} else "highest digit first"

    @property
    def predicting(self) -> list[int]:
        """Indices of the tokens that predict something."""
        indices: list[int] = self.lines.predicts[0].nonzero().squeeze(1).tolist()
        return indices

    @property
    def right_tokens(self) -> list[str]:
        """The right token for each of them, as text."""
        texts = self.trained_model.format.vocabulary.tokens
        return [texts[label] for label in self.lines.labels[0, self.predicting].tolist()]


def _rises(places: list[int]) -> bool | None:
    """Return whether the digits of a number are written from the units on; None if it has fewer than two."""
    digits = [place for place in places if place >= 1]
    return None if len(digits) < 2 else digits[0] < digits[1]
