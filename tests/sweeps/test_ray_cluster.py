"""Sweeps on a real Ray cluster of two raylets, one of which is killed in the middle.

Where Ray cannot start, these tests are skipped, unless ABACIST_NEEDS_RAY is set.
"""

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from abacist import recipes
from abacist.configuration import override
from abacist.sweeps import sweep
from abacist.sweeps.choices import Choices
from abacist.sweeps.local import LocalProcesses
from abacist.sweeps.plan import Score
from abacist.training import checkpoint

ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "disabled",
    # Ray's workers are nicer than all other processes by default, and starve beside other tests.
    "RAY_worker_niceness": "0",
}
needs_ray = pytest.mark.filterwarnings("ignore")
"""Ray's own warnings are not ours to fix."""


def unavailable(why):
    if os.environ.get("ABACIST_NEEDS_RAY"):
        pytest.fail(why)
    pytest.skip(why)


class Cluster:
    """A head node and a second node on this machine, whose processes all name one directory."""

    def __init__(self, directory, port):
        self.directory, self.address = directory, f"127.0.0.1:{port}"
        python = (
            f"{Path(__file__).parents[2] / 'src'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
        )
        self.environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": python, "RAY_ADDRESS": ""}
        # A trial that is killed cannot delete its files; they go with the directory of the cluster.
        self.environment["TMPDIR"] = str(directory)
        self.port, self.second = port, 0

    def start(self):
        here = f"--temp-dir={self.directory}"
        self.start_node("--head", f"--port={self.port}", here, "--include-dashboard=false")
        first = self.raylets()
        self.start_node(f"--address={self.address}")
        (self.second,) = self.raylets() - first

    def start_node(self, *options):
        ray = [sys.executable, "-m", "ray.scripts.scripts", "start", "--num-cpus=1"]
        result = subprocess.run(
            [*ray, "--disable-usage-stats", *options],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=240,
        )
        if result.returncode:
            unavailable(f"Ray cannot start here: {result.stdout[-500:]}{result.stderr[-500:]}")

    def processes(self):
        """The title of every process of this cluster by its id: those that name its directory, and their children.

        Workers and agents change their titles, so they are known by their parent alone.
        """
        titles, parents = {}, {}
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, ValueError):
                titles[int(entry.name)] = (entry / "cmdline").read_bytes().decode(errors="replace")
                parents[int(entry.name)] = int(
                    (entry / "stat").read_text().rpartition(")")[2].split()[1]
                )
        ours = {process for process, title in titles.items() if str(self.directory) in title}
        ours |= {process for process, parent in parents.items() if parent in ours}
        return {process: (parents[process], titles[process]) for process in ours}

    def raylets(self):
        return {p for p, (_, title) in self.processes().items() if "/raylet\0" in title}

    def trials_on_the_second_node(self):
        return [
            process
            for process, (parent, title) in self.processes().items()
            if parent == self.second and title.startswith("ray::_carry_out")
        ]

    def kill_the_second_node(self):
        kill([p for p, (parent, _) in self.processes().items() if self.second in (p, parent)])

    def stop(self):
        kill(self.processes())


def kill(processes):
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


@pytest.fixture(scope="module")
def cluster():
    if importlib.util.find_spec("ray") is None:
        unavailable('Ray is not installed: pip install --editable ".[cluster]"')
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # The path of a socket may have 107 characters, fewer than the temporary paths of pytest need.
    directory = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
    cluster = Cluster(directory, port)
    try:
        cluster.start()
        os.environ["RAY_ADDRESS"] = cluster.address
        yield cluster
    finally:
        os.environ.pop("RAY_ADDRESS", None)
        if "ray" in sys.modules:
            sys.modules["ray"].shutdown()
        cluster.stop()
        shutil.rmtree(directory, ignore_errors=True)


def weights(path):
    return load_file(checkpoint.all_in(path / "checkpoints")[-1] / "model.safetensors")


@needs_ray
def test_all_trials_finish_with_the_same_bits_although_a_node_dies(
    cluster, tmp_path, quick_settings
):
    from abacist.sweeps.ray_cluster import RayTasks

    settings = quick_settings | {"training.num_steps": 100, "model.positions": "gpt2"}
    recipe = override(recipes.find("add"), settings | {"scoring.longest": 10})
    plan = sweep.of_seeds(recipe, range(3), device="cpu")
    executor = RayTasks("ray")
    assert executor._ray.cluster_resources()["CPU"] == 2
    killed = []

    def kill_once(progress):
        trials = cluster.trials_on_the_second_node()
        if trials and not killed:
            cluster.kill_the_second_node()
            killed.extend(trials)

    results = sweep.start(plan, tmp_path / "ray", executor, kill_once)
    assert killed
    assert results.failures == {}
    assert [outcome.seed for outcome in results.groups[0].outcomes] == [0, 1, 2]
    # The head hears of the death of a node a little later.
    deadline = time.monotonic() + 60
    while executor._ray.cluster_resources()["CPU"] != 1 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert executor._ray.cluster_resources()["CPU"] == 1
    local = sweep.start(plan, tmp_path / "local", LocalProcesses(2))
    for seed in plan.seeds:
        ours, theirs = (weights(tmp_path / where / f"seed-{seed}") for where in ("ray", "local"))
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)
        rows = [r.groups[0].outcomes[seed].rows for r in (results, local)]
        assert rows[0] == rows[1]


@needs_ray
def test_asha_stops_a_trial_that_learns_nothing(cluster, tmp_path, quick_settings):
    from abacist.sweeps.ray_cluster import RayTasks

    easy = {"task.max_digits": 1, "training.num_steps": 90}
    settings = quick_settings | easy | {"model.width": 16, "training.validate_every": 10}
    plan = Choices(
        recipe=override(recipes.find("add"), settings),
        over={"training.learning_rate": [1e-2, 9e-3, 1e-9]},
        score=Score(suites=(), digits=(1,), num_problems=10, proved=False),
        device="cpu",
    ).plan()
    # There is room for two trials at most, so that the last one is judged by those before it.
    results = sweep.start(plan, tmp_path / "asha", RayTasks("ray", asha=True))
    *others, last = (group.outcomes[0] for group in results.groups)
    assert (None, 90) in {(outcome.failure, outcome.steps) for outcome in others}
    assert last.failure.startswith("stopped early by ASHA at step 10,")
    assert (last.steps, last.rows) == (10, [])
    assert results.failures == {}
