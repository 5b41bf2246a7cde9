"""Runs that many tests share. Each is trained once per test run, on one thread, and copied for each worker."""

import fcntl
import gc
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import abacist
from abacist import extensions
from abacist.extensions import Registry
from abacist.runs.run import Run

# Tests run side by side, one worker per core. One thread also gives every machine of a kind the
# same weights.
torch.set_num_threads(1)
# A worker holds thousands of tests, and looking through them for garbage every few thousand allocations
# costs a twentieth of its time.
gc.set_threshold(50_000, 20, 100)

_LONGEST_FILES = (
    "test_site.py",
    "test_ray_cluster.py",
    "test_certificates_of_tasks.py",
    "test_pretended_gpu.py",
    "test_check_written_work.py",
    "test_training.py",
    "test_report.py",
    "test_page.py",
    "test_cli.py",
    "test_onnx.py",
    "test_certificate.py",
    "test_hostile_records.py",
    "test_html.py",
    "test_processes.py",
    "test_check_certificate.py",
    "test_streams.py",
    "test_column_tasks.py",
    "test_every_format.py",
    "test_published_recipes.py",
    "test_wheel.py",
)
"""Files that take long, longest first."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take long, so that no process is left with one of them at the end."""
    turn = {name: number for number, name in enumerate(_LONGEST_FILES)}
    items.sort(key=lambda item: turn.get(item.path.name, len(turn)))


@pytest.fixture(scope="session", autouse=True)
def _files_that_need_not_outlive_a_power_failure():
    """Nothing waits until a file is on the disk: the tests write thousands of files, at several milliseconds each."""
    with pytest.MonkeyPatch.context() as patch:
        # As the real function does, this one raises an error at a descriptor that is not open.
        patch.setattr(os, "fsync", lambda descriptor: os.fstat(descriptor) and None)
        yield


@pytest.fixture(autouse=True)
def _restore_threads():
    """Training sets the number of threads of the whole process; the next test must not inherit it."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def registries_as_before():
    """Whatever a test registers or loads as an extension is gone after it."""
    tables = [(registry, dict(registry), dict(registry.origins)) for registry in Registry.all]
    modules, known = set(sys.modules), dict(extensions._by_module)
    asked_for = list(extensions._asked_for)
    yield
    for registry, entries, origins in tables:
        registry.clear()
        registry.update(entries)
        registry.origins = origins
    extensions._by_module.clear()
    extensions._by_module.update(known)
    extensions._asked_for[:] = asked_for
    for module in set(sys.modules) - modules:
        if module.startswith(("abacist_extensions", "own_")):
            del sys.modules[module]


TrainOnce = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def train_once(tmp_path_factory: pytest.TempPathFactory) -> TrainOnce:
    """A function that trains a shared run in the first worker that needs it.

    It returns the path of a copy that belongs to this worker, so that tests may write to it.
    """
    own = tmp_path_factory.mktemp("runs")
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        # The directory that all workers of one test run share.
        shared = shared.parent

    def call(name: str, train: Callable[[Path], object]) -> Path:
        trained = shared / "trained" / name
        trained.parent.mkdir(exist_ok=True)
        with open(trained.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not trained.exists():
                unfinished = shared / "unfinished" / name
                train(unfinished)
                unfinished.rename(trained)
        return Path(shutil.copytree(trained, own / name))

    return call


@pytest.fixture(scope="session")
def certified(train_once: TrainOnce) -> Run:
    """The default recipe, trained as a user trains it."""
    return abacist.load(train_once("add", lambda path: abacist.train("add", out=path)))


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
"""Settings for training in a fraction of a second, for tests that need no learning."""


@pytest.fixture(scope="session")
def quick_settings() -> dict[str, object]:
    return dict(QUICK)


@pytest.fixture(scope="session")
def _hardly_trained(train_once: TrainOnce) -> Path:
    return train_once("hardly trained", lambda path: abacist.train("add", out=path, settings=QUICK))


@pytest.fixture
def untrained(_hardly_trained: Path, tmp_path: Path) -> Run:
    """A run that has hardly learned anything, in a directory that belongs to the test."""
    return abacist.load(shutil.copytree(_hardly_trained, tmp_path / "untrained"))


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium; without one these tests are skipped, unless ABACIST_NEEDS_BROWSER is set."""
    # Chromium without a desktop takes half the processor time of the whole one.
    names = ("chromium-headless-shell", "chromium", "chromium-browser")
    chromium = next(filter(None, map(shutil.which, names)), None)
    if chromium is None:
        missing = "no chromium is on the PATH: apt-get install chromium-headless-shell"
        if os.environ.get("ABACIST_NEEDS_BROWSER"):
            pytest.fail(missing)
        pytest.skip(missing)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Drawing by an emulated GPU costs a fifth more processor time than drawing without one.
        arguments = ["--no-sandbox", "--disable-gpu"]
        started = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield started
        started.close()
