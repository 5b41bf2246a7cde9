"""The layout of a run directory, and the files in it that can be read without torch.

runs/add-20261121-153012/
  run.json            recipe with every setting, seed, versions, machine, threads
  metrics.jsonl       one record per line; training.png is drawn from it
  tokenizer.json      the vocabulary, as `tokenizers` and `transformers` read it; tokenizer_config.json beside it
  losses.jsonl        the loss of single steps, if it is recorded
  watched.jsonl       answers to the watched problems, if there are any
  beginnings.jsonl    how good each of several beginnings was, if there are several
  repairs.jsonl       for each round of repairs: number of wrong neighbourhoods, and problems with them
  nonfinite-batch.json  the lines of a batch on which the loss was not finite
  checkpoints/        step-001500/ …
  best/               step-001250/, the checkpoint that is best on validation
  embeddings/         step-000100.safetensors …, if they are recorded
  scorecard.json      the scores; failures.jsonl beside it; lengths.png, grid.png, notation.png are drawn from it
  certificate.json    the outcome of the proof
  attention.json      mean attention by difference of place, for the report
  outcome.json        cost, scores and certificate in one record, for runs that are trials of a sweep
  report.html         everything above, to be read in a browser
  results-step-000500/  scores, certificate and report of an earlier checkpoint, if it was asked for
  tensorboard/        events for TensorBoard, if they were asked for
"""

import json
import re
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from abacist import extensions, files
from abacist.configuration import from_json
from abacist.errors import CheckpointError, ConfigurationError, RunError
from abacist.recipes.recipe import Recipe
from abacist.runs import hub
from abacist.training import checkpoint_paths
from abacist.training.metrics import Metrics

RUNS = Path("runs")
PLAN = "plan.json"
"""File that a directory of many runs, seeds or a sweep, has and a run has not."""

FORMAT_VERSION = 2
"""Version of the layout of run directories, which `run.json` and `plan.json` state."""

MAX_SEED = (1 << 63) - 1
MAX_SEEDS = 1_000_000
"""Largest number of seeds, or of random draws, of one sweep."""
MAX_THREADS = 1_024
MAX_STEP = 1 << 53
_OTHER_ENTRIES = ("*.png", "results-step-*", "tensorboard", ".*.tmp", ".*.old")
"""Patterns of the entries of a run directory that are not properties of `RunDirectory`."""
_MOST_NAMED = 4
"""Number of runs in a directory of many that an error message names."""


