"""The command line: what it prints, and one line for every mistake."""

import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from abacist.cli import COMMANDS
from abacist.data.split import split_names
from abacist.training import checkpoint


def standard_input(text: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(text.encode()))


def _settings(quick_settings):
    return [word for k, v in quick_settings.items() for word in (f"--{k}", str(v))]


def _one_line(text: str) -> str:
    assert text.count("\n") == 1, text
    assert text.startswith("abacist: ")
    return text


def test_help_names_every_command(run):
    code, out, _ = run("--help")
    assert code == 0
    for command in COMMANDS:
        assert f"  {command}" in out
    assert run()[1] == out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(run, command):
    code, out, _ = run(command, "--help")
    assert code == 0
    assert f"usage: abacist {command}" in out


def test_train_help_explains_every_setting(run):
    out = run("train", "add", "--help-all")[1]
    assert "--model.width 32\n      Width of the residual stream." in out
    assert "--model.positions.0.window 0,1" in out


def test_train_ends_with_commands_that_work(run, quick_settings, tmp_path):
    arguments = ["--out", str(tmp_path / "run"), "--threads", "1", *_settings(quick_settings)]
    _, out, _ = run("train", *arguments, "--train-only")
    typed = [shlex.split(line) for line in out.partition("Next:\n")[2].splitlines()]
    assert [words[1] for words in typed] == ["solve", "look", "score"]
    for words in typed:
        code, _, err = run(*words[1:])
        assert (code < 2, err) == (True, "")


def test_the_summary_after_training_is_at_most_18_lines(run, tmp_path, quick_settings):
    path = tmp_path / "run"
    _, out, _ = run("train", "--out", str(path), "--threads", "1", *_settings(quick_settings))
    # Seven lines of progress, on standard error, make 25.
    assert len(out.splitlines()) <= 18
    assert f"rows: abacist score {path} --stored)" in out
    assert "99…9+1, 50 digits" in out
    assert "(100 digits)" in out
    assert "CERTIFIED: " in out


def test_solve_prints_a_line_a_problem(run, certified):
    code, out, _ = run("solve", str(certified.path), "12+34", " 7 + 0005 ")
    assert (code, out) == (0, "12+34=46 ✓\n7+5=12 ✓\n")


def test_solve_prints_json_objects(run, certified):
    _, out, _ = run("solve", str(certified.path), "12+34", "--json")
    printed = json.loads(out)
    assert 1 <= printed.pop("perplexity") < 1.01
    assert printed == {
        "problem": "12+34",
        "answer": "46",
        "expected": "46",
        "correct": True,
        "text": "64<end>",
        "expected_text": "64<end>",
    }


def test_solve_reads_standard_input_in_order(run, certified, monkeypatch):
    problems = [f"{i}+{i * i}" for i in range(0, 3000, 3)]
    monkeypatch.setattr(sys, "stdin", standard_input("\n".join(problems) + "\n"))
    code, out, _ = run("solve", str(certified.path))
    assert code == 0
    assert [line.partition("=")[0] for line in out.splitlines()] == problems


def test_solve_fails_when_an_answer_is_wrong(run, untrained):
    code, out, _ = run("solve", str(untrained.path), "12+34", "--json")
    assert code == 1
    assert json.loads(out)["correct"] is False
    assert "✗ expected 46" in run("solve", str(untrained.path), "12+34")[1]


def test_solve_takes_numbers_beyond_the_4300_digits_that_python_converts(run, certified):
    digits = "9" * 4_400
    code, out, _ = run("solve", str(certified.path), f"{digits}+1")
    assert code == 0
    assert out == f"{digits}+1=1{'0' * len(digits)} ✓\n"


@pytest.mark.parametrize(
    ("problem", "complaint"),
    [
        ("12+", "operand is missing"),
        ("abc", "not a sum of whole numbers"),
        ("1.5+2", "whole numbers"),
        ("-3+4", "minus"),
        ("1+2+3", "it has 3 numbers and this task takes 2 numbers"),
        ("", "empty problem"),
        ("   ", "empty problem"),
        ("7*8", "knows + only"),
        ("١+٢", "cannot read"),
        ("🙂+1", "cannot read"),
        ("<script>1+1</script>", "cannot read"),
        ("1" * 100_001 + "+1", "at most 100,000"),
    ],
)
def test_problems_that_cannot_be_read_get_one_line(run, certified, problem, complaint):
    code, out, err = run("solve", str(certified.path), problem)
    assert (code, out) == (2, "")
    assert complaint in _one_line(err)
    assert len(err) < 300


