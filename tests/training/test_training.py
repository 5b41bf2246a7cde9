"""Training: the same seed gives the same run, and nothing that stops it loses or changes it."""

import copy
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest
import torch
from safetensors.torch import load_file

import abacist
from abacist import files, recipes
from abacist.configuration import override
from abacist.errors import CheckpointError, RunError, TrainingDiverged
from abacist.runs import training
from abacist.runs.directory import FORMAT_VERSION, find
from abacist.runs.run import build_model, build_problems
from abacist.training import checkpoint
from abacist.training import step as step_module
from abacist.training.config import TrainingConfig
from abacist.training.loop import Observer, TrainingInterrupted
from abacist.training.optimizer import Optimizer
from abacist.training.schedule import learning_rate
from abacist.training.threads import fastest_threads


def _weights(path: Path) -> dict[str, torch.Tensor]:
    return load_file(checkpoint.all_in(path / "checkpoints")[-1] / "model.safetensors")


def _same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_the_same_seed_gives_the_same_weights(tmp_path, quick_settings):
    for name in ("one", "two"):
        abacist.train("add", out=tmp_path / name, seed=7, settings=quick_settings, threads=1)
    assert _same(_weights(tmp_path / "one"), _weights(tmp_path / "two"))


def test_another_seed_gives_other_weights(tmp_path, quick_settings):
    for seed in (7, 8):
        abacist.train(
            "add", out=tmp_path / str(seed), seed=seed, settings=quick_settings, threads=1
        )
    assert not _same(_weights(tmp_path / "7"), _weights(tmp_path / "8"))


