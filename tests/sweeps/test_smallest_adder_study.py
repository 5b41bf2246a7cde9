"""The search for the smallest adder: its models are those of the package, and its best one becomes a run."""

import json
import re
import sys
from pathlib import Path

import pytest
import torch

from abacist.certificates.calculation_layout import find_layout
from abacist.certificates.column_addition import ColumnAdditionEnumeration
from abacist.configuration import override
from abacist.recipes import find
from abacist.runs.run import build_model, build_problems, load

NEIGHBOURHOODS = 24_518


@pytest.fixture(scope="module")
def study(load_study):
    return load_study("smallest_adder")


@pytest.fixture(scope="module")
def recipe(study):
    return override(find("add-tiny"), {**study.SETTINGS, "model.mlp_width": 3})


def wrong_by_pattern(model, recipe):
    """Return the number of wrong neighbourhoods, counted with the model of the package."""
    layout = find_layout(*build_problems(recipe), model.config)
    wrong = 0
    for part, _ in ColumnAdditionEnumeration(model, layout, 1e6).parts():
        ids = torch.cat([context.ids for context in part])
        target = torch.cat([context.target for context in part])
        cases = torch.unique(torch.cat([ids, target.unsqueeze(1)], dim=1), dim=0)
        coordinates = part[0].pattern.coordinates
        logits = model(cases[:, :-1], coordinates, coordinates.num_tokens - 1)[:, 0]
        wrong += int((logits.argmax(dim=1) != cases[:, -1]).sum())
    return wrong


def test_stacked_models_are_right_where_those_of_the_package_are(study, recipe):
    model = build_model(recipe).eval()
    cases = study.neighbourhoods(model, recipe)
    assert int(cases.count.sum()) == NEIGHBOURHOODS
    assert float(cases.share.sum()) == pytest.approx(1, abs=1e-4)
    generator = torch.Generator().manual_seed(0)
    stack = study.Stack(model, 3, generator)
    with torch.no_grad():
        logits = stack.logits(stack.flat, cases.query, cases.keys)
    is_wrong = logits.argmax(dim=1) != cases.target.unsqueeze(1)
    wrong = (is_wrong * cases.count.unsqueeze(1)).sum(dim=0).tolist()
    for seed in range(3):
        stack.copy_to(model, seed)
        with torch.no_grad():
            assert wrong_by_pattern(model, recipe) == wrong[seed] > 0


def test_a_short_search_leaves_a_run_and_its_record(study, tmp_path, monkeypatch):
    monkeypatch.setattr(study, "RECORD", tmp_path / "record.json")
    monkeypatch.setattr(study, "FULL_STEPS", 1)
    # It would stay for other tests.
    monkeypatch.setattr(torch, "set_flush_denormal", lambda mode: True)
    options = ["--num-seeds", "2", "--num-steps", "2", "--rounds", "1"]
    out = tmp_path / "run"
    monkeypatch.setattr(sys, "argv", ["smallest_adder.py", "--out", str(out), *options])
    study.main()
    (trial,) = json.loads((tmp_path / "record.json").read_text())["trials"]
    assert trial["parameters"] == 84 == load(out).model.num_parameters
    wrong = trial["rounds"][0]["wrong_by_seed"]
    assert len(wrong) == 2
    assert min(wrong) == trial["certificate"]["wrong"]


def test_the_log_states_the_committed_record():
    root = Path(__file__).parents[2]
    (trial,) = json.loads((root / "results" / "smallest-adder.json").read_text())["trials"]
    log = (root / "docs" / "log.md").read_text()
    for number, each in enumerate(trial["rounds"], start=1):
        best = ", ".join(f"{wrong:,}" for wrong in sorted(each["wrong_by_seed"])[:3])
        pattern = rf"\| {number} \| {trial['seeds']} \| [^|]+ \| {best} \| {each['processor_seconds']:.0f} \|"
        assert re.search(pattern, log)
    assert trial["certificate"]["certified"]
    assert f"smallest margin {trial['certificate']['smallest_margin']:.2f}," in log
    assert f"with {trial['parameters']} parameters" in log
