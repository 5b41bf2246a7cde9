"""The tables of docs/systems: every feature and figure of a document, beside ours.

    python benchmarks/document_tables.py

writes the tables of each page from the facts beside it, `docs/systems/NAME.toml`. A fact is a list:
feature, the document's value, ours, command. What stands in braces under "ours" is filled in from the
recipe or from its committed record, so that no figure is copied by hand. Without a command, it is that
which trains with the settings in braces.

    {setting | training.batch_size}    a setting of the recipe of the page
    {parameters}                       the number of parameters of its model
    {wrong | all problems}             wrong answers in a row of the record, seed by seed
    {right | all problems}             the share of right answers in that row, in percent
    {right | all problems | same answer}  the same, where rows of this name have several measures
    {first step right}                 the first step with all validation problems right
    {at | 970 | loss}                  a value of the record's curve at a step
    {at | 970 | exact_match %}         the same in percent
    {last | loss}                      the last value of the curve
    {epoch | 1 of 3 | loss}            the mean of a value over the records of an epoch
    {epoch end | 1 of 3 | loss}        a value at the end of an epoch
    {epoch seconds | 1 of 3}           the clock time of an epoch
    {setting of spaced | model.width}  the same of another recipe
"""

import json
import os
import re
import statistics
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

from abacist import recipes
from abacist.configuration import Setting, settings, to_json
from abacist.reports.tables import Table, markdown
from abacist.runs.run import build_model

ROOT = Path(__file__).parents[1]
SYSTEMS = ROOT / "docs" / "systems"
COLUMNS = ("what the document has", "the document's value", "ours", "command")
NOT_RECORDED = "not recorded"


@dataclass(frozen=True)
class Fact:
    """One row of a table, as the file of facts has it."""

    feature: str
    document: str
    ours: str
    """Text with braces, for `filled_in`."""
    command: str
    """What shows it: a command line, an expression in Python, or a link."""


@dataclass(frozen=True)
class Facts:
    """The facts about one document."""

    recipe: str
    """The faithful recipe that braces speak of, unless they name another."""
    sections: dict[str, list[Fact]]


def names() -> list[str]:
    """Return the names of the pages that have facts."""
    return sorted(path.stem for path in SYSTEMS.glob("*.toml"))


def read(name: str) -> Facts:
    """Read the facts about a document by the name of its page."""
    data = tomllib.loads((SYSTEMS / f"{name}.toml").read_text())
    sections = {
        section["title"]: [Fact(*row) for row in section["rows"]] for section in data["section"]
    }
    return Facts(data["recipe"], sections)


# Filling in braces -------------------------------------------------------------------------------


def filled_in(text: str, recipe: str) -> str:
    """Return a text with every pair of braces replaced. Raises `KeyError` for unknown ones."""

    def replaced(match: re.Match[str]) -> str:
        head, *arguments = match[1].split(" | ")
        kind, _, other = head.partition(" of ")
        return _FILLED[kind](other or recipe, *arguments)

    return re.sub(r"\{([^{}]+)\}", replaced, text)


def command(fact: Fact, recipe: str) -> str:
    """Return the command of a fact, or else one that trains with the settings that it speaks of."""
    if fact.command:
        return fact.command
    named = re.findall(r"\{setting(?: of ([\w-]+))? \| ([\w.-]+)\}", fact.ours)
    trained = named[0][0] or recipe
    options = [
        f"--{name} {_settings_of(trained)[name].typed}"
        for other, name in named
        if (other or recipe) == trained
    ]
    return " ".join(["abacist train", trained, *options])


@cache
def _settings_of(recipe: str) -> dict[str, Setting]:
    return {setting.name: setting for setting in settings(recipes.find(recipe))}


def _setting(recipe: str, name: str) -> str:
    value = to_json(recipes.find(recipe))
    for part in name.split("."):
        value = value[int(part)] if isinstance(value, list) else value[part]
    if value is None:
        return _settings_of(recipe)[name].typed
    return ", ".join(map(_text, value)) or "none" if isinstance(value, list) else _text(value)


def _parameters(recipe: str) -> str:
    with torch.device("meta"):
        return f"{build_model(recipes.find(recipe)).num_parameters:,}"


def _wrong(recipe: str, row: str, measure: str = "") -> str:
    rows = _rows(recipe, row, measure)
    sizes = sorted({row["n"] for row in rows})
    asked = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
    return f"{_listed(row['errors'] for row in rows)} of {asked}"


def _right(recipe: str, row: str, measure: str = "") -> str:
    shares = (100 * (1 - row["errors"] / row["n"]) for row in _rows(recipe, row, measure))
    return f"{_listed(shares)} %"


