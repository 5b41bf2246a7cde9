"""What a recipe is. Imports no torch."""

from dataclasses import dataclass

from abacist.data.config import SplitConfig
from abacist.evaluation.config import EvaluationConfig
from abacist.formats.config import ReversedFormatConfig
from abacist.models.config import ModelConfig
from abacist.tasks.config import AdditionConfig
from abacist.training.config import TrainingConfig


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A named, complete training configuration."""

    name: str
    """What the recipe is called on the command line."""
    task: AdditionConfig
    format: ReversedFormatConfig
    split: SplitConfig
    model: ModelConfig
    training: TrainingConfig
    evaluation: EvaluationConfig
