"""Reading a command's arguments: argparse with errors of one line."""

import argparse
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from abacist import recipes
from abacist.configuration import settings
from abacist.errors import UserError, nearest
from abacist.recipes.recipe import Recipe


class Parser(argparse.ArgumentParser):
    """An argument parser that raises `UserError`, and suggests the nearest option to a wrong one."""

    def __init__(self, command: str, description: str, epilog: str = "") -> None:
        super().__init__(
            prog=f"abacist {command}",
            description=description,
            epilog=epilog,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        # A word such as -3+4 is a problem, which gets an error message of its own, and not an option.
        self._negative_number_matcher = re.compile(r"-[0-9.(]")
        # The command takes this option out of the arguments before any parser reads them.
        self.add_argument(
            "--extension",
            metavar="FILE.py",
            help="load tasks, formats, encodings and recipes from a file or an importable module",
        )

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing usage."""
        raise UserError(f"{message}. Type {self.prog} --help for what it takes.")

    def parse(self, arguments: list[str], setting_names: Iterable[str] = ()) -> argparse.Namespace:
        """Parse all arguments, options and others in any order.

        An option that does not exist is refused with the nearest one, or with the nearest of the
        settings that the command takes.
        """
        parsed, unknown = self.parse_known_intermixed_args(arguments)
        options = [word for word in unknown if word.startswith("-")]
        if options:
            known = [*self.option_help(), *(f"--{name}" for name in setting_names)]
            raise UserError(
                f"unknown argument {options[0]!r} to {self.prog}: "
                f"{nearest(options[0].partition('=')[0], known)}"
            )
        if unknown:
            raise UserError(
                f"{self.prog} does not use {unknown[0]!r}. Type {self.prog} --help for what it takes."
            )
        return parsed

    def option_help(self) -> dict[str, str]:
        """Return the help text of every option that can be typed, by its long name."""
        return {
            option: action.help or ""
            for option, action in self._option_string_actions.items()
            if option.startswith("--")
        }

    def add_run(self) -> None:
        """Add the positional argument of commands that take a trained run."""
        self.add_argument(
            "run",
            metavar="RUN",
            help="a run directory, latest for the newest one under runs/, or hf://USER/NAME on the Hub",
        )

    def add_checkpoint(self) -> None:
        """Add the option of commands that are about one checkpoint of a run."""
        self.add_argument(
            "--checkpoint",
            type=_checkpoint,
            default="last",
            metavar="WHICH",
            help="last (the default), best on validation, or the step of a checkpoint",
        )

    def add_device(self) -> None:
        """Add the option of commands that let a model calculate."""
        self.add_argument(
            "--device", default="auto", metavar="NAME", help="cpu, cuda, mps or auto (the default)"
        )

    def add_accept_changed_extension(self) -> None:
        """Add the option of commands that refuse a run whose extension has changed since its training."""
        self.add_argument(
            "--accept-changed-extension",
            action="store_true",
            help="go on although the source of an extension is not that of the run's training",
        )

    def add_json(self) -> None:
        """Add the option of commands whose output other programs read."""
        self.add_argument("--json", action="store_true", help="print JSON and nothing else")

    def add_csv(self) -> None:
        """Add the option of commands that print tables."""
        self.add_argument(
            "--csv",
            type=_csv_file,
            metavar="FILE.csv",
            help="write the numbers to a CSV file as well",
        )


def _checkpoint(text: str) -> str:
    if text in ("last", "best") or (text.isascii() and text.isdecimal() and len(text) <= 16):
        return text
    raise argparse.ArgumentTypeError(f"must be last, best or a step, got {text!r}")


_WHOLE_SETTINGS = ("--task", "--format")
"""Settings without a dot: names that stand for a part of a recipe."""


def split_off_settings(arguments: list[str]) -> tuple[dict[str, str], list[str]]:
    """Return settings (`--model.width 64` or `--model.width=64`) by dotted name, and all other arguments."""
    changes: dict[str, str] = {}
    others: list[str] = []
    words = iter(arguments)
    for word in words:
        option, equals, value = word.partition("=")
        dotted = option.startswith("--") and "." in option
        if not dotted and option not in _WHOLE_SETTINGS:
            others.append(word)
            continue
        if not equals:
            try:
                value = next(words)
            except StopIteration:
                raise UserError(f"{option} needs a value after it.") from None
        changes[option.removeprefix("--")] = value
    return changes, others


def _csv_file(text: str) -> Path:
    """Return the name of a CSV file; an argument type."""
    if not text.endswith(".csv"):
        raise argparse.ArgumentTypeError(f"must be a file ending in .csv, got {text!r}")
    return Path(text)


def named_recipe(arguments: list[str]) -> Recipe:
    """Return the recipe that the arguments name, or the default one."""
    return recipes.find(next((word for word in arguments if word in recipes.RECIPES), "add"))


def setting_names(arguments: list[str]) -> list[str]:
    """Return the names of all settings of the recipe that the arguments name, as far as they can be typed."""
    names = [setting.name for setting in settings(named_recipe(arguments))]
    return [name for name in names if "." in name or f"--{name}" in _WHOLE_SETTINGS]


def number(text: str) -> float:
    """Return a number as it was typed; NaN for any other text."""
    try:
        # float() also takes digits of other scripts.
        return float(text) if text.isascii() else math.nan
    except ValueError:
        return math.nan


def whole_number(low: int, high: int | None = None) -> "_WholeNumber":
    """Return an argument type: a whole number of at least `low`, and at most `high`."""
    return _WholeNumber(low, high)


class _WholeNumber:
    def __init__(self, low: int, high: int | None) -> None:
        self.low, self.high = low, high

    def __call__(self, text: str) -> int:
        try:
            # int() also takes digits of other scripts.
            value = int(text) if text.isascii() else self.low - 1
        except ValueError:
            value = self.low - 1
        if value < self.low or (self.high is not None and value > self.high):
            range_ = f"of at least {self.low}"
            if self.high is not None:
                range_ = f"from {self.low} to {self.high:,}"
            raise argparse.ArgumentTypeError(f"must be a whole number {range_}, got {text!r}")
        return value


def whole_numbers(low: int, high: int) -> "_WholeNumbers":
    """Return an argument type: whole numbers from `low` to `high` with commas between them."""
    return _WholeNumbers(whole_number(low, high))


class _WholeNumbers:
    def __init__(self, item: _WholeNumber) -> None:
        self.item = item

    def __call__(self, text: str) -> tuple[int, ...]:
        return tuple(self.item(part) for part in text.split(","))