def test_a_line_of_standard_input_that_is_no_problem_ends_the_answers(run, certified, monkeypatch):
    monkeypatch.setattr(sys, "stdin", standard_input("1+2\n3+4\n3*\n5+6\n"))
    code, out, err = run("solve", str(certified.path))
    assert (code, out) == (2, "1+2=3 ✓\n3+4=7 ✓\n")
    assert "3*" in _one_line(err)


def test_blank_lines_of_standard_input_are_no_problems(run, certified, monkeypatch):
    monkeypatch.setattr(sys, "stdin", standard_input("1+2\n\n3+4\n \n"))
    assert run("solve", str(certified.path)) == (0, "1+2=3 ✓\n3+4=7 ✓\n", "")


def test_prove_exits_0_with_a_certificate(run, certified):
    code, out, _ = run("prove", str(certified.path))
    assert code == 0
    assert "CERTIFIED: adds all pairs of non-negative integers of every length." in out
    assert "24,518 neighbourhoods checked, 0 wrong" in out


def test_prove_is_given_up_where_it_would_take_longer_than_asked_for(run, certified, monkeypatch):
    monkeypatch.setattr("abacist.certificates.certificate._MOST_PER_SECOND", 1)
    code, out, _ = run("prove", str(certified.path), "--max-minutes", "1")
    assert code == 1
    assert "more than the time limit" in out
    code, _, err = run("prove", str(certified.path), "--max-minutes", "0")
    assert code == 2
    assert "whole number of at least 1" in _one_line(err)


def test_prove_exits_1_with_a_counterexample(run, untrained):
    code, out, _ = run("prove", str(untrained.path), "--json")
    certificate = json.loads(out)
    assert code == 1
    assert certificate["certified"] is False
    assert certificate["wrong"] > 0
    assert certificate["counterexample"]["correct"] is False
    assert run("prove", str(untrained.path))[1].startswith("NOT CERTIFIED")


def test_prove_writes_problems_to_train_on(run, untrained, tmp_path):
    file = tmp_path / "wrong.txt"
    code, out, _ = run("prove", str(untrained.path), "--mistakes", str(file))
    problems = file.read_text().split()
    assert code == 1
    assert f"Problems with wrong neighbourhoods in {file}: {len(problems):,}." in out
    assert len(set(problems)) == len(problems) > 100
    names = split_names(untrained.task.parse(problems), untrained.recipe.split)
    assert set(names) == {"train"}
    options = ["--examples", str(file), "--task.max_digits", "3", "--training.num_steps", "2"]
    options += ["--training.warmup_steps", "0", "--train-only", "--out", str(tmp_path / "run")]
    assert run("train", "add", *options)[0] == 0
    code, out, err = run("prove", str(untrained.path), "--mistakes", str(file), "--json")
    assert json.loads(out)["wrong"] >= len(problems)
    assert "wrong neighbourhoods in" in err
    unwritten = tmp_path / "none.txt"
    small = shutil.copytree(Path(__file__).parents[2] / "examples/add-tiny", tmp_path / "small")
    code, out, _ = run("prove", str(small), "--mistakes", str(unwritten))
    assert (code, unwritten.exists()) == (0, False)
    assert "is not written" in out
    # Refused before the proof, whose result would be printed.
    code, out, err = run("prove", str(untrained.path), "--mistakes", str(tmp_path))
    assert (code, out) == (2, "")
    assert f"cannot write {tmp_path}: Is a directory." in _one_line(err)


def test_score_prints_json_with_n_and_interval(run, untrained):
    code, out, _ = run("score", str(untrained.path), "--json", "--num-problems", "5")
    assert code == 0
    first = json.loads(out)["sections"]["lengths"]["rows"][0]["proportion"]
    assert first["n"] <= 50
    assert len(first["interval"]) == 2


