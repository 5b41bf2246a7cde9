"""Runs on show: trained models, each with what is found out about it once and kept.

>>> gallery = open_gallery(["latest"])
>>> gallery.find(None).claim
'adds all pairs of non-negative integers'
"""

from collections.abc import Sequence
from functools import cached_property

from abacist.errors import ConfigurationError, UserError, nearest
from abacist.inspection.ablation import HooksFor, Switch, components, exact_match_with, switches
from abacist.inspection.generation import all_of
from abacist.intervals import Proportion
from abacist.reports import run_records
from abacist.reports.run_records import RunRecords
from abacist.runs.run import Run, load
from abacist.scoring.exact_match import line_lengths
from abacist.scoring.samples import as_in_training
from abacist.tasks.problems import Problems

MOST_RUNS = 8
WAYS = ("zero", "mean")
"""What a part that is switched off is set to: 0, or its mean over test problems."""

LONGEST_OPERAND = 1_000
"""Digits of the longest operand that is taken."""
LONGEST_LINE = 4_000
"""Tokens of the longest line that is written."""
_LONGEST_TEXT = 100_000
"""Characters of a problem, spaces included."""
_NUM_PROBLEMS = 200
"""Test problems that tell what breaks when parts are switched off."""


class ShownRun:
    """One run on show."""

    def __init__(self, name: str, run: Run) -> None:
        self.name, self.run = name, run
        self.trained_model = run.trained_model()

    @property
    def example(self) -> str:
        """A problem of its task."""
        return self.trained_model.task.example

    @property
    def claim(self) -> str:
        """What it would do if it were always right."""
        return self.trained_model.task.claim

    @property
    def parts(self) -> list[str]:
        """Heads and MLPs that can be switched off."""
        return [label for label, _, _ in components(self.trained_model.model)]

    @property
    def heads(self) -> list[str]:
        """All heads, layer by layer, recurrence by recurrence."""
        return [
            label for label, _, head in components(self.trained_model.model) if head is not None
        ]

    @cached_property
    def records(self) -> RunRecords:
        """What its directory says of it."""
        return run_records.read(self.run.directory)

    @cached_property
    def sample(self) -> Problems:
        """Test problems, distributed as those in training."""
        return as_in_training(self.trained_model, _NUM_PROBLEMS, "play")

    @cached_property
    def whole(self) -> Proportion:
        """Exact match with all parts, on the sample."""
        return exact_match_with(self.trained_model, self.sample, lambda lines: {})

    @cached_property
    def _switches(self) -> dict[str, Switch]:
        return {switch.component: switch for switch in switches(self.trained_model, self.sample)}

    def hooks(self, off: Sequence[str], way: str) -> HooksFor | None:
        """What switches these parts off; None where there are none.

        Raises `ConfigurationError` for a part or a way that there is not.
        """
        if way not in WAYS:
            raise ConfigurationError(
                f"a part is set to {' or '.join(WAYS)} where it is switched off, got {way!r}."
            )
        if not isinstance(off, list | tuple):
            raise ConfigurationError(
                f"parts that are switched off are a list such as ['{self.parts[0]}'], got {off!r}."
            )
        for part in off:
            if part not in self.parts:
                raise ConfigurationError(f"unknown part {part!r}: {nearest(str(part), self.parts)}")
        if not off:
            return None
        chosen = [self._switches[part] for part in dict.fromkeys(off)]
        return all_of([switch.zero if way == "zero" else switch.mean for switch in chosen])

    def parse(self, text: str) -> Problems:
        """One problem as a person typed it. Raises `ProblemError` for what is none, or is too long."""
        if not isinstance(text, str):
            raise UserError(f"a problem is a text such as {self.example}, got {text!r}.")
        if len(text) > _LONGEST_TEXT:
            raise UserError(
                f"a problem has at most {_LONGEST_TEXT:,} characters here, got {len(text):,}. "
                f"Type one such as {self.example}."
            )
        problem = self.trained_model.task.parse([text], LONGEST_OPERAND)
        self.check_length(problem)
        return problem

    def check_length(self, problem: Problems) -> int:
        """Tokens of its line, at most. Raises `UserError` where they are too many for a page."""
        length = int(line_lengths(self.trained_model.format, problem).max())
        if length > LONGEST_LINE:
            raise UserError(
                f"the line of this problem has up to {length:,} tokens; at most {LONGEST_LINE:,} are "
                "written here. Type fewer digits."
            )
        return length


class Gallery:
    """All runs on show, by name."""

    def __init__(self, shown_runs: Sequence[ShownRun]) -> None:
        self.shown_runs = {shown_run.name: shown_run for shown_run in shown_runs}

    @property
    def names(self) -> list[str]:
        return list(self.shown_runs)

    def find(self, name: str | None) -> ShownRun:
        """The run of that name, or the first. Raises `ConfigurationError` where there is none."""
        if name is None:
            return next(iter(self.shown_runs.values()))
        if name not in self.shown_runs:
            raise ConfigurationError(f"unknown run {name!r}: {nearest(str(name), self.shown_runs)}")
        return self.shown_runs[name]


def open_gallery(paths: Sequence[str], device: str = "auto") -> Gallery:
    """Load runs, by default the newest one; those in directories of one name are told apart by number."""
    if len(paths) > MOST_RUNS:
        raise UserError(
            f"at most {MOST_RUNS} runs can be shown at once, got {len(paths)}. "
            f"Type abacist play {' '.join(paths[:2])}."
        )
    shown_runs: list[ShownRun] = []
    for path in paths or ["latest"]:
        run = load(path, device)
        name, names = run.path.resolve().name, [shown_run.name for shown_run in shown_runs]
        copies = sum(known == name or known.startswith(f"{name} (") for known in names)
        shown_runs.append(ShownRun(f"{name} ({copies + 1})" if copies else name, run))
    return Gallery(shown_runs)
