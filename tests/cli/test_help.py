"""Help texts: short first, complete on demand, and never wider than the terminal."""

import shutil
import subprocess

import pytest

from abacist.cli import COMMANDS
from abacist.cli.setting_help import OFTEN_CHANGED
from abacist.configuration import settings
from abacist.recipes import RECIPES, find


def test_help_of_train_shows_the_settings_that_people_change(run):
    out = run("train", "multiply", "--help")[1]
    shown = {line.split()[0][2:] for line in out.splitlines() if line.startswith("  --task.")}
    assert shown == {"task.max_digits"}
    assert all(f"  --{name}" in out for name in OFTEN_CHANGED)
    assert "train multiply --help-all" in " ".join(out.split())


def test_help_all_explains_every_setting(run):
    code, out, _ = run("train", "sort", "--help-all")
    assert code == 0
    for setting in settings(find("sort")):
        assert setting.name == "name" or f"  --{setting.name}" in out
    assert "--training.curriculum.1.num_steps" in out


def test_help_all_of_a_section_leaves_out_the_others(run):
    out = run("train", "--help-all", "model", "scoring")[1]
    assert "\nmodel:\n" in out
    assert "\nscoring:\n" in out
    assert "--training" not in out
    assert "--model.width 32\n      Width of the residual stream." in out


@pytest.mark.parametrize("word", ["modle", "--seed", "traning", "multipli", "1"])
def test_help_all_of_something_else_is_refused(run, word):
    code, out, err = run("train", "--help-all", word)
    assert (code, out) == (2, "")
    assert "--help-all takes a recipe and sections of its settings" in err


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_help_fits_the_terminal(run, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    for arguments in (
        ("train", "--help"),
        ("train", "five-operations", "--help-all"),
        ("recipes",),
        ("recipes", "add"),
        ("recipes", "sort"),
    ):
        for line in run(*arguments)[1].splitlines():
            # The names that stand for positions or tasks are words that cannot be broken.
            assert len(line) <= columns or " " not in line.strip(), (arguments, line)


def test_the_list_of_recipes_has_three_statements_for_each(run):
    out = run("recipes")[1]
    for name in RECIPES:
        assert f"{name}\n    " in out
    assert len(out.splitlines()) < 8 * len(RECIPES)


def complete(words: list[str], script: str) -> list[str]:
    typed = " ".join(words)
    command = (
        f"{script}\nCOMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _abacist; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    return result.stdout.split()


def test_bash_completes_commands_options_recipes_and_settings(run):
    script = run("completion", "bash")[1]
    assert complete(["abacist", "pro"], script) == ["prove"]
    assert complete(["abacist", "train", "mult"], script) == ["multiply"]
    assert complete(["abacist", "train", "--model.wid"], script) == ["--model.width"]
    assert complete(["abacist", "solve", "la"], script) == ["latest"]
    assert complete(["abacist", "score", "--num"], script) == ["--num-problems"]
    assert complete(["abacist", "completion", "f"], script) == ["fish"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_of_all_shells_name_every_command_and_can_be_parsed(run, shell):
    code, script, _ = run("completion", shell)
    assert code == 0
    for command in COMMANDS:
        assert command in script
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


@pytest.mark.parametrize("arguments", [[], ["tcsh"], ["BASH"], ["bash", "zsh"], ["--shell", "zsh"]])
def test_completion_refuses_other_shells(run, arguments):
    code, out, err = run("completion", *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