@pytest.mark.parametrize("longest", [20, 100])
def test_score_goes_as_far_as_asked(run, untrained, longest):
    options = ("--json", "--num-problems", "1", "--longest", str(longest))
    code, out, _ = run("score", str(untrained.path), *options)
    rows = json.loads(out)["sections"]["lengths"]["rows"]
    assert code == 0
    assert max(row["digits"] for row in rows) == longest
    assert f"{longest} digits" in [row["name"] for row in rows]


def test_score_draws_a_picture(run, untrained):
    run("score", str(untrained.path))
    assert untrained.directory.lengths_picture.read_bytes().startswith(b"\x89PNG")


def test_recipes_lists_every_recipe_and_shows_one(run):
    from abacist.recipes import RECIPES

    listed = json.loads(run("recipes", "--json")[1])
    assert [row["name"] for row in listed] == list(RECIPES)
    assert all(row["summary"] and row["promise"] for row in listed)
    code, out, _ = run("recipes", "add")
    assert code == 0
    assert "--model.width 32" in out
    shown = json.loads(run("recipes", "add", "--json")[1])
    assert shown["settings"]["model"]["width"] == 32


def test_train_prints_one_json_object(run, tmp_path, quick_settings):
    path = tmp_path / "run"
    code, out, err = run(
        "train", "--out", str(path), "--json", "--threads", "1", *_settings(quick_settings)
    )
    result = json.loads(out)
    assert code == 0
    assert result["run"] == str(path)
    assert result["steps"] == 24
    assert result["certificate"]["certified"] is False
    assert result["scorecard"]["sections"]["lengths"]["rows"]
    assert "exact match" in err


def test_a_training_that_stops_early_reports_the_steps_it_made(run, tmp_path, quick_settings):
    settings = quick_settings | {"training.stop_at": 0, "training.stop_after": 1}
    options = ("--out", str(tmp_path / "run"), "--json", "--train-only", "--threads", "1")
    code, out, _ = run("train", *options, *_settings(settings))
    assert (code, json.loads(out)["steps"]) == (0, settings["training.validate_every"])


def test_a_table_of_scores_needs_scores(run, tmp_path):
    code, _, error = run("train", "--train-only", "--csv", str(tmp_path / "scores.csv"))
    assert (code, "writes the scores, and --train-only makes none" in error) == (2, True)


def test_train_resumes(run, tmp_path, quick_settings):
    path = tmp_path / "run"
    settings = _settings(quick_settings)
    run("train", "--out", str(path), "--train-only", "--threads", "1", *settings)
    for newest in checkpoint.all_in(path / "checkpoints")[1:]:
        (newest / "model.safetensors").write_bytes(b"torn")
    code, _, err = run("train", "--resume", "--out", str(path), "--train-only")
    assert code == 0
    assert "abacist: warning:" in err
    assert "is damaged" in err
    assert "from step 20" in err
    assert run("train", "--resume", str(path), "--train-only")[0] == 0


def test_settings_equal_to_those_of_the_run_may_be_typed_again_on_resuming(
    run, tmp_path, quick_settings
):
    path = tmp_path / "run"
    arguments = ["add", "--out", str(path), "--seed", "3", "--threads", "1", "--train-only"]
    arguments += ["--model.positions", "coupling", *_settings(quick_settings)]
    assert run("train", *arguments)[0] == 0
    code, _, err = run("train", "--resume", *arguments)
    assert code == 0, err
    assert "from step 24" in err


def test_other_settings_than_those_of_the_run_are_refused_by_name(run, untrained):
    path = str(untrained.path)
    code, out, err = run(
        *("train", "subtract", "--resume", "--out", path, "--seed", "3", "--threads", "2"),
        *("--model.width", "16", "--training.batch_size", "8", "--task.max_digits", "4"),
    )
    assert (code, out) == (2, "")
    assert _one_line(err) == (
        f"abacist: {path} is resumed with its own settings: the recipe is add, got subtract; "
        "--seed is 0, got 3; --threads is 1, got 2; --task.max_digits is 3, got 4; "
        f"--model.width is 8, got 16. Type abacist train --resume --out {path}, "
        "or another --out to start a run.\n"
    )


