"""The recipe that a command's arguments ask for, with its settings and its lists of problems."""

import argparse
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from abacist import extensions, recipes
from abacist.configuration import override, settings
from abacist.errors import ConfigurationError
from abacist.recipes.recipe import Recipe
from abacist.recipes.shortening import shortened


def typed_recipe(parsed: argparse.Namespace, changes: dict[str, str]) -> Recipe:
    """Return the recipe with the settings that were typed, and with the problems of --examples and --watch."""
    whole = recipes.find(parsed.recipe or "add")
    if parsed.quick is not None:
        whole = shortened(whole, parsed.quick)
    lists = {
        f"training.{name}": _problems_in(f"--{name}", path)
        for name in ("examples", "watch")
        if (path := getattr(parsed, name)) is not None
    }
    try:
        return override(whole, {**changes, **lists})
    except ConfigurationError as error:
        raise ConfigurationError(f"{error}{_advice(whole, changes)}") from error


def _problems_in(option: str, path: str) -> tuple[str, ...]:
    """Return the lines of a text file, without blank ones."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{option} {path} cannot be read: {error}. Type a text file with one problem a line."
        ) from error
    problems = tuple(line.strip() for line in lines if line.strip())
    if not problems:
        raise ConfigurationError(
            f"{option} {path} holds no problem. Type a text file with one problem a line."
        )
    return problems


def _advice(recipe: Recipe, changes: Mapping[str, str]) -> str:
    """Return a sentence that proposes --quick if it makes the number of steps that was typed possible."""
    typed = changes.get("training.num_steps", "")
    most = recipe.training.num_steps
    # Python does not read numbers of thousands of digits.
    if not typed.isdecimal() or len(typed) > len(str(most)) or not 0 < int(typed) < most:
        return ""
    fraction = max(0.001, math.floor(1000 * int(typed) / most) / 1000)
    others = {name: value for name, value in changes.items() if name != "training.num_steps"}
    try:
        override(shortened(recipe, fraction), others)
    except ConfigurationError:
        return ""
    return f" Or shorten all of these together: --quick {fraction:g}."


def check_unchanged(
    path: Path,
    recipe: Recipe,
    recipe_name: str | None,
    changes: Mapping[str, str],
    options: Mapping[str, tuple[Any, Any]],
) -> None:
    """Raise `ConfigurationError`, naming every difference, unless what was typed is what the run has.

    Args:
        recipe: the recipe of the run, settings included.
        recipe_name: the name that was typed; None if there was none.
        changes: the settings that were typed, by dotted name.
        options: by name, the value of the run and the one that was typed; None if there was none.
    """
    pairs = {f"--{name}": pair for name, pair in options.items()}
    pairs = {"the recipe": (recipe.name, recipe_name)} | pairs
    of_run, typed = (
        {setting.name: setting.typed for setting in settings(config)}
        for config in (recipe, override(recipe, changes))
    )
    pairs |= {f"--{name}": (of_run.get(name, "not set"), typed[name]) for name in typed}
    differences = [
        f"{name} is {ours}, got {theirs}"
        for name, (ours, theirs) in pairs.items()
        if theirs is not None and theirs != ours
    ]
    if differences:
        raise ConfigurationError(
            f"{path} is resumed with its own settings: {'; '.join(differences)}. "
            f"Type {extensions.command('train', '--resume', '--out', str(path))}, "
            "or another --out to start a run."
        )
