"""The types of settings: which values each type has, in words, and the value that a typed text means.

    >>> described(tuple[int, ...])
    'a list, each a whole number, with commas between'
    >>> parsed("20,10", tuple[int, ...])
    (20, 10)

A setting is a number, a truth value, a text, one of some texts, a tuple of these, or a configuration,
and may be none.
"""

import dataclasses
import functools
import types
import typing
from typing import Any


@functools.cache
def field_types(cls: type) -> dict[str, Any]:
    """Return the type of every field of a dataclass by its name."""
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}


def has_type(value: Any, annotation: Any) -> bool:
    """Whether a value has the type of a setting; a whole number also has that of a number."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        return any(has_type(value, argument) for argument in arguments)
    if origin is typing.Literal:
        return value in arguments
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if arguments[-1] is Ellipsis:
            return all(has_type(item, arguments[0]) for item in value)
        return len(value) == len(arguments) and all(map(has_type, value, arguments))
    if annotation in (int, float):
        # True is an int in Python, and no number here.
        is_number = isinstance(value, int if annotation is int else (int, float))
        return is_number and not isinstance(value, bool)
    return not isinstance(annotation, type) or isinstance(value, annotation)


def described(annotation: Any) -> str:
    """Describe the values of a type."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        return " or ".join("none" if a is type(None) else described(a) for a in arguments)
    if origin is typing.Literal:
        return "one of " + ", ".join(str(a) for a in arguments)
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            return f"a list, each {described(arguments[0])}, with commas between"
        return f"{len(arguments)} values with a comma between, each {described(arguments[0])}"
    return {int: "a whole number", float: "a number", bool: "true or false", str: "text"}.get(
        annotation, "a value"
    )


def parsed(text: str, annotation: Any) -> Any:
    """Return the value of a type that a text means. Raises `ValueError` if it means none."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        if text == "none":
            return None
        (only,) = (a for a in arguments if a is not type(None))
        return parsed(text, only)
    if origin is typing.Literal:
        for choice in arguments:
            if str(choice) == text:
                return choice
        raise ValueError
    if origin is tuple:
        parts = text.split(",") if text else []
        if arguments[-1] is Ellipsis:
            return tuple(parsed(part, arguments[0]) for part in parts)
        if len(parts) != len(arguments):
            raise ValueError
        return tuple(map(parsed, parts, arguments))
    if annotation is bool:
        if text not in ("true", "false"):
            raise ValueError
        return text == "true"
    if annotation is str or (annotation in (int, float) and text.isascii()):
        return annotation(text)
    raise ValueError


@functools.cache
def holds_dataclasses(annotation: Any) -> bool:
    """Whether values of a type are or contain configurations."""
    inner = typing.get_args(annotation)
    return dataclasses.is_dataclass(annotation) or any(map(holds_dataclasses, inner))
