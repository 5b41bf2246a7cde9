"""The command that trains a run again, and the settings that it changes."""

from collections.abc import Mapping
from typing import Any

from abacist import extensions, recipes
from abacist.configuration import Setting, override, settings
from abacist.errors import ConfigurationError
from abacist.recipes.recipe import Recipe


def command(recipe: Recipe, run: Mapping[str, Any]) -> str | None:
    """The command line that trains a run again; None if no options express its settings.

    `run` is the content of `run.json`.
    """
    changes = typed_changes(recipe)
    if changes is None:
        return None
    words = ["train", recipe.name]
    for name, value in changes.items():
        words += [f"--{name}", value] if not value.startswith("-") else [f"--{name}={value}"]
    words += ["--seed", str(run["seed"]), "--threads", str(run["threads"])]
    words += ["--device", str(run.get("device", "cpu"))]
    return extensions.command(*words, record=run)


def typed_changes(target: Recipe) -> dict[str, str] | None:
    """The settings that turn the recipe of that name into `target`, as typed; None if there are none."""
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
    """The settings that differ, as typed for each recipe; a dash if it has no such setting."""
    first, second = (
        {name: s.typed for name, s in _by_name(recipe).items() if s.typed != "(as below)"}
        for recipe in (base, target)
    )
    names = [*second, *(name for name in first if name not in second)]
    pairs = {name: (first.get(name, "–"), second.get(name, "–")) for name in names}
    return {name: (a, b) for name, (a, b) in pairs.items() if a != b}


def _nearest_whole(base: Recipe, target: Recipe, whole: Setting) -> str | None:
    """The named value that leaves the fewest settings to change; None if it is that of the base."""
    target_settings = _inside(_part(target, whole.name))
    fewest, nearest = _distance(_inside(whole.value), target_settings), None
    for name, value in (whole.named_values or {}).items():
        if not fewest:
            break
        distance = _distance(_inside(value), target_settings)
        if distance < fewest:
            fewest, nearest = distance, name
    return nearest


def _distance(first: Mapping[str, Any], second: Mapping[str, Any]) -> float:
    """Number of settings that differ; infinite if there is one too many, as settings cannot be removed."""
    if set(first) - set(second):
        return float("inf")
    return sum(1 for name, value in second.items() if name not in first or first[name] != value)


def _part(recipe: Recipe, path: str) -> Any:
    part: Any = recipe
    for name in path.split("."):
        part = getattr(part, name)
    return part


def _inside(part: Any) -> dict[str, Any]:
    """The kind and all settings of a part of a recipe, or of each item of a list, by name."""
    if isinstance(part, tuple):
        items = (_inside(item).items() for item in part)
        return {f"{number}.{name}": v for number, own in enumerate(items) for name, v in own}
    values = {s.name: s.value for s in settings(part) if not s.holds_settings}
    # Two kinds of format may have settings of the same names.
    if hasattr(part, "kind"):
        values[f"kind {part.kind}"] = part.kind
    return values


def _by_name(recipe: Recipe) -> dict[str, Setting]:
    return {setting.name: setting for setting in settings(recipe) if setting.name != "name"}
