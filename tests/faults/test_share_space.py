"""A folder for a Space holds nothing that its owner did not mean to publish."""

import json
import os
import shutil

import pytest

import abacist
from abacist.app.space import write_space
from abacist.errors import CheckpointError, RunError
from abacist.training import checkpoint


def test_a_space_holds_no_links_no_optimiser_state_and_no_machine(untrained, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("a password")
    newest = checkpoint.all_in(untrained.directory.checkpoints)[-1]
    (newest / "more.txt").symlink_to(secret)
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


@pytest.mark.parametrize("is_in_cache", [False, True])
def test_a_link_out_of_the_run_is_refused(untrained, tmp_path, is_in_cache):
    secret = tmp_path / "secrets" / "secret"
    secret.parent.mkdir()
    secret.write_text("a password")
    path = untrained.path
    if is_in_cache:
        # Neither a link out of the repository, nor one through a directory called blobs that is a link.
        path = shutil.copytree(path, tmp_path / "models--a--b" / "snapshots" / "0" / "run")
        (tmp_path / "models--a--b" / "blobs").symlink_to(secret.parent)
    (path / "scorecard.json").symlink_to(secret)
    with pytest.raises(RunError, match=r"scorecard\.json is a symbolic link, which can lead to"):
        write_space([str(path)], tmp_path / "space")
    assert not (tmp_path / "space").exists()


def test_a_run_in_the_cache_of_the_hub_is_shared_with_all_its_records(untrained, tmp_path):
    untrained.score(num_problems=5)
    snapshot = tmp_path / "models--a--b" / "snapshots" / "0"
    path = shutil.copytree(untrained.path, snapshot / "run")
    blobs = tmp_path / "models--a--b" / "blobs"
    blobs.mkdir()
    for number, file in enumerate(path for path in path.rglob("*") if path.is_file()):
        file.rename(blobs / str(number))
        file.symlink_to(os.path.relpath(blobs / str(number), file.parent))
    folder = write_space([str(path)], tmp_path / "space") / "runs" / "run"
    assert {"scorecard.json", "failures.jsonl", "metrics.jsonl", "tokenizer.json"} <= {
        file.name for file in folder.iterdir()
    }
    assert (folder / "scorecard.json").read_bytes() == untrained.directory.scorecard.read_bytes()


def test_no_name_of_a_run_breaks_the_front_matter(untrained, tmp_path):
    path = shutil.copytree(untrained.path, tmp_path / 'a\nlicense: "x" # {b}')
    card = (write_space([str(path)], tmp_path / "space") / "README.md").read_text()
    assert card.splitlines()[1] == 'title: "abacist a\\nlicense: \\"x\\" # {b}"'
    assert card.splitlines()[2].startswith("emoji: ")