@dataclass(frozen=True)
class RunDirectory:
    """The files of one run, and the checkpoint whose results are meant."""

    path: Path
    chosen: Path | None = None
    """Checkpoint whose results are meant; None stands for the newest."""

    @property
    def checkpoint(self) -> Path | None:
        """The checkpoint whose results are meant; None if the run has no checkpoint yet."""
        if self.chosen is not None:
            return self.chosen
        return next(reversed(checkpoint_paths.all_in(self.checkpoints)), None)

    @property
    def results_path(self) -> Path:
        """Directory of the results: the run's own, or one for an earlier checkpoint."""
        return self.path if self.chosen is None else self.path / f"results-{self.chosen.name}"

    @property
    def written(self) -> list[Path]:
        """Every directory into which files of the run are written, including those that do not exist."""
        results = sorted(self.path.glob("results-*"))
        return [self.path, self.checkpoints, self.best, self.embeddings, *results]

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
    def best(self) -> Path:
        return self.path / "best"

    @property
    def tokenizer(self) -> Path:
        return self.path / "tokenizer.json"

    @property
    def tokenizer_config(self) -> Path:
        return self.path / "tokenizer_config.json"

    @property
    def losses(self) -> Path:
        return self.path / "losses.jsonl"

    @property
    def watched(self) -> Path:
        return self.path / "watched.jsonl"

    @property
    def beginnings(self) -> Path:
        return self.path / "beginnings.jsonl"

    @property
    def repairs(self) -> Path:
        return self.path / "repairs.jsonl"

    @property
    def nonfinite_batch(self) -> Path:
        return self.path / "nonfinite-batch.json"

    @property
    def scorecard(self) -> Path:
        return self.results_path / "scorecard.json"

    @property
    def failures(self) -> Path:
        return self.results_path / "failures.jsonl"

    @property
    def lengths_picture(self) -> Path:
        return self.results_path / "lengths.png"

    @property
    def grid_picture(self) -> Path:
        return self.results_path / "grid.png"

    @property
    def notation_picture(self) -> Path:
        return self.results_path / "notation.png"

    @property
    def training_picture(self) -> Path:
        return self.path / "training.png"

    @property
    def certificate(self) -> Path:
        return self.results_path / "certificate.json"

    @property
    def attention(self) -> Path:
        return self.results_path / "attention.json"

    @property
    def outcome(self) -> Path:
        return self.path / "outcome.json"

    @property
    def report(self) -> Path:
        return self.results_path / "report.html"

    @property
    def results(self) -> list[Path]:
        """Files that describe the weights; they are deleted before the weights change."""
        return [
            self.scorecard,
            self.failures,
            self.lengths_picture,
            self.grid_picture,
            self.notation_picture,
            self.certificate,
            self.attention,
            self.outcome,
            self.report,
        ]

    def owns(self, entry: Path) -> bool:
        """Whether an entry of the directory is part of the run, by its name."""
        run = RunDirectory(self.path)
        whole = {
            *(run.run_json, run.metrics, run.tokenizer, run.tokenizer_config, run.losses),
            *(run.watched, run.beginnings, run.repairs, run.nonfinite_batch),
            *(run.checkpoints, run.best, run.embeddings, *run.results),
        }
        return entry in whole or any(fnmatch(entry.name, pattern) for pattern in _OTHER_ENTRIES)

    @property
    def weights_bytes(self) -> int | None:
        """Size of the saved weights, of the newest checkpoint; None if there is none."""
        paths = checkpoint_paths.all_in(self.checkpoints)
        if not paths:
            return None
        try:
            return (paths[-1] / "model.safetensors").stat().st_size
        except OSError:
            return None

    def read_metrics(self) -> list[dict[str, Any]]:
        """Return all whole records of `metrics.jsonl`, in order; see `read_lines`."""
        return self.read_lines(self.metrics, Metrics)

    def read_lines(self, path: Path, kind: type[Any] | None = None) -> list[dict[str, Any]]:
        """Return all whole records of a file of the run with one JSON object a line, in order.

        Every record must have a step, and be one of `kind`, if that is given. Warns if a crash has
        damaged a line; that line and all lines after it are left out.
        """
        if not path.exists():
            return []
        with files.os_errors_as_run_errors("read", path):
            lines = path.read_bytes().splitlines()
        records = []
        for number, line in enumerate(lines, start=1):
            try:
                record = files.parse_json(line)
                check_whole_number(record, "step", 0, MAX_STEP)
                if kind is not None:
                    from_json(kind, record, "record")
                records.append(record)
            except (ValueError, KeyError, TypeError):
                warnings.warn(
                    f"{path} is damaged from line {number} on; "
                    "that line and all lines after it are left out.",
                    stacklevel=2,
                )
                break
        return records

    def forget_after(self, step: int) -> None:
        """Delete the records of later steps, which a resumed training makes again; at step 0 all of them."""
        for path in (self.metrics, self.losses, self.watched, self.repairs):
            records = [r for r in self.read_lines(path) if step and r["step"] <= step]
            if records or path.exists():
                text = "".join(json.dumps(record) + "\n" for record in records)
                files.write_bytes(path, text.encode())

    def append(self, path: Path, record: dict[str, Any]) -> None:
        """Add one record at the end of a file with one JSON object a line.

        Raises `RunError` if the file cannot be written.
        """
        with files.os_errors_as_run_errors("write", path), open(path, "a") as file:
            file.write(json.dumps(record) + "\n")


def new_path(recipe_name: str) -> Path:
    """Return a path under `runs/` that does not exist yet, named after the recipe and the time."""
    stem = f"{recipe_name}-{time.strftime('%Y%m%d-%H%M%S')}"
    path, copy = RUNS / stem, 2
    while path.exists():
        path, copy = RUNS / f"{stem}-{copy}", copy + 1
    return path


def is_unclaimed(path: Path, first_file: str) -> bool:
    """Whether a directory is free: empty, or left by a process that died before it wrote `first_file`."""
    return path.is_dir() and all(
        fnmatch(entry.name, f".{first_file}.*.tmp") for entry in path.iterdir()
    )


def find(text: str, checkpoint: str | int = "last") -> RunDirectory:
    """Return the run that a user names: a directory, `latest` for the newest one under `runs/`, or one on the Hub.

    `checkpoint` names the checkpoint whose results are meant: `last`, `best` on validation, or a step.

    Raises:
        RunError: there is no such run, it holds several runs, or its format version is not
            `FORMAT_VERSION`.
        CheckpointError: it has no such checkpoint.
    """
    if text == "latest" and not Path("latest").exists():
        paths = [path.parent for path in RUNS.glob("*/run.json")]
        if not paths:
            raise RunError("there is no run under runs/ yet. Type abacist train add.")
        directory = RunDirectory(max(paths, key=lambda p: (p / "run.json").stat().st_mtime))
    elif text.startswith(hub.PREFIX):
        directory = RunDirectory(hub.download(text))
    else:
        directory = RunDirectory(Path(text))
    if not directory.path.exists():
        raise RunError(f"there is no run {text}. Type a run directory, or latest for the newest.")
    if is_unclaimed(directory.path, directory.run_json.name):
        raise RunError(
            f"{text} holds no run yet, perhaps because its training was stopped at once. "
            f"Type abacist train --out {text} to start one there."
        )
    if not directory.run_json.is_file():
        runs = runs_inside(directory.path)
        if not runs:
            raise RunError(f"{text} is not a run directory: it has no run.json.")
        names = ", ".join(str(run.path) for run in runs[:_MOST_NAMED])
        more = f" and {len(runs) - _MOST_NAMED} more" * (len(runs) > _MOST_NAMED)
        raise RunError(
            f"{text} holds {len(runs)} run{'s' * (len(runs) > 1)}, and one is needed. "
            f"Type one of them: {names}{more}."
        )
    read_run_json(directory)
    return directory if checkpoint == "last" else _at(directory, str(checkpoint))


