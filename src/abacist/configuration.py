"""Trees of configurations: listing their settings, changing them by dotted name, and JSON.

    >>> override(recipe, {"model.width": "64"}).model.width     # text, as typed on a command line
    64
    >>> override(recipe, {"model.widht": 64})
    ConfigurationError: unknown setting 'model.widht': did you mean 'model.width'?

The command line, the Python interface and `run.json` all use this module, so a setting has one
name, one type, one range and one explanation (the docstring under the field) everywhere.
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
from difflib import get_close_matches
from typing import Any, TypeVar

from abacist.config_base import ConfigFamily, InvalidSettings, Range, one_line
from abacist.errors import ConfigurationError, nearest
from abacist.setting_types import described, field_types, holds_dataclasses, parsed

Tree = TypeVar("Tree")

_AS_BELOW = "(as below)"
"""What a value shows that cannot be typed as one word."""
_YES = ("yes", "y", "on", "1", "t")
"""What is typed for `true` elsewhere."""


@dataclass(frozen=True)
class Setting:
    """One leaf of a configuration tree."""

    name: str
    """Dotted path, as in `model.width`."""
    annotation: Any
    """Type of the field."""
    value: Any
    help: str
    """Docstring under the field."""
    range: Range | None
    """Allowed numbers, or None if the field declares no range."""
    named_values: Mapping[str, Any] | None
    """Names that stand for whole values, or None if the field has none."""
    choices: Mapping[str, Any] | None
    """Table whose names are the allowed texts, or None if the field has none."""

    @property
    def explanation(self) -> str:
        """The help text, followed by the allowed range."""
        return self.help if self.range is None else f"{self.help} Range: {self.range}."

    def allowed(self) -> str:
        """Describe what may be typed, as in `a whole number, 1 to 65,536`."""
        if self.choices is not None:
            return "one of " + ", ".join(self.choices)
        words = described(self.annotation)
        if self.range is not None:
            words = f"{words}, {self.range}"
        if self.named_values is None:
            return words
        names = "one of " + ", ".join(self.named_values)
        return names if self.holds_settings else f"{names}, or {words}"

    @property
    def holds_settings(self) -> bool:
        """Whether the value consists of further settings, so that it cannot be typed as one word."""
        return holds_dataclasses(self.annotation)

    @property
    def item_class(self) -> type[Any] | None:
        """Class of the items of a list of configurations, if it can be constructed without arguments."""
        inner = typing.get_args(self.annotation)
        if typing.get_origin(self.annotation) is not tuple or inner[-1] is not Ellipsis:
            return None
        item: type[Any] = inner[0]
        if not dataclasses.is_dataclass(item) or not all(
            map(_has_default, dataclasses.fields(item))
        ):
            return None
        return item

    @property
    def has_parts(self) -> bool:
        """Whether the value is a part of the recipe without a name, whose settings are listed one by one."""
        return self.typed == _AS_BELOW

    @property
    def typed(self) -> str:
        """The current value, as a user would type it."""
        for name, value in (self.named_values or {}).items():
            if value == self.value:
                return name
        if dataclasses.is_dataclass(self.value) or _is_tuple_of_dataclasses(self.value):
            return _AS_BELOW
        if isinstance(self.value, tuple):
            return ",".join(map(str, self.value))
        if self.value is None or isinstance(self.value, bool):
            return str(self.value).lower()
        return str(self.value)


def settings(config: Any) -> Iterator[Setting]:
    """Yield all settings of a configuration, depth first, in the order of their declaration."""
    return _settings(config, "", {})


def _settings(config: Any, prefix: str, wholes: Mapping[str, Any]) -> Iterator[Setting]:
    """Yield the settings that `config` has after the whole values in `wholes` have replaced its own."""
    cls: type = type(config)
    for own_name, *declared in _described_fields(cls):
        name = prefix + own_name
        value = wholes[name] if name in wholes else getattr(config, own_name)
        annotation, documentation, bounds, named, choices = declared
        has_settings = dataclasses.is_dataclass(value)
        if named is not None or not has_settings:
            yield Setting(name, annotation, value, documentation, bounds, named, choices)
        if has_settings:
            yield from _settings(value, name + ".", wholes)
        elif _is_tuple_of_dataclasses(value):
            for number, item in enumerate(value):
                yield from _settings(item, f"{name}.{number}.", wholes)


def override(config: Tree, changes: Mapping[str, Any]) -> Tree:
    """Return a copy of `config` with settings replaced by dotted name.

    All changes are applied together, so that settings which must agree can change in one call. A
    whole value, such as `task`, decides which settings exist inside it.

    Args:
        config: any configuration.
        changes: new values by dotted name. Text is parsed according to the type of the setting.

    Raises:
        ConfigurationError: a name is unknown or a value has the wrong type, or (all of them in one
            message) values are outside their ranges or conflict.
    """
    known = {setting.name: setting for setting in settings(config)}
    wholes = {
        name: _value(known[name], value)
        for name, value in changes.items()
        if name in known and known[name].named_values is not None
    }
    if wholes:
        known = {setting.name: setting for setting in _settings(config, "", wholes)}
    if extended := _extended_lists(known, changes):
        wholes |= extended
        known = {setting.name: setting for setting in _settings(config, "", wholes)}
    leaves: dict[str, Any] = {}
    for name, value in changes.items():
        if name not in known:
            raise ConfigurationError(f"unknown setting {name!r}: {nearest(name, known)}")
        if name not in wholes:
            leaves[name] = _value(known[name], value)
    complaints: list[str] = []
    changed: Tree = _replace(config, wholes | leaves, "", complaints)
    if complaints:
        raise ConfigurationError(one_line(complaints))
    return changed


def _extended_lists(
    known: Mapping[str, Setting], changes: Mapping[str, Any]
) -> dict[str, tuple[Any, ...]]:
    """Return lists with one more item, for `changes` to settings of the item after the last."""
    extended: dict[str, tuple[Any, ...]] = {}
    for name in changes:
        path, _, rest = name.partition(".")
        while rest:
            number, _, rest = rest.partition(".")
            item_class = known[path].item_class if rest and path in known else None
            if item_class is not None:
                items = extended.get(path, known[path].value)
                if number == str(len(items)):
                    extended[path] = (*items, item_class())
                break
            path = f"{path}.{number}"
    return extended


def _value(setting: Setting, value: Any) -> Any:
    """Return a new value of a setting, parsed if it is text."""
    if isinstance(value, str):
        return _parse(setting, value)
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        value = value.item()
    return from_json(setting.annotation, to_json(value), setting.name)


def _replace(value: Any, changes: Mapping[str, Any], path: str, complaints: list[str]) -> Any:
    """Return `value` with the changes below `path` applied; each configuration is constructed once.

    Appends to `complaints` what configurations complain about, and leaves those unchanged.
    """
    if isinstance(value, tuple):
        return tuple(
            _replace(item, changes, f"{path}.{number}", complaints)
            for number, item in enumerate(value)
        )
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    earlier, new = len(complaints), {}
    for field in dataclasses.fields(value):
        name = f"{path}.{field.name}".lstrip(".")
        inner = changes.get(name, getattr(value, field.name))
        new[field.name] = _replace(inner, changes, name, complaints)
    if len(complaints) > earlier:
        return value
    try:
        return dataclasses.replace(value, **new)
    except InvalidSettings as error:
        complaints += error.config.complaints(path or error.config.section)
        return value


def to_json(config: Any) -> Any:
    """Return a configuration as dictionaries, lists, numbers and strings, with the `kind` of each.

    A record with a `to_json` of its own is written by that.
    """
    if hasattr(config, "to_json"):
        return config.to_json()
    if dataclasses.is_dataclass(config):
        values = {f.name: to_json(getattr(config, f.name)) for f in dataclasses.fields(config)}
        kind = getattr(config, "kind", None)
        return values if kind is None else {"kind": kind, **values}
    if isinstance(config, tuple | list):
        return [to_json(item) for item in config]
    if isinstance(config, dict):
        return {key: to_json(value) for key, value in config.items()}
    return config


def from_json(annotation: Any, data: Any, path: str = "") -> Any:
    """Return the value of type `annotation` that `to_json` turned into `data`.

    A setting that is missing gets its default, so that records written before it existed stay
    readable.

    Args:
        annotation: a configuration class, or the type of one of its fields.
        data: what `json.loads` returned.
        path: dotted path of the value, for error messages.

    Raises:
        ConfigurationError: a setting is unknown, has the wrong type or is outside its range, or one
            without a default is missing.
    """
    if annotation is Any:
        return data
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        cls: Any = annotation
        if hasattr(cls, "from_json"):
            try:
                return cls.from_json(data)
            except (KeyError, TypeError, ValueError) as error:
                raise ConfigurationError(f"{path} is damaged: {error}.") from error
        if issubclass(cls, ConfigFamily) and "kind" not in vars(cls):
            cls = _member(cls.kinds, data, path)
        return _config_from_json(cls, data, path)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is list and isinstance(data, list):
        return [from_json(arguments[0], item, f"{path}.{i}") for i, item in enumerate(data)]
    if origin is dict and isinstance(data, dict):
        return {key: from_json(arguments[1], item, f"{path}.{key}") for key, item in data.items()}
    if origin is tuple and isinstance(data, list):
        if arguments[-1] is Ellipsis:
            item = arguments[0]
            numbered = holds_dataclasses(item)
            return tuple(
                from_json(item, d, f"{path}.{number}" if numbered else path)
                for number, d in enumerate(data)
            )
        if len(arguments) == len(data):
            return tuple(from_json(a, d, path) for a, d in zip(arguments, data, strict=True))
    if origin in (types.UnionType, typing.Union):
        if data is None and type(None) in arguments:
            return None
        choices = [a for a in arguments if a is not type(None)]
        if len(choices) == 1:
            return from_json(choices[0], data, path)
    if origin is typing.Literal and data in arguments:
        return data
    if annotation is float and type(data) in (int, float):
        return float(data)
    if annotation in (int, str, bool) and type(data) is annotation:
        return data
    raise ConfigurationError(f"{path} must be {described(annotation)}, got {_as_json(data)}.")


def _as_json(data: Any) -> str:
    """Return a value as it stands in a record, or as Python shows it if no record can hold it."""
    try:
        return json.dumps(data)
    except TypeError:
        return repr(data)


def _config_from_json(cls: type, data: Any, path: str) -> Any:
    """Return the configuration of class `cls` that `data` describes."""
    if not isinstance(data, dict):
        raise ConfigurationError(
            f"{path or f'the {cls.__name__.lower()}'} must be an object, got {data!r}."
        )
    hints = field_types(cls)
    values = {}
    for key, value in data.items():
        name = f"{path}.{key}".lstrip(".")
        if key in hints:
            values[key] = from_json(hints[key], value, name)
        elif not (key == "kind" and hasattr(cls, "kind")):
            raise ConfigurationError(f"unknown setting {name}: {nearest(key, hints)}")
    for field in dataclasses.fields(cls):
        if field.name not in data and not _has_default(field):
            raise ConfigurationError(f"{path}.{field.name}".lstrip(".") + " is missing.")
    try:
        return cls(**values)
    except InvalidSettings as error:
        complaints = error.config.complaints(path or error.config.section)
        raise ConfigurationError(one_line(complaints)) from error


def _member(kinds: Mapping[str, type[Any]], data: Any, path: str) -> type[Any]:
    """Return the class that the `kind` in `data` names."""
    kind = data.get("kind") if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in kinds:
        raise ConfigurationError(
            f"{path}.kind must be one of {', '.join(kinds)}, got {json.dumps(kind)}."
        )
    return kinds[kind]


def _parse(setting: Setting, text: str) -> Any:
    """Return the value that `text` stands for."""
    if setting.named_values is not None and text in setting.named_values:
        return setting.named_values[text]
    if setting.item_class is not None and text:
        first = next(settings(setting.item_class()))
        raise ConfigurationError(
            f"{setting.name} is a list whose items are set one by one, got {text!r}. "
            f"Try --{setting.name}.0.{first.name} {first.typed}."
        )
    try:
        if setting.named_values is not None and setting.holds_settings:
            raise ValueError
        return parsed(text, setting.annotation)
    except ValueError:
        names = setting.named_values or setting.choices or typing.get_args(setting.annotation)
        near = get_close_matches(text, [name for name in names if isinstance(name, str)], n=1)
        if setting.annotation is bool and text.lower() in _YES:
            near = ["true"]
        raise ConfigurationError(
            f"{setting.name} must be {setting.allowed()}, got {text!r}. "
            f"Try --{setting.name} {near[0] if near else setting.typed}."
        ) from None


def _is_tuple_of_dataclasses(value: Any) -> bool:
    return isinstance(value, tuple) and any(dataclasses.is_dataclass(item) for item in value)


def _has_default(field: "dataclasses.Field[Any]") -> bool:
    return not (field.default is field.default_factory is dataclasses.MISSING)


@functools.cache
def _described_fields(cls: type) -> list[tuple[Any, ...]]:
    """Return what the settings of a class have in common: name, annotation, documentation, range, values, choices."""
    hints, documentation = field_types(cls), _field_documentation(cls)
    return [
        (
            field.name,
            hints[field.name],
            documentation.get(field.name, ""),
            *(field.metadata.get(key) for key in ("range", "named_values", "choices")),
        )
        for field in dataclasses.fields(cls)
    ]


@functools.cache
def _field_documentation(cls: type) -> dict[str, str]:
    """Return the string literal under each field, including inherited fields."""
    documentation: dict[str, str] = {}
    for base in reversed(cls.__mro__[:-1]):
        try:
            source = textwrap.dedent(inspect.getsource(base))
        except (OSError, TypeError):
            # What is typed into an interpreter has no source; its fields go without documentation.
            continue
        body = typing.cast(ast.ClassDef, ast.parse(source).body[0]).body
        for statement, following in itertools.pairwise(body):
            if (
                isinstance(statement, ast.AnnAssign)
                and isinstance(statement.target, ast.Name)
                and isinstance(following, ast.Expr)
                and isinstance(following.value, ast.Constant)
            ):
                name = statement.target.id
                documentation[name] = inspect.cleandoc(str(following.value.value))
    return documentation