class _StopAt(Observer):
    """Interrupts a training after a step, as a crash would."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step(self, step: int, loss: float) -> None:
        if step == self.step:
            raise ConnectionError("pulled the plug")


@pytest.mark.parametrize("positions", ["place-relative", "coupling"])
@pytest.mark.parametrize("stop", [3, 10, 17, 23])
def test_an_interrupted_run_resumes_to_the_same_bits(tmp_path, quick_settings, stop, positions):
    settings = quick_settings | {"model.positions": positions}
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    abacist.train("add", out=whole, seed=1, settings=settings, threads=1)
    with pytest.raises(ConnectionError):
        abacist.train(
            "add", out=broken, seed=1, settings=settings, threads=1, observer=_StopAt(stop)
        )
    training.resume(broken)
    assert _same(_weights(whole), _weights(broken))
    steps = [record["step"] for record in abacist.load(broken).directory.read_metrics()]
    assert steps == [0, 10, 20, 24]
    losses = [
        [record["loss"] for record in abacist.load(path).directory.read_metrics()]
        for path in (whole, broken)
    ]
    # The record that spans the break averages over all steps since the checkpoint.
    assert losses[0][-1] == losses[1][-1]


def test_kill_9_at_any_moment_loses_only_the_work_since_the_last_checkpoint(
    tmp_path, quick_settings
):
    settings = quick_settings | {"training.num_steps": 200, "training.checkpoint_every": 20}
    abacist.train("add", out=tmp_path / "whole", settings=settings, threads=1)
    killed = tmp_path / "killed"
    script = (
        "import abacist, sys, json\n"
        "abacist.train('add', out=sys.argv[1], settings=json.loads(sys.argv[2]), threads=1)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(killed), json.dumps(settings)])
    while len(checkpoint.all_in(killed / "checkpoints")) < 2:
        assert process.poll() is None
        time.sleep(0.005)
    process.kill()
    process.wait()
    assert checkpoint.read(checkpoint.all_in(killed / "checkpoints")[-1]).progress.step < 200
    training.resume(killed)
    assert _same(_weights(tmp_path / "whole"), _weights(killed))


def test_ctrl_c_saves_and_reports_the_step(tmp_path, quick_settings):
    class Press(Observer):
        def on_step(self, step: int, loss: float) -> None:
            if step == 13:
                os.kill(os.getpid(), signal.SIGINT)

    path = tmp_path / "run"
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(TrainingInterrupted, match="stopped after step 13 of 24"):
        abacist.train("add", out=path, settings=quick_settings, threads=1, observer=Press())
    assert signal.getsignal(signal.SIGINT) is before
    assert checkpoint.all_in(path / "checkpoints")[-1].name == "step-000013"
    training.resume(path)
    abacist.train("add", out=tmp_path / "whole", settings=quick_settings, threads=1)
    assert _same(_weights(path), _weights(tmp_path / "whole"))


def test_a_loss_that_is_not_finite_stops_with_the_last_good_checkpoint_kept(
    tmp_path, quick_settings, monkeypatch
):
    from abacist.training import loop

    original = loop.training_step

    def break_at_step_15(model, optimizer, lines, config, step, *rest):
        if step == 15:
            with torch.no_grad():
                model.embedding.weight.fill_(float("inf"))
        return original(model, optimizer, lines, config, step, *rest)

    monkeypatch.setattr(loop, "training_step", break_at_step_15)
    with pytest.raises(TrainingDiverged, match=r"step 16.*step-000010.*learning_rate 0\.0033"):
        abacist.train("add", out=tmp_path / "run", settings=quick_settings, threads=1)
    newest = checkpoint.all_in(tmp_path / "run" / "checkpoints")[-1]
    assert newest.name == "step-000010"
    checkpoint.read(newest)


def test_a_flipped_byte_is_reported_with_its_file(untrained):
    newest = checkpoint.all_in(untrained.directory.checkpoints)[-1]
    _flip_byte(newest / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"model\.safetensors is damaged"):
        abacist.load(untrained.path)


def test_resuming_falls_back_on_the_checkpoint_before_a_damaged_one(untrained, tmp_path):
    good = _weights(untrained.path)
    newest = checkpoint.all_in(untrained.directory.checkpoints)[-1]
    _flip_byte(newest / "state.safetensors")
    with pytest.warns(UserWarning, match=r"state\.safetensors is damaged.*Going back"):
        training.resume(untrained.path)
    assert _same(good, _weights(untrained.path))


def _flip_byte(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def test_only_the_newest_checkpoints_are_kept(untrained):
    names = [path.name for path in checkpoint.all_in(untrained.directory.checkpoints)]
    assert names == ["step-000020", "step-000024"]


RUN_ENTRIES = (
    *("losses.jsonl", "watched.jsonl", "beginnings.jsonl", "repairs.jsonl", "nonfinite-batch.json"),
    *("embeddings", "scorecard.json", "failures.jsonl", "lengths.png", "grid.png", "notation.png"),
    *("training.png", "certificate.json", "attention.json", "outcome.json", "report.html"),
    *("results-step-000010", "tensorboard", ".scorecard.json.123.tmp"),
)
"""Names of what a run directory may hold besides what every run has."""


def test_an_existing_directory_is_refused_without_overwrite(untrained, quick_settings):
    with pytest.raises(RunError, match=r"exists\. Type --resume"):
        abacist.train("add", out=untrained.path, settings=quick_settings, threads=1)
    abacist.train("add", out=untrained.path, settings=quick_settings, threads=1, overwrite=True)


def test_the_newest_run_is_resumed_by_the_name_latest(untrained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    untrained.path.rename(tmp_path / "runs" / "add")
    assert abacist.resume("latest").path == Path("runs/add")


def test_a_run_that_is_being_trained_is_neither_resumed_nor_overwritten(untrained, quick_settings):
    refused = pytest.raises(RunError, match=r"untrained is being written by another process\.")
    with files.locked(untrained.path):
        with refused:
            abacist.resume(untrained.path)
        with refused:
            abacist.train("add", out=untrained.path, settings=quick_settings, overwrite=True)
    assert abacist.resume(untrained.path).step == untrained.step


@pytest.mark.parametrize("name", ["notes.md", ".git/config", "seed-1/run.json"])
def test_overwrite_never_removes_what_is_not_part_of_a_run(name, untrained, quick_settings):
    other = untrained.path / name
    other.parent.mkdir(exist_ok=True)
    other.write_text("{}")
    before = sorted(untrained.path.rglob("*"))
    with pytest.raises(RunError, match=rf"also holds {name.split('/')[0]}, which is not part of"):
        abacist.train("add", out=untrained.path, settings=quick_settings, overwrite=True)
    assert sorted(untrained.path.rglob("*")) == before


def test_overwrite_replaces_everything_that_commands_write_into_a_run(untrained, quick_settings):
    for name in RUN_ENTRIES:
        path = untrained.path / name
        path.mkdir() if "." not in name else path.write_text("")
    abacist.train("add", out=untrained.path, settings=quick_settings, overwrite=True)
    left = {entry.name for entry in untrained.path.iterdir()}
    assert left <= {"run.json", "metrics.jsonl", "tokenizer.json", "tokenizer_config.json"} | {
        *("checkpoints", "best")
    }


def test_overwrite_never_removes_a_directory_that_is_no_run(tmp_path, quick_settings):
    (tmp_path / "precious.txt").write_text("keep me")
    with pytest.raises(RunError, match="something other than a run"):
        abacist.train("add", out=tmp_path, settings=quick_settings, overwrite=True)
    assert (tmp_path / "precious.txt").read_text() == "keep me"


def test_a_gpu_is_named_with_memory_driver_and_cuda_version(monkeypatch, tmp_path):
    from abacist.runs import circumstances as module

    gpu = SimpleNamespace(name="Example 4000", total_memory=8 << 30)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: gpu)
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    driver = tmp_path / "version"
    driver.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5")
    monkeypatch.setattr(module, "_DRIVER", driver)
    assert module.circumstances()["gpu"] == {
        "name": "Example 4000",
        "memory_bytes": 8_589_934_592,
        "driver": "550.54.15",
        "cuda": "12.8",
    }


def test_run_json_holds_what_is_needed_to_repeat_the_run(untrained):
    record = json.loads(untrained.directory.run_json.read_text())
    assert record["format_version"] == FORMAT_VERSION
    assert record["seed"] == 0
    assert record["threads"] == 1
    assert record["torch"] == torch.__version__
    assert record["recipe"]["training"]["num_steps"] == 24
    assert record["parameters"] == untrained.model.num_parameters
    assert record["machine"]
    assert record["libraries"]["numpy"] == numpy.__version__
    assert (record["gpu"] is None) == (not torch.cuda.is_available())


def test_loading_an_unfinished_run_warns(tmp_path, quick_settings):
    with pytest.raises(ConnectionError):
        abacist.train(
            "add", out=tmp_path / "run", settings=quick_settings, threads=1, observer=_StopAt(12)
        )
    with pytest.warns(UserWarning, match="10 of 24 steps"):
        abacist.load(tmp_path / "run")


def test_timing_threads_does_not_change_the_model(untrained):
    before = {name: p.clone() for name, p in untrained.model.named_parameters()}
    stream = training.TrainingStream(
        untrained.task, untrained.format, untrained.recipe.split, 8, seed=0
    )
    threads, seconds = fastest_threads(
        untrained.model, stream.batch(0), stream.aligned, untrained.recipe.training
    )
    assert threads in seconds
    assert seconds[threads] == min(seconds.values())
    assert all(torch.equal(before[n], p) for n, p in untrained.model.named_parameters())


def test_the_learning_rate_warms_up_and_ends_at_its_final_fraction():
    config = TrainingConfig(
        num_steps=1000, learning_rate=0.1, warmup_steps=100, final_fraction=0.05
    )
    assert learning_rate(config, 0) == pytest.approx(0.001, rel=1e-3)
    assert learning_rate(config, 99) == pytest.approx(0.1, rel=0.03)
    assert learning_rate(config, 1000) == pytest.approx(0.005)
    rates = [learning_rate(config, step) for step in range(100, 1001)]
    assert rates == sorted(rates, reverse=True)


def test_training_losses_are_those_of_the_stored_run(tmp_path, quick_settings):
    """A refactoring must not change a single bit; the first version printed these losses."""
    losses = []

    class Listen(Observer):
        def on_step(self, step: int, loss: float) -> None:
            losses.append(loss)

    abacist.train(
        "add", out=tmp_path / "run", seed=3, settings=quick_settings, threads=1, observer=Listen()
    )
    assert losses[0] == pytest.approx(STORED[0], rel=1e-5)
    assert losses[9] == pytest.approx(STORED[1], rel=1e-4)
    assert losses[23] == pytest.approx(STORED[2], rel=1e-3)


STORED = (2.706646, 2.647451, 2.282056)


def test_every_recipe_takes_a_step_and_is_found_by_name(tmp_path, quick_settings):
    # Published recipes are too large; tests/test_published_recipes.py makes them smaller.
    ours = [
        n for n, recipe in recipes.RECIPES.items() if not recipe.__module__.endswith("published")
    ]
    few = {"num_steps": 2, "warmup_steps": 1, "curriculum": (), "decay_steps": None}
    few |= {"batch_size": 4, "validation_problems": 4, "sample_problems": 4}
    # To list what is wrong takes seconds for a model that has learnt nothing.
    few |= {"repair_rounds": 0}
    for name in ours:
        recipe = override(recipes.find(name), {f"training.{key}": few[key] for key in few})
        assert recipe.name == name
        run = abacist.train(recipe, out=tmp_path / name, threads=1)
        assert run.recipe == recipe


def test_resuming_removes_results_of_weights_that_are_about_to_change(tmp_path, quick_settings):
    path = tmp_path / "run"
    with pytest.raises(ConnectionError):
        abacist.train("add", out=path, settings=quick_settings, threads=1, observer=_StopAt(12))
    with pytest.warns(UserWarning, match="10 of 24"):
        run = abacist.load(path)
    run.score()
    run.prove()
    assert run.directory.certificate.exists()
    resumed = abacist.resume(path)
    assert not any(file.exists() for file in resumed.directory.results)


@pytest.mark.parametrize(
    "arguments", [{"threads": 10**6}, {"threads": 0}, {"seed": -1}, {"seed": 1 << 70}]
)
def test_threads_and_seeds_out_of_range_are_refused_before_a_directory_is_made(tmp_path, arguments):
    with pytest.raises(abacist.AbacistError, match="must be"):
        abacist.train("add", out=tmp_path / "run", **arguments)
    assert not (tmp_path / "run").exists()


def test_a_large_batch_is_split_and_has_the_same_gradient(monkeypatch):
    recipe = override(recipes.find("add"), {"format": "random-spaces", "task.max_digits": 4})
    task, format = build_problems(recipe)
    stream = training.TrainingStream(task, format, recipe.split, batch_size=50, seed=0)
    lines = stream.batch(0)
    torch.manual_seed(0)
    model = build_model(recipe).double()
    weights = []
    for limit in (1 << 40, 40_000):
        monkeypatch.setattr(step_module, "_CACHED_BYTES", limit)
        trial = copy.deepcopy(model)
        loss = step_module.training_step(
            trial, Optimizer(trial, recipe.training), lines, recipe.training, 200, stream.aligned
        )
        weights.append((loss, torch.cat([p.flatten() for p in trial.parameters()])))
    assert len(step_module._micro_batches(model, lines, None)) > 5
    assert weights[0][0] == pytest.approx(weights[1][0], rel=1e-12)
    torch.testing.assert_close(weights[0][1], weights[1][1], rtol=1e-9, atol=1e-9)


def test_an_incomplete_line_of_the_metrics_is_skipped_with_a_warning(untrained):
    whole = untrained.directory.read_metrics()
    with open(untrained.directory.metrics, "a") as file:
        file.write('{"step": 25, "loss": 1.')
    with pytest.warns(UserWarning, match=r"metrics\.jsonl is damaged from line 5 on"):
        assert untrained.directory.read_metrics() == whole


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"format_version": None}, "has no format version and this abacist reads version 2 only"),
        ({"format_version": 1}, "has format version 1 and this abacist reads version 2 only"),
        ({"format_version": 3}, "has format version 3 and this abacist reads version 2 only"),
        ({"threads": 10**6}, "threads must be a whole number from 1 to 1,024, got 1000000"),
        ({"seed": 2**63}, "seed must be a whole number from 0 to"),
        ({"seed": 10**30}, "holds an integer of 31 digits"),
        ({"seed": True}, "seed must be a whole number from 0 to"),
    ],
)
def test_run_json_of_another_version_or_out_of_range_is_refused(untrained, changes, complaint):
    record = json.loads(untrained.directory.run_json.read_text()) | changes
    record = {key: value for key, value in record.items() if value is not None}
    untrained.directory.run_json.write_text(json.dumps(record))
    for read in (abacist.load, abacist.resume):
        with pytest.raises(RunError, match=complaint) as error:
            read(untrained.path)
        assert "\n" not in str(error.value)
        assert str(untrained.directory.run_json) in str(error.value)
    if "format_version" in changes:
        with pytest.raises(RunError, match=complaint):
            find(str(untrained.path))


def test_a_directory_left_before_run_json_was_written_is_free(tmp_path, quick_settings):
    path = tmp_path / "run"
    path.mkdir()
    (path / ".run.json.12345.tmp").write_text('{"recipe":')
    abacist.train("add", out=path, settings=quick_settings)
    assert not list(path.glob(".*"))


def test_a_resumed_run_has_no_leftovers_of_killed_processes(untrained):
    for name in ("checkpoints", "best", "embeddings", "results-step-000001", "."):
        (untrained.path / name).mkdir(exist_ok=True)
        (untrained.path / name / ".file.12345.tmp").write_bytes(b"")
    abacist.resume(untrained.path)
    assert not list(untrained.path.rglob(".*"))


def test_a_run_that_was_overwritten_in_part_can_be_overwritten_again(
    untrained, quick_settings, monkeypatch
):
    class Killed(BaseException):
        pass

    def die(path):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(training.shutil, "rmtree", die)
        with pytest.raises(Killed):
            abacist.train("add", out=untrained.path, settings=quick_settings, overwrite=True)
    abacist.train("add", out=untrained.path, settings=quick_settings, overwrite=True)


def test_one_thread_is_the_default_and_auto_takes_the_fastest(tmp_path, quick_settings):
    for threads in ("auto", 1):
        path = tmp_path / f"{threads}"
        abacist.train("add", out=path, settings=quick_settings, threads=threads)
    records = [json.loads((tmp_path / n / "run.json").read_text()) for n in ("auto", "1")]
    timings = records[0]["seconds_per_step_by_threads"]
    assert records[0]["threads"] == int(min(timings, key=lambda count: timings[count]))
    assert (records[1]["threads"], records[1]["seconds_per_step_by_threads"]) == (1, {})
    default = abacist.train("add", out=tmp_path / "default", settings=quick_settings)
    assert _same(_weights(default.path), _weights(tmp_path / "1"))
