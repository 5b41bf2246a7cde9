"""A folder for a Space holds nothing that its owner did not mean to publish."""

import json
import shutil

import pytest

import abacist
from abacist.app.space import write_space
from abacist.errors import CheckpointError
from abacist.training import checkpoint


def test_a_space_holds_no_links_no_optimiser_state_and_no_machine(untrained, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("a password")
    newest = checkpoint.all_in(untrained.directory.checkpoints)[-1]
    (newest / "more.txt").symlink_to(secret)
    untrained.directory.scorecard.symlink_to(secret)
    folder = write_space([str(untrained.path)], tmp_path / "space")
    assert not any(
        b"a password" in path.read_bytes() for path in folder.rglob("*") if path.is_file()
    )
    assert not list(folder.rglob("state.safetensors"))
    record = json.loads((folder / "runs" / "untrained" / "run.json").read_text())
    assert not {"machine", "cores", "gpu"} & record.keys()
    copy = abacist.load(folder / "runs" / "untrained")
    assert copy.identity == untrained.identity
    with pytest.raises(CheckpointError, match="has no state of the optimiser"):
        abacist.resume(copy.path)


def test_no_name_of_a_run_breaks_the_front_matter(untrained, tmp_path):
    path = shutil.copytree(untrained.path, tmp_path / 'a\nlicense: "x" # {b}')
    card = (write_space([str(path)], tmp_path / "space") / "README.md").read_text()
    assert card.splitlines()[1] == 'title: "abacist a\\nlicense: \\"x\\" # {b}"'
    assert card.splitlines()[2].startswith("emoji: ")
