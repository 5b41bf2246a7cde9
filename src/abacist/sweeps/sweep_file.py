"""A sweep as a TOML file.

    recipe = "add"
    seeds = 10

    [settings]                                # of all trials
    training.num_steps = 3000

    [contenders.rotary]                       # each a set of settings with a name
    model.positions = "rope"

    [over]                                    # all combinations of these
    training.learning_rate = [1e-3, 3e-3]

    [choose]                                  # every contender gets its best learning rate
    tune = ["training.learning_rate"]

Error messages name the line of the file.
"""

import functools
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from abacist import recipes
from abacist.configuration import from_json, override
from abacist.devices import check_device_name
from abacist.errors import AbacistError, ConfigurationError, nearest
from abacist.recipes import examinations
from abacist.recipes.recipe import Recipe
from abacist.runs.directory import MAX_SEED, MAX_SEEDS, MAX_THREADS
from abacist.sweeps.choices import Choices, Range, Values
from abacist.sweeps.plan import Plan, Score

Result = TypeVar("Result")

_KEYS = {
    "recipe": "the name of a recipe",
    "seeds": "a number of seeds, or a list of seeds",
    "random": "the number of random combinations",
    "threads": "a number of threads",
    "device": "cpu, cuda, mps or auto",
    "examination": "the name of a recipe whose examination the models get",
    "settings": "a table of settings",
    "contenders": "tables of settings",
    "over": "a table of settings with their values",
    "choose": "a table with tune and perhaps seeds",
    "score": "a table with suites, digits, carry_chains, num_problems and proved",
}
_RANGE_KEYS = ("low", "high", "scale")


