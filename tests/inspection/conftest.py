"""Small models with random weights, and a problem to look at."""

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
    """Makes an inspected problem; none of its model's parameters is 0 or 1, as biases are at the start."""

    def make(
        problem="458+67",
        task=None,
        format="reversed",
        positions="place-relative",
        history=None,
        **model,
    ):
        config = TASKS[task] if isinstance(task, str) else task or ArithmeticConfig(max_digits=3)
        written = FORMATS[format].build(config)
        schemes = POSITIONS[positions] if isinstance(positions, str) else positions
        sizes = {"width": 12, "num_heads": 2, "mlp_width": 20, "positions": schemes}
        torch.manual_seed(0)
        made = Transformer(ModelConfig(**(sizes | model)), len(written.vocabulary)).eval()
        with torch.no_grad():
            for parameter in made.parameters():
                parameter += 0.3 * torch.randn_like(parameter)
        built = config.build()
        trained_model = TrainedModel(made, built, written, SplitConfig(), ScoringConfig(), seed=0)
        return InspectedProblem(
            trained_model, built.parse([problem]), history=history or {}, num_problems=30
        )

    return make


@pytest.fixture
def with_partner():
    """The same inspected problem with a problem to patch from."""

    def make(inspected, partner):
        return replace(inspected, partner=inspected.trained_model.task.parse([partner]))

    return make