def _first_step_right(recipe: str) -> str:
    return _listed(seed["steps_to_target"] for seed in _seeds(recipe))


def _at(recipe: str, step: str, value: str) -> str:
    name, is_share = value.removesuffix(" %"), value.endswith(" %")
    points = [_curve(seed).get(int(step.replace(",", "")), {}) for seed in _seeds(recipe)]
    values = [point.get(name) for point in points]
    if not is_share:
        return _listed(values)
    return f"{_listed(value if value is None else 100 * value for value in values)} %"


def _last(recipe: str, value: str) -> str:
    return _listed(seed["curve"][-1].get(value) for seed in _seeds(recipe))


def _epoch(recipe: str, which: str, value: str) -> str:
    return _listed(
        None
        if not points or any(point.get(value) is None for point in points)
        else statistics.fmean(point[value] for point in points)
        for points in (_points_of_epoch(seed, which) for seed in _seeds(recipe))
    )


def _epoch_end(recipe: str, which: str, value: str) -> str:
    return _listed(_points_of_epoch(seed, which)[-1].get(value) for seed in _seeds(recipe))


def _epoch_seconds(recipe: str, which: str) -> str:
    times = []
    for seed in _seeds(recipe):
        points = _points_of_epoch(seed, which)
        before = [step for step in _curve(seed) if step < points[0]["step"]]
        begin = _curve(seed)[before[-1]]["seconds"] if before else 0.0
        times.append(points[-1]["seconds"] - begin)
    return f"{_listed(round(time) for time in times)} s"


_FILLED: dict[str, Callable[..., str]] = {
    "setting": _setting,
    "parameters": _parameters,
    "wrong": _wrong,
    "right": _right,
    "first step right": _first_step_right,
    "at": _at,
    "last": _last,
    "epoch": _epoch,
    "epoch end": _epoch_end,
    "epoch seconds": _epoch_seconds,
}


@cache
def _seeds(recipe: str) -> list[dict[str, Any]]:
    seeds: list[dict[str, Any]] = json.loads((ROOT / "results" / f"{recipe}.json").read_text())[
        "seeds"
    ]
    return seeds


def _rows(recipe: str, name: str, measure: str) -> list[dict[str, Any]]:
    """Return a row of the record of each seed: the only one of this name, or of this measure."""
    rows = []
    for seed in _seeds(recipe):
        (row,) = [
            row for row in seed["rows"] if row["name"] == name and measure in ("", row["measure"])
        ]
        rows.append(row)
    return rows


def _curve(seed: dict[str, Any]) -> dict[int, dict[str, Any]]:
    return {point["step"]: point for point in seed["curve"]}


def _points_of_epoch(seed: dict[str, Any], which: str) -> list[dict[str, Any]]:
    """Return the records of an epoch such as `1 of 3`."""
    number, _, count = which.partition(" of ")
    length = seed["steps"] // int(count)
    low, high = length * (int(number) - 1), length * int(number)
    return [point for step, point in _curve(seed).items() if low < step <= high]


def _listed(values: Iterable[Any]) -> str:
    """Return one value for each seed, as in `1, 2 and 3`."""
    texts = [NOT_RECORDED if value is None else _text(value) for value in values]
    if len(set(texts)) == 1:
        return texts[0]
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def _text(value: Any) -> str:
    """Return a value as a page shows it."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


# Writing the pages -------------------------------------------------------------------------------


def tables(name: str) -> str:
    """Return the tables of a page, with a heading each."""
    facts = read(name)
    parts = []
    for title, rows in facts.sections.items():
        cells = [
            [
                fact.feature,
                fact.document,
                filled_in(fact.ours, facts.recipe),
                _typeset(command(fact, facts.recipe)),
            ]
            for fact in rows
        ]
        parts.append(f"### {title}\n\n{markdown(Table('', COLUMNS, [cells], len(COLUMNS)))}")
    return "\n\n".join(parts)


def _typeset(command: str) -> str:
    """Return a command in code, and a page of docs/ as a link."""
    if command.endswith((".md", ".ipynb")):
        kind = "notebook" if command.endswith(".ipynb") else Path(command).stem
        return f"[{kind}]({os.path.relpath(ROOT / command, SYSTEMS)})"
    return f"`{command}`"


def pages() -> dict[Path, str]:
    """Return the content of every page with its tables replaced, by path."""
    contents = {}
    for name in names():
        path = SYSTEMS / f"{name}.md"
        before, begin, rest = path.read_text().partition("<!-- facts -->\n")
        _, end, after = rest.partition("<!-- end of facts -->")
        contents[path] = f"{before}{begin}{tables(name)}\n{end}{after}"
    return contents


if __name__ == "__main__":
    for page, content in pages().items():
        page.write_text(content)
