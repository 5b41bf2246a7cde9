"""Copies of the embeddings, written during training to show how they evolve.

embeddings/
  step-000000.safetensors     tokens (V, D), and learned positions as positions.0 (rows, width) …
"""

from pathlib import Path

import safetensors.torch
from torch import Tensor

from abacist import files
from abacist.inspection.embeddings import embedding_tables
from abacist.models.transformer import Transformer


def record(directory: Path, model: Transformer, step: int) -> None:
    """Write the embeddings as they are after `step` optimiser steps."""
    files.make_directory(directory)
    path = directory / f"step-{step:06d}.safetensors"
    # In training, all weights are views of one vector, which safetensors refuses to save.
    tables = {name: table.clone() for name, table in embedding_tables(model).items()}
    files.write_bytes(path, safetensors.torch.save(tables))


def read(directory: Path) -> dict[int, dict[str, Tensor]]:
    """Return all copies by step, in ascending order; an empty dictionary if none were recorded."""
    return {_step(path): safetensors.torch.load_file(path) for path in _copies(directory)}


def forget_after(directory: Path, step: int) -> None:
    """Delete the copies of later steps than `step`, which training is about to repeat."""
    for path in _copies(directory):
        if _step(path) > step:
            path.unlink()


def _copies(directory: Path) -> list[Path]:
    return sorted(directory.glob("step-*.safetensors"), key=_step)


def _step(path: Path) -> int:
    return int(path.stem.removeprefix("step-"))
