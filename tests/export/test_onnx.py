"""The ONNX file: its logits are the model's for every batch and length, and an example generates with it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from optional_modules import needed

import abacist
from abacist.cli import main
from abacist.export import exportable, onnx
from abacist.models.coordinates import Coordinates
from abacist.models.teacher_forcing import coordinates_of
from abacist.runs.run import Run

needed("onnx", "onnxscript", "onnxruntime")

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def file(example, tmp_path_factory) -> Path:
    """The file of the committed run."""
    path = tmp_path_factory.mktemp("onnx") / "model.onnx"
    path.write_bytes(file_of(example))
    return path


def session_of(file: Path | bytes):
    import onnxruntime

    return onnxruntime.InferenceSession(file)


def file_of(run: Run) -> bytes:
    return onnx.model_file(exportable.of_run(run, "onnx"))


def logits_of(session, ids, coordinates: Coordinates) -> torch.Tensor:
    named = {"ids": ids} | {
        name: coordinates.of(name) for name in ("index", "place", "row", "step")
        if getattr(coordinates, name) is not None
    }  # fmt: skip
    inputs = {x.name: named[x.name].long().numpy() for x in session.get_inputs()}
    return torch.from_numpy(session.run(["logits"], inputs)[0])


def random_line(run: Run, batch: int, length: int) -> tuple[torch.Tensor, Coordinates]:
    """Ids and coordinates as no line has them, with tokens in every column and in none."""
    generator = torch.Generator().manual_seed(length)

    def integers(low: int, high: int) -> torch.Tensor:
        return torch.randint(low, high, (batch, length), generator=generator)

    index = torch.arange(length).expand(batch, -1)
    ids = integers(0, len(run.format.vocabulary))
    row, step = integers(-2, 8), integers(-2, 8)
    return ids, Coordinates(index, integers(-2, 40), row, step)


@pytest.mark.parametrize(("batch", "length"), [(1, 5), (3, 24), (1, 1_000)])
def test_logits_are_those_of_torch_at_every_batch_and_length(example, file, batch, length):
    ids, coordinates = random_line(example, batch, length)
    with torch.no_grad():
        expected = example.model(ids, coordinates)
    logits = logits_of(session_of(file), ids, coordinates)
    assert logits.shape == (batch, length, 14)
    # The largest logit is above 100. On these lines two of torch's own ways differ by 7e-4.
    assert float((logits - expected).abs().max()) < 1e-5 * float(expected.abs().max())


@pytest.mark.parametrize("name", ["example", "smallest"])
def test_logits_of_sums_are_those_of_torch_within_a_millionth_of_the_largest(name, file, request):
    run = request.getfixturevalue(name)
    session = session_of(file if name == "example" else file_of(run))
    for digits, length in ((1, 7), (6, 22), (332, 1_000)):
        problems = run.task.parse([f"{'2' * digits}+{'6' * digits}"])
        lines = run.format.write(problems, run.task.answer(problems))
        assert lines.ids.shape[1] == length
        coordinates = coordinates_of(lines)
        with torch.no_grad():
            expected = run.model(lines.ids, coordinates)
        logits = logits_of(session, lines.ids, coordinates)
        # Logits of the smallest model are in the thousands.
        assert float((logits - expected).abs().max()) < 1e-6 * float(expected.abs().max())


@pytest.mark.parametrize(
    ("recipe", "settings"),
    [
        ("looped-abacus-small", {"model.recurrences": 2}),
        ("parallel", {"model.num_layers": 1, "model.query_key_norm": True}),
    ],
)
def test_looped_models_and_encoders_are_exported_too(recipe, settings, quick_settings, tmp_path):
    settings = quick_settings | settings | {"training.num_steps": 4, "training.warmup_steps": 1}
    run = abacist.train(recipe, out=tmp_path / "run", settings=settings)
    session = session_of(file_of(run))
    lines = run.format.prompt(run.task.parse(["123+45", "6+7"]))
    with torch.no_grad():
        expected = run.model(lines.ids, coordinates_of(lines))
    logits = logits_of(session, lines.ids, coordinates_of(lines))
    assert torch.allclose(logits[lines.index >= 0], expected[lines.index >= 0], atol=1e-5)


def test_the_file_names_its_vocabulary_weights_and_certificate_and_no_path(example, file):
    metadata = session_of(file).get_modelmeta().custom_metadata_map
    certificate = exportable.of_run(example, "onnx").certificate
    assert metadata["weights_sha256"] == certificate.weights_sha256
    assert json.loads(metadata["vocabulary"]) == list(example.format.vocabulary.tokens)
    assert metadata["certified"] == example.task.claim
    assert (metadata["recipe"], metadata["seed"], metadata["step"]) == ("add-tiny", "0", "12000")
    sizes = [x.shape for x in session_of(file).get_inputs()]
    assert sizes == [["batch", "length"]] * 3
    assert str(ROOT).encode() not in file.read_bytes()
    assert b"pkg.torch" not in file.read_bytes()


@pytest.mark.parametrize(
    ("a", "b", "answer"), [("95", "7", "102"), ("0", "0", "0"), ("9" * 30, "1", "1" + "0" * 30)]
)
def test_the_example_generates_with_the_file(file, a, b, answer):
    script = ROOT / "examples" / "onnx" / "add.py"
    code = [line for line in script.read_text().splitlines() if line and '"""' not in line]
    assert len(code) <= 15
    without = "import sys, runpy; sys.modules['abacist'] = sys.modules['torch'] = None; sys.argv = sys.argv[1:]; "
    printed = subprocess.run(
        [sys.executable, "-c", f"{without}runpy.run_path(sys.argv[0])", script, file, a, b],
        capture_output=True, text=True, check=True, env={**os.environ, "ORT_LOGGING_LEVEL": "3"},
    )  # fmt: skip
    assert printed.stdout == f"{answer}\n"


def test_the_command_says_what_of_an_extension_does_not_travel(
    registries_as_before, quick_settings, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(onnx, "model_file", lambda exported: b"model")
    abacist.load_extension(str(ROOT / "examples" / "gcd.py"))
    settings = quick_settings | {"task.max_digits": 2, "training.num_steps": 4, "training.warmup_steps": 1}  # fmt: skip
    run = abacist.train("gcd", out=tmp_path / "run", settings=settings)
    out = tmp_path / "model.onnx"
    assert main(["export", str(run.path), "--to", "onnx", "--out", str(out)]) == 0
    printed = capsys.readouterr()
    assert "Not certified: there is no certificate." in printed.out
    assert "The code of gcd.py does not travel" in printed.out
    assert printed.err == ""
    assert out.read_bytes() == b"model"
