"""The command `abacist export`: what it writes, and what it refuses."""

from pathlib import Path

import pytest

from abacist.cli import main

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "add-tiny")


@pytest.mark.parametrize(
    ("target", "name"),
    [("html", "calculator.html"), ("torch", "model.py"), ("adderboard", "model.py")],
)
def test_a_file_is_written_once(target, name, tmp_path, capsys):
    out = tmp_path / name
    assert main(["export", EXAMPLE, "--to", target, "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{out} (")
    assert "It is certified." in printed
    written = out.read_bytes()
    assert main(["export", EXAMPLE, "--to", target, "--out", str(out)]) == 2
    assert capsys.readouterr().err == (
        f"abacist: {out} exists already. Type another --out, or delete it.\n"
    )
    assert out.read_bytes() == written
    assert list(tmp_path.iterdir()) == [out]


def test_a_run_without_a_certificate_is_not_called_certified(untrained, tmp_path, capsys):
    out = tmp_path / "page.html"
    assert main(["export", str(untrained.path), "--to", "html", "--out", str(out)]) == 0
    assert f"Not certified: there is no certificate. Type abacist prove {untrained.path}." in (
        capsys.readouterr().out
    )
    assert '"certificate": null' in out.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "html", "--out", "page.txt"], "--out must end with .html, got 'page.txt'."),
        (["--to", "html", "--out", "none/page.html"], "none is not a directory."),
        (["--to", "torch", "--out", "model.html"], "--out must end with .py, got 'model.html'."),
        (["--to", "torch", "--out", "torch.py"], "got 'torch.py'. Type --out model.py."),
        (["--to", "pdf", "--out", "page.pdf"], "argument --to: invalid choice: 'pdf'"),
        (["--out", "page.html"], "the following arguments are required: --to"),
    ],
)
def test_wrong_input_is_one_line_and_writes_nothing(
    arguments, message, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert main(["export", EXAMPLE, *arguments]) == 2
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    assert message in text
    assert not any(tmp_path.iterdir())


def test_a_missing_package_is_named_with_what_to_type(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    out = tmp_path / "model.onnx"
    assert main(["export", EXAMPLE, "--to", "onnx", "--out", str(out)]) == 2
    assert capsys.readouterr().err == (
        "abacist: --to onnx needs onnx, which is not installed. "
        'Type pip install --editable ".[onnx]" in the clone of abacist.\n'
    )
    assert not out.exists()


def test_a_folder_that_exists_is_refused_and_left_as_it_is(tmp_path, capsys):
    out = tmp_path / "folder"
    assert main(["export", EXAMPLE, "--to", "transformers", "--out", str(out)]) == 0
    assert "It is certified." in capsys.readouterr().out
    (out / "mine.txt").write_text("mine")
    assert main(["export", EXAMPLE, "--to", "transformers", "--out", str(out)]) == 2
    assert capsys.readouterr().err == (
        f"abacist: {out} exists already. Type another --out, or delete it.\n"
    )
    assert (out / "mine.txt").read_text() == "mine"
    assert list(tmp_path.iterdir()) == [out]
