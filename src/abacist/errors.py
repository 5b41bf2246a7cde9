"""All errors that abacist raises on purpose.

    AbacistError
    ├── UserError                 a mistake in what the user typed; the command line exits with 2
    │   ├── ConfigurationError    settings that are outside their ranges or conflict
    │   │   └── InvalidSettings   those of one configuration, which the error holds; in `config_base`
    │   ├── ProblemError          a problem that cannot be read or exceeds a limit
    │   └── RunError              a run directory that is missing, exists already, or is unwritable
    │       └── CheckpointError   a checkpoint that is missing or damaged
    ├── NotProvable               a proof that cannot be attempted; in `certificates`, which report it
    ├── TrainingDiverged          the loss became infinite or NaN; the command line exits with 1
    └── ProcessLost               a process that trains together with this one has ended; likewise

    UserWarning
    └── NotSaved                  a result that could not be written; the command line exits with 1

A message is one line. It says what is wrong, the value, the allowed range, and what to type instead.
"""

from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches

_CLOSE = 0.5
"""Smallest similarity, 0…1, at which a name is suggested."""


class AbacistError(Exception):
    """Base class of all errors that abacist raises on purpose."""


class UserError(AbacistError):
    """A mistake that the user can correct by typing something else."""


class ConfigurationError(UserError, ValueError):
    """Settings that are outside their ranges or conflict."""


class ProblemError(UserError, ValueError):
    """A problem that cannot be read or exceeds a stated limit."""


class RunError(UserError):
    """A run directory that is missing, exists already, or cannot be written."""


class CheckpointError(RunError):
    """A checkpoint that is missing, or whose files do not match their checksums."""


class TrainingDiverged(AbacistError):
    """The loss became infinite or NaN."""


class ProcessLost(AbacistError):
    """A process that trains the same model together with this one has ended."""

    def __init__(self, message: str, is_noticed_first: bool = True) -> None:
        super().__init__(message)
        self.is_noticed_first = is_noticed_first
        """Whether this process noticed it before the others; the command line says it once."""


class NotSaved(UserWarning):
    """A result that was computed and could not be written."""


def range_complaint(
    setting: str, value: float, low: float, high: float, suggestion: object
) -> str | None:
    """Return a message with value, range and what to type if `value` lies outside `low` … `high`."""
    if not isinstance(value, bool) and low <= value <= high:
        return None
    return (
        f"{setting} must be {number_text(low)} to {number_text(high)}, got {value}. "
        f"Try --{setting} {suggestion}."
    )


def check_between(setting: str, value: float, low: float, high: float, suggestion: object) -> None:
    """Raise `ConfigurationError` if `value` lies outside `low` … `high`."""
    if complaint := range_complaint(setting, value, low, high, suggestion):
        raise ConfigurationError(complaint)


def number_text(number: float) -> str:
    """Return a number as a person writes it: 1,000,000 instead of 1000000."""
    return f"{int(number):,}" if number == number // 1 else f"{number:g}"


def memory_complaint(error: BaseException) -> str | None:
    """Return a message with what to type if a device or this machine has no memory left, otherwise None."""
    text = " ".join(str(error).split())
    # torch has an error of its own for GPUs, and none for CPUs.
    is_of_device = type(error).__name__ == "OutOfMemoryError"
    if not (isinstance(error, MemoryError) or is_of_device or "can't allocate memory" in text):
        return None
    return (
        f"out of memory ({text:.200}). Try --training.micro_batches 4 or a smaller "
        "--training.batch_size, and fewer runs side by side."
    )


def closest(name: str, known: Iterable[str]) -> str:
    """Return the closest known name, or the first one if none is close."""
    names = list(known)
    return (get_close_matches(name, names, n=1) or names)[0]


_ABBREVIATIONS = {
    "lr": "learning_rate",
    "rate": "learning_rate",
    "wd": "weight_decay",
    "warmup": "warmup_steps",
    "steps": "num_steps",
    "iterations": "num_steps",
    "iters": "num_steps",
    "max_iters": "num_steps",
    "epochs": "num_steps",
    "batch": "batch_size",
    "bs": "batch_size",
    "heads": "num_heads",
    "n_head": "num_heads",
    "layers": "num_layers",
    "n_layer": "num_layers",
    "depth": "num_layers",
    "dim": "width",
    "d_model": "width",
    "n_embd": "width",
    "hidden": "width",
    "hidden_size": "width",
    "ff": "mlp_width",
    "d_ff": "mlp_width",
    "digits": "max_digits",
}
"""Usual names of settings, with ours."""

_MOST_COMPARED = 200
"""Number of characters of a wrong name that are compared."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a clause that suggests the closest known name, or lists those that are known if none is close.

    Dotted names are compared by their last part, of which usual abbreviations are known, and then as
    a whole: `training.lr` and `--lr` mean `training.learning_rate`. Where the section is right, a name
    of another section is suggested only if its last part is the same.
    """
    # No name is longer, and the time of a comparison grows with the length.
    name = name[:_MOST_COMPARED]
    names = list(known)
    for candidate in names:
        if candidate.startswith(f"{name}."):
            return f"did you mean one of its settings, such as {candidate!r}?"
    section, last = _split(name)
    meant = _ABBREVIATIONS.get(last, last)

    def closeness(candidate: str) -> tuple[float, float]:
        ending = _split(candidate)[1]
        ratio = max(SequenceMatcher(None, typed, ending).ratio() for typed in {last, meant})
        return ratio, SequenceMatcher(None, name, candidate).ratio()

    siblings = [candidate for candidate in names if section and _split(candidate)[0] == section]
    namesakes = [candidate for candidate in names if _split(candidate)[1] == meant]
    for candidates in (siblings or names, namesakes):
        closest = max(candidates, key=closeness, default="")
        if closest and closeness(closest)[0] >= _CLOSE:
            return f"did you mean {closest!r}?"
    for candidate in names:
        if name.startswith(f"{candidate}.") and not siblings:
            return f"did you mean {candidate!r}?"
    # Whoever types an unknown section is helped by the few sections, not by all of their settings.
    sections = dict.fromkeys(candidate.partition(".")[0] for candidate in names)
    return f"known: {', '.join(siblings or sections) or 'nothing'}."


def _split(name: str) -> tuple[str, str]:
    """Return the section of a dotted name and its last part, without the dashes of an option."""
    section, _, last = name.lstrip("-").rpartition(".")
    return section, last.replace("-", "_")
