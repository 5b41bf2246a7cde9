"""A trained model together with all that is needed to ask it problems.

>>> trained_model = abacist.load("latest").trained_model()
>>> solve(trained_model, trained_model.task.parse(["12+34"]))[0].answer
'46'
"""

from dataclasses import dataclass, field

from abacist.data.config import SplitConfig
from abacist.formats.format import Format
from abacist.models.transformer import Transformer
from abacist.scoring.config import ScoringConfig
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
    num_examples: int | None = None
    """Number of fixed training problems; None where training drew fresh problems forever."""
    balanced_examples: bool = False
    """Whether the fixed problems are equally many of each combination of lengths."""
