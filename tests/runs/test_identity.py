"""Records name the model that they speak of, and are never taken for records of another one."""

import hashlib
import json
import shutil

import pytest
import torch

import abacist
from abacist.cli import main
from abacist.reports import run_records
from abacist.runs import identity
from abacist.training import checkpoint


@pytest.fixture(scope="module")
def trained_twice(train_once, quick_settings):
    """Two runs that differ in their seed only, scored and proved."""

    def train(path):
        run = abacist.train("add", out=path, seed=int(path.name[-1]), settings=quick_settings)
        run.score(["splits"])
        run.prove()
        run.save_attention()

    return [train_once(f"identity-{seed}", train) for seed in (0, 1)]


@pytest.fixture
def own(trained_twice, tmp_path):
    """The directory of a run that a test may change."""
    return abacist.load(shutil.copytree(trained_twice[0], tmp_path / "own")).directory


@pytest.fixture
def foreign(trained_twice):
    return abacist.load(trained_twice[1]).directory


def certify(directory):
    """Make a certificate look certified, as that of a better model does."""
    data = json.loads(directory.certificate.read_text()) | {
        "certified": True,
        "reason": "all is well",
    }
    directory.certificate.write_text(json.dumps(data))


def test_records_name_the_file_of_the_weights_the_recipe_and_the_package(own):
    file = checkpoint.all_in(own.checkpoints)[-1] / "model.safetensors"
    recipe = json.loads(own.run_json.read_text())["recipe"]
    canonical = json.dumps(recipe, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    expected = {
        "weights_sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "configuration_sha256": hashlib.sha256(canonical.encode()).hexdigest(),
    }
    scorecard = json.loads(own.scorecard.read_text())
    failures = [json.loads(line) for line in own.failures.read_text().splitlines()]
    certificate = json.loads(own.certificate.read_text())
    assert failures
    for record in (scorecard, certificate, *failures):
        assert expected.items() <= record.items()
    for record in (scorecard, certificate):
        assert record["abacist_version"] == abacist.__version__
        assert len(record["source_sha256"]) == 64
    assert abacist.load(own.path).identity.to_json() == expected


def test_own_records_are_shown(own):
    certify(own)
    records = run_records.read(own)
    assert records.certificate.certified
    assert list(records.sections) == list(records.failures) == ["splits"]
    assert records.attention is not None
    assert records.damages == []


def test_records_copied_from_another_run_are_shown_as_such(own, foreign):
    for name in ("certificate", "scorecard", "failures", "attention"):
        shutil.copy(getattr(foreign, name), getattr(own, name))
    certify(own)
    records = run_records.read(own)
    assert not records.certificate.certified
    assert "this certificate speaks of other weights" in records.certificate.reason
    assert (records.sections, records.failures, records.attention) == ({}, {}, None)
    text = "\n".join(records.damages)
    assert "scorecard.json speaks of other weights and is left out. Type abacist score" in text
    assert "failures.jsonl speak of another model" in text


def test_a_checkpoint_copied_from_another_run_is_not_certified(own, foreign):
    certify(own)
    shutil.copytree(foreign.checkpoints, own.checkpoints, dirs_exist_ok=True)
    records = run_records.read(own)
    assert "this certificate speaks of other weights" in records.certificate.reason
    assert not records.sections


def test_another_configuration_is_not_certified(own):
    certify(own)
    record = json.loads(own.run_json.read_text())
    record["recipe"]["task"]["max_digits"] = 4
    own.run_json.write_text(json.dumps(record))
    records = run_records.read(own)
    assert "this certificate speaks of another configuration" in records.certificate.reason
    assert not records.sections


def test_a_certificate_that_names_no_weights_certifies_nothing(own):
    data = json.loads(own.certificate.read_text()) | {"certified": True}
    del data["weights_sha256"]
    own.certificate.write_text(json.dumps(data))
    certificate = run_records.read(own).certificate
    assert not certificate.certified
    assert "speaks of weights that it does not name" in certificate.reason


@pytest.mark.parametrize("command", ["report", "score --stored"])
def test_commands_show_no_claim_of_other_weights(own, foreign, command, capsys):
    shutil.copy(foreign.certificate, own.certificate)
    certify(own)
    name, *options = command.split()
    assert main([name, str(own.path), *options]) == 0
    shown = own.report.read_text() if name == "report" else capsys.readouterr().out
    assert "ertified: this certificate speaks of other weights" in shown.replace("\n", " ").replace(
        "CERTIFIED", "ertified"
    ).replace("</strong>", "")
    assert "all is well" not in shown


def test_runs_with_foreign_scores_are_not_compared(own, foreign, capsys):
    shutil.copy(foreign.scorecard, own.scorecard)
    assert main(["compare", str(own.path), str(foreign.path)]) == 2
    error = capsys.readouterr().err
    assert "speaks of other weights" in error
    assert error.count("\n") == 1


def test_scoring_adds_no_section_to_a_foreign_scorecard(own, foreign):
    shutil.copy(foreign.scorecard, own.scorecard)
    shutil.copy(foreign.failures, own.failures)
    run = abacist.load(own.path)
    with pytest.warns(UserWarning, match="speaks of other weights"):
        run.score(["probes"])
    assert list(json.loads(own.scorecard.read_text())["sections"]) == ["probes"]
    assert set(run_records.read(own).failures) <= {"probes"}


def test_records_of_weights_changed_in_memory_are_not_those_of_the_file(own):
    run = abacist.load(own.path)
    with torch.no_grad():
        run.model.embedding.weight[0, 0] += 1
    assert run.prove().weights_sha256 != identity.of_directory(own).weights_sha256
    assert "other weights" in run_records.read(own).certificate.reason
