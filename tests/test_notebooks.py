"""Every notebook runs from its first cell to its last, with a tiny training budget."""

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
    "training.checkpoint_every": 4,
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
    "five-operations": {"model.num_heads": 4, "model.num_layers": 1},
    "spaced": {"training.num_examples": 64},
    "three-digit": {"training.num_examples": 64},
}


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    torch.set_num_threads(1)
    cells = json.loads(notebook.read_text())["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    names: dict[str, object] = {}
    for source in sources:
        assert not source.startswith("!")
        # Scoring all of a million sums takes half a minute, and checking all neighbourhoods ten seconds.
        tiny = source.replace('"exhaustive"', '"splits"').replace("prove()", "prove(max_minutes=0)")
        exec(compile(tiny, notebook.name, "exec"), names)
        if names.get("settings") == {}:
            names["settings"] = TINY | ALSO[notebook.stem]
    assert capsys.readouterr().out
    assert len(list((tmp_path / "runs").glob("*/run.json"))) == 1


def test_every_system_has_its_notebook_without_stored_output():
    pages = {path.stem for path in NOTEBOOKS[0].parents[1].glob("docs/systems/*.md")} - {"README"}
    assert {path.stem for path in NOTEBOOKS} == pages | {"first-look"} == set(ALSO)
    for notebook in NOTEBOOKS:
        for cell in json.loads(notebook.read_text())["cells"]:
            assert not cell.get("outputs")
