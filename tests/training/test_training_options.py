"""Optimisers, schedules, averages, curricula, precision: each follows its definition and resumes."""

import copy
import itertools
import math
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file

import abacist
from abacist import recipes
from abacist.configuration import override
from abacist.data.stream import Curriculum
from abacist.devices import find_device
from abacist.errors import ConfigurationError
from abacist.formats.annotated import Field
from abacist.models.teacher_forcing import coordinates_of
from abacist.runs import embeddings, training
from abacist.runs.run import build_model, build_problems
from abacist.training import checkpoint
from abacist.training.config import Stage, TrainingConfig
from abacist.training.loop import Observer
from abacist.training.optimizer import LossScale, Optimizer
from abacist.training.schedule import learning_rate
from abacist.training.step import training_step


class StopAt(Observer):
    """Interrupts a training after a step, as a crash would."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step(self, step: int, loss: float) -> None:
        if step == self.step:
            raise ConnectionError("pulled the plug")


def weights(path):
    return load_file(checkpoint.all_in(path / "checkpoints")[-1] / "model.safetensors")


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def prepared(settings, seed=0):
    """A model, its optimiser, its first batch and its configuration."""
    recipe = override(recipes.find("add"), settings)
    torch.manual_seed(seed)
    model = build_model(recipe)
    task, format = build_problems(recipe)
    batches = training._batches(task, format, recipe, seed, torch.device("cpu"))
    return model, Optimizer(model, recipe.training), batches, recipe.training


SETTINGS = {
    "muon": {"training.optimizer": "muon"},
    "averaged weights": {"training.ema_decay": 0.9},
    "muon and averaged weights": {"training.optimizer": "muon", "training.ema_decay": 0.9},
    "relative biases": {"training.relative_bias_rate": 8.0},
    "all three": {
        "training.relative_bias_rate": 8.0,
        "training.optimizer": "muon",
        "training.ema_decay": 0.9,
    },
    "all tokens": {"training.loss_on": "all"},
    "trapezoid": {"training.schedule": "trapezoid"},
    "micro-batches": {"training.micro_batches": 3},
    "bfloat16": {"training.precision": "bfloat16"},
    "float16": {"training.precision": "float16"},
    "no clipping": {"training.clip_norm": None},
    "mixed lengths": {"training.mixed_lengths": True},
    "partial batches": {"training.num_examples": 30, "training.keep_partial_batches": True},
    "curriculum": {
        "training.curriculum": (
            Stage(num_steps=5, task=("max_digits=1",)),
            Stage(num_steps=7, task=("max_digits=2", "sampling=carry-chains")),
        )
    },
}


@pytest.mark.parametrize("name", SETTINGS)
def test_every_training_setting_resumes_to_the_same_bits(tmp_path, quick_settings, name):
    settings = quick_settings | SETTINGS[name]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    abacist.train("add", out=whole, settings=settings, threads=1)
    with pytest.raises(ConnectionError):
        abacist.train("add", out=broken, settings=settings, threads=1, observer=StopAt(13))
    training.resume(broken)
    assert same(weights(whole), weights(broken))
    assert abacist.load(whole).recipe == abacist.load(broken).recipe


@pytest.mark.parametrize("settings", [{}, SETTINGS["float16"]])
def test_muon_is_saved_before_its_first_step(tmp_path, quick_settings, settings):
    settings = quick_settings | SETTINGS["muon"] | settings
    settings |= {"training.num_steps": 0, "training.warmup_steps": 0}
    run = abacist.train("add", out=tmp_path / "run", settings=settings, threads=1)
    model, optimizer, *_ = prepared(settings)
    stored = checkpoint.read(checkpoint.all_in(run.path / "checkpoints")[-1])
    stored.load_weights(model)
    stored.load_optimizer(optimizer)
    assert not optimizer.state()["muon.0"].any()


# Schedules ----------------------------------------------------------------------------------

STEPS = {"num_steps": 100, "warmup_steps": 10, "learning_rate": 1.0, "final_fraction": 0.2}


@pytest.mark.parametrize("schedule", ["cosine", "linear", "trapezoid", "constant"])
def test_every_schedule_warms_up_in_a_straight_line(schedule):
    config = TrainingConfig(schedule=schedule, **STEPS)
    flat = TrainingConfig(schedule=schedule, **STEPS | {"warmup_steps": 0})
    if schedule != "linear":
        for step in range(10):
            expected = (step + 1) / 10 * learning_rate(flat, step)
            assert learning_rate(config, step) == pytest.approx(expected)
    assert learning_rate(config, 4) == pytest.approx(0.5, rel=0.01)


def test_a_cosine_can_begin_after_the_warm_up():
    config = TrainingConfig(schedule="cosine", decay_from="warmup", **STEPS)
    assert learning_rate(config, 9) == learning_rate(config, 10) == 1.0
    # Half of the 90 steps after the warm-up, between 1 and 0.2.
    assert learning_rate(config, 55) == pytest.approx(0.6)
    assert learning_rate(config, 55) > learning_rate(TrainingConfig(**STEPS), 55)


def test_a_cosine_can_fall_several_times():
    # The first cycle begins with the warm-up; 30 steps do not divide into 4 cycles evenly.
    settings = {"num_steps": 30, "warmup_steps": 0, "learning_rate": 1.0, "final_fraction": 0.0}
    rates = [learning_rate(TrainingConfig(num_cycles=4, **settings), step) for step in range(30)]
    rises = [step for step, (a, b) in enumerate(itertools.pairwise(rates), 1) if b > a]
    assert rises == [8, 15, 23]
    assert rates[0] == rates[15] == 1.0
    once = [learning_rate(TrainingConfig(**settings), step) for step in range(30)]
    assert rates[3] == pytest.approx(once[12])
    after_warm_up = TrainingConfig(num_cycles=3, decay_from="warmup", **STEPS)
    assert [learning_rate(after_warm_up, step) for step in (10, 40, 70)] == [1.0] * 3
    assert learning_rate(after_warm_up, 99) < 0.21
    assert learning_rate(after_warm_up, 100) == 0.2


def test_a_cosine_may_have_no_step_left_after_the_warm_up():
    config = TrainingConfig(decay_from="warmup", **STEPS | {"warmup_steps": 100})
    assert [learning_rate(config, step) for step in (49, 99)] == [0.5, 1.0]


def test_a_linear_schedule_falls_evenly_from_the_warm_up_to_the_end():
    config = TrainingConfig(schedule="linear", **STEPS)
    rates = [learning_rate(config, step) for step in range(10, 100)]
    falls = [a - b for a, b in itertools.pairwise(rates)]
    assert max(falls) - min(falls) < 1e-12
    assert rates[0] == 1.0
    assert rates[-1] - falls[-1] == pytest.approx(0.2)


def test_a_trapezoid_is_level_and_falls_over_its_last_steps():
    config = TrainingConfig(schedule="trapezoid", decay_steps=20, **STEPS)
    assert {learning_rate(config, step) for step in range(10, 80)} == {1.0}
    assert learning_rate(config, 90) == pytest.approx(0.2 + 0.8 * 0.5)
    default = TrainingConfig(schedule="trapezoid", **STEPS)
    assert learning_rate(default, 90) == 1.0 > learning_rate(default, 91)


def test_a_constant_schedule_does_not_fall():
    config = TrainingConfig(schedule="constant", **STEPS)
    assert {learning_rate(config, step) for step in range(10, 100)} == {1.0}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"decay_steps": 10},
            "training.decay_steps applies to a trapezoid only, got schedule cosine",
        ),
        ({"curriculum": (Stage(num_steps=1_500),)}, "take 1,500 steps and leave none of the 1,500"),
        ({"micro_batches": 200}, "training.micro_batches must be 1 to 128, got 200"),
        ({"stop_at": 1.5}, "training.stop_at must be 0 to 1, got 1.5"),
        ({"ema_decay": 1.0}, "training.ema_decay must be 0 to 0.999999, got 1.0"),
        ({"decay_from": "warmup", "schedule": "linear"}, "decay_from warmup applies to the cosine"),
        ({"num_cycles": 2, "schedule": "linear"}, "num_cycles 2 applies to the cosine"),
        (
            {"keep_partial_batches": True},
            "keep_partial_batches is about a fixed number of problems",
        ),
        ({"clip_norm": 0.0}, "training.clip_norm must be 1e-09 to 1,000,000,000, got 0.0"),
        ({"checkpoint_seconds": 0.0}, "training.checkpoint_seconds must be 0.1 to"),
        ({"record_embeddings_every": 0}, "training.record_embeddings_every must be 1 to"),
    ],
)
def test_impossible_settings_are_refused_in_one_line(settings, message):
    with pytest.raises(ConfigurationError, match=message) as error:
        TrainingConfig(**settings)
    assert "\n" not in str(error.value)
    assert "Try --training." in str(error.value)


# Optimisers ---------------------------------------------------------------------------------


def test_muon_updates_the_matrices_of_the_layers_and_adamw_the_rest(quick_settings):
    settings = quick_settings | {"training.optimizer": "muon", "training.clip_norm": None}
    model, optimizer, batches, config = prepared(settings)
    plain = copy.deepcopy(model)
    matrices = {
        f"{name}.weight"
        for name, module in plain.named_modules()
        if isinstance(module, torch.nn.Linear) and name.startswith("blocks.")
    }
    named = dict(plain.named_parameters())
    muon = torch.optim.Muon(
        [named[name] for name in sorted(matrices)],
        lr=config.learning_rate,
        weight_decay=config.weight_decay,
        momentum=config.momentum,
        adjust_lr_fn="match_rms_adamw",
    )
    adamw = torch.optim.AdamW(
        [parameter for name, parameter in named.items() if name not in matrices],
        lr=config.learning_rate,
        betas=(config.beta1, config.beta2),
        weight_decay=config.weight_decay,
    )
    for step in range(3):
        training_step(model, optimizer, batches.batch(step), config, step, batches.aligned)
        for name, parameter in model.named_parameters():
            named[name].grad = parameter.grad.clone()
        for other in (muon, adamw):
            other.param_groups[0]["lr"] = learning_rate(config, step)
            other.step()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter, named[name], rtol=1e-5, atol=1e-6, msg=name)


def test_relative_biases_have_a_learning_rate_of_their_own_and_the_decay_of_all(quick_settings):
    changes = {"training.relative_bias_rate": 8.0, "training.clip_norm": None}
    model, optimizer, batches, config = prepared(quick_settings | changes)
    plain = copy.deepcopy(model)
    named = dict(plain.named_parameters())
    biases = [named[name] for name in named if name.endswith("relative.0.table")]
    others = [parameter for name, parameter in named.items() if not name.endswith("0.table")]
    assert len(biases) == 1
    adamw = torch.optim.AdamW(
        [
            {"params": others, "weight_decay": config.weight_decay},
            {"params": biases, "weight_decay": config.weight_decay / 8},
        ],
        betas=(config.beta1, config.beta2),
    )
    for step in range(5):
        training_step(model, optimizer, batches.batch(step), config, step, batches.aligned)
        for name, parameter in model.named_parameters():
            named[name].grad = parameter.grad.clone()
        for group, rate in zip(adamw.param_groups, (1, 8), strict=True):
            group["lr"] = rate * learning_rate(config, step)
        adamw.step()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter, named[name], rtol=1e-5, atol=1e-6, msg=name)


def test_averaged_weights_are_validated_and_saved_and_the_others_trained(tmp_path, quick_settings):
    settings = quick_settings | {"training.ema_decay": 0.8}
    model, optimizer, batches, config = prepared(settings)
    mean = optimizer.flat.clone()
    for step in range(6):
        training_step(model, optimizer, batches.batch(step), config, step, batches.aligned)
        decay = min(0.8, (step + 1) / (step + 10))
        mean = decay * mean + (1 - decay) * optimizer.flat
    trained = optimizer.flat.clone()
    with optimizer.averaged():
        torch.testing.assert_close(optimizer.flat, mean)
    assert torch.equal(optimizer.flat, trained)
    path = checkpoint.save(tmp_path, model, optimizer, checkpoint.Progress(6, 0.0))
    saved = load_file(path / "model.safetensors")
    with optimizer.averaged():
        for name, parameter in model.named_parameters():
            assert torch.equal(saved[name], parameter), name


def test_a_finished_run_has_the_averaged_weights_that_it_saved(tmp_path, quick_settings):
    settings = quick_settings | {"training.ema_decay": 0.9}
    run = abacist.train("add", out=tmp_path / "run", settings=settings, threads=1)
    assert same(weights(run.path), {n: p.detach() for n, p in run.model.named_parameters()})


def test_micro_batches_make_the_same_step(quick_settings):
    outcomes = []
    for micro_batches in (None, 4):
        model, optimizer, batches, config = prepared(
            quick_settings | {"training.micro_batches": micro_batches}
        )
        loss = training_step(model, optimizer, batches.batch(0), config, 0, batches.aligned)
        outcomes.append((loss, optimizer.gradient.clone()))
    assert outcomes[0][0] == pytest.approx(outcomes[1][0], rel=1e-5)
    torch.testing.assert_close(outcomes[0][1], outcomes[1][1], rtol=1e-3, atol=1e-6)


def test_loss_on_all_is_the_mean_over_every_token_but_the_first(quick_settings):
    settings = quick_settings | {"training.loss_on": "all", "format": "usual"}
    model, optimizer, batches, config = prepared(settings)
    lines = batches.batch(0)
    with torch.no_grad():
        logits = model(lines.ids[:, :-1], coordinates_of(lines[:, :-1]))
        log_probabilities = logits.double().log_softmax(dim=-1)
        counted = lines.field[:, 1:] != Field.PADDING
        picked = log_probabilities.gather(-1, lines.ids[:, 1:].long().unsqueeze(-1)).squeeze(-1)
        expected = -picked[counted].mean()
    loss = training_step(model, optimizer, lines, config, 0, batches.aligned)
    assert loss == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize("mixed_lengths", [False, True])
@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_half_precision_makes_nearly_the_same_step(quick_settings, precision, mixed_lengths):
    losses = []
    settings = quick_settings | {"training.mixed_lengths": mixed_lengths, "model.num_layers": 2}
    for value in ("float32", precision):
        model, optimizer, batches, config = prepared(settings | {"training.precision": value})
        losses.append(
            [
                training_step(model, optimizer, batches.batch(s), config, s, batches.aligned)
                for s in range(4)
            ]
        )
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], rel=0.02)


def test_an_overflow_in_float16_skips_a_step_and_lowers_the_scale(quick_settings):
    model, optimizer, batches, config = prepared(quick_settings | {"training.precision": "float16"})
    before = optimizer.flat.clone()
    optimizer.loss_scale.value = 1e38
    loss = training_step(model, optimizer, batches.batch(0), config, 0, batches.aligned)
    assert math.isfinite(loss)
    assert torch.equal(before, optimizer.flat)
    assert optimizer.loss_scale.value == 5e37


def test_a_loss_scale_grows_after_many_good_steps_and_fails_when_too_small():
    scale = LossScale()
    first = scale.value
    for _ in range(2_000):
        scale.succeed()
    assert scale.value == 2 * first
    lowered = [scale.lower() for _ in range(60)]
    assert lowered[0]
    assert not lowered[-1]


# Curricula ----------------------------------------------------------------------------------


def test_each_stage_of_a_curriculum_has_its_steps_and_its_problems(quick_settings):
    _, _, batches, _ = prepared(quick_settings | SETTINGS["curriculum"])
    assert isinstance(batches, Curriculum)
    for step, digits in [(0, 1), (4, 1), (5, 2), (11, 2)]:
        lines = batches.batch(step)
        operands = lines.place[(lines.field >= Field.OPERAND)]
        assert int(operands.max()) <= digits, step
    longest = max(
        int(b.place[b.field >= Field.OPERAND].max())
        for b in (batches.batch(s) for s in range(12, 24))
    )
    assert longest == 3


def test_the_task_after_a_curriculum_begins_with_its_own_first_problems(quick_settings):
    _, _, staged, _ = prepared(quick_settings | SETTINGS["curriculum"])
    _, _, plain, _ = prepared(quick_settings)
    assert torch.equal(staged.batch(12).ids, plain.batch(0).ids)


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("max_digits=4", "must only ask for problems of the task, with at most 3 digits"),
        ("max_digit=2", "training.curriculum.0.task: unknown setting 'max_digit'"),
        ("operations=-", "must only ask for problems of the task"),
        ("max_digits=x", "max_digits must be a whole number, 1 to 1,000,000, got 'x'"),
    ],
)
def test_a_stage_with_an_unknown_setting_of_the_task_is_refused(
    tmp_path, quick_settings, typed, message
):
    settings = quick_settings | {
        "training.curriculum.0.num_steps": "5",
        "training.curriculum.0.task": typed,
    }
    with pytest.raises(ConfigurationError, match=message):
        abacist.train("add", out=tmp_path / "run", settings=settings, threads=1)
    assert not (tmp_path / "run").exists()


# Stopping, saving, recording ----------------------------------------------------------------


def test_training_stops_after_enough_validations_that_reach_the_target(tmp_path, quick_settings):
    settings = quick_settings | {
        "training.num_steps": 200,
        "training.stop_at": 0.0,
        "training.stop_after": 3,
    }
    run = abacist.train("add", out=tmp_path / "run", settings=settings, threads=1)
    assert [r["step"] for r in run.directory.read_metrics()] == [0, 10, 20, 30]
    assert checkpoint.all_in(run.directory.checkpoints)[-1].name == "step-000030"
    before = weights(run.path)
    run.directory.scorecard.write_text("{}")
    training.resume(run.path)
    assert same(before, weights(run.path))
    assert run.directory.scorecard.exists()  # it describes these weights
    abacist.load(run.path)  # does not warn that steps are missing


def test_consecutive_validations_are_counted_across_an_interruption(tmp_path, quick_settings):
    settings = quick_settings | {
        "training.num_steps": 200,
        "training.stop_at": 0.0,
        "training.stop_after": 3,
    }
    with pytest.raises(ConnectionError):
        abacist.train(
            "add", out=tmp_path / "run", settings=settings, threads=1, observer=StopAt(25)
        )
    run = training.resume(tmp_path / "run")
    assert [r["step"] for r in run.directory.read_metrics()] == [0, 10, 20, 30]


def test_checkpoints_are_also_written_after_some_seconds(tmp_path, quick_settings, monkeypatch):
    settings = quick_settings | {
        "training.checkpoint_every": 1_000,
        "training.checkpoint_seconds": 0.1,
        "training.keep_checkpoints": 100,
    }
    clock = itertools.count(step=0.02)
    monkeypatch.setattr("abacist.training.loop.time.perf_counter", lambda: next(clock))
    run = abacist.train("add", out=tmp_path / "run", settings=settings, threads=1)
    assert 3 < len(checkpoint.all_in(run.directory.checkpoints)) < 24


def test_embeddings_are_recorded_and_those_after_the_checkpoint_recorded_again(
    tmp_path, quick_settings
):
    settings = quick_settings | {
        "training.record_embeddings_every": 4,
        "model.positions": "coupling",
    }
    with pytest.raises(ConnectionError):
        abacist.train(
            "add", out=tmp_path / "run", settings=settings, threads=1, observer=StopAt(17)
        )
    run = training.resume(tmp_path / "run")
    copies = embeddings.read(run.directory.embeddings)
    assert list(copies) == [0, 4, 8, 12, 16, 20, 24]
    assert torch.equal(copies[24]["tokens"], run.model.embedding.weight)
    assert torch.equal(copies[24]["positions.0"], run.model.positions[0].rows.weight)
    assert not torch.equal(copies[0]["tokens"], copies[4]["tokens"])


# Devices ------------------------------------------------------------------------------------


def test_a_missing_device_is_refused(tmp_path, quick_settings):
    assert find_device("cpu").type == "cpu"
    with pytest.raises(ConfigurationError, match="must be one of auto, cpu, cuda, mps, got 'gpu'"):
        find_device("gpu")
    if not torch.cuda.is_available():
        with pytest.raises(ConfigurationError, match="'cuda', which torch does not find"):
            training.start(recipes.find("add"), tmp_path / "run", 0, device="cuda")
        assert not (tmp_path / "run").exists()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_trains_on_the_same_problems_to_nearly_the_same_loss(tmp_path, quick_settings):
    recipe = override(recipes.find("add"), quick_settings)
    records = []
    for device in ("cpu", "cuda"):
        run = training.start(recipe, tmp_path / device, 0, 1, device=device)
        records.append([record["loss"] for record in run.directory.read_metrics()])
        assert run.solve(["12+34"])[0].expected == "46"
    assert records[0] == pytest.approx(records[1], rel=1e-3)


def test_adamw_needs_no_import_of_torchs_compiler() -> None:
    script = (
        "import sys, abacist; from abacist.training.config import TrainingConfig as C\n"
        "from abacist.training.optimizer import Optimizer as O; from abacist import recipes\n"
        "from abacist.runs.run import build_model; model = build_model(recipes.find('add'))\n"
        "assert O(model, C()).step(0.1) and 'torch._dynamo' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
