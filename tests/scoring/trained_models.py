"""Trained models that the tests of suites share."""

import torch

from abacist.data.config import SplitConfig
from abacist.formats.config import FORMATS
from abacist.models.config import POSITIONS, ModelConfig
from abacist.models.transformer import Transformer
from abacist.scoring.config import ScoringConfig
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.config import ArithmeticConfig


def random_model(
    task=None, format="reversed", positions="place-relative", scoring=None, **model
) -> TrainedModel:
    """Return a model with random weights, which gets nearly every problem wrong."""
    task = task or ArithmeticConfig(max_digits=3)
    format_config = FORMATS[format] if isinstance(format, str) else format
    built_format = format_config.build(task)
    torch.manual_seed(0)
    config = ModelConfig(width=8, num_heads=2, mlp_width=8, positions=POSITIONS[positions], **model)
    return TrainedModel(
        Transformer(config, len(built_format.vocabulary)).eval(),
        task.build(),
        built_format,
        SplitConfig(),
        ScoringConfig(num_problems=10, **(scoring or {})),
        seed=0,
    )


def ignored(name: str, done: int, total: int) -> None:
    """Ignore progress."""
