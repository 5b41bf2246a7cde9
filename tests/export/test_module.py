"""The Python file that holds a model, and the one that AdderBoard's checker calls."""

import ast
import copy
import random
import subprocess
import sys
import types

import pytest
import torch

import abacist
from abacist.configuration import override
from abacist.errors import ConfigurationError
from abacist.export import exportable, module
from abacist.models.teacher_forcing import coordinates_of
from abacist.recipes import find
from abacist.runs.run import Run

EVERY_OTHER_SETTING = {
    "model.norm": "rms",
    "model.norm_epsilon": 0.01,
    "model.activation": "relu",
    "model.tied_head": True,
    "model.biases": ("attention-output", "head"),
    "model.positions": "place-row-relative",
}
"""Settings in which a model differs from those of `example` and `subtracting`, or from one of them."""

NAMES = ["example", "smallest", "geglu", "swiglu", "subtracting", "tied"]
CERTIFIED = ["example", "smallest"]


@pytest.fixture(scope="session")
def tied(train_once, quick_settings) -> Run:
    """A run of differences whose head is tied, and that has hardly learned anything."""
    settings = quick_settings | EVERY_OTHER_SETTING
    path = train_once("tied", lambda out: abacist.train("subtract", out=out, settings=settings))
    return abacist.load(path)


def exported(run: Run, target: str = "torch") -> types.ModuleType:
    """The file of a run, imported."""
    write = {"torch": module.module, "adderboard": module.submission}[target]
    imported = types.ModuleType("model")
    exec(write(exportable.of_run(run, target)), imported.__dict__)
    return imported


def problems(operation: str, count: int) -> list[str]:
    """Problems with operands of up to 12 digits, some of them rich in nines."""
    generator = random.Random(1)

    def operand() -> int:
        digits = generator.choice(["0123456789", "09999"])
        return int("".join(generator.choices(digits, k=generator.randint(1, 12))))

    return [f"{operand()}{operation}{operand()}" for _ in range(count)]


@pytest.mark.parametrize("name", NAMES)
def test_logits_and_answers_of_the_file_are_those_of_the_run(name, request):
    run = request.getfixturevalue(name)
    file = exported(run)
    model = file.load()
    asked = problems(run.task.operations[0], 100)
    lines = run.format.prompt(run.task.parse(asked[:1]))
    place, row = lines.place.long(), lines.row.long()
    coordinates = {"place": place, "row": row}
    with torch.no_grad():
        # In float64 the two agree far beyond the rounding of float32, so a wrong epsilon is seen.
        expected = copy.deepcopy(run.model).double()(lines.ids, coordinates_of(lines))
        logits = copy.deepcopy(model).double()(lines.ids.long(), coordinates)
        last = model(lines.ids.long(), coordinates, first=lines.ids.shape[1] - 1)
    assert logits.tolist()[0] == [pytest.approx(row, abs=1e-9) for row in expected.tolist()[0]]
    # Logits of the smallest model are in the hundreds.
    rounding = max(1e-4, 1e-6 * float(expected.abs().max()))
    assert last.tolist()[0] == [pytest.approx(expected[0, -1].tolist(), abs=rounding)]
    solved = run.solve(asked)
    assert [file.solve(problem) for problem in asked] == [solution.answer for solution in solved]
    if name in CERTIFIED:
        assert all(solution.answer == solution.expected for solution in solved)


def test_a_certified_model_adds_200_digits_with_leading_zeros_and_spaces(example):
    solve = exported(example).solve
    assert solve(f"00{'9' * 200} + 1") == str(10**200)
    assert solve("0+000") == "0"
    with pytest.raises(ValueError, match=r"must look like 12\+34, got '12-34'"):
        solve("12-34")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("229-<end>", "-78"), ("033<end>", "330"), ("330<end>", "33"), ("000<end>", "0"),
        ("000-<end>", None), ("33<end>", None), ("330", None), ("3-0<end>", None),
    ],
)  # fmt: skip
def test_a_difference_is_read_modulo_a_power_of_ten(subtracting, text, answer):
    assert exported(subtracting).read(text, 3) == answer


