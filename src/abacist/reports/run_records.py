"""All records of a run directory, read without torch and without the model.

Only `run.json` is required. Whatever else is missing, damaged or about another model is left out, and
`damages` says so: damage in one section of a file costs that section only.

>>> read(directory.find("latest")).sections["lengths"].rows[0].proportion
Proportion(successes=2000, n=2000)
"""

import math
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from abacist import extensions, files
from abacist.certificates.record import Certificate
from abacist.configuration import from_json
from abacist.errors import RunError
from abacist.recipes.recipe import Recipe
from abacist.runs import identity
from abacist.runs.directory import RunDirectory, read_recipe
from abacist.runs.identity import Identity
from abacist.scoring.records import Failure, Scorecard, Section, Solution
from abacist.tasks.config import COLUMN_TASKS, ColumnTaskConfig, OwnTaskConfig
from abacist.training.checkpoint_paths import step_of
from abacist.training.metrics import Beginning, Metrics, Repair, StepLoss

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Line = TypeVar("Line")

_DAMAGE = (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError)
"""Errors of reading a file that is not JSON, or JSON that is not the expected record."""


@dataclass(frozen=True)
class RunRecords:
    """The records of one run."""

    path: Path
    recipe: Recipe
    run: Mapping[str, Any]
    """The content of `run.json`."""
    metrics: list[Metrics]
    scorecard: Scorecard
    """Without sections if this model was never scored."""
    certificate: Certificate | None
    """Not certified, with the reason, if the one in the file speaks of another model."""
    failures: dict[str, list[Failure]]
    """Sections by the name of the suite."""
    attention: Mapping[str, Any] | None
    """Mean attention by field and by difference of place, as `inspection/place_attention.py` writes it."""
    embeddings: "dict[int, NDArray[np.float64]]"
    """Embedding vectors of all symbols, (symbols, width), by training step."""
    symbols: list[str]
    """Name of each symbol, as far as the run says."""
    losses: list[StepLoss] = field(default_factory=list)
    """The losses of single batches, if they were recorded."""
    watched: list[tuple[int, Solution]] = field(default_factory=list)
    """The watched problems as they were solved, each with the training step."""
    beginnings: list[Beginning] = field(default_factory=list)
    """How good each of several beginnings was; none if there was one only."""
    repairs: list[Repair] = field(default_factory=list)
    """What the checks before possible rounds of repairs found; none if the training has no such rounds."""
    weights_bytes: int | None = None
    """Size of the saved weights; None if there are none."""
    damages: list[str] = field(default_factory=list)
    """One message for each thing that could not be read, with what to type."""
    chosen_step: int | None = None
    """Step of the checkpoint that the results are about; None if it is the newest."""

    @property
    def sections(self) -> dict[str, Section]:
        """The sections of the scorecard by suite."""
        return self.scorecard.sections

    @property
    def name(self) -> str:
        """The recipe and the seed."""
        return f"{self.recipe.name}, seed {self.run['seed']}"

    @property
    def last_step(self) -> int | None:
        """The last training step that was recorded."""
        return self.metrics[-1].step if self.metrics else None


def read(directory: RunDirectory, model: Identity | None = None) -> RunRecords:
    """Read all records of a run that speak of `model`, by default the one in the newest checkpoint.

    Raises `RunError` if `run.json` is damaged, or training never began.
    """
    recipe, run = read_recipe(directory)
    damages: list[str] = []
    path = directory.path
    metrics = read_metrics(directory, damages)
    if not metrics and not any(directory.checkpoints.glob("step-*")):
        raise RunError(
            f"{path} was never trained, so there is nothing to report. "
            f"Type {extensions.command('train', '--resume', '--out', str(path))}."
        )
    model = model or _model_in(directory)
    return RunRecords(
        path=path,
        recipe=recipe,
        run=run,
        metrics=metrics,
        scorecard=_scorecard(directory, model, damages),
        certificate=read_certificate(directory, damages, model),
        failures=_failures(directory, model, damages),
        attention=_attention(directory, model, damages),
        embeddings=(tables := _embeddings(directory, damages)),
        symbols=_symbols(directory, recipe, tables),
        losses=read_losses(directory, damages),
        watched=_watched(directory, damages),
        beginnings=_lines(directory, directory.beginnings, Beginning, damages),
        repairs=_lines(directory, directory.repairs, Repair, damages),
        weights_bytes=directory.weights_bytes,
        damages=damages,
        chosen_step=None if directory.chosen is None else step_of(directory.chosen),
    )


