"""What a recipe is. Imports no torch."""

from dataclasses import dataclass, field

from abacist.data.config import SplitConfig
from abacist.formats.config import FORMATS, FormatConfig
from abacist.models.config import ModelConfig
from abacist.scoring.config import ScoringConfig
from abacist.tasks.config import TASKS, TaskConfig
from abacist.training.config import TrainingConfig


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A named, complete training configuration."""

    name: str
    """What the recipe is called on the command line."""
    task: TaskConfig = field(metadata={"named_values": TASKS})
    """What is asked; a name stands for a whole task, whose settings may then be changed."""
    format: FormatConfig = field(metadata={"named_values": FORMATS})
    """How it is written; a name stands for a whole format."""
    split: SplitConfig
    model: ModelConfig
    training: TrainingConfig
    scoring: ScoringConfig
