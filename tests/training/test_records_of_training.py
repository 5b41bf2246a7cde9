"""What a training records beside its loss: validation, single losses, watched problems, the best checkpoint."""

import json
import math
import shutil
from unittest.mock import Mock

import pytest
import torch
from safetensors.torch import load_file

import abacist
from abacist import recipes
from abacist.cli import main
from abacist.configuration import override
from abacist.errors import ConfigurationError, TrainingDiverged
from abacist.runs import training
from abacist.runs.run import build_model, build_problems
from abacist.scoring.exact_match import exact_match
from abacist.scoring.measures import ALL, measure
from abacist.scoring.trained_model import TrainedModel
from abacist.training import checkpoint, loop


class _StopAt(loop.Observer):
    def __init__(self, step: int) -> None:
        self.step = step

    def on_step(self, step: int, loss: float) -> None:
        if step == self.step:
            raise ConnectionError("pulled the plug")


def _lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_measures_are_those_of_the_loss_of_training_and_of_exact_match(quick_settings):
    recipe = override(recipes.find("five-operations-10m"), {"model.width": 6, "model.mlp_width": 8})
    torch.manual_seed(0)
    task, format = build_problems(recipe)
    trained_model = TrainedModel(build_model(recipe).eval(), task, format)
    problems = task.parse(["12+34", "56*7", "8-9", "5//4", "99%7", "1+1"])
    measures = measure(trained_model, problems)
    assert list(measures) == [ALL, "+", "-", "*", "//", "%"]
    assert measures["+"].exact_match.n == 2
    assert measures[ALL].token_accuracy.n == 6 * 19
    assert measures[ALL].exact_match == exact_match(trained_model, problems).proportion
    parts = [measures[name] for name in ("+", "-", "*", "//", "%")]
    mean = sum(m.loss * m.token_accuracy.n for m in parts) / (6 * 19)
    assert measures[ALL].loss == pytest.approx(mean)
    assert abs(measures[ALL].loss - math.log(17)) < 0.5  # an untrained model guesses


def test_an_answer_can_be_right_whatever_its_scratch_work(monkeypatch, quick_settings):
    recipe = override(recipes.find("five-operations-10m"), {"model.width": 6, "model.mlp_width": 8})
    task, format = build_problems(recipe)
    model = build_model(recipe).eval()
    problems = task.parse(["123*45"])
    ids = format.write(problems, task.answer(problems)).ids.long()

    for wrong, answer in ((2, 1), (1, 0)):  # a digit of a carry, a digit of the answer
        logits = torch.nn.functional.one_hot(ids[:, 9:], 17).float()
        logits[0, wrong] = 0
        monkeypatch.setattr(type(model), "unembed", Mock(return_value=logits))
        measures = measure(TrainedModel(model, task, format), problems)[ALL]
        assert measures.exact_match.successes == 0
        assert measures.exact_answer.successes == answer
        assert measures.token_accuracy.successes == 18


def test_metrics_begin_before_training_and_hold_validation_and_training_problems(
    tmp_path, quick_settings
):
    settings = quick_settings | {"training.sample_problems": 30}
    run = abacist.train("add", out=tmp_path / "run", settings=settings, threads=1)
    first, *_, last = run.directory.read_metrics()
    assert (first["step"], first["seconds"], last["step"]) == (0, 0.0, 24)
    assert first["loss"] == first["training_sample"]["loss"]
    for record in (first, last):
        assert record["training_sample"]["exact_match"]["n"] == 30
        assert record["exact_answer"]["n"] == record["exact_match"]["n"] == 20
        assert record["token_accuracy"]["n"] > 40
        assert record["operations"] == {}
    assert last["validation_loss"] < first["validation_loss"]


def test_losses_and_watched_problems_are_the_same_after_an_interruption(tmp_path, quick_settings):
    settings = quick_settings | {
        "training.record_loss_every": 1,
        "training.watch": ("1+1", "57+24"),
    }
    whole = abacist.train("add", out=tmp_path / "whole", settings=settings, threads=1)
    with pytest.raises(ConnectionError):
        abacist.train(
            "add", out=tmp_path / "broken", settings=settings, threads=1, observer=_StopAt(17)
        )
    broken = training.resume(tmp_path / "broken")
    losses = _lines(whole.directory.losses)
    assert [record["step"] for record in losses] == list(range(1, 25))
    assert losses == _lines(broken.directory.losses)
    solved = _lines(whole.directory.watched)
    assert [(record["step"], record["problem"]) for record in solved] == [
        (step, problem) for step in (0, 10, 20, 24) for problem in ("1+1", "57+24")
    ]
    assert all(record["perplexity"] > 1 for record in solved)
    assert solved == _lines(broken.directory.watched)


