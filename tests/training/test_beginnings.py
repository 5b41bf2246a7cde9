"""Several beginnings: the best on validation is trained, and whatever stops them loses only the last one."""

import json
import os
import signal

import pytest
import torch
from safetensors.torch import load_file

import abacist
from abacist.intervals import Proportion
from abacist.runs import training
from abacist.training import checkpoint
from abacist.training.beginnings import best_of, seed_weights
from abacist.training.loop import Observer, TrainingInterrupted
from abacist.training.metrics import Beginning


@pytest.fixture
def settings(quick_settings):
    return quick_settings | {"training.num_beginnings": 3, "training.beginning_steps": 12}


class _Heard(Observer):
    """Keeps what is measured, and calls a function after a step of a beginning."""

    def __init__(self, at: tuple[int, int] | None = None, call=None) -> None:
        self.at, self.call, self.beginnings = at, call, []

    def on_beginning_step(self, number, step, loss):
        if (number, step) == self.at:
            self.call()

    def on_beginning(self, beginning):
        self.beginnings.append(beginning)


def _pull_the_plug():
    raise ConnectionError("pulled the plug")


def _weights(path):
    return load_file(checkpoint.all_in(path / "checkpoints")[-1] / "model.safetensors")


def _same(one, other):
    return all(torch.equal(tensor, other[name]) for name, tensor in one.items())


def test_the_best_beginning_is_trained_to_the_end(tmp_path, settings, quick_settings, monkeypatch):
    heard = _Heard()
    run = abacist.train("add", out=tmp_path / "run", seed=5, settings=settings, observer=heard)
    assert [beginning.number for beginning in heard.beginnings] == [0, 1, 2]
    assert len({beginning.validation_loss for beginning in heard.beginnings}) == 3
    records = [json.loads(line) for line in run.directory.beginnings.read_text().splitlines()]
    assert [record["validation_loss"] for record in records] == [
        beginning.validation_loss for beginning in heard.beginnings
    ]
    assert run.directory.read_metrics()[-1]["seconds"] > sum(r["seconds"] for r in records)
    best = best_of(heard.beginnings)
    for number in range(3):
        with monkeypatch.context() as patch:
            patch.setattr(training, "seed_weights", lambda seed, _, n=number: seed_weights(seed, n))
            alone = tmp_path / str(number)
            abacist.train("add", out=alone, seed=5, settings=quick_settings)
        assert _same(_weights(run.path), _weights(alone)) == (number == best)
    assert not (alone / "beginnings.jsonl").exists()


def test_beginnings_that_were_measured_are_not_repeated(tmp_path, settings):
    whole = abacist.train("add", out=tmp_path / "whole", settings=settings)
    for at, again in (((0, 5), [0, 1, 2]), ((2, 12), [2])):
        path = tmp_path / f"broken-{at[0]}"
        with pytest.raises(ConnectionError):
            abacist.train("add", out=path, settings=settings, observer=_Heard(at, _pull_the_plug))
        heard = _Heard()
        abacist.resume(path, heard)
        assert [beginning.number for beginning in heard.beginnings] == again
        assert _same(_weights(whole.path), _weights(path))


def test_ctrl_c_during_a_beginning_is_reported(tmp_path, settings):
    press = _Heard((1, 3), lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(TrainingInterrupted, match="stopped in beginning 2 of 3"):
        abacist.train("add", out=tmp_path / "run", settings=settings, observer=press)
    heard = _Heard()
    assert abacist.resume(tmp_path / "run", heard).step == 24
    assert [beginning.number for beginning in heard.beginnings] == [1, 2]


def test_a_damaged_record_is_made_again(tmp_path, settings):
    path = tmp_path / "run"
    with pytest.raises(ConnectionError):
        abacist.train("add", out=path, settings=settings, observer=_Heard((2, 1), _pull_the_plug))
    file = path / "beginnings.jsonl"
    file.write_bytes(file.read_bytes()[:-9])
    heard = _Heard()
    with pytest.warns(UserWarning, match="damaged from line 2 on"):
        abacist.resume(path, heard)
    assert [beginning.number for beginning in heard.beginnings] == [1, 2]
    assert len(file.read_text().splitlines()) == 3


def test_exact_match_decides_and_then_the_loss():
    half, more = Proportion(5, 10), Proportion(6, 10)
    diverged = Beginning(3, 0)
    assert best_of([diverged, Beginning(9, 1, half, 0.5), Beginning(9, 2, more, 0.9)]) == 2
    assert best_of([Beginning(9, 0, more, 0.9), Beginning(9, 1, more, 0.5)]) == 1
    assert best_of([Beginning(9, 0, half, 0.5), Beginning(9, 1, half, 0.5)]) == 0
    assert best_of([diverged, Beginning(9, 1, Proportion(0, 10), 9.0)]) == 1
    assert best_of([diverged, Beginning(9, 1, half, float("nan"))]) == 0


def test_a_beginning_is_not_longer_than_the_training(tmp_path, settings):
    heard = _Heard()
    longer = settings | {"training.beginning_steps": 1_000}
    abacist.train("add", out=tmp_path / "run", settings=longer, observer=heard)
    assert [beginning.step for beginning in heard.beginnings] == [24, 24, 24]
