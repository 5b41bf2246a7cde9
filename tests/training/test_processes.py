"""Several processes that train one model make the steps of one process."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from abacist.errors import ConfigurationError
from abacist.training.processes import Processes

SMALL = [
    "--model.width", "8", "--model.mlp_width", "16", "--model.num_heads", "2",
    "--training.warmup_steps", "5", "--training.validation_problems", "20",
    "--training.sample_problems", "20", "--training.record_loss_every", "1",
]  # fmt: skip


def start(arguments: list[str], count: int = 1) -> list[subprocess.Popen[str]]:
    """Start `abacist train` as torchrun does, in `count` processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = []
    for rank in range(count):
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        if count > 1:
            environment |= {
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(count),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
                # Gloo must not look for this machine's name on a network.
                "GLOO_SOCKET_IFNAME": "lo",
            }
        command = [sys.executable, "-m", "abacist.cli", "train", *arguments, "--train-only"]
        processes.append(
            subprocess.Popen(
                command,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    return processes


def finish(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        output, errors = process.communicate(timeout=240)
        assert process.returncode == 0, output + errors


def losses(path: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (path / "losses.jsonl").read_text().splitlines()]


def test_two_processes_make_the_steps_of_one_and_resume_as_one(tmp_path: Path) -> None:
    steps = ["--training.num_steps", "200", "--training.checkpoint_every", "100"]
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    both = start(["add", *SMALL, *steps, "--device", "cpu", "--out", str(shared)], 2)
    finish([*start(["add", *SMALL, *steps, "--device", "cpu", "--out", str(alone)]), *both])
    assert len(losses(shared)) == 200
    assert losses(shared) == pytest.approx(losses(alone), abs=1e-5)
    # One process takes over where two have stopped.
    for newest in (shared / "checkpoints").glob("step-000200"):
        newest.rename(tmp_path / "removed")
    finish(start(["--resume", "--out", str(shared)]))
    assert losses(shared) == pytest.approx(losses(alone), abs=1e-5)


def test_a_killed_process_ends_the_others_with_one_line(tmp_path: Path) -> None:
    path = tmp_path / "run"
    steps = ["--training.num_steps", "100000", "--training.checkpoint_every", "5"]
    first, second = start(["add", *SMALL, *steps, "--device", "cpu", "--out", str(path)], 2)
    try:
        until = time.monotonic() + 200
        while not list((path / "checkpoints").glob("step-*")) and time.monotonic() < until:
            time.sleep(0.1)
        second.send_signal(signal.SIGKILL)
        _, errors = first.communicate(timeout=60)
    finally:
        for process in (first, second):
            process.kill()
            process.communicate()
    assert first.returncode == 1
    complaints = [line for line in errors.splitlines() if line.startswith("abacist: ")]
    assert complaints == [
        "abacist: one of the 2 processes that train together has ended. Type the same command with "
        "--resume to continue from the newest checkpoint; the number of processes may be another."
    ]
    assert "Traceback" not in errors


def test_a_batch_must_have_a_line_for_every_process() -> None:
    with pytest.raises(ConfigurationError, match=r"at least the number of processes, 4, got 3"):
        Processes(0, 4).check_batch_size(3)
