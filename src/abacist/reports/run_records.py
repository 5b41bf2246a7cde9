"""What a run directory says of a run, read for a report: without torch, and without the model.

Only `run.json` is needed. Whatever else is missing or damaged is left out and told in `damages`.
"""

import json
import math
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from abacist.errors import RunError
from abacist.intervals import Proportion
from abacist.recipes.recipe import Recipe
from abacist.reports.pluralisation import remarks
from abacist.runs.directory import RunDirectory, read_recipe

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Read = TypeVar("Read")

_BROKEN = (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError)
"""What goes wrong where JSON is whole but holds other things than it should."""


@dataclass(frozen=True)
class Measured:
    """One line of `metrics.jsonl`."""

    step: int
    loss: float | None
    """None where it was not finite."""
    exact_match: Proportion
    seconds: float


@dataclass(frozen=True)
class ScoredRow:
    """One row of a section of the scorecard."""

    name: str
    kind: str
    digits: int
    measure: str
    proportion: Proportion | None
    margin: float | None
    note: str


@dataclass(frozen=True)
class Shared:
    """A feature that failures have in common."""

    name: str
    value: str
    among_failures: Proportion
    expected: float


@dataclass(frozen=True)
class Grid:
    """Right answers and problems asked for every pair of operand lengths."""

    right: list[list[int]]
    count: list[list[int]]


@dataclass(frozen=True)
class ScoredSection:
    """What one suite found."""

    title: str
    rows: list[ScoredRow]
    errors: int
    shared: list[Shared]
    remarks: list[str]
    grid: Grid | None
    complete: bool


@dataclass(frozen=True)
class Wrong:
    """A problem answered wrongly."""

    suite: str
    problem: str
    answer: str
    expected: str
    first_wrong_place: int | None
    carry_chain: int | None
    margin: float | None


@dataclass(frozen=True)
class Attended:
    """Mean attention by field and by difference of place (`inspection/place_attention.py`)."""

    fields: list[str]
    differences: list[str]
    weight: list[list[list[list[float]]]]
    """By layer passed through, head, field and difference."""
    num_problems: int
    num_tokens: int


@dataclass(frozen=True)
class Verdict:
    """The outcome of the proof."""

    certified: bool
    reason: str
    neighbourhoods: int
    wrong: int
    smallest_margin: float | None
    rounding_bound: float | None
    counterexample: str | None
    step: int | None


@dataclass(frozen=True)
class Records:
    """All that is known of a run."""

    path: Path
    recipe: Recipe
    run: Mapping[str, Any]
    """All of `run.json`."""
    metrics: list[Measured]
    scored_step: int | None
    sections: dict[str, ScoredSection]
    """By suite; empty where a run was never scored."""
    exempt_digits: int
    verdict: Verdict | None
    failures: list[Wrong]
    attended: Attended | None
    embeddings: "dict[int, NDArray[np.float64]]"
    """By step: vectors of the digits, or of all residues (symbols, width)."""
    damages: list[str] = field(default_factory=list)
    """What could not be read, and what to type."""

    @property
    def name(self) -> str:
        return f"{self.recipe.name}, seed {self.run['seed']}"

    @property
    def last_step(self) -> int | None:
        """How far training is known to have come."""
        return self.metrics[-1].step if self.metrics else None


def read(directory: RunDirectory) -> Records:
    """All records of a run. Raises `RunError` where `run.json` is damaged, or training never began."""
    recipe, run = read_recipe(directory)
    damages: list[str] = []
    path = directory.path
    metrics = _metrics(directory, damages)
    if not metrics and not any(directory.checkpoints.glob("step-*")):
        raise RunError(
            f"{path} was never trained, so there is nothing to report. "
            f"Type abacist train --resume --out {path}."
        )
    card = _json(directory.scorecard, damages, f"abacist score {path}")
    sections: dict[str, ScoredSection] = {}
    whole = (
        _tried(lambda: dict(card["sections"]), directory.scorecard, damages, path) if card else None
    )
    for name, data in (whole or {}).items():
        what = f"The section {name} of {directory.scorecard}"
        section = _tried(lambda data=data: _section(data), what, damages, path, name)  # type: ignore[misc]
        if section is not None:
            sections[name] = section
    proof = _json(directory.certificate, damages, f"abacist prove {path}")
    verdict = None
    if proof is not None:
        verdict = _tried(lambda: _verdict(proof), directory.certificate, damages, path, proof=True)
    return Records(
        path=path,
        recipe=recipe,
        run=run,
        metrics=metrics,
        scored_step=card.get("step") if card and type(card.get("step")) is int else None,
        sections=sections,
        exempt_digits=card.get("exempt_digits", 0) if card and whole is not None else 0,
        verdict=verdict,
        failures=_failures(directory, damages),
        attended=_attended(directory, damages),
        embeddings=_embeddings(directory, recipe, damages),
        damages=damages,
    )


def _tried(
    read: Callable[[], Read],
    what: object,
    damages: list[str],
    path: Path,
    suite: str | None = None,
    proof: bool = False,
) -> Read | None:
    try:
        return read()
    except _BROKEN:
        again = f"abacist score {path}" + (f" --suite {suite}" if suite else "")
        again = f"abacist prove {path}" if proof else again
        damages.append(f"{what} is damaged and left out. Type {again}.")
        return None


def _json(path: Path, damages: list[str], again: str) -> dict[str, Any] | None:
    """An object in a file; None where there is none, or it is told among `damages`."""
    if not path.exists():
        return None
    try:
        data = json.loads(path.read_text())
    except (ValueError, OSError):
        data = None
    if isinstance(data, dict):
        return data
    damages.append(f"{path} is damaged and left out. Type {again}.")
    return None


