"""Checkpoints: everything needed to go on to the same bits, checksummed, never unpickled.

checkpoints/step-001500/
  model.safetensors       the weights
  state.safetensors       what the optimiser remembers
  state.json              step, seconds spent, and whether it is finished
  manifest.json           SHA-256 of the other files
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
    """How far a training has come."""

    step: int
    """Optimiser steps done."""
    seconds: float
    """Time spent training, over all its parts."""
    successes: int = 0
    """Checks in a row that reached the target of an early stop."""
    finished: bool = False
    """Whether nothing is left to do."""


def save(directory: Path, model: Transformer, optimizer: Optimizer, progress: Progress) -> Path:
    """Write one checkpoint under `directory`, whole or not at all, and return its path."""
    path = directory / f"step-{progress.step:06d}"
    with optimizer.averaged():
        weights = _weights(model)
    contents = {
        "model.safetensors": safetensors.torch.save(weights),
        "state.safetensors": safetensors.torch.save(optimizer.state()),
        "state.json": (json.dumps(asdict(progress)) + "\n").encode(),
    }
    manifest = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    manifest_json = (json.dumps(manifest, indent=2) + "\n").encode()
    files.write_directory(path, contents | {"manifest.json": manifest_json})
    return path


def all_in(directory: Path) -> list[Path]:
    """The checkpoints under `directory`, oldest first."""
    if not directory.is_dir():
        return []
    named = [p for p in directory.iterdir() if re.fullmatch(r"step-\d{6,}", p.name)]
    return sorted(named, key=lambda path: int(path.name.removeprefix("step-")))


def keep_newest(directory: Path, count: int) -> None:
    """Delete all but the newest `count` checkpoints."""
    for path in all_in(directory)[:-count]:
        shutil.rmtree(path)


def verify(path: Path) -> None:
    """Raise `CheckpointError`, naming the file, unless every file matches its checksum."""
    try:
        manifest = json.loads((path / "manifest.json").read_text())
        items = list(manifest.items())
    except (OSError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{path / 'manifest.json'} is missing or damaged.") from error
    if {name for name, _ in items} != {"model.safetensors", "state.safetensors", "state.json"}:
        raise CheckpointError(f"{path / 'manifest.json'} does not list a checkpoint's files.")
    for name, checksum in items:
        file = path / name
        if not file.is_file() or _checksum(file) != checksum:
            raise CheckpointError(
                f"{file} is damaged: its checksum differs from the one in manifest.json."
            )


def load_weights(path: Path, model: Transformer) -> None:
    """Fill `model` from a checkpoint, after checking it."""
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
    """How far the training had come at a checkpoint."""
    return Progress(**json.loads((path / "state.json").read_text()))


def load_optimizer(path: Path, optimizer: Optimizer) -> None:
    """Fill `optimizer` from a checkpoint that `load_weights` has checked."""
    optimizer.restore(safetensors.torch.load_file(path / "state.safetensors"))


def _weights(model: nn.Module) -> dict[str, Tensor]:
    """Named parameters, shared ones once."""
    return {name: parameter.detach().cpu().clone() for name, parameter in model.named_parameters()}


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
