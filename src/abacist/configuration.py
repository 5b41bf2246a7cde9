"""Frozen dataclass trees: described, changed by dotted name, written to and read from JSON.

    >>> override(recipe, {"model.width": "64"}).model.width     # text, as typed on a command line
    64
    >>> override(recipe, {"model.widht": 64})
    ConfigurationError: unknown setting 'model.widht': did you mean 'model.width'?

One mechanism serves the command line, the Python interface and `run.json`, so that a setting
has one name, one type and one explanation (the docstring under the field) everywhere.
"""

import ast
import dataclasses
import functools
import inspect
import itertools
import json
import textwrap
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from abacist.errors import ConfigurationError, nearest

Config = TypeVar("Config")


@dataclass(frozen=True)
class Setting:
    """One leaf of a configuration tree."""

    name: str
    """Dotted path, as in `model.width`."""
    annotation: Any
    value: Any
    help: str
    named_values: Mapping[str, Any] | None
    """Names that stand for a whole value, where the field offers them."""

    def allowed(self) -> str:
        """What may be typed, in words."""
        if self.named_values is None:
            return _allowed(self.annotation)
        names = "one of " + ", ".join(self.named_values)
        if _holds_dataclasses(self.annotation):
            return names
        return f"{names}, or {_allowed(self.annotation)}"

    @property
    def holds_settings(self) -> bool:
        """Whether the value is made of further settings, so that it cannot be typed in one word."""
        return _holds_dataclasses(self.annotation)

    @property
    def item_class(self) -> type[Any] | None:
        """Of a list of configurations that can be made of defaults alone: what its items are."""
        inner = typing.get_args(self.annotation)
        if typing.get_origin(self.annotation) is not tuple or inner[-1] is not Ellipsis:
            return None
        item: type[Any] = inner[0]
        if not dataclasses.is_dataclass(item):
            return None
        complete = all(
            field.default is not dataclasses.MISSING
            or field.default_factory is not dataclasses.MISSING
            for field in dataclasses.fields(item)
        )
        return item if complete else None

    @property
    def typed(self) -> str:
        """The present value, as it would be typed."""
        for name, value in (self.named_values or {}).items():
            if value == self.value:
                return name
        if _is_tuple_of_dataclasses(self.value):
            return "(as below)"
        if isinstance(self.value, tuple):
            return ",".join(map(str, self.value))
        if dataclasses.is_dataclass(self.value):
            return "(as below)"
        if self.value is None or isinstance(self.value, bool):
            return str(self.value).lower()
        return str(self.value)


def settings(config: Any) -> Iterator[Setting]:
    """All settings of a configuration, depth first in the order of their declaration."""
    return _settings(config, "", {})


def _settings(config: Any, prefix: str, replaced: Mapping[str, Any]) -> Iterator[Setting]:
    """The settings of `config` as it is when the whole values of `replaced` are put into it."""
    cls: type = type(config)
    hints, documentation = _hints(cls), _field_documentation(cls)
    for field in dataclasses.fields(config):
        name = prefix + field.name
        value = replaced.get(name, getattr(config, field.name))
        named = field.metadata.get("named_values")
        if named is not None or not dataclasses.is_dataclass(value):
            yield Setting(name, hints[field.name], value, documentation.get(field.name, ""), named)
        if dataclasses.is_dataclass(value):
            yield from _settings(value, name + ".", replaced)
        elif _is_tuple_of_dataclasses(value):
            for position, item in enumerate(value):
                yield from _settings(item, f"{name}.{position}.", replaced)


def override(config: Config, changes: Mapping[str, Any]) -> Config:
    """A copy of `config` with settings replaced by dotted name; text is parsed by the field's type.

    All changes are applied together, so that settings which must agree can change in one call. A
    whole value, such as `task`, decides which settings there are inside it.
    """
    wholes = {s.name: s for s in settings(config) if s.named_values is not None}
    replaced = {n: _value(wholes[n], value) for n, value in changes.items() if n in wholes}
    replaced |= _grown(config, changes, replaced)
    known = {setting.name: setting for setting in _settings(config, "", replaced)}
    tree: dict[str, Any] = {}
    for name, value in changes.items():
        if name not in known:
            raise ConfigurationError(f"unknown setting {name!r}: {nearest(name, known)}")
        if name in replaced and name in changes:
            continue
        *parents, leaf = name.split(".")
        branch = tree
        for parent in parents:
            branch = branch.setdefault(parent, {})
        branch[leaf] = _value(known[name], value)
    changed: Config = _replace(config, tree, replaced, "")
    return changed


