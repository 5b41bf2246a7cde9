"""The configuration of a whole training. Imports no torch."""

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
    """Name of the recipe on the command line."""
    task: TaskConfig = field(metadata={"named_values": TASKS})
    """The task: a name that stands for all its settings, which can then be changed one by one."""
    format: FormatConfig = field(metadata={"named_values": FORMATS})
    """The format of the lines: a name that stands for all its settings."""
    split: SplitConfig
    model: ModelConfig
    training: TrainingConfig
    scoring: ScoringConfig
