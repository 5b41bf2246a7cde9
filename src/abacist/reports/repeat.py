"""What to type to train a run again."""

import shlex
from collections.abc import Mapping
from typing import Any

from abacist import recipes
from abacist.configuration import Setting, override, settings
from abacist.errors import ConfigurationError
from abacist.recipes.recipe import Recipe


def command(recipe: Recipe, run: Mapping[str, Any]) -> str | None:
    """The command line that trains a run again; None where no options can say its settings.

    `run` is all of `run.json`.
    """
    changes = typed_changes(recipe)
    if changes is None:
        return None
    words = ["abacist", "train", recipe.name]
    for name, value in changes.items():
        words += [f"--{name}", value] if not value.startswith("-") else [f"--{name}={value}"]
    words += ["--seed", str(run["seed"]), "--threads", str(run["threads"])]
    words += ["--device", str(run.get("device", "cpu"))]
    return shlex.join(words)


def typed_changes(target: Recipe) -> dict[str, str] | None:
    """Settings that make the recipe of that name into `target`, as typed; None where none do."""
    try:
        base = recipes.find(target.name)
    except ConfigurationError:
        return None
    changes: dict[str, str] = {}
    try:
        for whole in [s for s in settings(base) if s.named_values and s.holds_settings]:
            name = _nearest_whole(base, target, whole)
            if name is not None:
                changes[whole.name] = name
        begun = _by_name(override(base, changes))
        for name, setting in _by_name(target).items():
            if not setting.holds_settings and (
                name not in begun or begun[name].value != setting.value
            ):
                changes[name] = setting.typed
        return changes if override(base, changes) == target else None
    except ConfigurationError:
        return None


def changed(base: Recipe, target: Recipe) -> dict[str, tuple[str, str]]:
    """Settings that differ, as typed in each; a dash where one of them has no such setting."""
    first, second = (
        {name: s.typed for name, s in _by_name(recipe).items() if s.typed != "(as below)"}
        for recipe in (base, target)
    )
    names = [*second, *(name for name in first if name not in second)]
    pairs = {name: (first.get(name, "–"), second.get(name, "–")) for name in names}
    return {name: (a, b) for name, (a, b) in pairs.items() if a != b}


def _nearest_whole(base: Recipe, target: Recipe, whole: Setting) -> str | None:
    """The named value that leaves the fewest settings to change; None where that is the base's own."""
    wanted = _inside(target, whole.name)
    fewest, found = _distance(_inside(base, whole.name), wanted), None
    for name in whole.named_values or {}:
        if not fewest:
            break
        distance = _distance(_inside(override(base, {whole.name: name}), whole.name), wanted)
        if distance < fewest:
            fewest, found = distance, name
    return found


def _distance(offered: Mapping[str, Any], wanted: Mapping[str, Any]) -> float:
    """How many settings differ; infinite where there is one too many, which nothing takes away."""
    if set(offered) - set(wanted):
        return float("inf")
    return sum(1 for name, value in wanted.items() if name not in offered or offered[name] != value)


def _inside(recipe: Recipe, prefix: str) -> dict[str, Any]:
    """The kind and all leaves of a part of a recipe."""
    found = {
        name: setting.value
        for name, setting in _by_name(recipe).items()
        if (name == prefix or name.startswith(prefix + ".")) and not setting.holds_settings
    }
    part: Any = recipe
    for name in prefix.split("."):
        part = getattr(part, name)
    # Two kinds of format may have settings of the same names.
    if hasattr(part, "kind"):
        found[f"kind {part.kind}"] = part.kind
    return found


def _by_name(recipe: Recipe) -> dict[str, Setting]:
    return {setting.name: setting for setting in settings(recipe) if setting.name != "name"}
