"""Several processes that train one model make the steps of one process."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch.distributed import HashStore

from abacist import recipes
from abacist.cli import main
from abacist.configuration import override
from abacist.errors import ConfigurationError, ProcessLost
from abacist.runs.run import build_model, build_problems
from abacist.runs.training import _batches, resume, start
from abacist.training.optimizer import Optimizer
from abacist.training.processes import Processes, _lost_at_sigterm, _own_device
from abacist.training.step import training_step
from abacist.training.torchrun import Launched

SMALL = {
    "model.width": 8,
    "model.mlp_width": 16,
    "model.num_heads": 2,
    "training.warmup_steps": 5,
    "training.validation_problems": 20,
    "training.sample_problems": 20,
    "training.record_loss_every": 1,
}


def start_two(settings: dict[str, object], out: Path) -> subprocess.Popen[str]:
    """Start `abacist train add` in two processes by torchrun."""
    torchrun = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "abacist"]
    words = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    options = ["--device", "cpu", "--train-only", "--out", str(out)]
    return subprocess.Popen(
        [sys.executable, "-m", *torchrun, "train", "add", *words, *options],
        # Gloo must not look for this machine's name on a network.
        env=os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def losses(path: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (path / "losses.jsonl").read_text().splitlines()]


def test_two_processes_make_the_steps_of_one_which_resumes(tmp_path: Path) -> None:
    settings = SMALL | {"training.num_steps": 200, "training.checkpoint_every": 100}
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    training = start_two(settings, shared)
    start(override(recipes.find("add"), settings), alone, 0, device="cpu")
    output, errors = training.communicate(timeout=240)
    assert training.returncode == 0, output + errors
    assert len(losses(shared)) == 200
    assert losses(shared) == pytest.approx(losses(alone), abs=1e-5)
    (shared / "checkpoints/step-000200").rename(tmp_path / "removed")
    resume(shared, device="cpu")
    assert len(losses(shared)) == 200
    assert losses(shared) == pytest.approx(losses(alone), abs=1e-5)


def test_a_killed_process_ends_the_others_with_one_line(tmp_path: Path) -> None:
    path = tmp_path / "run"
    settings = SMALL | {"training.num_steps": 100_000, "training.checkpoint_every": 5}
    torchrun = start_two(settings, path)
    try:
        until = time.monotonic() + 200
        while not list((path / "checkpoints").glob("step-*")) and time.monotonic() < until:
            time.sleep(0.1)
        children = subprocess.run(
            ["pgrep", "-P", str(torchrun.pid)], capture_output=True, text=True
        )
        os.kill(max(map(int, children.stdout.split())), signal.SIGKILL)
        _, errors = torchrun.communicate(timeout=60)
    finally:
        torchrun.terminate()
        torchrun.communicate()
    assert torchrun.returncode == 1
    (complaint,) = [line for line in errors.splitlines() if line.startswith("abacist: ")]
    # Whether the other process notices the loss before torchrun ends it depends on the moment.
    assert re.match(
        "abacist: (one of the 2 processes that train together has ended|the 2 processes that train "
        "together were ended by SIGTERM, which torchrun sends them when one has ended)[.] Type the same "
        "command with --resume to continue from the newest checkpoint; ",
        complaint,
    )


def test_of_processes_that_fail_together_one_complains() -> None:
    store = HashStore()
    first, second = (Processes(rank, 2, store) for rank in range(2))
    assert second.claim_complaint()
    assert not first.claim_complaint()
    assert second.claim_complaint()
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(ProcessLost, match="were ended by SIGTERM") as lost, _lost_at_sigterm(first):
        signal.raise_signal(signal.SIGTERM)
    assert not lost.value.is_noticed_first
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_mistake_under_torchrun_is_one_line_of_one_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        monkeypatch.setenv("LOCAL_RANK", rank)
        assert main(["train", "ad"]) == 2
        assert capsys.readouterr().err.count("\n") == (rank == "0")
    monkeypatch.setenv("LOCAL_RANK", "0")
    assert main(["sweep", "add"]) == 2
    assert "Type abacist sweep without torchrun" in capsys.readouterr().err
    monkeypatch.setenv("WORLD_SIZE", "two")
    assert main(["recipes"]) == 2
    error = capsys.readouterr().err
    assert "WORLD_SIZE must be a whole number, as torchrun sets it, got 'two'" in error
    assert error.count("\n") == 1


def test_more_processes_than_gpus_are_refused_by_all_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for rank in range(4):
        with pytest.raises(
            ConfigurationError, match=r"2, got 4 processes\. Try .* --nproc-per-node 2"
        ):
            _own_device(torch.device("cuda"), Launched(rank, 4, rank, 4))


class Recorded(Processes):
    """One of several processes, which keeps what it would add to the sums of all."""

    def add_up(self, *tensors: torch.Tensor) -> None:
        object.__setattr__(self, "sums", [tensor.clone() for tensor in tensors])


@pytest.mark.parametrize(("precision", "count"), [("float32", 2), ("float32", 3), ("bfloat16", 2)])
def test_shares_in_micro_batches_add_up_to_the_gradient_of_the_batch(
    precision: str, count: int
) -> None:
    recipe = override(
        recipes.find("add"),
        {
            "model.width": 16,
            "training.batch_size": 31,
            "training.micro_batches": 3,
            "training.precision": precision,
        },
    )

    def sums(processes: Recorded) -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = build_model(recipe)
        optimizer = Optimizer(model, recipe.training)
        stream = _batches(*build_problems(recipe), recipe, 0, torch.device("cpu"))
        training_step(
            model, optimizer, stream.batch(0), recipe.training, 0, stream.aligned, 0, processes
        )
        return processes.sums  # type: ignore[attr-defined, no-any-return]

    whole = sums(Recorded(0, 1))
    shares = [sums(Recorded(rank, count)) for rank in range(count)]
    for part, total in zip(zip(*shares, strict=True), whole, strict=True):
        tolerance = 1e-6 if precision == "float32" else 1e-2
        torch.testing.assert_close(sum(part), total, rtol=tolerance, atol=tolerance)


def test_a_batch_must_have_a_line_for_every_process() -> None:
    with pytest.raises(ConfigurationError, match=r"at least the number of processes, 4, got 3"):
        Processes(0, 4).check_batch_size(3)
