"""A trained model together with all that is needed to ask it problems.

>>> trained_model = abacist.load("latest").trained_model()
>>> solve(trained_model, trained_model.task.parse(["12+34"]))[0].answer
'46'
"""

from dataclasses import dataclass, field, replace

from abacist.data.config import SplitConfig
from abacist.data.examples import Examples
from abacist.formats.calculator import CalculatorFormat
from abacist.formats.format import Format
from abacist.models.transformer import Transformer
from abacist.scoring.config import ScoringConfig
from abacist.tasks.problems import Problems
from abacist.tasks.task import Task


@dataclass(frozen=True)
class TrainedModel:
    """A model, the task it was trained on, the format it reads and writes, and how it is scored."""

    model: Transformer
    task: Task
    format: Format
    split: SplitConfig = field(default_factory=SplitConfig)
    """Which problems were held out for validation and test."""
    scoring: ScoringConfig = field(default_factory=ScoringConfig)
    """How many problems each suite asks."""
    seed: int = 0
    """Seed of the training; the samples of the suites depend on it as well."""
    examples: Examples | None = None
    """The fixed training problems; None where training drew fresh problems forever."""

    def in_notation_of(self, problem: Problems) -> "TrainedModel":
        """Return the same model with the task and the format of the notation of one problem.

        They are its own unless its format has several notations.
        """
        if not isinstance(self.format, CalculatorFormat):
            return self
        member = self.format.member_for(problem)
        return replace(self, task=member.task.build(), format=member.format)