def _metrics(directory: RunDirectory, damages: list[str]) -> list[Measured]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            lines = directory.read_metrics()
        except (ValueError, OSError):
            damages.append(f"{directory.metrics} is damaged and left out.")
            return []
    damages += [str(warning.message) for warning in caught]
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            loss = float(line["loss"])
            exact = _proportion(line["exact_match"])
            seconds = float(line["seconds"])
            found.append(
                Measured(int(line["step"]), loss if math.isfinite(loss) else None, exact, seconds)
            )
        except _BROKEN:
            damages.append(
                f"{directory.metrics} is damaged from line {number} on, which is left out."
            )
            break
    return found


def _section(data: Mapping[str, Any]) -> ScoredSection:
    details = data["details"]
    return ScoredSection(
        title=str(data["title"]),
        rows=[_row(row) for row in data["rows"]],
        errors=int(data["errors"]),
        shared=[
            Shared(
                str(feature["name"]),
                str(feature["value"]),
                _proportion(feature["among_failures"]),
                float(feature["expected"]),
            )
            for feature in data["features"]
        ],
        remarks=remarks(details),
        grid=_grid(details) if "count" in details else None,
        complete=bool(data["complete"]),
    )


def _row(data: Mapping[str, Any]) -> ScoredRow:
    proportion, margin = data["proportion"], data["smallest_margin"]
    return ScoredRow(
        str(data["name"]),
        str(data["kind"]),
        int(data["digits"]),
        str(data["measure"]),
        None if proportion is None else _proportion(proportion),
        None if margin is None else float(margin),
        str(data["note"]),
    )


def _grid(details: Mapping[str, Any]) -> Grid:
    right, count = ([[int(n) for n in line] for line in details[key]] for key in ("right", "count"))
    size = len(count)
    if len(right) != size or not size or any(len(line) != size for line in right + count):
        raise ValueError("a grid has as many rows as columns")
    return Grid(right, count)


def _verdict(data: Mapping[str, Any]) -> Verdict:
    wrong = data["counterexample"]
    return Verdict(
        certified=data["certified"] is True,
        reason=str(data["reason"]),
        neighbourhoods=int(data["neighbourhoods"]),
        wrong=int(data["wrong"]),
        smallest_margin=_number(data["smallest_margin"]),
        rounding_bound=_number(data["rounding_bound"]),
        counterexample=wrong
        and f"{wrong['problem']}={_answer(wrong['answer'])}, right is {wrong['expected']}",
        step=_whole(data.get("step")),
    )


def _failures(directory: RunDirectory, damages: list[str]) -> list[Wrong]:
    if not directory.failures.exists():
        return []
    found, broken = [], 0
    for line in directory.failures.read_text(errors="replace").splitlines():
        try:
            data = json.loads(line)
            found.append(
                Wrong(
                    str(data["suite"]),
                    str(data["problem"]),
                    _answer(data["answer"]),
                    str(data["expected"]),
                    _whole(data["first_wrong_place"]),
                    _whole(data["carry_chain"]),
                    _number(data["margin"]),
                )
            )
        except _BROKEN:
            broken += 1
    if broken:
        damages.append(f"{broken:,} damaged lines of {directory.failures} are left out.")
    return found


def _attended(directory: RunDirectory, damages: list[str]) -> Attended | None:
    path = directory.attention
    if not path.exists():
        return None
    try:
        data = json.loads(path.read_text())
        found = Attended(
            [str(name) for name in data["fields"]],
            [str(name) for name in data["differences"]],
            data["weight"]["values"],
            int(data["num_problems"]),
            int(data["num_tokens"]),
        )
        for head in (head for layer in found.weight for head in layer):
            shapes = {len(shares) for shares in head}
            if len(head) != len(found.fields) or shapes != {len(found.differences)}:
                raise ValueError("a share for every field and difference")
            if not math.isclose(sum(map(sum, head)), 1, abs_tol=0.01):
                raise ValueError("the attention of a head sums to 1")
        if not found.weight or not all(found.weight):
            raise ValueError("no heads")
    except (OSError, *_BROKEN):
        damages.append(
            f"{path} is damaged and left out. Delete it, and type abacist report {directory.path}."
        )
        return None
    return found


def num_symbols(recipe: Recipe) -> int:
    """How many tokens of the vocabulary, the first ones, are digits or residues."""
    modulus: int = getattr(recipe.task, "modulus", 10)
    return modulus if recipe.format.kind == "residues" else 10


def _embeddings(
    directory: RunDirectory, recipe: Recipe, damages: list[str]
) -> "dict[int, NDArray[np.float64]]":
    """The digits come first in every vocabulary; residues have a token for each of theirs."""
    found: dict[int, NDArray[np.float64]] = {}
    symbols = num_symbols(recipe)
    files = {
        int(match[1]): path
        for path in directory.embeddings.glob("step-*.safetensors")
        if (match := re.fullmatch(r"step-(\d+)", path.stem))
    }
    if not files:
        return found
    import safetensors.numpy
    from safetensors import SafetensorError

    for step, path in sorted(files.items()):
        try:
            vectors = safetensors.numpy.load(path.read_bytes())["tokens"][:symbols].astype(float)
            if vectors.ndim != 2 or not math.isfinite(vectors.sum()):
                raise ValueError("no finite vectors")
            found[step] = vectors
        except (SafetensorError, OSError, *_BROKEN):
            damages.append(f"{path} is damaged and left out.")
    return found


def _proportion(data: Mapping[str, Any]) -> Proportion:
    found = Proportion.from_json(data)
    if not 0 <= found.successes <= found.n:
        raise ValueError(f"{found.successes} of {found.n} cannot be")
    return found


def _answer(text: object) -> str:
    """What the model wrote; None is kept where that is no answer."""
    return "(no answer)" if text is None else str(text)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None