def _grown(
    config: Any, changes: Mapping[str, Any], replaced: Mapping[str, Any]
) -> dict[str, tuple[Any, ...]]:
    """Lists with a new item, where `changes` names settings of the one behind their last."""
    grown: dict[str, tuple[Any, ...]] = {}
    lists = {s.name: s for s in _settings(config, "", replaced) if s.item_class is not None}
    for name in changes:
        path, _, rest = name.partition(".")
        while rest:
            number, _, rest = rest.partition(".")
            if path in lists and rest:
                items = grown.get(path, lists[path].value)
                item_class = lists[path].item_class
                if number == str(len(items)) and item_class is not None:
                    grown[path] = (*items, item_class())
                break
            path = f"{path}.{number}"
    return grown


def _value(setting: Setting, value: Any) -> Any:
    if isinstance(value, str):
        return _parse(setting, value)
    return from_json(setting.annotation, to_json(value), setting.name)


def to_json(config: Any) -> Any:
    """Plain dictionaries, lists, numbers and strings. A class with a `kind` is told by it."""
    if dataclasses.is_dataclass(config):
        values = {f.name: to_json(getattr(config, f.name)) for f in dataclasses.fields(config)}
        kind = getattr(config, "kind", None)
        return values if kind is None else {"kind": kind, **values}
    if isinstance(config, tuple | list):
        return [to_json(item) for item in config]
    return config


def from_json(annotation: Any, data: Any, name: str = "recipe") -> Any:
    """The inverse of `to_json`, given the type; unknown, missing and ill-typed settings are refused."""
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        if not isinstance(data, dict):
            raise ConfigurationError(f"{name} must be an object, got {data!r}.")
        if hasattr(annotation, "kind"):
            data = {key: value for key, value in data.items() if key != "kind"}
        hints = _hints(annotation)
        for key in data:
            if key not in hints:
                raise ConfigurationError(f"unknown setting {name}.{key}: {nearest(key, hints)}")
        # A record of an older version lacks what was added since; that has a default.
        optional = {
            field.name
            for field in dataclasses.fields(annotation)
            if not (field.default is field.default_factory is dataclasses.MISSING)
        }
        for key in hints:
            if key not in data and key not in optional:
                raise ConfigurationError(f"{name}.{key} is missing.")
        values = {k: from_json(hints[k], v, f"{name}.{k}") for k, v in data.items()}
        return annotation(**values)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is tuple and isinstance(data, list):
        if arguments[-1] is Ellipsis:
            return tuple(from_json(arguments[0], item, name) for item in data)
        if len(arguments) == len(data):
            return tuple(from_json(a, item, name) for a, item in zip(arguments, data, strict=True))
    if origin in (types.UnionType, typing.Union):
        if data is None and type(None) in arguments:
            return None
        choices = [a for a in arguments if a is not type(None)]
        if len(choices) == 1:
            return from_json(choices[0], data, name)
        kinds = {choice.kind: choice for choice in choices}
        kind = data.get("kind") if isinstance(data, dict) else None
        if kind not in kinds:
            raise ConfigurationError(
                f"{name}.kind must be one of {', '.join(kinds)}, got {json.dumps(kind)}."
            )
        return from_json(kinds[kind], data, name)
    if origin is typing.Literal and data in arguments:
        return data
    if annotation is float and type(data) in (int, float):
        return float(data)
    if annotation in (int, str, bool) and type(data) is annotation:
        return data
    raise ConfigurationError(f"{name} must be {_allowed(annotation)}, got {json.dumps(data)}.")


