"""Where a run keeps what.

runs/add-20261121-153012/
  run.json            recipe with every setting, seed, versions, machine, threads
  metrics.jsonl       one record a line, training.png drawn from it
  checkpoints/        step-001500/ …
  embeddings/         step-000100.safetensors …, where they are recorded
  scorecard.json      the evaluation; failures.jsonl beside it, lengths.png and grid.png drawn from it
  certificate.json    the outcome of the proof
  attention.json      mean attention by difference of place, for the report
  report.html         all of this to read
"""

import json
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from abacist import files
from abacist.configuration import from_json
from abacist.errors import ConfigurationError, RunError
from abacist.recipes.recipe import Recipe

RUNS = Path("runs")


@dataclass(frozen=True)
class RunDirectory:
    """The files of one run."""

    path: Path

    @property
    def run_json(self) -> Path:
        return self.path / "run.json"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def embeddings(self) -> Path:
        return self.path / "embeddings"

    @property
    def scorecard(self) -> Path:
        return self.path / "scorecard.json"

    @property
    def failures(self) -> Path:
        return self.path / "failures.jsonl"

    @property
    def lengths_picture(self) -> Path:
        return self.path / "lengths.png"

    @property
    def grid_picture(self) -> Path:
        return self.path / "grid.png"

    @property
    def training_picture(self) -> Path:
        return self.path / "training.png"

    @property
    def certificate(self) -> Path:
        return self.path / "certificate.json"

    @property
    def attention(self) -> Path:
        return self.path / "attention.json"

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    @property
    def verdicts(self) -> list[Path]:
        """What was said of the weights, and goes when they change."""
        return [
            self.scorecard,
            self.failures,
            self.lengths_picture,
            self.grid_picture,
            self.certificate,
            self.attention,
            self.report,
        ]

    def read_metrics(self) -> list[dict[str, Any]]:
        """All whole records. Warns where a line torn by a crash is left out, and all behind it."""
        if not self.metrics.exists():
            return []
        records = []
        for number, line in enumerate(self.metrics.read_text().splitlines(), start=1):
            try:
                records.append(json.loads(line))
            except ValueError:
                warnings.warn(
                    f"{self.metrics} is damaged from line {number} on, which is left out.",
                    stacklevel=2,
                )
                break
        return records

    def write_metrics(self, records: list[dict[str, Any]]) -> None:
        """Replace all records."""
        text = "".join(json.dumps(record) + "\n" for record in records)
        files.write_bytes(self.metrics, text.encode())

    def append_metrics(self, record: dict[str, Any]) -> None:
        """Add one record at the end."""
        with open(self.metrics, "a") as file:
            file.write(json.dumps(record) + "\n")


def new_path(recipe_name: str) -> Path:
    """A fresh directory name under `runs/`, by recipe and time."""
    stem = f"{recipe_name}-{time.strftime('%Y%m%d-%H%M%S')}"
    path, copy = RUNS / stem, 2
    while path.exists():
        path, copy = RUNS / f"{stem}-{copy}", copy + 1
    return path


def find(text: str) -> RunDirectory:
    """The run a user means: a directory, or `latest` for the newest one under `runs/`."""
    if text == "latest" and not Path("latest").exists():
        found = [path.parent for path in RUNS.glob("*/run.json")]
        if not found:
            raise RunError("there is no run under runs/ yet. Type abacist train add.")
        return RunDirectory(max(found, key=lambda path: (path / "run.json").stat().st_mtime))
    directory = RunDirectory(Path(text))
    if not directory.path.exists():
        raise RunError(f"there is no run {text}. Type a run directory, or latest for the newest.")
    if not directory.run_json.is_file():
        raise RunError(f"{text} is not a run directory: it has no run.json.")
    return directory


def read_recipe(found: RunDirectory) -> tuple[Recipe, dict[str, Any]]:
    """The recipe of a run, and all of `run.json`."""
    try:
        record = json.loads(found.run_json.read_text())
        recipe: Recipe = from_json(Recipe, record["recipe"])
        if type(record["seed"]) is not int or type(record["threads"]) is not int:
            raise ValueError("seed and threads must be whole numbers")
    except (ValueError, KeyError, TypeError, ConfigurationError) as error:
        raise RunError(f"{found.run_json} is damaged: {error}") from error
    return recipe, record
