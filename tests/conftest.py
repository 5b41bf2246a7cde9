"""Runs that many tests share. Training happens once a session, in a temporary directory."""

import os
from pathlib import Path

import pytest
import torch

import abacist
from abacist.runs.run import Run

if "PYTEST_XDIST_WORKER" in os.environ:
    # Tests run side by side, a worker for each core, so each has one thread.
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _restore_threads():
    """Training chooses threads for the whole process; no test should hand that on."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The default recipe, trained as a user gets it."""
    return abacist.train("add", out=tmp_path_factory.mktemp("runs") / "add", seed=0)


QUICK = {
    "model.width": 8,
    "model.num_heads": 2,
    "model.mlp_width": 16,
    "task.max_digits": 3,
    "training.num_steps": 24,
    "training.warmup_steps": 4,
    "training.batch_size": 8,
    "training.validate_every": 10,
    "training.validation_problems": 20,
    "training.checkpoint_every": 10,
    "scoring.num_problems": 10,
    "scoring.longest": 50,
}
"""Settings of a training of a fraction of a second, for what does not depend on learning."""


@pytest.fixture(scope="session")
def quick_settings() -> dict[str, object]:
    return dict(QUICK)


@pytest.fixture
def untrained(tmp_path: Path) -> Run:
    """A run that has hardly learnt anything."""
    return abacist.train("add", out=tmp_path / "untrained", settings=QUICK, threads=1)