@pytest.mark.parametrize("name", NAMES)
def test_the_file_is_short_and_imports_only_torch_and_the_standard_library(name, request):
    text = module.module(exportable.of_run(request.getfixturevalue(name), "torch"))
    assert text.count("\n") <= 160
    assert "@@" not in text
    assert max(len(line) for line in text.splitlines() if "WEIGHTS = " not in line) <= 102
    imported = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module)
    assert imported - sys.stdlib_module_names == {"torch"}
    assert ("It is certified: it adds all pairs of" in text) == (name in CERTIFIED)
    assert ("It is not certified" in text) == (name not in CERTIFIED)


def test_the_file_answers_on_the_command_line_without_this_package(example, tmp_path):
    path = tmp_path / "model.py"
    path.write_text(module.module(exportable.of_run(example, "torch")))
    without = "import sys, runpy; sys.modules['abacist'] = None; runpy.run_path({!r}, run_name='__main__')"
    answered = subprocess.run(
        [sys.executable, "-c", without.format(str(path)), "95+7", "0+0", "1+x"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert answered.stdout == "102\n0\n"
    assert answered.stderr == "a problem must look like 12+34, got '1+x'\n"
    assert answered.returncode == 2


def test_the_weights_in_the_file_are_those_of_the_certificate(example):
    certificate = exportable.of_run(example, "torch").certificate
    assert exported(example).ORIGIN["weights_sha256"] == certificate.weights_sha256


def test_the_weights_of_an_earlier_checkpoint_are_exported(untrained):
    problem = "12+34"
    for step in (20, 24):
        run = abacist.load(untrained.path, checkpoint=step)
        file = exported(run)
        lines = run.format.prompt(run.task.parse([problem]))
        coordinates = {"place": lines.place.long(), "row": lines.row.long()}
        logits = file.load()(lines.ids.long(), coordinates)
        assert torch.allclose(logits, run.model(lines.ids, coordinates_of(lines)), atol=1e-5)
        assert file.ORIGIN["step"] == step


def test_a_name_from_a_run_stays_a_string(example, monkeypatch):
    name = '@@read@@"""; raise SystemExit  # "\\'
    monkeypatch.setattr(example, "recipe", override(example.recipe, {"name": name}))
    assert exported(example).ORIGIN["recipe"] == name


@pytest.mark.parametrize(("name", "parameters"), [("example", 338), ("smallest", 84)])
def test_adderboard_counts_each_parameter_once_and_finds_no_error(name, parameters, request):
    run = request.getfixturevalue(name)
    file = exported(run, "adderboard")
    model, metadata = file.build_model()
    assert metadata["params"] == run.model.num_parameters == parameters
    assert set(metadata) == {"name", "author", "params", "architecture", "tricks"}
    # The cases of the board's checker; it draws 10,000 pairs.
    largest = 9_999_999_999
    cases = [
        (0, 0), (0, 1), (largest, 0), (largest, 1), (largest, largest),
        (5_000_000_000, 5_000_000_000), (1_111_111_111, 8_888_888_889),
        (1_234_567_890, 9_876_543_210), (largest, largest), (1, largest),
    ]  # fmt: skip
    generator = random.Random(2025)
    cases += [(generator.randint(0, largest), generator.randint(0, largest)) for _ in range(200)]
    assert [file.add(model, a, b) for a, b in cases] == [a + b for a, b in cases]


@pytest.mark.parametrize(
    ("name", "architecture"),
    [
        (
            "smallest",
            "1-layer causal decoder, d=3, 1 head of width 1, ff=3 (gelu-tanh), "
            "RMSNorm except before the head, tied head",
        ),
        (
            "geglu",
            "1-layer causal decoder, d=8, 2 heads of width 4, ff=16 (geglu), LayerNorm, "
            "normalised embedding, one more MLP before the head, untied head",
        ),
    ],
)
def test_the_metadata_for_adderboard_name_every_part_of_the_architecture(
    name, architecture, request
):
    _, metadata = exported(request.getfixturevalue(name), "adderboard").build_model()
    assert metadata["architecture"] == architecture


def test_a_tied_head_counts_once(tied):
    counted = sum(parameter.numel() for parameter in exported(tied).load().parameters())
    assert counted == tied.model.num_parameters


def test_adderboard_takes_no_differences():
    message = r"must be one of \+, got arithmetic with -\. It can express add, add-tiny, and"
    with pytest.raises(ConfigurationError, match=message):
        exportable.check_expressible(find("subtract"), "adderboard")
