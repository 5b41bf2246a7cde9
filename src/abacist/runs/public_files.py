"""The files of a run that may leave this machine: its records and weights, without what describes the machine.

A Space and a repository on the Hub hold them.
"""

import json

from abacist import extensions
from abacist.errors import RunError
from abacist.runs.directory import RunDirectory, read_run_json
from abacist.training import checkpoint

_PRIVATE = ("machine", "cores", "gpu")
"""Keys of `run.json` that describe the machine on which the run was trained."""


def public_files(run: RunDirectory) -> dict[str, bytes]:
    """Return the contents of files that make a run which can be loaded and not resumed, by path.

    They hold the newest checkpoint. Symbolic links are left out, because they can lead to any file of
    this machine. Raises `RunError` if the run has no checkpoint.
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
        if path.is_file() and not path.is_symlink():
            contents[path.relative_to(run.path).as_posix()] = path.read_bytes()
    return contents
