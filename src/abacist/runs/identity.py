"""The identity of a model: the SHA-256 of its weights, and that of its configuration.

Scorecards, failures and certificates name the model that they speak of. Readers compare it with the
model at hand, so that records of another model are never taken for records of this one. Imports no
torch.

>>> identity = of_directory(directory.find("latest"))
>>> identity.objection({"weights_sha256": "9f86…", "configuration_sha256": "2c26…"})
'other weights'
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import abacist
from abacist import files
from abacist.errors import RunError
from abacist.runs.directory import RunDirectory, read_run_json


@dataclass(frozen=True)
class Identity:
    """The model that a record speaks of."""

    weights_sha256: str
    """SHA-256 of the checkpoint's `model.safetensors`, in hexadecimal."""
    configuration_sha256: str
    """SHA-256 of the recipe in `run.json`; see `configuration_sha256`."""

    def to_json(self) -> dict[str, str]:
        return asdict(self)

    def objection(self, record: Mapping[str, Any]) -> str | None:
        """Return what a record speaks of, if that is not this model; otherwise None."""
        for name, description in (
            ("weights_sha256", "other weights"),
            ("configuration_sha256", "another configuration"),
        ):
            if record.get(name) is None:
                return "weights that it does not name"
            if record[name] != getattr(self, name):
                return description
        return None


def of_directory(directory: RunDirectory) -> Identity:
    """Return the identity of the model in the checkpoint of a run whose results are meant.

    Raises `RunError` if there is no checkpoint, or if it or `run.json` cannot be read.
    """
    recipe = read_run_json(directory).get("recipe")
    if directory.checkpoint is None:
        raise RunError(f"{directory.path} has no checkpoint.")
    file = directory.checkpoint / "model.safetensors"
    with files.os_errors_as_run_errors("read", file):
        return Identity(hashlib.sha256(file.read_bytes()).hexdigest(), configuration_sha256(recipe))


def configuration_sha256(recipe: Any) -> str:
    """Return the SHA-256 of a recipe's canonical JSON, in hexadecimal.

    Canonical JSON has sorted keys, no spaces, and is encoded in UTF-8. `recipe` is the value of
    `recipe` in `run.json`.
    """
    text = json.dumps(recipe, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def package() -> dict[str, str]:
    """Return the version of this package and the SHA-256 of its source, for a record.

    They are recorded and not compared. The second tells apart two states of the source that have one
    version.
    """
    source = _source_sha256(Path(abacist.__file__).parent)
    return {"abacist_version": abacist.__version__, "source_sha256": source}


@cache
def _source_sha256(root: Path) -> str:
    """Return the SHA-256 of all modules below a directory.

    It is taken once: the source that a process runs does not change with its files.
    """
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
