"""Training looped models: the progressive loss and its random numbers."""

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import abacist
from abacist import recipes
from abacist.configuration import override
from abacist.data.stream import TrainingStream
from abacist.models.teacher_forcing import IGNORED, Predictions, teacher_forced
from abacist.runs import training
from abacist.runs.run import build_model, build_problems
from abacist.training import checkpoint, step
from abacist.training.loop import Observer
from abacist.training.optimizer import Optimizer
from abacist.training.step import training_step

RECURRENCES = 6
LOOPED = {
    "model.recurrences": RECURRENCES,
    "model.injection": "add",
    "training.progressive_weight": 0.3,
    "training.clip_norm": 1e9,
}
each_kind = pytest.mark.parametrize("kind", ["fewer", "detached"])


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


def looped(quick_settings, **more):
    """Return a recipe, its model with weights of a fixed seed, a batch, and whether that is aligned."""
    recipe = override(recipes.find("add"), quick_settings | LOOPED | more)
    torch.manual_seed(0)
    model = build_model(recipe)
    stream = TrainingStream(
        *build_problems(recipe), recipe.split, recipe.training.batch_size, seed=0
    )
    return recipe, model, stream.batch(0), stream.aligned


def loss_of(model, lines, aligned, recurrences=None, num_detached=0):
    predictions = teacher_forced(
        model, lines, equal_lengths=aligned, recurrences=recurrences, num_detached=num_detached
    )
    return nn.functional.cross_entropy(
        predictions.logits.flatten(0, 1), predictions.labels.flatten(), ignore_index=IGNORED
    )


def one_step(quick_settings, number=0, seed=0, **more):
    """Return the loss and the gradient of one training step."""
    recipe, model, lines, aligned = looped(quick_settings, **more)
    optimizer = Optimizer(model, recipe.training)
    loss = training_step(model, optimizer, lines, recipe.training, number, aligned, seed)
    return loss, optimizer.gradient.clone()


@pytest.fixture
def passes(monkeypatch):
    """The recurrences and the detached ones of every pass of a training step."""
    passes = []

    def listen(*args, recurrences=None, num_detached=0, **kwargs):
        passes.append((recurrences, num_detached))
        return teacher_forced(*args, recurrences=recurrences, num_detached=num_detached, **kwargs)

    monkeypatch.setattr(step, "teacher_forced", listen)
    return passes


@each_kind
@pytest.mark.parametrize("number", range(5))
def test_the_loss_mixes_a_full_pass_with_another_one(quick_settings, passes, kind, number):
    loss, gradient = one_step(quick_settings, number, **{"training.progressive_loss": kind})
    full, other = passes
    assert full == (None, 0)
    _, model, lines, aligned = looped(quick_settings)
    mixed = 0.7 * loss_of(model, lines, aligned) + 0.3 * loss_of(model, lines, aligned, *other)
    assert loss == pytest.approx(mixed.item(), rel=1e-6)
    expected = torch.autograd.grad(mixed, list(model.parameters()))
    torch.testing.assert_close(
        gradient, torch.cat([part.flatten() for part in expected]), rtol=1e-4, atol=1e-6
    )


@each_kind
def test_a_weight_of_0_trains_on_the_full_pass_only(quick_settings, kind):
    plain = one_step(quick_settings)
    mixed = one_step(
        quick_settings,
        **{"training.progressive_loss": kind, "training.progressive_weight": 0.0},
    )
    assert mixed[0] == pytest.approx(plain[0], rel=1e-6)
    torch.testing.assert_close(mixed[1], plain[1], rtol=1e-5, atol=1e-7)


@each_kind
def test_a_weight_of_1_trains_on_the_other_pass_only(quick_settings, passes, kind):
    loss, _ = one_step(
        quick_settings,
        number=3,
        **{"training.progressive_loss": kind, "training.progressive_weight": 1.0},
    )
    _, model, lines, aligned = looped(quick_settings)
    assert loss == pytest.approx(loss_of(model, lines, aligned, *passes[1]).item(), rel=1e-6)


def test_without_a_progressive_loss_a_step_makes_one_pass(quick_settings, passes):
    one_step(quick_settings)
    assert passes == [(None, 0)]


@pytest.fixture
def drawn(quick_settings, monkeypatch):
    """The recurrences and the detached ones of the other pass of 60 steps, which do not run the model."""

    def draw(kind, seed=0, num_recurrences=RECURRENCES):
        recipe, model, lines, aligned = looped(
            quick_settings,
            **{"training.progressive_loss": kind, "model.recurrences": num_recurrences},
        )
        optimizer = Optimizer(model, recipe.training)
        passes = []

        def listen(model, lines, *, recurrences, num_detached, **kwargs):
            passes.append((recurrences, num_detached))
            return Predictions(
                model.head.weight[None], torch.zeros(1, len(model.head.weight)).long()
            )

        monkeypatch.setattr(step, "teacher_forced", listen)
        for number in range(60):
            training_step(model, optimizer, lines, recipe.training, number, aligned, seed)
        return passes[1::2]

    return draw