def test_the_best_checkpoint_is_kept_beside_the_last(tmp_path, quick_settings):
    run = abacist.train("add", out=tmp_path / "run", settings=quick_settings, threads=1)
    records = run.directory.read_metrics()[1:]
    best = max(records, key=lambda r: (r["exact_match"]["value"], -r["validation_loss"]))
    (path,) = checkpoint.all_in(run.directory.best)
    assert path.name == f"step-{best['step']:06d}"
    loaded = abacist.load(run.path, checkpoint="best")
    assert loaded.step == best["step"]
    weights = load_file(path / "model.safetensors")
    assert torch.equal(weights["embedding.weight"], loaded.model.embedding.weight)


def test_resuming_deletes_no_checkpoint_that_is_best(tmp_path, quick_settings):
    with pytest.raises(ConnectionError):
        abacist.train(
            "add", out=tmp_path / "run", settings=quick_settings, threads=1, observer=_StopAt(21)
        )
    best = tmp_path / "run" / "best"
    (path,) = checkpoint.all_in(best)
    assert path.name == "step-000020"
    weights = (path / "model.safetensors").read_bytes()
    checkpoint.keep_newest(tmp_path / "run" / "checkpoints", 1)
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "step-000020")
    with pytest.raises(ConnectionError):
        training.resume(tmp_path / "run", _StopAt(3))
    assert (path / "model.safetensors").read_bytes() == weights
    with pytest.raises(ConnectionError):
        training.resume(tmp_path / "run", _StopAt(12))
    assert [p.name for p in checkpoint.all_in(best)] == ["step-000010", "step-000020"]
    training.resume(tmp_path / "run")
    assert len(checkpoint.all_in(best)) == 1


def test_all_checkpoints_can_be_kept(tmp_path, quick_settings):
    settings = quick_settings | {"training.keep_checkpoints": "all"}
    run = abacist.train("add", out=tmp_path / "run", settings=settings, threads=1)
    assert [p.name[-2:] for p in checkpoint.all_in(run.directory.checkpoints)] == ["10", "20", "24"]
    assert run.recipe.training.keep_checkpoints is None


def test_no_steps_keep_the_untrained_model(tmp_path, quick_settings):
    settings = quick_settings | {"training.num_steps": 0, "training.warmup_steps": 0}
    run = abacist.train("add", out=tmp_path / "run", settings=settings, threads=1)
    assert [record["step"] for record in run.directory.read_metrics()] == [0]
    assert abacist.load(run.path).score().errors > 0


def test_training_can_stop_on_the_answer(tmp_path, quick_settings):
    config = override(recipes.find("add"), quick_settings | {"training.stop_on": "answer"}).training
    assert config.stop_on == "answer"
    measures = loop.Measures.of_counts(1.0, (5, 10), (0, 4), (3, 4))
    validation = loop.Validation({ALL: measures}, measures)
    assert loop._matched(config, validation).value == 0.75


def test_a_batch_without_a_finite_loss_is_saved_as_text(tmp_path, quick_settings, monkeypatch):
    monkeypatch.setattr(loop, "training_step", lambda *_: math.nan)
    with pytest.raises(TrainingDiverged, match=r"lines of that batch are in nonfinite-batch\.json"):
        abacist.train("add", out=tmp_path / "run", settings=quick_settings, threads=1)
    record = json.loads((tmp_path / "run" / "nonfinite-batch.json").read_text())
    assert record["step"] == 1
    assert len(record["lines"]) == len(record["ids"]) == 8
    assert record["lines"][0].startswith("<start>")


def test_problems_to_watch_come_from_a_file(tmp_path, monkeypatch):
    file = tmp_path / "problems.txt"
    file.write_text("1+1\n\n 57 + 24 \n")
    options = ["--watch", str(file), "--train-only", "--out", str(tmp_path / "run")]
    settings = ["--training.num_steps", "2", "--training.warmup_steps", "0"]
    assert main(["train", "add", *options, *settings]) == 0
    assert abacist.load(tmp_path / "run").recipe.training.watch == ("1+1", "57 + 24")
    assert main(["train", "add", "--watch", str(tmp_path / "none.txt")]) == 2


def test_a_watched_problem_that_cannot_be_read_is_refused_before_training(tmp_path, quick_settings):
    settings = quick_settings | {"training.watch": ("1+",)}
    with pytest.raises(abacist.AbacistError, match="an operand is missing"):
        abacist.train("add", out=tmp_path / "run", settings=settings, threads=1)
    assert not (tmp_path / "run").exists()
    with pytest.raises(ConfigurationError, match=r"training\.record_loss_every must be 1 to"):
        override(recipes.find("add"), {"training.record_loss_every": 0})