def read_scorecard(directory: RunDirectory) -> Scorecard:
    """Read the scorecard of a run.

    Raises `RunError` if the run was never scored, or the scorecard is damaged or about another model.
    """
    if not directory.scorecard.exists():
        raise RunError(f"{directory.path} was never scored. Type {_scoring(directory)}.")
    damages: list[str] = []
    scorecard = _scorecard(directory, _model_in(directory), damages)
    if damages:
        raise RunError(damages[0])
    return scorecard


def num_symbols(recipe: Recipe) -> int:
    """Number of digits or residues in the vocabulary; these are its first tokens."""
    task = recipe.task
    if isinstance(task, ColumnTaskConfig):
        return COLUMN_TASKS[task.machine].rule.base
    if isinstance(task, OwnTaskConfig):
        return task.base
    modulus: int = getattr(task, "modulus", 10)
    return modulus if recipe.format.kind == "residues" else 10


def _model_in(directory: RunDirectory) -> Identity | None:
    """The identity of the model in the newest checkpoint; None if it cannot be read."""
    try:
        return identity.of_directory(directory)
    except RunError:
        return None


def _objection(data: Mapping[str, Any], model: Identity | None) -> str | None:
    """What a record speaks of, if that is not `model`."""
    return "weights that cannot be read" if model is None else model.objection(data)


def _object(path: Path, remedy: str, damages: list[str]) -> dict[str, Any] | None:
    """The JSON object in a file; None if there is no file, or if it is damaged."""
    try:
        data = files.parse_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, OSError):
        data = None
    if isinstance(data, dict):
        return data
    damages.append(f"{path} is damaged and left out. {remedy}")
    return None


def _object_about(
    path: Path, model: Identity | None, remedy: str, damages: list[str]
) -> dict[str, Any] | None:
    """The JSON object in a file, if it speaks of `model`."""
    data = _object(path, remedy, damages)
    if data is None:
        return None
    objection = _objection(data, model)
    if objection is None:
        return data
    damages.append(f"{path} speaks of {objection} and is left out. {remedy}")
    return None


def _scorecard(directory: RunDirectory, model: Identity | None, damages: list[str]) -> Scorecard:
    """The sections that can be read."""
    remedy = f"Type {_scoring(directory)}."
    card = _object_about(directory.scorecard, model, remedy, damages)
    if card is None:
        return Scorecard({})
    if not isinstance(card.get("sections"), dict):
        damages.append(f"{directory.scorecard} is damaged and left out. {remedy}")
        return Scorecard({})
    sections: dict[str, Section] = {}
    for name, data in card["sections"].items():
        try:
            section: Section = from_json(Section, data, name)
            if "count" in section.details:
                _check_grid(section.details)
                for grid in section.details.get("recurrences", {}).values():
                    _check_grid(grid)
            sections[name] = section
        except _DAMAGE:
            damages.append(
                f"The section {name:.60} of {directory.scorecard} is damaged and left out. "
                f"Type {_scoring(directory, '--suite', f'{name:.60}')}."
            )
    exempt_digits = card.get("exempt_digits")
    return Scorecard(sections, exempt_digits if type(exempt_digits) is int else 0)


def _scoring(directory: RunDirectory, *options: str) -> str:
    return extensions.command("score", str(directory.path), *options)


def _check_grid(details: Mapping[str, Any]) -> None:
    """Raise `ValueError` unless right answers and problems are square matrices of one size."""
    matrices = [from_json(list[list[int]], details[key], key) for key in ("right", "count")]
    size = len(matrices[0])
    if not size or any(len(m) != size or any(len(row) != size for row in m) for m in matrices):
        raise ValueError("a grid has as many rows as columns")


def read_certificate(
    directory: RunDirectory, damages: list[str], model: Identity | None = None
) -> Certificate | None:
    """Read the certificate of a run; None if there is none, or if it is damaged.

    A certificate that speaks of another model than `model`, by default the one in the newest
    checkpoint, certifies nothing: the one returned says so.
    """
    remedy = f"Type {extensions.command('prove', str(directory.path))}."
    data = _object(directory.certificate, remedy, damages)
    if data is None:
        return None
    try:
        certificate: Certificate = from_json(Certificate, data, "certificate")
    except _DAMAGE:
        damages.append(f"{directory.certificate} is damaged and left out. {remedy}")
        return None
    objection = _objection(data, model or _model_in(directory))
    if objection is not None:
        return Certificate(False, f"this certificate speaks of {objection}. {remedy}")
    return certificate


def read_metrics(directory: RunDirectory, damages: list[str]) -> list[Metrics]:
    """Read the training records up to the first damaged line."""
    return _lines(directory, directory.metrics, Metrics, damages)


