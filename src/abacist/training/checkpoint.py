"""Checkpoints: all that is needed to resume a training bit for bit. Nothing is ever unpickled.

checkpoints/step-001500/
  model.safetensors       weights (averaged weights, where training keeps an average)
  state.safetensors       state of the optimiser
  state.json              `Progress`: steps, seconds, and whether the training is finished
  manifest.json           SHA-256 checksums of the other files
checkpoints/damaged-step-001500/    a checkpoint that proved to be damaged; it is kept and never used
"""

import hashlib
import json
import math
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from abacist import files
from abacist.configuration import from_json
from abacist.errors import CheckpointError, RunError
from abacist.models.transformer import Transformer
from abacist.training.checkpoint_paths import all_in as all_in
from abacist.training.checkpoint_paths import path_of
from abacist.training.checkpoint_paths import step_of as step_of
from abacist.training.optimizer import Optimizer

_STATE = "state.safetensors"
_FILES = {"model.safetensors", _STATE, "state.json"}
"""The files that the manifest of a checkpoint lists; one made by `without_state` lacks the state."""


@dataclass(frozen=True)
class Progress:
    """How far a training has got."""

    step: int
    """Number of optimiser steps done."""
    seconds: float
    """Training time in seconds, summed over all interruptions."""
    successes: int = 0
    """Number of consecutive validations, up to now, that reached `training.stop_at`."""
    finished: bool = False
    """Whether the training is complete."""
    best: tuple[float, float] | None = None
    """Exact match and negative loss of the best validation so far; None before the first."""


def save(directory: Path, model: Transformer, optimizer: Optimizer, progress: Progress) -> Path:
    """Write a checkpoint under `directory`, completely or not at all, and return its path."""
    path = path_of(directory, progress.step)
    with optimizer.averaged():
        weights = _weights(model)
    data = {
        "model.safetensors": safetensors.torch.save(weights),
        _STATE: safetensors.torch.save(optimizer.state()),
        "state.json": (json.dumps(asdict(progress)) + "\n").encode(),
    }
    files.write_directory(path, data | {"manifest.json": _manifest(data)})
    return path


def keep_newest(directory: Path, count: int) -> None:
    """Delete all but the newest `count` checkpoints."""
    for path in all_in(directory)[:-count]:
        _delete(path)


def keep_one(directory: Path, step: int, up_to: int) -> None:
    """Delete all checkpoints up to step `up_to` but that of `step`; newer ones stay."""
    for path in all_in(directory):
        if step_of(path) <= up_to and step_of(path) != step:
            _delete(path)


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)


