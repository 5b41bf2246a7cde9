"""Trainings that are made shorter: `--quick`, and all conflicts of a shortened training at once."""

import json

import pytest

import abacist
from abacist.errors import ConfigurationError
from abacist.recipes import RECIPES, find
from abacist.recipes.shortening import shortened


@pytest.mark.parametrize("fraction", [0.001, 0.1, 0.5, 1])
def test_every_recipe_can_be_shortened(fraction):
    for recipe in map(find, RECIPES):
        quick = shortened(recipe, fraction)
        steps = round(fraction * recipe.training.num_steps)
        staged = sum(stage.num_steps for stage in quick.training.curriculum)
        expected = max(1, steps, staged + 1 if staged else 0)
        assert quick.training.num_steps == expected, recipe.name
        if fraction == 1:
            assert quick == recipe


def test_warm_up_decay_and_curriculum_shrink_with_the_steps():
    training, quick = find("sort").training, shortened(find("sort"), 0.1).training
    for name in ("num_steps", "warmup_steps", "decay_steps"):
        assert getattr(quick, name) == getattr(training, name) // 10
    assert [stage.num_steps * 10 for stage in quick.curriculum] == [
        stage.num_steps for stage in training.curriculum
    ]


def test_quick_means_the_same_in_python(tmp_path, quick_settings):
    settings = {k: v for k, v in quick_settings.items() if "steps" not in k}
    trained = abacist.train("add", out=tmp_path / "run", quick=0.01, settings=settings)
    assert trained.recipe.training.num_steps == 9
    with pytest.raises(ConfigurationError, match=r"quick must be 0\.001 to 1, got 2"):
        abacist.train("add", out=tmp_path / "other", quick=2)
    assert not (tmp_path / "other").exists()


def test_quick_trains_and_settings_that_are_typed_win(run, tmp_path, quick_settings):
    settings = {k: v for k, v in quick_settings.items() if "steps" not in k}
    words = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    path = tmp_path / "run"
    options = ("--train-only", "--json", "--out", str(path), "--quick", "0.01")
    code, out, _ = run("train", *options, *words, "--training.warmup_steps", "2")
    assert code == 0
    assert json.loads(out)["steps"] == 9
    stored = json.loads((path / "run.json").read_text())["recipe"]["training"]
    assert (stored["num_steps"], stored["warmup_steps"]) == (9, 2)
    code, _, err = run("train", "--resume", "--out", str(path), "--quick", "0.5")
    assert code == 2
    assert "--quick belongs to the start of a run" in err


@pytest.mark.parametrize("fraction", ["0", "-0.1", "1.5", "ten", "nan", "½"])
def test_fractions_outside_their_range_are_refused(run, fraction):
    code, out, err = run("train", "--quick", fraction)
    assert (code, out) == (2, "")
    assert f"must be a fraction from 0.001 to 1, got {fraction!r}. Try --quick 0.1" in err
    with pytest.raises(ConfigurationError, match=r"must be 0\.001 to 1"):
        shortened(find("add"), 0)


def test_all_conflicts_of_a_shortened_training_come_in_one_line_with_a_way_out(run):
    code, out, err = run("train", "sort", "--training.num_steps", "60")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    for name in ("training.warmup_steps must be", "training.decay_steps must be", "the stages of"):
        assert name in err
    fraction = err.rpartition("--quick ")[2].rstrip(".\n")
    assert 0 < float(fraction) < 1
    assert shortened(find("sort"), float(fraction))


def test_quick_is_not_proposed_where_it_does_not_help(run):
    assert "--quick" not in run("train", "--training.batch_size", "0")[2]
    assert "--quick" not in run("train", "--training.warmup_steps", "2000")[2]
    for steps in ("1" + "0" * 5_000, "0" * 5_000 + "1", "10000000"):
        code, _, err = run("train", "--training.num_steps", steps, "--training.batch_size", "0")
        assert (code, err.count("\n"), "--quick" in err) == (2, 1, False)
