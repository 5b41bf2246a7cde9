"""Arguments in any order, problems that look like options, and suggestions for mistakes."""

import pytest

from abacist.cli import COMMANDS
from abacist.cli.arguments import Parser
from abacist.configuration import settings
from abacist.errors import UserError, nearest
from abacist.recipes import find


@pytest.mark.parametrize(
    "arguments",
    [
        ("RUN", "--json", "12+34"),
        ("--json", "RUN", "12+34"),
        ("RUN", "12+34", "--json"),
        ("--device", "cpu", "RUN", "--json", "12+34"),
    ],
    ids=" ".join,
)
def test_options_stand_before_between_or_after_problems(run, untrained, arguments):
    words = [str(untrained.path) if word == "RUN" else word for word in arguments]
    code, out, err = run("solve", *words)
    assert (code < 2, err) == (True, "")
    assert out.startswith('{"problem": "12+34"')


def test_look_takes_its_lens_before_the_problem(run, untrained):
    code, out, err = run("look", str(untrained.path), "--lens", "next-tokens", "12+34", "--json")
    assert (code, err) == (0, "")
    assert '"problem": "12+34"' in out


@pytest.mark.parametrize("problem", ["-3+4", "-(3)", "-.5"])
def test_a_problem_that_begins_with_a_minus_is_a_problem(run, untrained, problem):
    for command in ("solve", "look"):
        code, _, err = run(command, "--device", "cpu", str(untrained.path), problem)
        assert code == 2
        assert "unknown argument" not in err
        assert repr(problem) in err


def test_a_problem_without_a_run_is_seen_at_once(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", None)
    code, out, err = run("solve", "12+34")
    assert (code, out) == (2, "")
    assert err == (
        "abacist: there is no run 12+34. If that is a problem, type a run before it: "
        "a directory, or latest for the newest.\n"
    )


def test_an_unknown_option_is_never_proposed_instead_of_itself(run):
    """A recipe has a name, but no option changes it."""
    code, _, err = run("train", "add", "--name", "sums")
    assert code == 2
    assert "'--name' to abacist train: did you mean '--examples'?" in err


@pytest.mark.parametrize("command", COMMANDS)
def test_help_before_a_command_explains_it(run, command):
    assert run("help", command)[:2] == run(command, "--help")[:2]


def test_help_about_an_unknown_command_proposes_one(run):
    assert "did you mean 'train'?" in run("help", "trian")[2]


def test_the_version_is_a_command_and_an_option(run):
    assert run("version")[:2] == run("--version")[:2]
    assert run("version")[1].startswith("abacist 0.")


NAMES = [f"--{setting.name}" for setting in settings(find("sort"))]
OPTIONS = ["--seed", "--seeds", "--out", "--jobs", "--quick", "--resume"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("--num_steps", "--training.num_steps"),
        ("--num-steps", "--training.num_steps"),
        ("--lr", "--training.learning_rate"),
        ("--training.lr", "--training.learning_rate"),
        ("--model.heads", "--model.num_heads"),
        ("--steps", "--training.num_steps"),
        ("--epochs", "--training.num_steps"),
        ("--batch", "--training.batch_size"),
        ("--heads", "--model.num_heads"),
        ("--layers", "--model.num_layers"),
        ("--dim", "--model.width"),
        ("--warmup", "--training.warmup_steps"),
        ("--widht", "--model.width"),
        ("--sed", "--seed"),
        ("--qick", "--quick"),
    ],
)
def test_suggestions_know_last_parts_and_usual_abbreviations(typed, meant):
    assert nearest(typed, [*OPTIONS, *NAMES]) == f"did you mean {meant!r}?"


def test_suggestions_list_the_section_where_nothing_is_close():
    clause = nearest("training.zzzz", [name[2:] for name in NAMES])
    assert clause.startswith("known: training.")
    assert "model." not in clause


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["train", "add", "--num_steps", "5"], "'--training.num_steps'"),
        (["train", "add", "--training.lr", "0.1"], "'training.learning_rate'"),
        (["model", "add", "--width", "8"], "'--model.width'"),
        (["data", "show", "add", "--max-digits", "3"], "'--task.max_digits'"),
        (["versoin"], "'version'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_commands_suggest_settings(run, arguments, meant):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.endswith(f"did you mean {meant}?\n")


def test_a_word_too_many_is_refused():
    parser = Parser("prove", "Prove.")
    parser.add_run()
    with pytest.raises(UserError, match="abacist prove does not use 'more'"):
        parser.parse(["RUN", "more"])


def test_the_advice_about_missing_extras_works_in_a_clone(run, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for arguments, extra in ((["play"], "app"), (["train", "--track", "trackio"], "track")):
        code, out, err = run(*arguments)
        assert (code, out) == (2, "")
        assert err.endswith(f'Type pip install --editable ".[{extra}]" in the clone of abacist.\n')
