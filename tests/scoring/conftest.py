"""A run that is right on some problems and wrong on others, trained once per test run."""

import pytest

import abacist
from abacist.runs.run import Run
from abacist.scoring.trained_model import TrainedModel


@pytest.fixture(scope="session")
def half_trained(train_once) -> Run:
    """A run that gets some sums of up to 3 digits right and others wrong."""
    settings = {
        "model.width": 16,
        "model.num_heads": 2,
        "model.mlp_width": 32,
        "task.max_digits": 3,
        "training.num_steps": 150,
        "training.warmup_steps": 10,
        "training.batch_size": 64,
        "training.validate_every": 150,
        "training.validation_problems": 20,
        "training.checkpoint_every": 150,
        "scoring.num_problems": 40,
        "scoring.longest": 20,
        "scoring.grid_problems": 12,
        "scoring.budget": 600,
    }
    path = train_once("half-trained", lambda out: abacist.train("add", out=out, settings=settings))
    return abacist.load(path)


@pytest.fixture
def half_right(half_trained: Run) -> TrainedModel:
    """The trained model of `half_trained`."""
    return half_trained.trained_model()
