"""Extensions: tasks, formats, encodings and recipes from outside the package, and the tables that hold them.

A table of named things is a `Registry`. The package fills it and an extension adds to it in the same
way, so that a name from an extension works wherever a built-in name does.

    $ abacist train --extension my_tasks.py add-base-7

An extension is a file, `my_tasks.py`, or an importable module, `package.module`. It is executed only
because a user names, imports or installs it. A run directory states which extensions it needs, with
the SHA-256 of their source, and is never a reason to execute one.
"""

import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import re
import shlex
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, TypeVar

from abacist.errors import AbacistError, ConfigurationError, RunError, UserError

GROUP = "abacist.extensions"
"""Group of entry points by which installed packages offer extensions."""

Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Extension:
    """One file or module that has registered something."""

    name: str
    """Name of the module; for a file, its name without `.py`."""
    source: str
    """What a user types after `--extension`."""
    sha256: str | None
    """SHA-256 of the source, of all Python files for a package; None for an interactive session."""


_by_module: dict[str, Extension] = {}
"""Every extension of this process by the module that belongs to it."""
_asked_for: list[str] = []
"""What was typed after `--extension`."""


class Registry(dict[str, Entry]):
    """A table of named things. A name can be registered only once."""

    all: ClassVar[list["Registry[Any]"]] = []

    def __init__(
        self,
        noun: str,
        entries: Mapping[str, Entry] | None = None,
        check: Callable[[Any], str | None] = lambda entry: None,
    ) -> None:
        """Make a table of built-in entries.

        Args:
            noun: says in error messages what the table holds, as in `recipe`.
            entries: the built-in entries by name.
            check: returns what is wrong with an entry of an extension, or None.
        """
        super().__init__(entries or {})
        self.noun, self.check = noun, check
        self.origins: dict[str, Extension] = {}
        """The extension that registered each name, for names that are not built in."""
        Registry.all.append(self)

    def register(self, name: str, entry: Entry) -> None:
        """Add an entry.

        Raises `ConfigurationError` if the name is taken or cannot be typed, or the entry is none. A
        class may be defined again in place of itself, and an interactive session may replace what it
        registered.
        """
        check_name(self.noun, name)
        if (complaint := self.check(entry)) is not None:
            raise ConfigurationError(f"the {self.noun} {name!r} {complaint}")
        extension = _registrant()
        if name in self and not self._replaces(name, entry, extension):
            origin = self.origins.get(name)
            by = "is built in" if origin is None else f"is registered already, by {origin.source}"
            raise ConfigurationError(
                f"the {self.noun} {name!r} {by}. Choose another name, such as {'my-' + name!r}."
            )
        self[name] = entry
        if extension is not None:
            self.origins[name] = extension

    def _replaces(self, name: str, entry: Entry, extension: Extension | None) -> bool:
        old = self[name]
        if isinstance(old, type) and isinstance(entry, type):
            same = (old.__module__, old.__qualname__) == (entry.__module__, entry.__qualname__)
            return same and self.origins.get(name) == extension
        origin = self.origins.get(name)
        return origin is not None and origin.sha256 is None and origin == extension


def check_name(noun: str, name: Any) -> None:
    """Raise `ConfigurationError` if something cannot be called `name` on the command line and in paths."""
    if not isinstance(name, str):
        raise ConfigurationError(
            f"a {noun} needs a name, got {type(name).__name__}. Write the name in brackets, as in "
            f"@{noun.replace(' ', '_')}('my-{noun.split()[-1]}')."
        )
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise ConfigurationError(
            f"the name of a {noun} must consist of letters, digits, '-', '_' and '.', got {name!r}. "
            f"Try {'my-' + noun.split()[-1]!r}."
        )


_MACHINERY = {
    __name__,
    "abacist.config_base",
    "abacist.recipes",
    "abacist.recipes.column_tasks",
    "abacist.models.encodings",
    "dataclasses",
    "abc",
}
"""Modules that register on behalf of the module that calls them."""


def _registrant() -> Extension | None:
    """Return the extension whose code is registering something; None for the package itself."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__") in _MACHINERY:
        frame = frame.f_back
    module = frame.f_globals.get("__name__", "__main__")
    if module.partition(".")[0] == "abacist":
        return None
    return _extension_of(module, frame.f_globals.get("__file__"))


def _extension_of(module: str, file: str | None) -> Extension:
    """Return the extension that a module belongs to: one that is loaded, or the module itself."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        if (known := _by_module.get(".".join(parts[:length]))) is not None:
            return known
    if file is None or not Path(file).is_file():
        extension = Extension(module, module, None)
    elif module in ("__main__", "__mp_main__"):
        # The second is what the first is called in a process that multiprocessing starts.
        extension = Extension(Path(file).stem, file, _sha256([Path(file)]))
    else:
        source = module if "." in module else Path(file).name
        extension = Extension(module, source, _sha256(_sources(Path(file))))
    _by_module[module] = extension
    return extension


