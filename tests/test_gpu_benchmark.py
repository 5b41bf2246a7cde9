"""`benchmarks/gpu.py` runs all its pieces at tiny sizes on the CPU, and resumes what it has not finished."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest
import torch

from abacist import recipes
from abacist.training.optimizer import Optimizer
from abacist.training.step import training_step

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def gpu():
    specification = importlib.util.spec_from_file_location("gpu", ROOT / "benchmarks/gpu.py")
    module = importlib.util.module_from_spec(specification)
    sys.modules["gpu"] = module
    specification.loader.exec_module(module)
    yield module
    del sys.modules["gpu"]


def test_all_pieces_are_rehearsed_once_and_then_skipped(gpu, tmp_path, capsys):
    command = ["--all", "--rehearse", "--out", str(tmp_path / "records"), "--runs", str(tmp_path)]
    assert gpu.main(command) == 0
    records = [json.loads(file.read_text()) for file in (tmp_path / "records").iterdir()]
    assert {record["piece"] for record in records} == set(gpu.PIECES)
    assert all(record["finished"] and record["rehearsal"] for record in records)
    capsys.readouterr()
    assert gpu.main(command) == 0
    assert capsys.readouterr().out.count("is finished already") == len(gpu.PIECES)
    real = gpu.Options(tmp_path / "records", tmp_path, 0.0, rehearse=False)
    assert not any(gpu.is_finished(piece, real) for piece in gpu.PIECES.values())


def test_the_documentation_names_every_piece(gpu):
    page = (ROOT / "docs/scaling.md").read_text()
    assert [name for name in gpu.PIECES if f"`{name}`" not in page] == []


def test_a_training_without_time_is_saved_and_resumed(gpu, tmp_path):
    command = ["--piece", "looped-abacus-1x16", "--rehearse", "--out", str(tmp_path), "--runs"]
    command += [str(tmp_path), "--budget"]
    for budget, finished in (("0", False), ("3", True)):
        gpu.main([*command, budget])
        record = json.loads((tmp_path / "gpu-looped-abacus-1x16.json").read_text())
        assert record["finished"] is finished
    assert record["progress"]["step"] == 6
    steps = [
        path.name for path in (tmp_path / "looped-abacus-1x16-rehearsal/checkpoints").iterdir()
    ]
    assert "step-000006" in steps


def test_stacked_models_make_the_steps_of_single_ones(gpu):
    recipe = gpu.rehearsed(recipes.find("add"))
    stack = gpu.Stack(recipe, 2, torch.device("cpu"))
    singles = [stack.model(number).train() for number in range(2)]
    optimizers = [Optimizer(model, recipe.training) for model in singles]
    for step in range(3):
        batch = stack.stream.batch(step)
        alone = [
            training_step(
                model,
                optimizer,
                batch[slice(8 * number, 8 * number + 8)],
                recipe.training,
                step,
                stack.stream.aligned,
            )
            for number, (model, optimizer) in enumerate(zip(singles, optimizers, strict=True))
        ]
        assert stack.step(step).tolist() == pytest.approx(alone, rel=1e-4)
