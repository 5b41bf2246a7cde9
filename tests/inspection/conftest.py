"""Small models with random weights, and a problem to inspect."""

from dataclasses import replace

import pytest
import torch

from abacist.data.config import SplitConfig
from abacist.formats.config import FORMATS
from abacist.inspection.inspected_problem import InspectedProblem
from abacist.models.config import POSITIONS, ModelConfig
from abacist.models.transformer import Transformer
from abacist.scoring.config import ScoringConfig
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.config import TASKS, ArithmeticConfig


@pytest.fixture
def random_inspected_problem():
    """Return a function that builds an inspected problem; no parameter of its model is exactly 0 or 1."""

    def make(
        problem="458+67",
        task=None,
        format="reversed",
        positions="place-relative",
        history=None,
        **model,
    ):
        config = TASKS[task] if isinstance(task, str) else task or ArithmeticConfig(max_digits=3)
        built_format = FORMATS[format].build(config)
        schemes = POSITIONS[positions] if isinstance(positions, str) else positions
        sizes = {"width": 12, "num_heads": 2, "mlp_width": 20, "positions": schemes}
        torch.manual_seed(0)
        transformer = Transformer(
            ModelConfig(**(sizes | model)), len(built_format.vocabulary)
        ).eval()
        with torch.no_grad():
            for parameter in transformer.parameters():
                parameter += 0.3 * torch.randn_like(parameter)
        built = config.build()
        trained_model = TrainedModel(
            transformer, built, built_format, SplitConfig(), ScoringConfig(), seed=0
        )
        return InspectedProblem(
            trained_model, built.parse([problem]), history=history or {}, num_problems=30
        )

    return make


@pytest.fixture
def with_partner():
    """Return a function that adds a partner to an inspected problem."""

    def make(inspected, partner):
        return replace(inspected, partner=inspected.trained_model.task.parse([partner]))

    return make
