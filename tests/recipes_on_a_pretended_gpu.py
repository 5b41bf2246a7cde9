"""Every recipe trains, generates and scores on a GPU: no operation mixes its tensors with those of the CPU."""

from dataclasses import replace

import pytest
import torch
from pretended_gpu import GPU, MixedDevices, pretended_gpu

from abacist import recipes
from abacist.runs import training
from abacist.runs.directory import read_run_json
from abacist.tasks.config import SortingConfig

_WIDEST = 128


def short(name):
    """Return a recipe that trains for two steps, with few layers instead of wide ones, and with short lists."""
    recipe = recipes.find(name)
    model = recipe.model
    if model.width > _WIDEST:
        model = replace(
            model,
            width=32,
            num_heads=2,
            mlp_width=32,
            num_layers=min(2, model.num_layers),
            recurrences=min(2, model.recurrences),
        )
    steps = replace(
        recipe.training,
        num_steps=2,
        batch_size=4,
        num_examples=None,
        balanced_examples=False,
        keep_partial_batches=False,
        curriculum=(),
        warmup_steps=0,
        decay_steps=None,
        validate_every=2,
        validation_problems=2,
        sample_problems=1,
        watch=(),
        record_loss_every=1,
        # A hardly trained model is wrong in most neighbourhoods, which are fewest for this recipe.
        repair_rounds=int(name == "sort"),
        repair_steps=2,
    )
    task = recipe.task
    if isinstance(task, SortingConfig):
        task = replace(task, max_numbers=3, max_digits=2)
    return replace(recipe, task=task, model=model, training=steps)


@pytest.mark.parametrize("name", recipes.RECIPES)
def test_a_recipe_trains_generates_and_scores_on_a_gpu(name, tmp_path):
    recipe = short(name)
    with pretended_gpu():
        run = training.start(recipe, tmp_path / "gpu", 0, device="cuda")
        assert run.model.device == GPU
        on_gpu = run.solve(run.task.example)
    # The checkpoint of the GPU is read on the CPU, where the model writes the same answers.
    on_cpu = training.resume(tmp_path / "gpu", device="cpu").solve(run.task.example)
    assert [solution.text for solution in on_gpu] == [solution.text for solution in on_cpu]


def test_training_on_a_gpu_has_the_losses_of_the_cpu_and_names_the_gpu(tmp_path):
    with pretended_gpu():
        on_gpu = training.start(short("add"), tmp_path / "gpu", 0, device="cuda")
    on_cpu = training.start(short("add"), tmp_path / "cpu", 0, device="cpu")
    losses = [
        [record["loss"] for record in run.directory.read_metrics()] for run in (on_gpu, on_cpu)
    ]
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)
    gpu = read_run_json(on_gpu.directory)["gpu"]
    assert (gpu["name"], gpu["memory_bytes"]) == ("Pretended GPU", 1 << 30)
    assert set(gpu) == {"name", "memory_bytes", "driver", "cuda"}


def test_the_pretended_gpu_refuses_tensors_of_the_cpu():
    with pretended_gpu():
        ones = torch.ones(3, device="cuda")
        with pytest.raises(MixedDevices, match=r"aten.add.Tensor .* \[\(3,\)\]"):
            ones + torch.ones(3)
        with pytest.raises(RuntimeError, match="not supported"):
            ones.numpy()
        assert (ones + torch.tensor(2.0)).cpu().tolist() == [3.0, 3.0, 3.0]
