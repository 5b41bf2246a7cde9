"""Metrics reach TensorBoard and trackio."""

import importlib.machinery
import sys
import types

import pytest

import abacist
from abacist.errors import ConfigurationError
from abacist.runs.tracking import Tracked
from abacist.training.loop import Forwarding, Observer


def test_every_event_is_passed_on_with_its_arguments():
    events = {name: method for name, method in vars(Observer).items() if name.startswith("on_")}
    calls = []

    def recording(name):
        return lambda self, *arguments: calls.append((name, arguments))

    inner = type("Recording", (Observer,), {name: recording(name) for name in events})()
    expected = []
    for name, method in events.items():
        arguments = tuple(object() for _ in range(method.__code__.co_argcount - 1))
        getattr(Forwarding(inner), name)(*arguments)
        expected.append((name, arguments))
    assert len(calls) == 8
    assert calls == expected


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_metrics_go_to_tensorboard(tmp_path, quick_settings):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    path = tmp_path / "run"
    with Tracked(["tensorboard"], path, Observer()) as observer:
        run = abacist.train("add", out=path, settings=quick_settings, observer=observer)
    events = EventAccumulator(str(path / "tensorboard"))
    events.Reload()
    logged = [(event.step, event.value) for event in events.Scalars("loss")]
    expected = [(record["step"], record["loss"]) for record in run.directory.read_metrics()]
    assert [step for step, _ in logged] == [step for step, _ in expected]
    assert [v for _, v in logged] == pytest.approx([v for _, v in expected], rel=1e-6)


def test_metrics_go_to_trackio(tmp_path, quick_settings, monkeypatch):
    calls = []

    class FakeRun:
        def log(self, metrics, step=None):
            calls.append((step, metrics))

        def finish(self):
            calls.append("finished")

    def init(project):
        calls.append(project)
        return FakeRun()

    fake = types.ModuleType("trackio")
    fake.init = init
    fake.__spec__ = importlib.machinery.ModuleSpec("trackio", None)
    monkeypatch.setitem(sys.modules, "trackio", fake)

    class Inner(Observer):
        steps: list[int] = []  # noqa: RUF012

        def on_checkpoint(self, step):
            self.steps.append(step)

    with Tracked(["trackio"], tmp_path / "run", Inner()) as observer:
        run = abacist.train("add", out=tmp_path / "run", settings=quick_settings, observer=observer)
    assert (calls[0], calls[-1]) == ("run", "finished")
    expected = [(record["step"], record["loss"]) for record in run.directory.read_metrics()]
    assert [(step, metrics["loss"]) for step, metrics in calls[1:-1]] == expected
    assert Inner.steps[-1] == expected[-1][0]


@pytest.mark.parametrize("name", ["tensorbord", ""])
def test_an_unknown_tracker_is_refused(tmp_path, name):
    with pytest.raises(ConfigurationError, match="track must be one of tensorboard, trackio"):
        Tracked([name], tmp_path, Observer())
