"""The base class of configurations: settings with a range, and conflicts between settings.

    @dataclass(frozen=True, kw_only=True)
    class TrainingConfig(Config):
        section: ClassVar = "training"

        num_steps: int = setting(1_500, low=1, high=100_000_000)
        warmup_steps: int = setting(100, low=0, high="num_steps")

    >>> TrainingConfig(num_steps=0)
    ConfigurationError: training.num_steps must be 1 to 100,000,000, got 0. Try --training.num_steps 1500.

A configuration checks itself when it is constructed. Imports no torch: a configuration builds what
it configures in a method `build`, which imports it only then.
"""

import dataclasses
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from abacist.errors import ConfigurationError, closest, number_text, range_complaint
from abacist.extensions import Registry
from abacist.setting_types import described, field_types, has_type

Value = TypeVar("Value")


@dataclass(frozen=True)
class Range:
    """Smallest and largest allowed value of a number, or of each number in a list."""

    low: float | str
    """Smallest value, or the name of the setting that holds it."""
    high: float | str
    """Largest value, or the name of the setting that holds it."""
    suggestion: Any
    """A usual value, which an error message proposes if it lies within the range."""

    def __str__(self) -> str:
        return " to ".join(
            bound if isinstance(bound, str) else number_text(bound)
            for bound in (self.low, self.high)
        )

    @property
    def depends_on_settings(self) -> bool:
        """Whether a bound is the value of another setting."""
        return isinstance(self.low, str) or isinstance(self.high, str)

    def complaint(self, config: "Config", name: str, value: Any) -> str | None:
        """Return what is wrong with a value of the setting `name`, or None."""
        low, high = (
            getattr(config, bound) if isinstance(bound, str) else bound
            for bound in (self.low, self.high)
        )
        suggestion = self.suggestion
        if suggestion is None or not low <= suggestion <= high:
            # A tenth of the setting that is the limit suits warm-up and decay.
            suggestion = max(low, high // 10)
        numbers = value if isinstance(value, tuple) else (value,)
        typed = ",".join([str(suggestion)] * len(numbers))
        complaints = (range_complaint(name, number, low, high, typed) for number in numbers)
        return next(filter(None, complaints), None)


_REQUIRED: Any = dataclasses.MISSING


def setting(
    default: Value = _REQUIRED,
    *,
    low: float | str | None = None,
    high: float | str | None = None,
    suggestion: Any = None,
    named_values: Mapping[str, Any] | None = None,
    choices: Mapping[str, Any] | None = None,
) -> Value:
    """Declare a field of a configuration whose values are restricted or have names.

    Args:
        default: value of the setting where a recipe does not say otherwise; without one, every
            configuration has to state the setting.
        low: smallest allowed number, or the name of the setting that holds it.
        high: largest allowed number, or the name of the setting that holds it. None is allowed
            besides the numbers wherever the field's type allows it.
        suggestion: what error messages propose to type; the default if None.
        named_values: names that stand for whole values, for fields that hold configurations or lists.
        choices: table whose names are the allowed texts, including those that extensions add to it.
    """
    metadata: dict[str, Any] = {"named_values": named_values, "choices": choices}
    if low is not None and high is not None:
        metadata["range"] = Range(low, high, default if suggestion is None else suggestion)
    declared: Value = field(default=default, metadata=metadata)
    return declared


class InvalidSettings(ConfigurationError):
    """Settings of one configuration that are outside their ranges or conflict."""

    config: "Config"
    """The rejected configuration, which can name its settings under any path."""


def one_line(complaints: list[str]) -> str:
    """Return several complaints as one message."""
    return " Also, ".join(complaints)


def _wrong_type(name: str, value: Any, annotation: Any, declared: "dataclasses.Field[Any]") -> str:
    """Return the complaint about a value of another type than the setting's."""
    if typing.get_origin(annotation) is typing.Literal:
        return _not_among(name, value, typing.get_args(annotation))
    if isinstance(value, list):
        return f"{name} must be a tuple, got the list {value!r}. Try {tuple(value)!r}."
    allowed, bounds, default = (
        described(annotation),
        declared.metadata.get("range"),
        declared.default,
    )
    if bounds is not None:
        allowed = f"{allowed}, {bounds}"
    is_typed = isinstance(default, bool | int | float | str)
    remedy = f" Try --{name} {str(default).lower()}." if is_typed else ""
    return f"{name} must be {allowed}, got {value!r}.{remedy}"


def _not_among(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return the complaint about a value that is none of the texts that a setting can be."""
    return (
        f"{name} must be one of {', '.join(map(str, choices))}, got {value!r}. "
        f"Try --{name} {closest(str(value), choices)}."
    )


@dataclass(frozen=True, kw_only=True)
class Config:
    """A part of a recipe. Subclasses are frozen dataclasses and explain each field in a docstring."""

    section: ClassVar[str]
    """Dotted path of the part within a recipe, as in `training`, which error messages begin with."""

    def __post_init__(self) -> None:
        complaints = self.complaints(self.section)
        if complaints:
            error = InvalidSettings(one_line(complaints))
            error.config = self
            raise error

    def complaints(self, path: str) -> list[str]:
        """Return one message for each invalid setting and each conflict between settings.

        Args:
            path: dotted path of this configuration, under which messages name its settings.
        """
        fixed: list[str] = []
        dependent: list[tuple[Range, str, Any]] = []
        cls: type = type(self)
        types = field_types(cls)
        for declared in dataclasses.fields(self):
            bounds, value = declared.metadata.get("range"), getattr(self, declared.name)
            name, choices = f"{path}.{declared.name}", declared.metadata.get("choices")
            if not has_type(value, types[declared.name]):
                fixed.append(_wrong_type(name, value, types[declared.name], declared))
            elif choices is not None and value not in choices:
                fixed.append(_not_among(name, value, choices))
            elif bounds is None or value is None:
                continue
            elif bounds.depends_on_settings:
                dependent.append((bounds, name, value))
            elif complaint := bounds.complaint(self, name, value):
                fixed.append(complaint)
        # A bound that is another setting can be compared with once that setting is a number.
        compared = (bounds.complaint(self, name, value) for bounds, name, value in dependent)
        return fixed or [*filter(None, compared), *self.conflicts(path)]

    def conflicts(self, path: str) -> Iterator[str]:
        """Yield one message for each conflict; all numbers are within their fixed ranges by then."""
        yield from ()


@dataclass(frozen=True, kw_only=True)
class ConfigFamily(Config):
    """Base class of configurations that a `kind` distinguishes, such as those of all tasks.

    A direct subclass founds a family. Each class below it that has a `kind` joins the family's
    table `kinds` when it is defined, and can from then on be read from JSON. A kind that another
    class has is refused.
    """

    kind: ClassVar[str]
    """Name of the class in JSON, unique within the family."""
    kinds: ClassVar[Registry[type[Any]]]
    """The members of the family by their kind."""

    def __post_init__(self) -> None:
        if "kind" not in vars(type(self)):
            raise ConfigurationError(
                f"the class {type(self).__name__} needs a name in JSON. Write a line "
                f"kind: ClassVar = 'my-{self.section}' in it."
            )
        super().__post_init__()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if ConfigFamily in cls.__bases__:
            cls.kinds = Registry(f"{cls.section} kind")
        elif "kind" in vars(cls):
            cls.kinds.register(cls.kind, cls)