def test_many_seeds_are_resumed_with_their_own_settings_only(run, tmp_path, quick_settings):
    path = tmp_path / "seeds"
    arguments = ["--out", str(path), "--seed", "5", "--seeds", "1", *_settings(quick_settings)]
    code, out, _ = run("train", *arguments, "--json")
    assert code == 0
    assert [outcome["seed"] for outcome in json.loads(out)["outcomes"]] == [5]
    assert run("train", "--resume", *arguments, "--json")[:2] == (code, out)
    _, _, err = run("train", "--resume", "--out", str(path), "--seed", "6", "--seeds", "2")
    assert "--seed is 5, got 6; --seeds is 1, got 2." in _one_line(err)
    _, _, err = run("train", "--out", str(path), "--seeds", "2")
    assert "exists. Type --resume to finish its trials" in _one_line(err)


@pytest.mark.parametrize("command", [["report"], ["compare"], ["play"], ["solve"], ["train"]])
def test_a_run_of_another_format_version_is_refused(run, untrained, certified, command):
    record = json.loads(untrained.directory.run_json.read_text())
    untrained.directory.run_json.write_text(json.dumps(record | {"format_version": 1}))
    arguments = {
        "compare": [str(certified.path), str(untrained.path)],
        "train": ["--resume", "--out", str(untrained.path)],
        "solve": [str(untrained.path), "1+1"],
    }.get(command[0], [str(untrained.path)])
    code, out, err = run(*command, *arguments)
    assert (code, out) == (2, "")
    assert "has format version 1 and this abacist reads version 2 only" in _one_line(err)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["train", "ad"], "unknown recipe 'ad': did you mean 'add'?"),
        (["train", "add", "--model.widht", "3"], "did you mean 'model.width'?"),
        (["train", "--model.width", "33"], "multiple of model.num_heads = 4, got 33"),
        (["train", "--model.width"], "needs a value"),
        (["train", "--model.width", "wide"], "got 'wide'"),
        (["train", "--model.activation", "tanh"], "one of relu, gelu"),
        (["train", "--model.positions", "ropes"], "one of place-relative"),
        (["train", "--model.positions.0.offset", "sample"], "changes nothing"),
        (["train", "--task.max_digits", "0"], "must be 1 to 1,000,000, got 0"),
        (["train", "--task.min_digits", "11"], "must be 1 to 10, got 11"),
        (["train", "--training.learning_rate", "-1"], "got -1.0"),
        (["train", "--training.learning_rate", "nan"], "got nan"),
        (["train", "--seed", "-1"], "whole number of at least 0"),
        (["train", "--sed", "1"], "did you mean '--seed'?"),
        (["train", "--out", "/proc/none"], "cannot write"),
        (["train", "--resume", "--out", "nowhere"], "there is no run nowhere"),
        (["train", "--resume", "--model.width", "64"], "there is no run under runs/ yet"),
        (["train", "--resume", "--overwrite"], "--overwrite belongs to the start of a run"),
        (["train", "--resume", "--seeds", "3"], "it has no plan.json"),
        (["train", "--seeds", "2", "--threads", "auto"], "needs a number of threads, got auto"),
        (["train", "--threads", "two"], "whole number of at least 1, got 'two'"),
        (["train", "--seed", "9" * 30], "seed must be 0 to"),
        (["train", "--threads", "1000000"], "threads must be 1 to"),
        (["train", "--training.num_steps", "50"], "Try --training.warmup_steps 5."),
        (["trian"], "did you mean 'train'?"),
        (["solve", "nowhere", "1+1"], "there is no run nowhere"),
        (["solve"], "required: RUN"),
        (
            ["score", "nowhere", "--num-problems", "0"],
            "--num-problems: must be a whole number from 1",
        ),
        (["prove", "."], "holds no run"),
        (["prove", "latest", "extra"], "abacist prove does not use 'extra'"),
        (["recipes", "adds"], "did you mean 'add'?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_get_one_line_and_exit_2(run, tmp_path, monkeypatch, arguments, complaint):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert complaint in _one_line(err)
    assert list(tmp_path.iterdir()) == []


def test_latest_finds_the_newest_run_or_says_there_is_none(
    run, tmp_path, monkeypatch, quick_settings
):
    monkeypatch.chdir(tmp_path)
    code, _, err = run("prove", "latest")
    assert code == 2
    assert "no run under runs/ yet" in _one_line(err)
    run("train", "--train-only", "--threads", "1", *_settings(quick_settings))
    assert run("solve", "latest", "1+1")[0] in (0, 1)


def test_an_existing_directory_is_refused(run, untrained):
    code, out, err = run("train", "--out", str(untrained.path))
    assert (code, out) == (2, "")
    assert "exists. Type --resume" in _one_line(err)


def test_a_run_without_checkpoint_is_refused(run, untrained):
    import shutil

    shutil.rmtree(untrained.directory.checkpoints)
    code, _, err = run("solve", str(untrained.path), "1+1")
    assert code == 2
    assert "has no checkpoint yet" in _one_line(err)


def test_a_damaged_run_json_is_refused(run, untrained):
    untrained.directory.run_json.write_text('{"recipe": {"name": "add"')
    code, _, err = run("solve", str(untrained.path), "1+1")
    assert code == 2
    assert "is damaged" in _one_line(err)


def test_a_flipped_byte_names_the_file(run, untrained):
    file = checkpoint.all_in(untrained.directory.checkpoints)[-1] / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    code, _, err = run("solve", str(untrained.path), "1+1")
    assert code == 2
    assert str(file) in _one_line(err)


def test_a_closed_pipe_is_no_error(certified):
    command = f"{sys.executable} -m abacist solve {certified.path} | head -n 1"
    problems = "\n".join(f"{i}+1" for i in range(10_000))
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], input=problems, capture_output=True, text=True
    )
    assert result.stdout == "0+1=1 ✓\n"
    assert "Error" not in result.stderr
    assert "Traceback" not in result.stderr
    assert result.returncode == 0


