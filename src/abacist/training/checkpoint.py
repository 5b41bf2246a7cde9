"""Checkpoints: all that is needed to resume a training bit for bit. Nothing is ever unpickled.

checkpoints/step-001500/
  model.safetensors       weights (averaged weights, where training keeps an average)
  state.safetensors       state of the optimiser
  state.json              `Progress`: steps, seconds, and whether the training is finished
  manifest.json           SHA-256 checksums of the other files
"""

import hashlib
import json
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from abacist import files
from abacist.errors import CheckpointError
from abacist.models.transformer import Transformer
from abacist.training.optimizer import Optimizer


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


def save(directory: Path, model: Transformer, optimizer: Optimizer, progress: Progress) -> Path:
    """Write a checkpoint under `directory`, completely or not at all, and return its path."""
    path = directory / f"step-{progress.step:06d}"
    with optimizer.averaged():
        weights = _weights(model)
    data = {
        "model.safetensors": safetensors.torch.save(weights),
        "state.safetensors": safetensors.torch.save(optimizer.state()),
        "state.json": (json.dumps(asdict(progress)) + "\n").encode(),
    }
    manifest = {name: hashlib.sha256(content).hexdigest() for name, content in data.items()}
    manifest_json = (json.dumps(manifest, indent=2) + "\n").encode()
    files.write_directory(path, data | {"manifest.json": manifest_json})
    return path


def all_in(directory: Path) -> list[Path]:
    """Return the paths of all checkpoints under `directory`, oldest first."""
    if not directory.is_dir():
        return []
    paths = [p for p in directory.iterdir() if re.fullmatch(r"step-\d{6,}", p.name)]
    return sorted(paths, key=lambda path: int(path.name.removeprefix("step-")))


def keep_newest(directory: Path, count: int) -> None:
    """Delete all but the newest `count` checkpoints."""
    for path in all_in(directory)[:-count]:
        shutil.rmtree(path)


def verify(path: Path) -> None:
    """Check all files against their checksums.

    Raises `CheckpointError`, which names the file, where one is missing or damaged.
    """
    try:
        manifest = json.loads((path / "manifest.json").read_text())
        items = list(manifest.items())
    except (OSError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{path / 'manifest.json'} is missing or damaged.") from error
    if {name for name, _ in items} != {"model.safetensors", "state.safetensors", "state.json"}:
        raise CheckpointError(f"{path / 'manifest.json'} does not list the files of a checkpoint.")
    for name, checksum in items:
        file = path / name
        if not file.is_file() or _checksum(file) != checksum:
            raise CheckpointError(
                f"{file} is damaged: its checksum differs from the one in manifest.json."
            )


def load_weights(path: Path, model: Transformer) -> None:
    """Verify a checkpoint and copy its weights into `model`.

    Raises `CheckpointError` where it is damaged or does not fit the model.
    """
    verify(path)
    file = path / "model.safetensors"
    try:
        stored = safetensors.torch.load_file(file)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(stored[name])
    except (SafetensorError, RuntimeError, KeyError) as error:
        reason = str(error).splitlines()[0]
        raise CheckpointError(f"{file} does not fit the model in run.json: {reason}") from error


def read_progress(path: Path) -> Progress:
    """Return how far the training had got at a checkpoint."""
    return Progress(**json.loads((path / "state.json").read_text()))


def load_optimizer(path: Path, optimizer: Optimizer) -> None:
    """Restore the state of `optimizer` from a checkpoint that `load_weights` has verified."""
    optimizer.restore(safetensors.torch.load_file(path / "state.safetensors"))


def _weights(model: nn.Module) -> dict[str, Tensor]:
    """Return copies of all parameters by name, shared ones once, on the CPU."""
    return {name: parameter.detach().cpu().clone() for name, parameter in model.named_parameters()}


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