def read(path: Path, num_seeds: int | None = None, is_insisted: bool = False) -> Plan:
    """Return the plan that a sweep file describes.

    Raises `ConfigurationError`, with the line and the nearest name, for a mistake in the file.

    Args:
        path: the file.
        num_seeds: number of seeds instead of those of the file.
        is_insisted: whether more than `MOST_TRIALS` trials are allowed.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error}. Type a TOML file, or the name of a recipe."
        ) from error
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path} is not valid TOML: {error}.") from error
    if num_seeds is not None:
        table["seeds"] = num_seeds
    return _Reader(path, text).plan(table, is_insisted)


class _Reader:
    """Turns the tables of a file into choices, and knows the line of every key."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.lines = dict(_lines_of_keys(text))

    def plan(self, table: Mapping[str, Any], is_insisted: bool) -> Plan:
        choices = self._choices(table)
        self._with_line(("choose", "seeds"), choices.check_seeds)
        return self._with_line(("over",), lambda: choices.plan(is_insisted), choices.over)

    def _choices(self, table: Mapping[str, Any]) -> Choices:
        for key in table:
            if key not in _KEYS:
                raise self._error((key,), f"unknown key {key!r}: {nearest(key, _KEYS)}")
        recipe_name = self._text(table, "recipe", "add")
        recipe = self._with_line(("recipe",), lambda: recipes.find(recipe_name))
        settings = self._settings(table, "settings")
        recipe_with_settings = self._override(recipe, settings, ("settings",))
        contenders = {
            name: self._settings(self._table(table, "contenders"), name, ("contenders",))
            for name in self._table(table, "contenders")
        }
        for name, changes in contenders.items():
            self._override(recipe_with_settings, changes, ("contenders", name))
        choose = self._table(table, "choose")
        for key in choose:
            if key not in ("tune", "seeds"):
                known = nearest(key, ("tune", "seeds"))
                raise self._error(("choose", key), f"unknown key {key!r}: {known}")
        tune = choose.get("tune", [])
        if not isinstance(tune, list) or not all(isinstance(name, str) for name in tune):
            raise self._error(
                ("choose", "tune"),
                f'tune must be a list of settings, got {tune!r}. Try ["training.learning_rate"].',
            )
        seeds = self._seeds(table, ("seeds",), 0) or [0]
        if "random" in table and not self._table(table, "over"):
            raise self._error(
                ("random",), "random needs values to draw from. Add a table [over] with them."
            )
        device = self._text(table, "device", "auto")
        self._with_line(("device",), lambda: check_device_name(device))
        examination = self._text(table, "examination", None)
        self._with_line(("examination",), lambda: examinations.find(examination))
        if examination is not None and "score" in table:
            raise self._error(
                ("examination",),
                f"a sweep has an examination or a table [score], got {examination!r} and [score]. "
                "Leave one of them out.",
            )
        return Choices(
            recipe=recipe,
            settings=settings,
            contenders=contenders,
            over=self._over(table, tune),
            tuned=tune,
            num_draws=self._count(table, "random", MAX_SEEDS),
            seeds=seeds,
            tuning_seeds=self._seeds(choose, ("choose", "seeds"), max(seeds) + 1),
            examination=examination,
            score=self._score(table),
            threads=self._count(table, "threads", MAX_THREADS) or 1,
            device=device,
        )

    def _over(self, table: Mapping[str, Any], tune: list[str]) -> dict[str, Values]:
        values: dict[str, Values] = {}
        for name, value in self._settings(table, "over", is_range=_is_range).items():
            keys = ("over", *name.split("."))
            if isinstance(value, dict):
                values[name] = self._with_line(keys, functools.partial(_range, value))
            elif isinstance(value, list):
                if not value:
                    raise self._error(keys, f"{name} has no value, so the sweep has no trial.")
                values[name] = value
            else:
                raise self._error(
                    keys, f"{name} must be a list of values, got {value!r}. Try [{value!r}]."
                )
        for name in tune:
            if name not in values:
                complaint = nearest(name, values) if values else "[over] is empty."
                raise self._error(
                    ("choose", "tune"), f"{name!r} has no values in [over]: {complaint}"
                )
        return values

    def _score(self, table: Mapping[str, Any]) -> Score | None:
        if "score" not in table:
            return None
        data = self._table(table, "score")
        score: Score = self._with_line(("score",), lambda: from_json(Score, data, "score"), data)
        self._with_line(("score", "suites"), score.check)
        return score

    def _seeds(
        self, table: Mapping[str, Any], keys: tuple[str, ...], first: int
    ) -> list[int] | None:
        value = table.get(keys[-1])
        if value is None:
            return None
        if type(value) is int and 1 <= value <= MAX_SEEDS:
            return list(range(first, first + value))
        is_list = isinstance(value, list) and len(set(map(str, value))) == len(value) > 0
        if is_list and all(type(seed) is int and 0 <= seed <= MAX_SEED for seed in value):
            return list(value)
        raise self._error(
            keys,
            f"seeds must be a number from 1 to {MAX_SEEDS:,} or a list of different seeds, "
            f"got {value!r}. Try 10.",
        )

    def _count(self, table: Mapping[str, Any], key: str, most: int) -> int | None:
        value = table.get(key)
        if value is not None and (type(value) is not int or not 1 <= value <= most):
            raise self._error(
                (key,), f"{key} must be a whole number from 1 to {most:,}, got {value!r}."
            )
        return value

    def _text(self, table: Mapping[str, Any], key: str, default: Any) -> Any:
        value = table.get(key, default)
        if value is not default and not isinstance(value, str):
            raise self._error((key,), f"{key} must be {_KEYS[key]}, got {value!r}.")
        return value

    def _table(self, table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        value = table.get(key, {})
        if not isinstance(value, dict):
            raise self._error((key,), f"{key} must be {_KEYS[key]}, got {value!r}. Try [{key}].")
        return value

    def _settings(
        self,
        table: Mapping[str, Any],
        key: str,
        path: tuple[str, ...] = (),
        is_range: Callable[[Any], bool] = lambda value: False,
    ) -> dict[str, Any]:
        """Return a table of settings by dotted name; names may be quoted or written as nested tables."""
        value = table.get(key, {})
        if not isinstance(value, dict):
            raise self._error((*path, key), f"{key} must be a table of settings, got {value!r}.")
        return dict(_flattened(value, "", is_range))

    def _override(
        self, recipe: Recipe, changes: Mapping[str, Any], keys: tuple[str, ...]
    ) -> Recipe:
        """Return the recipe with changed settings; an error names the line of the setting it is about."""
        return self._with_line(keys, lambda: override(recipe, changes), changes)

    def _with_line(
        self,
        keys: tuple[str, ...],
        call: Callable[[], Result],
        names: Mapping[str, Any] | None = None,
    ) -> Result:
        """Return the result of `call`; an error is given the line of the name in it, or that of `keys`."""
        try:
            return call()
        except AbacistError as error:
            named = [
                name for name in names or {} if re.search(rf"\b{re.escape(name)}\b", str(error))
            ]
            inner = max(named, key=len).split(".") if named else []
            raise self._error((*keys, *inner), str(error)) from error

    def _error(self, keys: tuple[str, ...], message: str) -> ConfigurationError:
        line = next(
            (
                self.lines[keys[:length]]
                for length in range(len(keys), 0, -1)
                if keys[:length] in self.lines
            ),
            None,
        )
        where = f"{self.path}" if line is None else f"{self.path}, line {line}"
        return ConfigurationError(f"{where}: {message}")


def _is_range(value: Any) -> bool:
    return isinstance(value, dict) and ("low" in value or "high" in value)


def _range(value: Mapping[str, Any]) -> Range:
    for key in value:
        if key not in _RANGE_KEYS:
            raise ConfigurationError(f"unknown key {key!r} of a range: {nearest(key, _RANGE_KEYS)}")
    if missing := [key for key in ("low", "high") if key not in value]:
        raise ConfigurationError(
            f"a range needs low and high, and has no {missing[0]}. Try {{ low = 8, high = 64 }}."
        )
    low, high, scale = value["low"], value["high"], value.get("scale", "linear")
    if type(low) not in (int, float) or type(high) not in (int, float):
        raise ConfigurationError(f"low and high must be numbers, got {low!r} and {high!r}.")
    if scale not in ("linear", "log"):
        raise ConfigurationError(f"scale must be linear or log, got {scale!r}.")
    return Range(low, high, scale)


def _flattened(
    table: Mapping[str, Any], prefix: str, is_leaf: Callable[[Any], bool]
) -> Iterator[tuple[str, Any]]:
    """Yield the values of nested tables by dotted name."""
    for key, value in table.items():
        if isinstance(value, dict) and not is_leaf(value):
            yield from _flattened(value, f"{prefix}{key}.", is_leaf)
        else:
            yield f"{prefix}{key}", value


def _lines_of_keys(text: str) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the parts of every key and table of a TOML file, with the number of its line from 1."""
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[+([^\[\]]+)\]+", line):
            table = _parts(header[1])
            yield table, number
        elif key := re.match(r"\s*([^=#]+?)\s*=", line):
            yield (*table, *_parts(key[1])), number


def _parts(key: str) -> tuple[str, ...]:
    """Return the parts of a dotted key; dots inside of quotes separate, as in names of settings."""
    return tuple(part.strip().strip("\"'") for part in key.replace('"', "").split("."))