@dataclass(frozen=True)
class Checkpoint:
    """The verified contents of a checkpoint."""

    path: Path
    contents: dict[str, bytes]
    """Content of each file in the manifest, by name."""
    progress: Progress

    @property
    def weights_sha256(self) -> str:
        """SHA-256 of `model.safetensors`, in hexadecimal."""
        return hashlib.sha256(self.contents["model.safetensors"]).hexdigest()

    def load_weights(self, model: Transformer) -> None:
        """Copy the weights into `model`.

        Raises `CheckpointError` unless the file holds finite numbers with exactly the model's
        names, shapes and types.
        """
        parameters = dict(model.named_parameters())
        stored = self._tensors("model.safetensors", parameters)
        with torch.no_grad():
            for name, parameter in parameters.items():
                parameter.copy_(stored[name])
                if not bool(torch.isfinite(parameter).all()):
                    file = self.path / "model.safetensors"
                    raise CheckpointError(f"{file} holds numbers in {name} that are not finite.")

    def load_optimizer(self, optimizer: Optimizer) -> None:
        """Restore the state of `optimizer`, whose model has the weights of this checkpoint.

        Raises `CheckpointError` unless the file has exactly the names, shapes and types of the
        optimiser's state.
        """
        if _STATE not in self.contents:
            raise CheckpointError(
                f"{self.path} has no state of the optimiser, because it was written to be shown and "
                "not to be trained. Resume the run that it is a copy of."
            )
        optimizer.restore(self._tensors(_STATE, optimizer.empty_state()))

    def without_state(self) -> dict[str, bytes]:
        """Return the files of a copy that can be loaded and not resumed, by name."""
        contents = {name: data for name, data in self.contents.items() if name != _STATE}
        return contents | {"manifest.json": _manifest(contents)}

    def _tensors(self, name: str, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the tensors of a file, which must look like `expected`."""
        file = self.path / name
        try:
            stored = safetensors.torch.load(self.contents[name])
        except (SafetensorError, ValueError, KeyError, RuntimeError) as error:
            reason = str(error).splitlines()[0]
            raise CheckpointError(f"{file} is not a safetensors file: {reason}.") from error
        for tensor_name in sorted({*stored, *expected}):
            kinds = [_kind(tensors.get(tensor_name)) for tensors in (expected, stored)]
            if kinds[0] != kinds[1]:
                raise CheckpointError(
                    f"{file} does not fit the model in run.json: {tensor_name:.60} must be "
                    f"{kinds[0]}, got {kinds[1]}."
                )
        return stored


def read(path: Path) -> Checkpoint:
    """Read a checkpoint and compare all files with their checksums.

    Raises:
        CheckpointError: the checkpoint is damaged: a file is missing, or differs from its checksum.
        RunError: a file cannot be read, which says nothing about its content.
    """
    with files.os_errors_as_run_errors("read", path):
        is_directory = path.is_dir() and not path.is_symlink()
    if not is_directory:
        raise CheckpointError(f"{path} is not a directory, so it is no checkpoint.")
    file = path / "manifest.json"
    try:
        manifest = files.parse_json(_content(file))
    except ValueError as error:
        raise CheckpointError(f"{file} is damaged: {error}.") from error
    if not isinstance(manifest, dict) or set(manifest) | {_STATE} != _FILES:
        raise CheckpointError(f"{file} does not list the files of a checkpoint.")
    contents = {name: _content(path / name) for name in sorted(manifest)}
    for name, content in contents.items():
        if hashlib.sha256(content).hexdigest() != manifest[name]:
            raise CheckpointError(
                f"{path / name} is damaged: its checksum differs from the one in manifest.json."
            )
    return Checkpoint(path, contents, _progress(path / "state.json", contents["state.json"]))


def set_aside(path: Path) -> Path:
    """Rename a damaged checkpoint so that no training uses it, and return the new path."""
    aside, copy = path.with_name(f"damaged-{path.name}"), 2
    while aside.exists() or aside.is_symlink():
        aside, copy = path.with_name(f"damaged-{path.name}-{copy}"), copy + 1
    with files.os_errors_as_run_errors("rename", path):
        path.rename(aside)
    return aside


def _content(file: Path) -> bytes:
    """Return the content of a file.

    A file that is missing is proof of damage, because checkpoints are written as a whole. Any other
    error, such as one of the disk or of permissions, is not.
    """
    try:
        return file.read_bytes()
    except (FileNotFoundError, IsADirectoryError) as error:
        raise CheckpointError(f"{file} is missing.") from error
    except OSError as error:
        raise RunError(f"cannot read {file}: {error.strerror or error}.") from error


def _progress(file: Path, content: bytes) -> Progress:
    """Return the progress that the content of `state.json` describes."""
    try:
        progress: Progress = from_json(Progress, files.parse_json(content))
    except ValueError as error:
        raise CheckpointError(f"{file} is damaged: {error}") from error
    if progress.step < 0 or not 0 <= progress.seconds < math.inf:
        raise CheckpointError(f"{file} is damaged: it counts no steps or no seconds.")
    return progress


def _kind(tensor: Tensor | None) -> str:
    """Describe the type and shape of a tensor, as in `float32 (13, 64)`."""
    if tensor is None:
        return "absent"
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"


def _manifest(contents: Mapping[str, bytes]) -> bytes:
    checksums = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    return (json.dumps(checksums, indent=2) + "\n").encode()


def weights_sha256(model: nn.Module) -> str:
    """Return the SHA-256 of the file that `save` writes for the weights of a model as they are."""
    return hashlib.sha256(safetensors.torch.save(_weights(model))).hexdigest()


def _weights(model: nn.Module) -> dict[str, Tensor]:
    """Return copies of all parameters by name, shared ones once, on the CPU."""
    return {name: parameter.detach().cpu().clone() for name, parameter in model.named_parameters()}
