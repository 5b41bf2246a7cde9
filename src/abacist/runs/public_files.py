"""The files of a run that may leave this machine: its records and weights, without what describes the machine.

A Space and a repository on the Hub hold them.
"""

import json
from pathlib import Path

from abacist import extensions
from abacist.errors import RunError
from abacist.runs.directory import RunDirectory, read_run_json
from abacist.training import checkpoint

_PRIVATE = ("machine", "cores", "gpu")
"""Keys of `run.json` that describe the machine on which the run was trained."""


def public_files(run: RunDirectory) -> dict[str, bytes]:
    """Return the contents of files that make a run which can be loaded and not resumed, by path.

    They hold the newest checkpoint. In the cache of huggingface_hub all files are symbolic links, which
    are followed; other links can lead to any file of this machine.

    Raises `RunError` if the run has no checkpoint, or if one of the files is a link that leads out of
    the cache's folder of its repository.
    """
    checkpoints = checkpoint.all_in(run.checkpoints)
    if not checkpoints:
        resume = extensions.command("train", "--resume", "--out", str(run.path))
        raise RunError(f"{run.path} has no checkpoint yet. Type {resume}.")
    newest = checkpoint.read(checkpoints[-1])
    record = {name: value for name, value in read_run_json(run).items() if name not in _PRIVATE}
    contents = {"run.json": (json.dumps(record, indent=2) + "\n").encode()}
    for name, data in newest.without_state().items():
        contents[f"checkpoints/{newest.path.name}/{name}"] = data
    for path in (
        *(run.metrics, run.tokenizer, run.tokenizer_config),
        *(run.scorecard, run.failures, run.certificate, run.attention),
        *sorted(run.embeddings.glob("step-*.safetensors")),
    ):
        if path.is_symlink() and not _is_cached(path):
            raise RunError(
                f"{path} is a symbolic link, which can lead to any file of this machine. "
                "Replace it by a copy of the file, or delete it."
            )
        if path.is_file():
            contents[path.relative_to(run.path).as_posix()] = path.read_bytes()
    return contents


def _is_cached(link: Path) -> bool:
    """Whether a link is one that huggingface_hub makes, `REPOSITORY/snapshots/REVISION/…` to `REPOSITORY/blobs/…`."""
    repositories = [p.parent for p in link.parent.resolve().parents if p.name == "snapshots"]
    # The directory must be a real one: a link called blobs can lead to any directory.
    return link.resolve().parent in [repository / "blobs" for repository in repositories]
