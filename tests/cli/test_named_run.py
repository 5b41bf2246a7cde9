"""Which run and which checkpoint a command is about, and that it says so."""

import json
import shutil

import pytest

import abacist
from abacist.errors import CheckpointError, RunError
from abacist.runs import directory
from abacist.training.checkpoint_paths import all_in, step_of


def test_every_command_says_which_run_latest_is(run, tmp_path, untrained, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(untrained.path, "runs/older")
    shutil.copytree(untrained.path, "runs/newest")
    directory.RunDirectory(directory.Path("runs/newest")).run_json.touch()
    for arguments in (
        ("solve", "latest", "1+1"),
        ("look", "latest", "1+1"),
        ("score", "latest", "--num-problems", "1", "--longest", "10", "--suite", "lengths"),
        ("prove", "latest"),
        ("report", "latest"),
        ("compare", "latest", "latest"),
        ("train", "--resume", "--train-only"),
    ):
        code, _, err = run(*arguments)
        assert code < 2, (arguments, err)
        assert "latest is runs/newest\n" in err, arguments
    assert "latest is" not in run("solve", "runs/newest", "1+1")[2]


def test_a_checkpoint_is_chosen_by_step_or_as_the_best(run, untrained):
    steps = [step_of(path) for path in all_in(untrained.directory.checkpoints)]
    assert steps == [20, 24]
    path, answers = str(untrained.path), {}
    for which in ("last", "24", "20", "best"):
        answers[which], err = run("solve", path, "12+34", "--json", "--checkpoint", which)[1:]
        assert ("checkpoint: step-0000" in err) == (which != "last")
    assert answers["last"] == answers["24"] != answers["20"]
    best = all_in(untrained.directory.best)[-1].name
    assert best in run("look", path, "12+34", "--checkpoint", "best")[2]
    assert abacist.load(path, checkpoint=20).step == 20
    assert abacist.load(path).step == 24


def test_results_of_an_earlier_checkpoint_leave_those_of_the_last_alone(run, untrained):
    path, few = str(untrained.path), ("--num-problems", "2", "--longest", "10")
    run("score", path, *few)
    run("prove", path)
    stored = {file: file.read_bytes() for file in untrained.directory.results if file.exists()}
    assert untrained.directory.certificate in stored
    for arguments in (("score", *few), ("prove",), ("report",), ("score", "--stored")):
        code, _, err = run(arguments[0], path, *arguments[1:], "--checkpoint", "20")
        assert code < 2, err
        assert "checkpoint: step-000020\n" in err
    assert {file: file.read_bytes() for file in stored} == stored
    earlier = directory.find(path, 20)
    assert earlier.results_path == untrained.path / "results-step-000020"
    assert json.loads(earlier.scorecard.read_text())["step"] == 20
    assert json.loads(earlier.certificate.read_text())["step"] == 20
    assert "those of the checkpoint at step 20." in earlier.report.read_text()


@pytest.mark.parametrize("which", ["7", "first", "-1", "1.5", "step-000020", "best "])
def test_a_checkpoint_that_the_run_lacks_is_refused(run, untrained, which):
    for command in (("solve", "1+1"), ("score",), ("prove",), ("look", "1+1"), ("report",)):
        arguments = [command[0], str(untrained.path), *command[1:]]
        code, out, err = run(*arguments, "--checkpoint", which)
        assert (code, out) == (2, "")
        assert "must be last, best or" in err
        assert err.count("\n") == 1


def test_a_run_without_a_best_checkpoint_says_so(untrained):
    shutil.rmtree(untrained.directory.best)
    with pytest.raises(CheckpointError, match=r"has no best checkpoint.*--checkpoint last"):
        abacist.load(untrained.path, checkpoint="best")


def test_a_directory_of_many_runs_says_which_runs_are_inside(run, tmp_path, untrained):
    for number in (10, 2, 1):
        shutil.copytree(untrained.path, tmp_path / f"many/seed-{number}")
    many = tmp_path / "many"
    names = [f"{many}/seed-{number}" for number in (1, 2, 10)]
    for command in (("solve", "1+1"), ("prove",), ("score",), ("look", "1+1"), ("play",)):
        code, out, err = run(command[0], str(many), *command[1:])
        assert (code, out) == (2, "")
        assert (
            f"{many} holds 3 runs, and one is needed. Type one of them: {', '.join(names)}." in err
        )
    with pytest.raises(RunError, match="holds 3 runs"):
        abacist.load(many)
