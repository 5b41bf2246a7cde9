"""The command `abacist sweep`, and its executor on this machine."""

import json
import os
import signal
import sys
import time
import types

import pytest
import torch

from abacist import recipes
from abacist.cli import main
from abacist.configuration import override
from abacist.sweeps import sweep
from abacist.sweeps.choices import Choices
from abacist.sweeps.local import LocalProcesses


def _settings(settings):
    return [word for name, value in settings.items() for word in (f"--{name}", str(value))]


def test_a_sweep_trains_scores_and_proves_every_trial_and_is_resumed(
    tmp_path, quick_settings, capsys
):
    out = tmp_path / "sweep"
    over = ["--over", "training.learning_rate=1e-2,-1"]
    assert main(["sweep", "add", *_settings(quick_settings), *over, "--out", str(out)]) == 2
    assert "got -1.0" in capsys.readouterr().err
    assert not out.exists()
    over = ["--over", "model.norm=layer,rms"]
    arguments = ["sweep", "add", *_settings(quick_settings), *over, "--out", str(out), "--json"]
    assert main(arguments) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [group["group"] for group in printed["groups"]] == ["norm=layer", "norm=rms"]
    assert printed["failures"] == []
    for name in ("norm=layer", "norm=rms"):
        run = out / name / "seed-0"
        for file in ("run.json", "scorecard.json", "certificate.json", "outcome.json"):
            assert (run / file).is_file()
    assert (out / "sweep.html").is_file()
    assert main(arguments) == 2
    assert "exists. Type --resume to finish its trials" in capsys.readouterr().err
    assert main(["sweep", "--resume", "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == printed
    assert main(["sweep", "--resume", "--out", str(out), "--seeds", "3"]) == 2
    assert "is resumed with its own settings" in capsys.readouterr().err
    assert main(["train", "--resume", "--out", str(out)]) == 2
    assert f"Type abacist sweep --resume --out {out}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sweep", "ad"], "did you mean 'add'?"),
        (["sweep", "none.toml"], "none.toml cannot be read"),
        (["sweep", "--over", "model.width"], "Try --over model.width=16,32"),
        (["sweep", "--over", "model.width="], "model.width has no value"),
        (["sweep", "--over", "model.width=1..x", "--random", "2"], "needs a range of numbers"),
        (["sweep", "--over", "model.norm=rms", "--over", "model.norm=layer"], "is typed twice"),
        (["sweep", "--resume"], "--resume needs the directory of a sweep"),
        (["sweep", "--resume", "--out", "."], "it has no plan.json"),
        (["sweep", "some.toml", "--over", "model.width=8"], "--over belongs in some.toml"),
        (["sweep", "add", "--seeds", "20000"], "more than 10,000 trials. Type --yes"),
        (["sweep", "add", "--seeds", "1000001"], "must be a whole number from 1 to 1,000,000"),
        (["train", "add", "--seeds", "1000001"], "must be a whole number from 1 to 1,000,000"),
        (["sweep", "--over", "model.width=8,16,8"], "model.width has the value 8 twice"),
        (["sweep", "--device", "gpu"], "device must be one of auto, cpu, cuda, mps, got 'gpu'"),
        (["sweep", "add", "extra"], "abacist sweep does not use 'extra'"),
        (["sweep", "add", "--out", "/dev/null"], "/dev/null is a file"),
        (["sweep", "add", "--out", "/dev/null/x"], "cannot write /dev/null/x: Not a directory"),
        (["sweep", "add", "--out", "/etc"], "/etc holds something other than a sweep"),
    ],
)
def test_a_mistake_is_one_line(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error
    assert list(tmp_path.iterdir()) == []


def test_a_trial_whose_process_is_killed_or_raises_is_listed_and_stops_no_other(
    tmp_path, quick_settings
):
    recipe = override(recipes.find("add"), quick_settings)
    over = {"training.num_steps": [1_000_000, 10], "model.num_heads": [2]}
    plan = Choices(recipe=recipe, over=over).plan()
    killed = tmp_path / "sweep" / plan.groups[0].name / "seed-0"
    executor = LocalProcesses(1)

    def kill(progress):
        time.sleep(0.05)
        for running in executor._running:
            if running.directory.path == killed and list(killed.glob("checkpoints/step-*")):
                os.kill(running.process.pid, signal.SIGKILL)

    results = sweep.start(plan, tmp_path / "sweep", executor, kill)
    (failure,) = results.failures.values()
    assert failure == "its process was ended by SIGKILL, perhaps for lack of memory"
    assert [len(group.outcomes) for group in results.groups] == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--on", "ray://"],
            "--on must name a host and a port, got 'ray://'. Try ray://HOST:10001",
        ),
        (["--on", "ray://head:x"], "--on must name a host and a port, got 'ray://head:x'"),
        (["--on", "slurm"], "--on must be local, ray or ray://HOST:PORT, got 'slurm'"),
        (["--retries", "2"], "--retries is for clusters. Add --on ray"),
        (["--on", "ray", "--jobs", "2"], "--jobs is for this machine"),
        (["--on", "ray", "--cpus-per-trial", "1.5"], "a fraction below 1 or a whole number"),
        (["--on", "ray", "--cpus-per-trial", "inf"], "a fraction below 1 or a whole number"),
        (["--on", "ray", "--gpus-per-trial", "nan"], "a fraction below 1 or a whole number"),
        (["--on", "ray", "--gpus-per-trial=-1"], "a fraction below 1 or a whole number"),
    ],
)
def test_a_mistake_about_clusters_is_one_line(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", "add", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error
    assert list(tmp_path.iterdir()) == []


def test_an_address_of_ray_without_a_port_is_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", types.SimpleNamespace(is_initialized=lambda: False))
    monkeypatch.setenv("RAY_ADDRESS", "head")
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", "add", "--on", "ray"]) == 2
    error = capsys.readouterr().err
    assert error == (
        "abacist: RAY_ADDRESS must name a host and a port, got 'head'. Try HOST:6379.\n"
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has the device")
@pytest.mark.parametrize("command", ["sweep", "train"])
def test_a_device_that_this_machine_lacks_is_one_line(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([command, "add", "--seeds", "2", "--device", "cuda"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "got 'cuda', which torch does not find. Try --device cpu" in error
    assert list(tmp_path.iterdir()) == []


def test_without_ray_one_line_says_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", "add", "--on", "ray"]) == 2
    assert (
        'Type pip install --editable ".[cluster]" in the clone of abacist'
        in capsys.readouterr().err
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["--on", "ray"], ["--on", "ray://127.0.0.1:9"]])
def test_a_cluster_that_does_not_answer_is_one_line(arguments, tmp_path, monkeypatch, capsys):
    # Nothing listens at port 9, and Ray is not asked to connect.
    ray = types.SimpleNamespace(is_initialized=lambda: False)
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", "add", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "127.0.0.1:9 does not answer" in error
    assert list(tmp_path.iterdir()) == []