def test_no_color_is_respected(run, untrained, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    arguments = ("score", str(untrained.path), "--num-problems", "1", "--longest", "10")
    coloured = re.compile(r"\x1b\[(\d+;)*3\d")
    assert coloured.search(run(*arguments)[1])
    monkeypatch.setenv("NO_COLOR", "1")
    assert not coloured.search(run(*arguments)[1])


def test_a_disk_that_is_full_is_one_line():
    result = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m abacist recipes > /dev/full"],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1
    assert "No space left on device" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("module", ["abacist", "abacist.cli"])
def test_a_terminal_without_a_check_mark_gets_a_question_mark(certified, module):
    result = subprocess.run(
        [sys.executable, "-m", module, "solve", str(certified.path), "12+34"],
        capture_output=True,
        env={"PYTHONIOENCODING": "ascii", "PATH": "/usr/bin:/bin"},
    )
    assert (result.returncode, result.stdout) == (0, b"12+34=46 ?\n")


def test_a_model_that_cannot_be_proved_still_gets_its_results(run, tmp_path, quick_settings):
    settings = quick_settings | {"model.positions.0.window": "0,0"}
    code, out, _ = run(
        "train", "--out", str(tmp_path / "run"), "--threads", "1", "--json", *_settings(settings)
    )
    assert code == 0
    assert "too narrow" in json.loads(out)["certificate"]["reason"]


def test_an_encoder_gets_no_advice_in_a_circle(run, tmp_path, quick_settings):
    settings = {k: v for k, v in quick_settings.items() if k.startswith(("model.", "training."))}
    path = str(tmp_path / "run")
    options = ("--out", path, "--train-only", "--task.operand_digits", "3,2")
    assert run("train", "parallel", *options, *_settings(settings))[0] == 0
    code, out, _ = run("prove", path)
    assert code == 1
    assert "an encoder" in out
    assert "--model.direction" not in out
    code, _, err = run("train", "parallel", "--model.direction", "causal")
    assert code == 2
    assert "Try --model.direction both, or --format reversed." in err
