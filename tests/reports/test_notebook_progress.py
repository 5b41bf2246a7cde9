"""A notebook shows the progress of `abacist.train`; IPython is imitated."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

import abacist
from abacist.reports import notebook_progress
from abacist.runs import repairs, training


class Display:
    """What a notebook shows below one cell."""

    def __init__(self) -> None:
        self.states: list[dict[str, str]] = []

    def __call__(self, data, raw, display_id):
        assert raw
        assert display_id is True
        self.states.append(data)
        return SimpleNamespace(update=lambda data, raw: self.states.append(data))


@pytest.fixture
def notebook(monkeypatch):
    """The display of a notebook whose kernel runs the test."""
    display, ipython = Display(), ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())
    ipython.display = ModuleType("IPython.display")
    ipython.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    return display


def test_a_notebook_shows_loss_and_accuracy_until_the_end(notebook, tmp_path, quick_settings):
    run = abacist.train("add", out=tmp_path / "run", settings=quick_settings)
    first, *_, last = notebook.states
    assert first["text/plain"].startswith("░" * 30 + " 0 of 24 steps")
    assert last["text/plain"].startswith("█" * 30 + " 24 of 24 steps")
    record = run.directory.read_metrics()[-1]
    assert "loss " in last["text/html"]
    assert "token accuracy " in last["text/html"]
    assert f"of {record['exact_match']['n']} validation problems" in last["text/html"]
    assert '<progress value="1.0000"' in last["text/html"]
    count = len(notebook.states)
    abacist.resume(run.path)
    assert len(notebook.states) > count


def test_a_notebook_shows_beginnings_and_rounds_of_repairs(
    notebook, tmp_path, quick_settings, monkeypatch
):
    monkeypatch.setattr(repairs, "count_wrong", lambda trained_model, on_mistake: 1)
    monkeypatch.setattr(notebook_progress, "_SECONDS_BETWEEN_UPDATES", 0.0)
    settings = quick_settings | {
        "training.num_beginnings": 2,
        "training.beginning_steps": 3,
        "training.repair_rounds": 2,
        "training.repair_steps": 6,
    }
    abacist.train("add", out=tmp_path / "run", settings=settings)
    shown = [state["text/plain"] for state in notebook.states]
    for part in ("beginning 2, loss", " 24 of 24 steps", " 27 of 30 steps", " 36 of 36 steps"):
        assert any(part in text for text in shown), part


def test_the_progress_can_be_silenced_and_other_pythons_show_none(
    notebook, monkeypatch, tmp_path, quick_settings
):
    abacist.train("add", out=tmp_path / "silent", settings=quick_settings, progress=False)
    assert notebook.states == []
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None)
    abacist.train("add", out=tmp_path / "terminal", settings=quick_settings)
    assert notebook.states == []


def test_the_observer_of_the_caller_gets_all_events(notebook, tmp_path, quick_settings):
    seen = []

    class Counting(training.Observer):
        def on_step(self, step, loss):
            seen.append(step)

        def on_checkpoint(self, step):
            seen.append(-step)

    abacist.train("add", out=tmp_path / "run", settings=quick_settings, observer=Counting())
    assert [step for step in seen if step > 0] == list(range(1, 25))
    assert [-step for step in seen if step <= 0] == [0, 10, 20, 24]
