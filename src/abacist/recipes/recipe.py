"""The configuration of a whole training. Imports no torch."""

from dataclasses import dataclass, field

from abacist.data.config import SplitConfig
from abacist.errors import ConfigurationError
from abacist.formats.config import FORMATS, FormatConfig
from abacist.models.config import ModelConfig
from abacist.scoring.config import ScoringConfig
from abacist.tasks.config import TASKS, TaskConfig
from abacist.training.config import TrainingConfig

_LONGEST_NAME = 100
"""Largest number of characters of a name."""


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

    def __post_init__(self) -> None:
        if not (self.name.isprintable() and len(self.name) <= _LONGEST_NAME):
            raise ConfigurationError(
                f"name must be one line of at most {_LONGEST_NAME} printable characters, "
                f"got {self.name[:_LONGEST_NAME]!r}. Try --name add."
            )
