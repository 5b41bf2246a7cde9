"""Every notebook runs from its first cell to its last and is committed with its outputs."""

import ast
import base64
import json
from pathlib import Path

import pytest
import torch

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
TINY = {
    "training.num_steps": 4,
    "training.warmup_steps": 1,
    "training.batch_size": 8,
    "training.validate_every": 2,
    "training.validation_problems": 8,
    "training.sample_problems": 8,
    "training.checkpoint_every": 4,
    "training.record_loss_every": 1,
    "scoring.num_problems": 8,
    "model.width": 16,
    "model.mlp_width": 16,
}
ALSO = {
    "first-look": {
        "model.width": 8,
        "model.num_heads": 2,
        "model.mlp_width": 8,
        "scoring.longest": 20,
    },
    "parallel-encoder": {"training.num_examples": 64, "training.record_embeddings_every": 2},
    "looped-abacus": {"scoring.grid_size": 3, "scoring.grid_problems": 2},
    "five-operations": {"model.num_heads": 4, "model.num_layers": 1, "training.stop_from": 0},
    "spaced": {"training.num_examples": 64},
    "three-digit": {"training.num_examples": 64},
}
STEPS = {
    "parallel-encoder": (
        *("Ten samples", "after each epoch", "best checkpoint", "embeddings moved"),
        *("three likeliest", "both orders"),
    ),
    "looped-abacus": (
        *("Tokens, labels and positions", "perplexity", "heat map for each number of loops"),
        "loss of single batches",
    ),
    "five-operations": (
        *("The machine", "by operation and split", "Lines", "twelve problems before and after"),
        *("history, by operation", "summary", "saved model"),
    ),
    "spaced": (
        *("distribution of the sums", "splits are disjoint", "Training", "In and out"),
        *("sample predictions", "bar chart", "CSV", "summary"),
    ),
    "three-digit": ("parameters of each block", "Training", "Edge cases", "text as written"),
}
"""What the document shows, in words of the notebook."""
OF_DOCUMENTS = [path for path in NOTEBOOKS if path.stem in STEPS]
MOST_BYTES_OF_A_PICTURE = 60_000


def cells_of(notebook: Path, kind: str) -> list[dict]:
    cells = json.loads(notebook.read_text())["cells"]
    return [cell for cell in cells if cell["cell_type"] == kind]


def run_cell(source: str, name: str, names: dict[str, object]) -> None:
    """Run a cell as a notebook does, and draw or typeset its last value if that is a picture or a table."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), names)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), name, "eval"), names)
        for method in ("_repr_png_", "_repr_markdown_"):
            if hasattr(value, method):
                assert getattr(value, method)()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    torch.set_num_threads(1)
    names: dict[str, object] = {}
    for cell in cells_of(notebook, "code"):
        source = "".join(cell["source"])
        assert not source.startswith("!")
        # Scoring all of a million sums takes half a minute, and checking all neighbourhoods ten seconds.
        tiny = source.replace('"exhaustive"', '"splits"').replace("prove()", "prove(max_minutes=0)")
        run_cell(tiny, notebook.name, names)
        if "settings = {" in source:
            names["settings"] |= TINY | ALSO[notebook.stem]
    assert capsys.readouterr().out
    assert len(list((tmp_path / "runs").glob("*/run.json"))) == 1


def test_every_system_has_its_notebook():
    pages = {path.stem for path in NOTEBOOKS[0].parents[1].glob("docs/systems/*.md")} - {"README"}
    assert pages == set(STEPS)
    assert {path.stem for path in NOTEBOOKS} == pages | {"first-look"} == set(ALSO)


@pytest.mark.parametrize("notebook", OF_DOCUMENTS, ids=lambda path: path.stem)
def test_a_notebook_shows_every_step_of_its_document(notebook):
    text = "\n".join("".join(cell["source"]) for cell in cells_of(notebook, "markdown"))
    for step in STEPS[notebook.stem]:
        assert step.casefold() in text.casefold(), step
    assert "smaller than" in text


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_with_the_outputs_of_one_execution(notebook):
    cells = cells_of(notebook, "code")
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} <= {
        "stream",
        "execute_result",
        "display_data",
    }
    assert {output.get("name", "stdout") for output in outputs} == {"stdout"}
    pictures = [
        output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})
    ]
    assert bool(pictures) == (notebook in OF_DOCUMENTS)
    for picture in pictures:
        assert len(base64.b64decode(picture)) < MOST_BYTES_OF_A_PICTURE
    for folder in ("/tmp/", "/home/", "/root/", "site-packages"):
        assert folder not in notebook.read_text()