def _at(directory: RunDirectory, checkpoint: str) -> RunDirectory:
    """Return the directory of a run for one of its checkpoints: `best`, or a step."""
    steps = {
        path.name: path
        for folder in (directory.best, directory.checkpoints)
        for path in checkpoint_paths.all_in(folder)
    }
    if checkpoint == "best":
        best = checkpoint_paths.all_in(directory.best)
        if not best:
            raise CheckpointError(
                f"{directory.path} has no best checkpoint: training.keep_best was false, or it was "
                "never validated. Type --checkpoint last."
            )
        name = best[-1].name
    else:
        name = f"step-{int(checkpoint):06d}" if checkpoint.isdecimal() else checkpoint
        if name not in steps:
            known = ", ".join(map(str, sorted(map(checkpoint_paths.step_of, steps.values()))))
            raise CheckpointError(
                f"--checkpoint must be last, best or the step of a checkpoint that "
                f"{directory.path} has ({known or 'none yet'}), got {checkpoint}. "
                "Try --checkpoint last."
            )
    newest = directory.checkpoint
    is_newest = newest is not None and newest.name == name
    return directory if is_newest else RunDirectory(directory.path, steps[name])


def runs_inside(path: Path) -> list[RunDirectory]:
    """Return the runs in a directory of many, as seeds and sweeps make, ordered by name and number."""
    paths = [
        file.parent for depth in ("*", "*/*", "*/*/*") for file in path.glob(f"{depth}/run.json")
    ]

    def numbers_by_value(run: Path) -> list[tuple[int, str]]:
        parts = re.findall(r"\d+|\D+", str(run.relative_to(path)))
        return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]

    return [RunDirectory(run) for run in sorted(paths, key=numbers_by_value)]


def read_run_json(directory: RunDirectory) -> dict[str, Any]:
    """Return everything in `run.json`.

    Raises `RunError` if the file is damaged or its format version is not `FORMAT_VERSION`.
    """
    return read_versioned(directory.run_json)


def read_versioned(path: Path) -> dict[str, Any]:
    """Read a JSON object that states its format version.

    Raises `RunError` if the file is damaged, its extensions included, or the version is not
    `FORMAT_VERSION`.
    """
    try:
        with files.os_errors_as_run_errors("read", path):
            record = files.parse_json(path.read_bytes())
        if not isinstance(record, dict):
            raise ValueError("it is not an object")
    except ValueError as error:
        raise RunError(f"{path} is damaged: {error}") from error
    version = record.get("format_version")
    if version != FORMAT_VERSION:
        written = "no format version" if version is None else f"format version {version!r:.20}"
        raise RunError(
            f"{path} has {written} and this abacist reads version {FORMAT_VERSION} only. "
            "Train the run again, with another --out."
        )
    try:
        extensions.check_stated(record)
    except ValueError as error:
        raise RunError(f"{path} is damaged: {error}.") from error
    return record


def read_recipe(directory: RunDirectory) -> tuple[Recipe, dict[str, Any]]:
    """Return the recipe of a run, and everything in `run.json`.

    Raises `RunError` if the file is damaged or its format version is not `FORMAT_VERSION`.
    """
    record = read_run_json(directory)
    extensions.check_loaded(record, directory.path)
    try:
        recipe = recipe_in(record)
        check_whole_number(record, "seed", 0, MAX_SEED)
        check_whole_number(record, "threads", 1, MAX_THREADS)
    except (ValueError, KeyError, TypeError, ConfigurationError) as error:
        raise RunError(f"{directory.run_json} is damaged: {error}") from error
    return recipe, record


def recipe_in(record: Mapping[str, Any]) -> Recipe:
    """Return the recipe that `run.json` or `plan.json` holds."""
    recipe: Recipe = from_json(Recipe, record["recipe"])
    return recipe


def check_whole_number(record: Mapping[str, Any], key: str, low: int, high: int) -> None:
    """Raise `ValueError` unless `record[key]` is a whole number from `low` to `high`."""
    value = record[key]
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{key} must be a whole number from {low} to {high:,}, got {value!r:.30}")
