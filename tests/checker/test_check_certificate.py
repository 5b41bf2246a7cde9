"""The stand-alone checker: agrees with the package's own proof, also about planted faults."""

import ast
import hashlib
import importlib.util
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import abacist

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "checker" / "check_certificate.py"
SMALLEST = ROOT / "examples" / "smallest-adder"
MOST_LINES = 525


def load_program():
    specification = importlib.util.spec_from_file_location(PROGRAM.stem, PROGRAM)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


checker = load_program()
SUMS_AND_DIFFERENCES = [checker.Columns("+"), checker.Columns("-")]


def run_program(*arguments):
    command = [sys.executable, str(PROGRAM), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def copy_of(run: Path, directory: Path, change=lambda recipe: None) -> Path:
    """A run's newest checkpoint alone, with changed settings."""
    checkpoint = max(run.glob("checkpoints/step-*"))
    shutil.copytree(checkpoint, directory / "checkpoints" / checkpoint.name)
    settings = json.loads((run / "run.json").read_text())
    change(settings["recipe"])
    (directory / "run.json").write_text(json.dumps(settings))
    return directory


def weights_file(run: Path) -> Path:
    return max(run.glob("checkpoints/step-*")) / "model.safetensors"


def change_weight(run: Path, name: str, where: tuple[int, ...], by: float) -> None:
    """Change one weight, and the checksum that the package compares."""
    file = weights_file(run)
    tensors = load_file(file)
    tensors[name][where] += by
    save_file(tensors, file)
    manifest = json.loads((file.parent / "manifest.json").read_text())
    manifest[file.name] = hashlib.sha256(file.read_bytes()).hexdigest()
    (file.parent / "manifest.json").write_text(json.dumps(manifest))


# Two enumerations that share no code ------------------------------------------------------------


@pytest.fixture(scope="module")
def outcome(certified):
    return run_program(certified.directory.path)


@pytest.fixture(scope="module")
def proof(certified):
    return certified.prove()


def test_a_certified_run_is_certified(outcome, proof):
    assert outcome.returncode == 0, outcome.stderr
    first, *_ = outcome.stdout.splitlines()
    assert first == f"CERTIFIED: {proof.reason}"


def test_the_committed_run_is_certified_although_it_lacks_a_newer_setting(capsys):
    run = PROGRAM.parents[1] / "examples" / "add-tiny"
    assert "beyond" not in (run / "run.json").read_text()
    assert checker.main([str(run)], SUMS_AND_DIFFERENCES) == 0, capsys.readouterr()


def test_the_count_and_the_smallest_margin_are_those_of_the_proof(outcome, proof):
    assert f"{proof.neighbourhoods:,} neighbourhoods checked, 0 wrong" in outcome.stdout
    margin = float(outcome.stdout.partition("smallest margin ")[2].split()[0])
    assert margin == pytest.approx(proof.smallest_margin, abs=1e-9)


def test_the_committed_adder_with_84_parameters_is_certified_as_the_record_says(tmp_path, capsys):
    run = shutil.copytree(SMALLEST, tmp_path / "run")  # a proof writes into the run
    (trial,) = json.loads((ROOT / "results" / "smallest-adder.json").read_text())["trials"]
    recorded, proof = trial["certificate"], abacist.load(run).prove()
    assert (proof.certified, proof.neighbourhoods) == (True, recorded["neighbourhoods"])
    assert proof.smallest_margin == pytest.approx(recorded["smallest_margin"], abs=1e-9)
    assert checker.main([str(SMALLEST)], SUMS_AND_DIFFERENCES) == 0
    output = capsys.readouterr().out
    assert f"{proof.neighbourhoods:,} neighbourhoods checked, 0 wrong" in output
    margin = float(output.partition("smallest margin ")[2].split()[0])
    assert margin == pytest.approx(recorded["smallest_margin"], abs=1e-9)
    assert recorded["weights_sha256"] in output
    assert "certificate.json speaks of these weights" in output


def test_it_names_the_weights_and_counts_in_both_ways(outcome, certified):
    digest = hashlib.sha256(weights_file(certified.directory.path).read_bytes()).hexdigest()
    assert digest in outcome.stdout
    assert "24,300 by tokens and relative places" in outcome.stdout
    assert "1,000 random sums written, 0 wrong" in outcome.stdout


@pytest.mark.parametrize(
    "settings",
    [
        {"model.activation": "relu", "model.norm": "rms", "model.biases": "none"},
        {"model.tied_head": True, "model.head_width": 3, "model.biases": ("mlp-hidden", "head")},
        {"model.positions": "place-row-relative", "model.positions.1.init_std": 1.0},
        {"model.activation": "gelu-tanh", "model.final_norm": False, "model.norm_epsilon": 0.01},
        {"model.activation": "geglu", "model.embedding_norm": True, "model.norm_epsilon": 0.01}
        | {"model.norm": "rms"},
        {"model.activation": "swiglu", "model.final_mlp": True, "model.final_norm": False},
    ],
    ids=lambda settings: "-".join(map(str, settings.values())),
)
def test_models_of_all_covered_settings_have_the_margins_of_the_proof(
    settings, quick_settings, tmp_path, capsys
):
    """Models that have hardly learnt anything, so that nearly all neighbourhoods are wrong."""
    run = abacist.train("add", out=tmp_path / "run", settings=quick_settings | settings, threads=1)
    assert checker.main([str(run.directory.path)], SUMS_AND_DIFFERENCES) == 1
    output, proof = capsys.readouterr().out, run.prove()
    assert f"24,518 neighbourhoods checked, {proof.wrong:,} wrong" in output
    margin = float(output.partition("smallest margin ")[2].split()[0])
    assert margin == pytest.approx(proof.smallest_margin, abs=1e-9)


@pytest.mark.parametrize(("operation", "alike"), [("+", 24_300), ("-", 24_476)])
def test_the_table_of_the_documentation_is_enumerated(operation, alike):
    cases = {(case.seen, case.right): case for case in checker.Columns(operation).neighbourhoods()}
    assert len(cases) == 24_518
    assert len({seen for seen, _ in cases}) == 24_518, "the next token follows from what is seen"
    assert len({tuple((t.text, t.place) for t in seen) for seen, _ in cases}) == alike


@pytest.mark.parametrize("task", SUMS_AND_DIFFERENCES, ids=lambda task: task.problems)
def test_right_lines_hold_nothing_but_listed_neighbourhoods(task):
    """All pairs of numbers below 40, and random ones, written by Python instead of a model."""
    right = {checker.relative(case.seen): case.right for case in task.neighbourhoods()}
    generator = random.Random(1)
    problems = [f"{a}{task.operation}{b}" for a in range(40) for b in range(40)]
    problems += [task.random_problem(generator) for _ in range(500)]
    for problem in problems:
        line = task.prompt(problem)
        a, b = problem.split(task.operation)
        written = []
        while "<end>" not in written:
            column = line[-1].place
            # What the argument says is seen, without the masks: two columns, and the start token.
            seen = [
                token
                for token in line
                if token.text == "<start>"
                or token is line[-1]
                or (token.place in (column, column + 1) and token.text != "=")
            ]
            written.append(right[checker.relative(seen)])
            line.append(task.next(line, written[-1]))
        assert task.is_right(problem, written), f"{a} and {b} gave {written}"


def test_a_wrong_answer_is_not_taken_for_right():
    addition, subtraction = SUMS_AND_DIFFERENCES
    assert addition.is_right("12+34", [*"64", "<end>"])
    assert not addition.is_right("12+34", [*"46", "<end>"])
    assert not addition.is_right("12+34", [*"64"])
    assert subtraction.is_right("45-123", [*"229-", "<end>"])
    assert subtraction.is_right("123-45", [*"870", "<end>"])
    assert not subtraction.is_right("45-123", [*"229", "<end>"])


# Planted faults ---------------------------------------------------------------------------------


@pytest.fixture(
    scope="module",
    params=[("certified", "head.weight", (3, 0)), ("smallest", "blocks.0.mlp.down.weight", (0, 0))],
    ids=lambda fault: fault[0],
)
def faulty(request, tmp_path_factory):
    """A run with one weight changed by just enough that one neighbourhood is followed by a wrong token."""
    name, tensor, where = request.param
    of = SMALLEST if name == "smallest" else request.getfixturevalue(name).directory.path
    run = copy_of(of, tmp_path_factory.mktemp("runs") / "faulty")
    task, model, *_ = checker.read_run(run, SUMS_AND_DIFFERENCES)
    cases = [case for case in task.neighbourhoods() if len(case.seen) == 6]
    right = np.array([int(case.right) if case.right.isdigit() else 12 for case in cases])

    def logits():
        return model.logits([case.seen for case in cases], queries=1)[:, 0]

    # Nothing but linear maps follows this weight, so two evaluations tell how each logit changes with it.
    before = logits()
    model.weights[tensor][where] += 1.0
    slope = logits() - before

    def num_wrong(change):
        changed = before + change * slope
        every = np.arange(len(cases))
        own = changed[every, right]
        changed[every, right] = -np.inf
        return (own <= changed.max(axis=1)).sum()

    enough, too_little = 1.0, 0.0
    while not num_wrong(enough):
        enough *= 2
    for _ in range(30):
        middle = (enough + too_little) / 2
        enough, too_little = (middle, too_little) if num_wrong(middle) else (enough, middle)
    change_weight(run, tensor, where, enough * 1.001)
    return run


def test_a_planted_fault_is_found_and_named_as_by_the_proof(faulty, capsys):
    assert checker.main([str(faulty)], SUMS_AND_DIFFERENCES) == 1
    output = capsys.readouterr().out
    proof = abacist.load(faulty).prove()
    assert not proof.certified
    assert output.startswith("NOT CERTIFIED: adds")
    assert f"24,518 neighbourhoods checked, {proof.wrong} wrong" in output
    assert proof.wrong <= 2, "one, and the same with a and b exchanged"
    margin = float(output.partition("smallest margin ")[2].split()[0])
    assert margin == pytest.approx(proof.smallest_margin, abs=1e-9)

    example = proof.counterexample
    written, expected = example.answer[::-1], example.expected[::-1]
    column = next(i for i in range(len(expected)) if written[i] != expected[i]) - 1
    operands = [number[::-1] for number in example.problem.split("+")]
    descriptions = []
    for a, b in (operands, operands[::-1]):
        parts = {"a in this column": a[column], "a in the next": a[column + 1]}
        parts |= {"b in this column": b[column], "b in the next": b[column + 1]}
        parts["last token"] = written[column]
        descriptions.append(", ".join(f"{name} {digit}" for name, digit in parts.items()))
    assert any(description in output for description in descriptions), (descriptions, output)
    right, wrong = expected[column + 1], written[column + 1]
    assert f"the model writes {wrong} instead of {right}" in output


def test_a_line_that_meets_something_unlisted_is_not_certified(certified, capsys, monkeypatch):
    monkeypatch.setattr(checker, "NUM_PROBLEMS", 100)

    class Gap(checker.Columns):
        def neighbourhoods(self):
            return (
                case for case in super().neighbourhoods() if "b in the next 7" not in case.words
            )

    assert checker.main([str(certified.directory.path)], [Gap("+")]) == 1
    output = capsys.readouterr().out
    assert ", 0 wrong\n" in output.splitlines(keepends=True)[1]
    assert " 0 of these not listed" not in output
    assert " not listed, for example: after " in output


def test_a_certificate_of_other_weights_is_called_so(certified, tmp_path):
    file = tmp_path / "certificate.json"
    digest = checker.read_run(certified.directory.path, SUMS_AND_DIFFERENCES)[-1]
    assert "names its weights" in checker.on_certificate(file, digest)
    for text, words in (
        (json.dumps({"weights_sha256": digest}), "these weights"),
        (json.dumps({"weights_sha256": "0" * 64}), "other weights"),
        ("{", "names its weights"),
        ("[]", "names its weights"),
    ):
        file.write_text(text)
        assert words in checker.on_certificate(file, digest)


# What is refused --------------------------------------------------------------------------------


def refusal(run: Path, capsys) -> str:
    assert checker.main([str(run)], SUMS_AND_DIFFERENCES) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


UNCOVERED = {
    "direction": "both",
    "num_layers": 2,
    "recurrences": 2,
    "injection": "add",
    "initial_state": "noise",
    "activation": "silu",
    "norm": "batch",
    "norm_epsilon": 0.2,
    "norm_order": "post",
    "embedding_norm": True,
    "final_mlp": True,
    "final_norm": False,
    "query_key_norm": True,
    "length_scaling": True,
    "tied_head": True,
    "width": 16,
    "num_heads": 5,
    "head_width": 16,
    "mlp_width": 64,
    "biases": [],
    "positions": [],
}


@pytest.mark.parametrize("name", UNCOVERED)
def test_a_model_that_is_not_covered_is_refused(name, certified, tmp_path, capsys):
    def change(recipe):
        recipe["model"][name] = UNCOVERED[name]

    refusal(copy_of(certified.directory.path, tmp_path / "run", change), capsys)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda recipe: recipe["model"].update(memory=True), "unknown setting model.memory"),
        (lambda recipe: recipe.update(adapter={}), "unknown setting recipe.adapter"),
        (lambda recipe: recipe["model"].pop("norm"), "no setting model.norm"),
        (lambda recipe: recipe["task"].update(max_operands=3), "task.max_operands must be 2"),
        (lambda recipe: recipe["format"].update(spaces="around"), "format.spaces must be"),
        (
            lambda recipe: recipe["format"].update(kind="worked"),
            "no calculation here is written in the format worked",
        ),
        (lambda recipe: recipe["model"]["positions"][0].update(window=[0, 2]), "windows"),
        (lambda recipe: recipe["model"]["positions"][0].update(encoding="fire"), "encoding must"),
        (lambda recipe: recipe["model"].update(num_layers=True), "model.num_layers must be 1"),
        (
            lambda recipe: recipe["model"].update(activation="silu"),
            'model.activation must be "relu" or "gelu" or "gelu-tanh" or "geglu" or "swiglu", got "silu".',
        ),
        (lambda recipe: recipe["model"].update(norm_epsilon=-1e-9), "from 0 to 0.1, got -1e-09."),
    ],
)
def test_the_refusal_names_the_setting(change, words, certified, tmp_path, capsys):
    line = refusal(copy_of(certified.directory.path, tmp_path / "run", change), capsys)
    assert words in line
    assert line.endswith(". Type abacist prove RUN, which covers more.\n")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda tensors: tensors.pop("head.weight"),
        lambda tensors: tensors.update(extra=np.zeros(1, np.float32)),
        lambda tensors: tensors.update({"final_norm.bias": np.zeros(1, np.float32)}),
        lambda tensors: tensors.update({"final_norm.bias": np.zeros(32, np.float64)}),
        lambda tensors: tensors["head.weight"].fill(np.nan),
    ],
    ids=["missing", "superfluous", "shape", "precision", "nan"],
)
def test_tensors_that_do_not_fit_the_settings_are_refused(spoil, certified, tmp_path, capsys):
    run = copy_of(certified.directory.path, tmp_path / "run")
    tensors = load_file(weights_file(run))
    spoil(tensors)
    save_file(tensors, weights_file(run))
    assert "model.safetensors" in refusal(run, capsys)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("run.json", b"{"),
        ("run.json", b"[]"),
        ("run.json", b"{}"),
        ("run.json", b'{"recipe": {"model": 1}}'),
        ("run.json", None),
        ("checkpoints/step-000900/model.safetensors", b"no weights"),
        ("checkpoints/step-000900/model.safetensors", None),
    ],
)
def test_a_damaged_run_is_refused_in_one_line(name, content, certified, tmp_path, capsys):
    run = copy_of(certified.directory.path, tmp_path / "run")
    (run / name).unlink()
    if content is not None:
        (run / name).write_bytes(content)
    refusal(run, capsys)


def test_wrong_arguments_are_one_line_and_exit_code_2(tmp_path):
    for arguments in ((), (tmp_path / "none",), (tmp_path, tmp_path), ("--help",)):
        finished = run_program(*arguments)
        assert finished.returncode == 2
        assert finished.stdout == ""
        assert len(finished.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["check_divisions.py", "check_signed_operands.py"])
def test_a_file_of_calculations_names_the_program_to_type(name, tmp_path):
    command = [sys.executable, str(PROGRAM.with_name(name)), str(tmp_path)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert "check_calculator.py" in finished.stderr


# What a reader has to read ----------------------------------------------------------------------


def test_it_imports_nothing_but_numpy_safetensors_and_the_standard_library():
    imported = set()
    for node in ast.walk(ast.parse(PROGRAM.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(node.module.partition(".")[0])
        elif isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
    assert imported <= {"numpy", "safetensors"} | sys.stdlib_module_names
    assert not imported & {"importlib", "subprocess", "runpy", "pickle", "ctypes"}


def test_it_is_short_enough_to_be_read():
    assert len(PROGRAM.read_text().splitlines()) <= MOST_LINES
