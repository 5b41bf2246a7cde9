"""`benchmarks/records.py` writes the committed record of a recipe."""

import json
import runpy
from pathlib import Path

import pytest

from abacist.sweeps.execution import Finished
from abacist.sweeps.local import LocalProcesses

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def benchmark():
    return runpy.run_path(str(ROOT / "benchmarks/records.py"))


def test_a_record_that_is_added_to_lists_no_seed_twice_after_an_interruption(
    benchmark, tmp_path, monkeypatch
):
    committed = json.loads((ROOT / "results/three-digit.json").read_text())["seeds"]
    (tmp_path / "results").mkdir()
    record = tmp_path / "results" / "three-digit.json"
    record.write_text(json.dumps({"seeds": committed[:2]}))
    number_of_trials, interrupted_after = [], 1

    def pretended(executor, trials, path):
        number_of_trials.append(len(trials))
        for count, trial in enumerate(trials):
            if count == interrupted_after:
                raise KeyboardInterrupt
            outcome = benchmark["Outcome"](**committed[0] | {"seed": trial.seed})
            directory = trial.run_directory(path)
            directory.path.mkdir(parents=True)
            directory.outcome.write_text(json.dumps(outcome.to_json()))
            yield Finished(trial, outcome)

    monkeypatch.setattr(LocalProcesses, "carry_out", pretended)
    make_record = benchmark["make_record"]
    monkeypatch.setitem(make_record.__globals__, "ROOT", tmp_path)
    with pytest.raises(KeyboardInterrupt):
        make_record("three-digit", 4, 1, 1, tmp_path / "runs", True)
    assert [seed["seed"] for seed in json.loads(record.read_text())["seeds"]] == [0, 1, 2]
    interrupted_after = None
    make_record("three-digit", 4, 1, 1, tmp_path / "runs", True)
    assert [seed["seed"] for seed in json.loads(record.read_text())["seeds"]] == [0, 1, 2, 3]
    assert number_of_trials == [0, 2, 0, 1]
