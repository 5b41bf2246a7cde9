"""Copies of the embeddings while training goes on, to show how they evolve.

embeddings/
  step-000000.safetensors     tokens (V, D), and learned positions as positions.0 (rows, width) …
"""

from pathlib import Path

import safetensors.torch
from torch import Tensor

from abacist import files
from abacist.models.encodings import LearnedEncoding
from abacist.models.transformer import Transformer


def record(directory: Path, model: Transformer, step: int) -> None:
    """Write the embeddings as they are after a step."""
    files.make_directory(directory)
    path = directory / f"step-{step:06d}.safetensors"
    files.write_bytes(path, safetensors.torch.save(_tables(model)))


def read(directory: Path) -> dict[int, dict[str, Tensor]]:
    """All copies by step, in order; empty where none were kept."""
    return {_step(path): safetensors.torch.load_file(path) for path in _all_in(directory)}


def forget_after(directory: Path, step: int) -> None:
    """Delete copies made after a step, which training will make again."""
    for path in _all_in(directory):
        if _step(path) > step:
            path.unlink()


def _tables(model: Transformer) -> dict[str, Tensor]:
    tables = {"tokens": model.embedding.weight.detach().cpu().clone()}
    for number, encoding in enumerate(model.positions):
        if isinstance(encoding, LearnedEncoding):
            tables[f"positions.{number}"] = encoding.rows.weight.detach().cpu().clone()
    return tables


def _all_in(directory: Path) -> list[Path]:
    return sorted(directory.glob("step-*.safetensors"), key=_step)


def _step(path: Path) -> int:
    return int(path.stem.removeprefix("step-"))
