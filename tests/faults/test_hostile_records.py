"""Every mutation of a run directory meets every command: lines instead of tracebacks, nothing sound deleted."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import abacist
from abacist import files
from abacist.cli import main
from abacist.reports import matplotlib_figures
from abacist.runs import identity
from abacist.runs.directory import RunDirectory
from abacist.training import checkpoint

Mutation = Callable[[RunDirectory], None]

DEEP = "[" * 100_000 + "]" * 100_000
HUGE = 10**400


@pytest.fixture(scope="module")
def template(train_once, quick_settings):
    def train(path):
        run = abacist.train("add", out=path, settings=quick_settings)
        run.score(["lengths", "splits", "grid"], grid_size=2, grid_problems=3, longest=3)
        run.prove()
        run.save_attention()

    return train_once("faults", train)


@pytest.fixture(scope="module", autouse=True)
def pictures():
    """Equal curves are drawn once: most mutations leave them alone, and matplotlib takes longer than all else."""
    drawn, draw = {}, matplotlib_figures.draw

    def draw_once(plots, path, columns=None):
        key = (repr(plots), path.suffix, columns)
        if key in drawn:
            files.write_bytes(path, drawn[key])
        else:
            draw(plots, path, columns)
            drawn[key] = path.read_bytes()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matplotlib_figures, "draw", draw_once)
        yield


@pytest.fixture
def directory(template, tmp_path):
    return RunDirectory(Path(shutil.copytree(template, tmp_path / "run")))


def write(name: str, content: str | bytes) -> Mutation:
    """Replace a file of the run."""

    def mutate(directory: RunDirectory) -> None:
        data = content if isinstance(content, bytes) else content.encode()
        (directory.path / name).write_bytes(data)

    return mutate


def change(name: str, path: str, value: object) -> Mutation:
    """Replace one value in a JSON file, or in the first line of a file of lines; all else stays."""

    def mutate(directory: RunDirectory) -> None:
        file = directory.path / name
        first, _, rest = file.read_text().partition("\n" if name.endswith("l") else "\0")
        data = json.loads(first)
        *parents, last = path.split(".")
        inner = data
        for key in parents:
            inner = inner[int(key)] if isinstance(inner, list) else inner[key]
        inner[int(last) if isinstance(inner, list) else last] = value
        if name == "run.json":
            _agree(directory, data)
        file.write_text(json.dumps(data) + "\n" + rest)

    return mutate


def _agree(directory: RunDirectory, run: dict[str, object]) -> None:
    """Let the scorecard and the certificate speak of a changed configuration, so that they are read."""
    new = identity.configuration_sha256(run["recipe"])
    for file in (directory.scorecard, directory.certificate):
        record = json.loads(file.read_text()) | {"configuration_sha256": new}
        file.write_text(json.dumps(record))


READERS = {
    "run.json": ["solve", "report", "score", "compare", "train"],
    "metrics.jsonl": ["report", "train"],
    "losses.jsonl": ["report", "train"],
    "watched.jsonl": ["report", "train"],
    "beginnings.jsonl": ["report"],
    "repairs.jsonl": ["report"],
    "tokenizer.json": ["report", "train"],
    "scorecard.json": ["report", "score", "compare"],
    "certificate.json": ["report", "score"],
    "failures.jsonl": ["report"],
    "attention.json": ["report"],
}
"""The commands that read each record."""
CONTENTS = {
    "nothing": b"",
    "null": b"null",
    "list": b"[]",
    "object": b"{}",
    "zeros": b"\0" * 100,
    "deep": DEEP.encode(),
    "deep object": b'{"sections": ' + DEEP.encode() + b"}",
    "not utf-8": b'{"step": "\xff\xfe"}',
    "5,000 digits": b"9" * 5_000,
    "surrogate": b'{"suite": "\\ud800", "recipe": {"name": "\\ud800"}}',
}
VALUES = {
    "run.json": {
        "threads": [0, 10**6, "1", 1.5, None, [1]],
        "seed": [10**30, -1, "0", True],
        "device": [5, ["cpu"], None, "cuda:99", "tpu"],
        "parameters": ["many", HUGE, None],
        "format_version": [None, "2", HUGE],
        "recipe": [3, [], {}],
        "recipe.name": [5, "x" * 1_000_000, "two\nlines", "\ud800", "<b>"],
        "recipe.training.num_steps": [HUGE, "24", 0, float("nan")],
        "recipe.training.learning_rate": [float("inf"), HUGE, {}],
        "recipe.model.width": ["8", 10**9, -8],
        "recipe.model.positions": ["gpt2", [3], DEEP[:50]],
        "recipe.task.kind": ["nothing", 3, ["x"]],
        "torch": [5, ["x"], None],
        "extensions": [3, [3], [{"name": "own"}], [{"name": 5, "source": "own.py", "sha256": ""}]],
        "machine": [{"a": 1}, "x" * 100_000],
    },
    "metrics.jsonl": {
        "step": ["1", HUGE, -1, None, 1.5],
        "loss": [HUGE, "x", None, float("nan")],
        "exact_match": [3, {}, None, {"successes": HUGE, "n": HUGE}],
        "exact_match.n": ["x", HUGE, -1],
        "seconds": [HUGE, "x"],
    },
    "scorecard.json": {
        "sections.grid.details.recurrences": [3, {"1": 3}, {"1": {"right": [[1]], "count": "x"}}],
        "sections": [3, [], {"lengths": 3}, {"x" * 10_000: {}}],
        "sections.lengths.rows": [3, [3], None],
        "sections.lengths.errors": [HUGE, "x", -1],
        "sections.lengths.rows.0.proportion": [3, {"successes": HUGE, "n": HUGE}, {"n": 1}],
        "sections.lengths.rows.0.digits": [HUGE, "x", -5],
        "sections.lengths.rows.0.smallest_margin": [HUGE, "x", float("nan")],
        "sections.grid.details.count": [HUGE, [[HUGE]], [], [["x"]], DEEP[:20]],
        "sections.grid.details.right": [[[1, 2], [3]], [[10**9, 1], [1, 1]]],
        "step": [HUGE, "x"],
        "errors": ["x", HUGE],
        "exempt_digits": ["x", HUGE, -1, None],
        "weights_sha256": [3, [], {}, "é"],
    },
    "certificate.json": {
        "neighbourhoods": [HUGE, "x", None, -1],
        "smallest_margin": [HUGE, "x"],
        "certified": ["yes", 1, None],
        "reason": [3, "two\nlines", "\ud800"],
        "counterexample": [3, {}, {"problem": 1, "answer": 2, "expected": 3}],
        "seconds": [HUGE, "x"],
        "step": [HUGE, "x"],
    },
    "failures.jsonl": {
        "suite": [3, None, [], "x" * 100_000],
        "problem": [3, None, "\ud800"],
        "margin": [HUGE, "x", None],
        "carry_chain": [HUGE, "x"],
        "first_wrong_place": [HUGE, "x"],
    },
    "attention.json": {
        "fields": [3, [3], []],
        "weight": [3, {}, {"values": [[[[HUGE]]]]}],
        "num_problems": ["x", HUGE],
        "differences": [3, [HUGE]],
    },
}
MUTATIONS: dict[str, Mutation] = {
    f"{name} is {content}": write(name, CONTENTS[content])
    for name in READERS
    for content in CONTENTS
} | {
    f"{name}: {path} is {value!r:.30}": change(name, path, value)
    for name, paths in VALUES.items()
    for path, values in paths.items()
    for value in values
}


def names_of_checkpoints(directory: RunDirectory) -> list[str]:
    return [path.name for path in checkpoint.all_in(directory.checkpoints)]


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_hostile_record_ends_in_lines(directory, mutation, capsys):
    MUTATIONS[mutation](directory)
    path = str(directory.path)
    before = names_of_checkpoints(directory)
    commands = {
        "solve": ["solve", path, "1+1", "--json"],
        "report": ["report", path],
        "score": ["score", path, "--stored"],
        "compare": ["compare", path, path],
        "train": ["train", "--resume", "--out", path, "--train-only"],
    }
    for command in map(commands.get, READERS[mutation.partition(" ")[0].rstrip(":")]):
        code = main(command)
        captured = capsys.readouterr()
        assert code in (0, 1, 2), command
        lines = [line for line in captured.err.splitlines() if not line.startswith("training ")]
        assert all(line.startswith("abacist: ") for line in lines), command
        assert len(captured.err) < 2_000, command
        assert code == 0 or lines or command[0] == "solve", command
        if command[0] == "solve" and captured.out:
            # An untrained model is wrong, and the answer says so.
            assert json.loads(captured.out)["expected"] == "2"
            assert (code == 0) == json.loads(captured.out)["correct"]
        assert names_of_checkpoints(directory) == before, command


def test_a_path_that_is_not_utf_8_works(directory):
    path = directory.path.rename(directory.path.with_name("run-\udcff"))
    for command in (
        ["solve", str(path), "1+1"],
        ["report", str(path)],
        ["score", str(path), "--stored"],
    ):
        assert main(command) in (0, 1)
    assert (path / "report.html").stat().st_size > 1_000


def test_values_of_200_kilobytes_are_not_echoed(directory, capsys):
    path, long = str(directory.path), "9" * 200_000
    for command in (
        ["solve", path, long],
        ["solve", long, "1+1"],
        ["solve", path, "1+1", f"--{long}"],
        ["train", "add", "--model.width", long],
        ["train", "add", f"--model.{long}", "1"],
        ["train", "add", "--name", "a b " * 50_000],
        ["train", long],
        [long],
    ):
        assert main(command) in (1, 2)
        error = capsys.readouterr().err
        assert (len(error) < 2_000, error.count("\n")) == (True, 1), command


@pytest.mark.parametrize(
    "option", ["--model.width", "--training.learning_rate", "--seed", "--jobs"]
)
def test_digits_of_other_scripts_are_refused(capsys, option):
    assert main(["train", "add", option, "１２"]) == 2
    assert "１２" in capsys.readouterr().err
