"""Every error abacist raises on purpose.

    AbacistError
    ├── UserError                 something the user typed or pointed at; the command line exits with 2
    │   ├── ConfigurationError    a setting outside its range, or settings that do not go together
    │   ├── ProblemError          a problem that cannot be read or is beyond a limit
    │   └── RunError              a run directory that is missing, in the way, or unwritable
    │       └── CheckpointError   a checkpoint that is missing or damaged
    └── TrainingDiverged          the loss became infinite or not a number; the command line exits with 1

Messages are one line: what was given, what is allowed, what to type instead.
"""

import difflib
from collections.abc import Iterable


class AbacistError(Exception):
    """The root: catch this to catch everything abacist raises on purpose."""


class UserError(AbacistError):
    """Something the user can put right by typing something else."""


class ConfigurationError(UserError, ValueError):
    """A setting outside its range, or settings that do not go together."""


class ProblemError(UserError, ValueError):
    """A problem that cannot be read, or that is beyond a stated limit."""


class RunError(UserError):
    """A run directory that is missing, in the way, or cannot be written."""


class CheckpointError(RunError):
    """A checkpoint that is missing or whose files do not match their checksums."""


class TrainingDiverged(AbacistError):
    """The loss became infinite or not a number."""


def check_between(setting: str, value: float, low: float, high: float, example: object) -> None:
    """Refuse a setting outside `low` … `high`, naming the value, the range and what to type."""
    if isinstance(value, bool) or not low <= value <= high:
        raise ConfigurationError(
            f"{setting} must be {_plain(low)} to {_plain(high)}, got {value}. "
            f"Try --{setting} {example}."
        )


def _plain(number: float) -> str:
    """A bound as a person writes it: 1,000,000 rather than 1e+06."""
    return f"{number:,}" if isinstance(number, int) else f"{number:g}"


def nearest(name: str, known: Iterable[str]) -> str:
    """A clause that suggests the closest known name, or lists them all when none is close."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known: {', '.join(names)}."