def test_fewer_draws_every_number_of_recurrences_and_detaches_none(drawn):
    passes = drawn("fewer", num_recurrences=4)
    assert {recurrences for recurrences, _ in passes} == {1, 2, 3, 4}
    assert {num_detached for _, num_detached in passes} == {0}


def test_detached_draws_recurrences_without_gradient_and_at_least_one_with(drawn):
    passes = drawn("detached", num_recurrences=4)
    assert {num_detached for _, num_detached in passes} == {0, 1, 2, 3}
    assert {recurrences - num_detached for recurrences, num_detached in passes} == {1, 2}
    assert all(recurrences <= 4 for recurrences, _ in passes)


@each_kind
def test_recurrences_are_drawn_for_every_step_and_repeated_by_seed_and_step(drawn, kind):
    first, again, other = (drawn(kind, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert len(set(first)) > 3


CHANCE = {
    "dropout": {"model.dropout": 0.2},
    "noise": {"model.initial_state": "noise"},
    "offsets": {"model.positions": "coupling"},
    "subsets": {"model.positions": "randomised-fire"},
}
each_chance = pytest.mark.parametrize("settings", CHANCE.values(), ids=CHANCE.keys())


@each_chance
@pytest.mark.parametrize("kind", ["none", "detached"])
def test_a_step_is_repeated_by_its_seed_and_number(quick_settings, settings, kind):
    settings = settings | {"training.progressive_loss": kind}
    first, again, other_step, other_seed = (
        one_step(quick_settings, number, seed, **settings)
        for number, seed in ((5, 1), (5, 1), (6, 1), (5, 2))
    )
    assert first[0] == again[0]
    assert torch.equal(first[1], again[1])
    assert first[0] != other_step[0]
    assert first[0] != other_seed[0]


@each_chance
def test_validation_draws_no_random_numbers(quick_settings, settings):
    _, model, lines, aligned = looped(quick_settings, **settings)
    model.eval()
    with torch.no_grad():
        assert loss_of(model, lines, aligned) == loss_of(model, lines, aligned)


@pytest.mark.parametrize("positions", ["abacus", "randomised-fire"])
def test_a_batch_with_random_offsets_or_subsets_is_not_split(
    quick_settings, monkeypatch, positions
):
    settings = {"model.positions": positions, "training.batch_size": 32}
    whole = one_step(quick_settings | settings)
    monkeypatch.setattr(step, "_CACHED_BYTES", 4_000)
    parts = one_step(quick_settings | settings)
    assert parts[0] == pytest.approx(whole[0], rel=1e-5)


class _StopAt(Observer):
    """Interrupts a training after a step, as a crash would."""

    def __init__(self, step):
        self.step = step

    def on_step(self, step, loss):
        if step == self.step:
            raise ConnectionError("pulled the plug")


RESUMED = {
    "dropout, fewer": ({"model.dropout": 0.2}, "fewer"),
    "noise, detached": ({"model.initial_state": "noise", "model.injection": "linear"}, "detached"),
    "everything": (
        {"model.dropout": 0.1, "model.initial_state": "noise", "model.positions": "abacus-fire"},
        "detached",
    ),
}


@pytest.mark.parametrize(("settings", "kind"), RESUMED.values(), ids=RESUMED.keys())
def test_an_interrupted_run_resumes_to_the_same_bits(tmp_path, quick_settings, settings, kind):
    settings = quick_settings | LOOPED | settings | {"training.progressive_loss": kind}
    settings["model.recurrences"] = 3
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    abacist.train("add", out=whole, seed=1, settings=settings, threads=1)
    with pytest.raises(ConnectionError):
        abacist.train("add", out=broken, seed=1, settings=settings, threads=1, observer=_StopAt(17))
    # Random numbers that the process drew in between must not matter.
    torch.manual_seed(99)
    training.resume(broken)
    first, second = (
        load_file(checkpoint.all_in(path / "checkpoints")[-1] / "model.safetensors")
        for path in (whole, broken)
    )
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    losses = [
        [record["loss"] for record in abacist.load(path).directory.read_metrics()]
        for path in (whole, broken)
    ]
    assert losses[0][-1] == losses[1][-1]


@each_kind
def test_a_looped_model_memorises_its_batch_with_a_progressive_loss(quick_settings, kind):
    recipe, model, lines, aligned = looped(
        quick_settings,
        **{
            "model.width": 16,
            "model.mlp_width": 32,
            "model.recurrences": 3,
            "training.progressive_loss": kind,
            "training.clip_norm": 1.0,
            "training.num_steps": 120,
        },
    )
    optimizer = Optimizer(model, recipe.training)
    losses = [
        training_step(model, optimizer, lines, recipe.training, number, aligned)
        for number in range(120)
    ]
    assert losses[0] > 2
    assert sum(losses[-10:]) / 10 < 0.05
    assert loss_of(model, lines, aligned).item() < 0.05