def _sources(file: Path) -> list[Path]:
    """Return the files whose contents decide what a module does: its own, or all of its package."""
    if not (file.parent / "__init__.py").is_file():
        return [file]
    return sorted(file.parent.rglob("*.py"))


def _sha256(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


# Loading ------------------------------------------------------------------------------------


def load(source: str) -> None:
    """Load an extension: a file whose name ends in `.py`, or an importable module.

    Loading it a second time has no effect. An extension that fails registers nothing.

    Raises `UserError` with one line that says why it cannot be loaded.
    """
    before = [(dict(registry), dict(registry.origins)) for registry in Registry.all]
    try:
        if source.endswith(".py"):
            _load_file(Path(source), source)
        else:
            _load_module(source)
    except BaseException:
        for registry, (entries, origins) in zip(Registry.all, before, strict=False):
            registry.clear()
            registry.update(entries)
            registry.origins = origins
        for registry in Registry.all[len(before) :]:
            # A table of a module that was not imported before.
            for name in registry.origins:
                registry.pop(name, None)
            registry.origins = {}
        raise


def load_all(sources: Iterable[str]) -> None:
    """Load several extensions."""
    for source in sources:
        load(source)
        _asked_for.append(source)


def options(record: Mapping[str, Any] | None = None) -> list[str]:
    """Return the options that load extensions, as a user types them.

    Args:
        record: the content of a `run.json` or `plan.json`, for the extensions that it needs; None for
            those that the present command was asked to load.
    """
    sources = _asked_for
    if record is not None:
        # What an interactive session has registered is in no file that could be named.
        needed = (extension for extension in record.get("extensions", []) if extension["sha256"])
        sources = [extension["source"] for extension in needed]
    return [word for source in dict.fromkeys(sources) for word in ("--extension", source)]


def command(*words: str, record: Mapping[str, Any] | None = None) -> str:
    """Return a command line of abacist with the options that load extensions; see `options`.

    >>> command("prove", "runs/my sums", record={"extensions": []})
    "abacist prove 'runs/my sums'"
    """
    return shlex.join(["abacist", *words, *options(record)])


def load_installed() -> None:
    """Load the extensions that installed packages offer by entry points.

    Nobody has asked for one of them in particular, so one that fails is left out with a warning.
    """
    for point in _entry_points(tuple(sys.path)):
        try:
            load(point.module)
        except UserError as error:
            warnings.warn(f"{error} It is left out.", stacklevel=2)


@functools.cache
def _entry_points(path: tuple[str, ...]) -> importlib.metadata.EntryPoints:
    """Return the entry points of the packages on a search path, which is that of this process.

    They are read once: every command and every call of the API asks for them, and each reads a file
    of every installed package.
    """
    return importlib.metadata.entry_points(group=GROUP)


def loaded() -> list[str]:
    """Return what `load_all` needs to load the extensions of this process in another one.

    That is the path of a file, wherever it lies, and the name of a module of a package.
    """
    sources = []
    for module, extension in _by_module.items():
        file = getattr(sys.modules.get(module), "__file__", None)
        if file is not None and extension.source.endswith(".py"):
            sources.append(str(Path(file).resolve()))
        else:
            sources.append(extension.source)
    return list(dict.fromkeys(sources))


def _load_file(path: Path, source: str) -> None:
    if not path.is_file():
        raise UserError(
            f"there is no extension {source}. Type --extension with a Python file or an importable module."
        )
    name = path.stem
    extension = Extension(name, source, _sha256([path]))
    if any(
        loaded.name == name and loaded.sha256 == extension.sha256 for loaded in _by_module.values()
    ):
        return
    if (other := next((e for e in _by_module.values() if e.name == name), None)) is not None:
        raise UserError(
            f"two extensions are called {name}: {other.source} and {source}. Rename one of the files."
        )
    # A file may have the name of a module that others import, so it gets a name that none has.
    module_name = f"abacist_extensions.{name}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    module.__name__ = module_name
    sys.modules[module_name] = module
    _by_module[module_name] = extension
    try:
        _execute(source, lambda: spec.loader.exec_module(module), str(path.absolute()))
    except BaseException:
        del sys.modules[module_name], _by_module[module_name]
        raise


def _load_module(source: str) -> None:
    try:
        spec = importlib.util.find_spec(source)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        raise UserError(
            f"there is no extension {source}. Type --extension with a Python file such as "
            f"{source}.py, or an importable module."
        )
    _execute(source, lambda: importlib.import_module(source), spec.origin or "")


def blamed(error: BaseException) -> UserError | None:
    """Return one line about an error that was raised in the code of an extension; None for others."""
    files: dict[str, Extension] = {}
    for module, extension in _by_module.items():
        file = getattr(sys.modules.get(module), "__file__", None)
        if file is not None:
            files |= dict.fromkeys(map(str, _sources(Path(file))), extension)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename in files:
            return UserError(_failure(files[frame.filename].source, error, frame.lineno))
    return None


def _failure(source: str, error: BaseException, line: int | None) -> str:
    where = "" if line is None else f" at line {line}"
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    return f"the extension {source} failed{where}: {reason}. Correct it."


def _execute(source: str, execute: Any, file: str) -> ModuleType | None:
    """Execute an extension, and turn whatever goes wrong into one line."""
    try:
        result: ModuleType | None = execute()
    except AbacistError as error:
        raise UserError(f"the extension {source} is refused: {error}") from error
    except ModuleNotFoundError as error:
        raise UserError(
            f"the extension {source} needs the module {error.name}, which is not installed. "
            f"Try pip install {(error.name or '').partition('.')[0]}."
        ) from error
    except (Exception, SystemExit) as error:
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
        line = lines[-1] if lines else getattr(error, "lineno", None)
        raise UserError(_failure(source, error, line)) from error
    return result


# Run directories ----------------------------------------------------------------------------


def needed(config: Any) -> list[dict[str, Any]]:
    """Return the extensions that a configuration needs, as `run.json` states them.

    Args:
        config: the configuration as JSON. Every registered name in it counts.
    """
    names = set(_texts(config))
    extensions = {
        extension
        for registry in Registry.all
        for name, extension in registry.origins.items()
        if name in names
    }
    return [asdict(extension) for extension in sorted(extensions, key=lambda e: e.name)]


def check_stated(record: Mapping[str, Any]) -> None:
    """Raise `ValueError` unless a `run.json` or `plan.json` states its extensions as `needed` returns them."""
    stated = record.get("extensions", [])
    if not isinstance(stated, list) or not all(map(_is_stated, stated)):
        raise ValueError("its extensions are not a list of names, sources and SHA-256")


def _is_stated(extension: Any) -> bool:
    return (
        isinstance(extension, dict)
        and isinstance(extension.get("name"), str)
        and isinstance(extension.get("source"), str)
        and isinstance(extension.get("sha256", 0), str | None)
    )


def check_loaded(record: Mapping[str, Any], path: Path) -> None:
    """Raise `RunError` unless the extensions that a run needs are loaded.

    Args:
        record: what `run.json` or `plan.json` states.
        path: the run directory, for error messages.
    """
    by_name = {extension.name: extension for extension in _by_module.values()}
    missing = [e for e in record.get("extensions", []) if e["name"] not in by_name]
    if missing:
        typed = shlex.join(options({"extensions": missing}))
        remedy = f"Type {typed}, or import it in Python." if typed else "Define it again in Python."
        raise RunError(f"{path} needs an extension that is not loaded. {remedy}")


def changes(record: Mapping[str, Any], path: Path) -> str | None:
    """Return a sentence that names the extensions whose source has changed since training; None if none has."""
    by_name = {extension.name: extension for extension in _by_module.values()}
    changed = [
        extension["source"]
        for extension in record.get("extensions", [])
        if by_name[extension["name"]].sha256 != extension["sha256"]
    ]
    if not changed:
        return None
    return (
        f"{path} was trained with another version of {', '.join(changed)}, which has changed since."
    )


def warn_of_changes(record: Mapping[str, Any], path: Path) -> None:
    """Warn if an extension of a run has changed."""
    if (changed := changes(record, path)) is not None:
        warnings.warn(changed, stacklevel=3)


def refuse_changes(record: Mapping[str, Any], path: Path) -> None:
    """Raise `RunError` if an extension of a run has changed."""
    if (changed := changes(record, path)) is not None:
        raise RunError(f"{changed} Restore it, or type --accept-changed-extension.")


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
