"""Checkpoints: everything needed to go on to the same bits, checksummed, never unpickled.

checkpoints/step-001500/
  model.safetensors       the weights
  state.safetensors       the optimiser's moments
  state.json              step and seconds spent
  manifest.json           SHA-256 of the other files
"""

import hashlib
import json
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from abacist import files
from abacist.errors import CheckpointError
from abacist.models.transformer import Transformer


@dataclass(frozen=True)
class Progress:
    """How far a training has come."""

    step: int
    """Optimiser steps done."""
    seconds: float
    """Time spent training, over all its parts."""


def save(
    directory: Path, model: Transformer, optimizer: torch.optim.Optimizer, progress: Progress
) -> Path:
    """Write one checkpoint under `directory`, whole or not at all, and return its path."""
    path = directory / f"step-{progress.step:06d}"
    with files.new_directory(path) as temporary:
        save_file(_weights(model), temporary / "model.safetensors")
        save_file(_moments(model, optimizer), temporary / "state.safetensors")
        (temporary / "state.json").write_text(json.dumps(asdict(progress)) + "\n")
        names = ["model.safetensors", "state.safetensors", "state.json"]
        manifest = {name: _checksum(temporary / name) for name in names}
        (temporary / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
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
        stored = load_file(file)
        for name, parameter in _weights(model).items():
            parameter.copy_(stored[name])
    except (SafetensorError, RuntimeError, KeyError) as error:
        reason = str(error).splitlines()[0]
        raise CheckpointError(f"{file} does not fit the model in run.json: {reason}") from error


def read_progress(path: Path) -> Progress:
    """How far the training had come at a checkpoint."""
    return Progress(**json.loads((path / "state.json").read_text()))


def load_optimizer(path: Path, model: Transformer, optimizer: torch.optim.Optimizer) -> None:
    """Fill `optimizer`, whose parameters are the model's in order, from a checkpoint."""
    moments = load_file(path / "state.safetensors")
    for name, parameter in model.named_parameters():
        optimizer.state[parameter] = {
            key: moments[f"{name}/{key}"] for key in ("step", "exp_avg", "exp_avg_sq")
        }


def _weights(model: nn.Module) -> dict[str, Tensor]:
    """Named parameters, shared ones once."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def _moments(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    return {
        f"{name}/{key}": optimizer.state[parameter][key]
        for name, parameter in model.named_parameters()
        for key in ("step", "exp_avg", "exp_avg_sq")
    }


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