def _replace(value: Any, tree: Mapping[str, Any], wholes: Mapping[str, Any], prefix: str) -> Any:
    """`value` with the whole values and then the leaves of `tree` put in, each class built once."""
    if isinstance(value, tuple):
        return tuple(
            _replace_item(item, tree.get(str(i), {}), wholes, prefix, i)
            for i, item in enumerate(value)
        )
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    new = {}
    for field in dataclasses.fields(value):
        name = prefix + field.name
        inner, leaf = wholes.get(name, getattr(value, field.name)), tree.get(field.name, {})
        if isinstance(leaf, dict):
            leaf = _replace(inner, leaf, wholes, name + ".")
        new[field.name] = leaf
    return dataclasses.replace(value, **new)


def _replace_item(
    item: Any, tree: Mapping[str, Any], wholes: Mapping[str, Any], prefix: str, number: int
) -> Any:
    """One item of a tuple. It does not know its number, and calls itself number 0 when it complains."""
    try:
        return _replace(item, tree, wholes, f"{prefix}{number}.")
    except ConfigurationError as error:
        message = str(error).replace(f"{prefix}0.", f"{prefix}{number}.")
        raise ConfigurationError(message) from error


def _parse(setting: Setting, text: str) -> Any:
    if setting.named_values is not None and text in setting.named_values:
        return setting.named_values[text]
    if setting.item_class is not None and text:
        first = next(settings(setting.item_class()))
        raise ConfigurationError(
            f"{setting.name} is a list and set item by item, got {text!r}. "
            f"Try --{setting.name}.0.{first.name} {first.typed}."
        )
    try:
        if setting.named_values is not None and _holds_dataclasses(setting.annotation):
            raise ValueError
        return _parse_as(setting.annotation, text)
    except ValueError:
        raise ConfigurationError(
            f"{setting.name} must be {setting.allowed()}, got {text!r}. "
            f"Try --{setting.name} {setting.typed}."
        ) from None


def _parse_as(annotation: Any, text: str) -> Any:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        if text == "none":
            return None
        (only,) = (a for a in arguments if a is not type(None))
        return _parse_as(only, text)
    if origin is typing.Literal:
        for choice in arguments:
            if str(choice) == text:
                return choice
        raise ValueError
    if origin is tuple:
        parts = text.split(",") if text else []
        if arguments[-1] is Ellipsis:
            return tuple(_parse_as(arguments[0], part) for part in parts)
        if len(parts) != len(arguments):
            raise ValueError
        return tuple(_parse_as(a, part) for a, part in zip(arguments, parts, strict=True))
    if annotation is bool:
        if text not in ("true", "false"):
            raise ValueError
        return text == "true"
    if annotation in (int, float, str):
        return annotation(text)
    raise ValueError


def _allowed(annotation: Any) -> str:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        return " or ".join("none" if a is type(None) else _allowed(a) for a in arguments)
    if origin is typing.Literal:
        return "one of " + ", ".join(str(a) for a in arguments)
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            return f"a list, each {_allowed(arguments[0])}, with commas between"
        return f"{len(arguments)} values with a comma between, each {_allowed(arguments[0])}"
    return {int: "a whole number", float: "a number", bool: "true or false", str: "text"}.get(
        annotation, "a value"
    )


def _holds_dataclasses(annotation: Any) -> bool:
    """Whether values of a type are or contain configurations, which cannot be typed in one word."""
    inner = typing.get_args(annotation)
    return dataclasses.is_dataclass(annotation) or any(map(_holds_dataclasses, inner))


def _is_tuple_of_dataclasses(value: Any) -> bool:
    return isinstance(value, tuple) and any(dataclasses.is_dataclass(item) for item in value)


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    names = [field.name for field in dataclasses.fields(cls)]
    hints = typing.get_type_hints(cls)
    return {name: hints[name] for name in names}


@functools.cache
def _field_documentation(cls: type) -> dict[str, str]:
    """The string literal under each field, which is where this package explains a setting."""
    body = typing.cast(
        ast.ClassDef, ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    ).body
    documentation = {}
    for statement, following in itertools.pairwise(body):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and isinstance(following, ast.Expr)
            and isinstance(following.value, ast.Constant)
        ):
            documentation[statement.target.id] = inspect.cleandoc(str(following.value.value))
    return documentation