def read_losses(directory: RunDirectory, damages: list[str]) -> list[StepLoss]:
    """Read the losses of single batches up to the first damaged line."""
    return _lines(directory, directory.losses, StepLoss, damages)


def _watched(directory: RunDirectory, damages: list[str]) -> list[tuple[int, Solution]]:
    """Read the watched problems up to the first damaged line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            lines = directory.read_lines(directory.watched)
            watched = [(line["step"], Solution.from_json(line)) for line in lines]
        except (RunError, *_DAMAGE):
            damages.append(f"{directory.watched} is damaged and left out.")
            return []
    damages += [str(warning.message) for warning in caught]
    return watched


def _lines(directory: RunDirectory, path: Path, kind: type[Line], damages: list[str]) -> list[Line]:
    """Read the records of a file with one JSON object a line, up to the first damaged one."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            lines = directory.read_lines(path, kind)
        except (RunError, *_DAMAGE):
            damages.append(f"{path} is damaged and left out.")
            return []
    damages += [str(warning.message) for warning in caught]
    return [from_json(kind, line, "record") for line in lines]


def _failures(
    directory: RunDirectory, model: Identity | None, damages: list[str]
) -> dict[str, list[Failure]]:
    failures: dict[str, list[Failure]] = {}
    try:
        lines = directory.failures.read_bytes().splitlines()
    except FileNotFoundError:
        return failures
    except OSError:
        damages.append(f"{directory.failures} cannot be read and is left out.")
        return failures
    num_damaged, num_foreign = 0, 0
    for line in lines:
        try:
            data = files.parse_json(line)
            if _objection(data, model) is not None:
                num_foreign += 1
                continue
            failures.setdefault(str(data["suite"]), []).append(Failure.from_json(data))
        except _DAMAGE:
            num_damaged += 1
    if num_damaged:
        damages.append(f"{num_damaged:,} damaged lines of {directory.failures} are left out.")
    if num_foreign:
        damages.append(
            f"{num_foreign:,} lines of {directory.failures} speak of another model and are left out. "
            f"Type {_scoring(directory)}."
        )
    return failures


def _attention(
    directory: RunDirectory, model: Identity | None, damages: list[str]
) -> Mapping[str, Any] | None:
    path = directory.attention
    remedy = f"Delete it, and type {extensions.command('report', str(directory.path))}."
    data = _object_about(path, model, remedy, damages)
    if data is None:
        return None
    try:
        shape = (len(data["fields"]), {len(data["differences"])})
        heads = [head for layer in data["weight"]["values"] for head in layer]
        for head in heads:
            if (len(head), {len(shares) for shares in head}) != shape:
                raise ValueError("a head has a share for every field and difference")
            if not math.isclose(sum(map(sum, head)), 1, abs_tol=0.01):
                raise ValueError("the attention of a head sums to 1")
        if not heads or not all(isinstance(data[n], int) for n in ("num_problems", "num_tokens")):
            raise ValueError("there are no heads, or no sample sizes")
    except _DAMAGE:
        damages.append(f"{path} is damaged and left out. {remedy}")
        return None
    return data


def _symbols(
    directory: RunDirectory, recipe: Recipe, tables: "Mapping[int, NDArray[np.float64]]"
) -> list[str]:
    """The tokens in `tokenizer.json`; numbers for those of runs that do not have this file."""
    count = len(list(tables.values())[-1]) if tables else num_symbols(recipe)
    try:
        vocabulary = files.parse_json(directory.tokenizer.read_bytes())["model"]["vocab"]
        symbols = [str(token) for token in vocabulary]
    except (OSError, *_DAMAGE):
        symbols = []
    return symbols if len(symbols) == count else [str(number) for number in range(count)]


def _embeddings(directory: RunDirectory, damages: list[str]) -> "dict[int, NDArray[np.float64]]":
    tables: dict[int, NDArray[np.float64]] = {}
    files = {
        int(match[1]): path
        for path in directory.embeddings.glob("step-*.safetensors")
        if (match := re.fullmatch(r"step-(\d+)", path.stem))
    }
    if not files:
        return tables
    import safetensors.numpy
    from safetensors import SafetensorError

    for step, path in sorted(files.items()):
        try:
            tokens = safetensors.numpy.load(path.read_bytes())["tokens"]
            vectors = tokens.astype(float)
            if vectors.ndim != 2 or not math.isfinite(vectors.sum()):
                raise ValueError("embeddings are finite vectors")
            tables[step] = vectors
        except (SafetensorError, *_DAMAGE):
            damages.append(f"{path} is damaged and left out.")
    return tables
