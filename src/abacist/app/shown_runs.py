"""The runs that a page shows: trained models, each with results that are computed once and cached.

>>> gallery = open_gallery(["latest"])
>>> gallery.find(None).claim
'adds all pairs of non-negative integers'
"""

import time
from collections.abc import Callable, Sequence
from functools import cached_property

from abacist import extensions
from abacist.certificates.neighbourhood_table import NeighbourhoodTable, neighbourhood_table
from abacist.errors import ConfigurationError, ProblemError, UserError, nearest
from abacist.inspection.ablation import (
    AblationHooks,
    HooksFor,
    ablation_hooks,
    components,
    exact_match_with,
)
from abacist.inspection.generation import combine_hooks
from abacist.intervals import Proportion
from abacist.reports import run_records
from abacist.reports.run_records import RunRecords
from abacist.runs.run import Run, load
from abacist.scoring.exact_match import line_lengths
from abacist.scoring.samples import as_in_training
from abacist.tasks.config import SortingConfig
from abacist.tasks.problems import Problems, Shapes

MOST_RUNS = 8
WAYS = ("zero", "mean")
"""Values that can replace the output of a component: 0, or its mean over test problems."""

LONGEST_OPERAND = 1_000
"""Maximum number of digits of an operand."""
MAX_SECONDS = 20.0
"""Time limit of one answer; problems that are likely to take longer are refused at once."""
LONGEST_LINE = 4_000
"""Maximum number of tokens of a line."""
_LONGEST_TEXT = 100_000
"""Maximum number of characters of a problem, including spaces."""
_NUM_PROBLEMS = 200
"""Number of test problems that are scored when components are switched off."""


class ShownRun:
    """A run that the page shows."""

    def __init__(self, name: str, run: Run) -> None:
        self.name, self.run = name, run
        self.trained_model = run.trained_model()
        self.seconds_per_token: float | None = None
        """Least processor time per token of an answer so far; None before the first one of some length."""

    @property
    def example(self) -> str:
        """An example problem of the run's task."""
        return self.trained_model.task.example

    @property
    def claim(self) -> str:
        """What a model of this task does if it is always right."""
        return self.trained_model.task.claim

    @property
    def parts(self) -> list[str]:
        """Labels of the heads and MLPs, which can be switched off."""
        return [label for label, _, _ in components(self.trained_model.model)]

    @property
    def heads(self) -> list[str]:
        """Labels of all heads, ordered by recurrence, layer and head."""
        return [
            label for label, _, head in components(self.trained_model.model) if head is not None
        ]

    @cached_property
    def records(self) -> RunRecords:
        """The records in the run's directory."""
        return run_records.read(self.run.directory, self.run.identity)

    @cached_property
    def sample(self) -> Problems:
        """Test problems, distributed as in training."""
        return as_in_training(self.trained_model, _NUM_PROBLEMS, "play")

    @cached_property
    def whole(self) -> Proportion:
        """Exact match with all components on the sample."""
        return exact_match_with(self.trained_model, self.sample, lambda lines: {})

    @cached_property
    def neighbourhoods(self) -> NeighbourhoodTable | None:
        """All neighbourhoods of the certificate; None if the run has none, or if they cannot be shown."""
        proof = self.records.certificate
        if proof is None or not proof.certified:
            return None
        return neighbourhood_table(self.trained_model)

    @cached_property
    def _ablation_hooks(self) -> dict[str, AblationHooks]:
        return {hooks.component: hooks for hooks in ablation_hooks(self.trained_model, self.sample)}

    def hooks(self, off: Sequence[str], way: str) -> HooksFor | None:
        """Return hooks that switch these components off; None if `off` is empty.

        Raises `ConfigurationError` for an unknown component or way.
        """
        if way not in WAYS:
            raise ConfigurationError(
                f"a part that is switched off is set to {' or '.join(WAYS)}, got {way!r}."
            )
        if not isinstance(off, list | tuple):
            raise ConfigurationError(
                f"the parts to switch off must be a list such as ['{self.parts[0]}'], got {off!r}."
            )
        for part in off:
            if part not in self.parts:
                raise ConfigurationError(f"unknown part {part!r}: {nearest(str(part), self.parts)}")
        if not off:
            return None
        selected = [self._ablation_hooks[part] for part in dict.fromkeys(off)]
        return combine_hooks([hooks.zero if way == "zero" else hooks.mean for hooks in selected])

    def parse(self, text: str) -> Problems:
        """Parse one typed problem. Raises `UserError` for invalid problems and those that are too long."""
        self.check_text(text)
        problem = self.trained_model.task.parse([text], LONGEST_OPERAND)
        self.check_length(problem)
        return problem

    def check_text(self, text: object) -> None:
        """Raise `UserError` for what is no text, or a very long one."""
        if not isinstance(text, str):
            raise UserError(f"a problem is a text such as {self.example}, got {text!r}.")
        if len(text) > _LONGEST_TEXT:
            raise UserError(
                f"a problem has at most {_LONGEST_TEXT:,} characters here, got {len(text):,}. "
                f"Type one such as {self.example}."
            )

    def check_length(self, problem: Problems) -> int:
        """Return the maximum number of tokens of the problem's line.

        Raises `UserError` if it is more than `LONGEST_LINE`.
        """
        length = int(line_lengths(self.trained_model.format, problem).max())
        if length > LONGEST_LINE:
            raise UserError(
                f"the line of this problem can have {length:,} tokens, and the page accepts at most "
                f"{LONGEST_LINE:,}. Type fewer digits."
            )
        return length

    def check_time(self, problem: Problems) -> None:
        """Raise `UserError` if the answer would take more than `MAX_SECONDS`, judged by earlier answers."""
        if self.seconds_per_token is None:
            return
        most = MAX_SECONDS / self.seconds_per_token
        length = int(line_lengths(self.trained_model.format, problem).max())
        if length <= most:
            return
        fewer = "digits"
        if isinstance(self.trained_model.task.config, SortingConfig):
            count = problem.num_operands
            while count > 2 and self._length_of_first(problem, count) > most:
                count -= 1
            fewer = f"numbers, for example {count}"
        raise UserError(
            f"this answer can have {length:,} tokens and would take about "
            f"{length * self.seconds_per_token:.0f} s here, and at most {MAX_SECONDS:.0f} s are "
            f"allowed. Type fewer {fewer}."
        )

    def _length_of_first(self, problem: Problems, count: int) -> int:
        """Return the number of tokens for the first `count` operands of a problem."""
        shapes = Shapes(problem.lengths_BN[:, :count], problem.operation_B)
        signs = None if problem.negative_BN is None else problem.negative_BN[:, :count]
        first = Problems(problem.digits_BNW[:, :count], shapes, signs)
        return int(line_lengths(self.trained_model.format, first).max())


def time_limit() -> Callable[..., None]:
    """Return a function that raises `ProblemError` once `MAX_SECONDS` are over, whatever it is called with."""
    end = time.perf_counter() + MAX_SECONDS

    def check(*progress: int) -> None:
        if time.perf_counter() > end:
            raise ProblemError(
                f"the model has not finished after {MAX_SECONDS:.0f} s. Type a shorter problem."
            )

    return check


class Gallery:
    """All runs that the page shows, by name."""

    def __init__(self, shown_runs: Sequence[ShownRun]) -> None:
        self.shown_runs = {shown_run.name: shown_run for shown_run in shown_runs}

    @property
    def names(self) -> list[str]:
        return list(self.shown_runs)

    def find(self, name: str | None) -> ShownRun:
        """Return the run of that name, or the first one for None.

        Raises `ConfigurationError` for an unknown name.
        """
        if name is None:
            return next(iter(self.shown_runs.values()))
        if not isinstance(name, str) or name not in self.shown_runs:
            raise ConfigurationError(
                f"unknown run {name!r:.100}: {nearest(str(name), self.shown_runs)}"
            )
        return self.shown_runs[name]


def open_gallery(paths: Sequence[str], device: str = "auto") -> Gallery:
    """Load runs, by default the newest one. Runs with equal directory names are numbered.

    Raises `UserError` for more than `MOST_RUNS` runs.
    """
    if len(paths) > MOST_RUNS:
        raise UserError(
            f"at most {MOST_RUNS} runs can be shown at once, got {len(paths)}. "
            f"Type {extensions.command('play', *paths[:2])}."
        )
    shown_runs: list[ShownRun] = []
    for path in paths or ["latest"]:
        run = load(path, device)
        name, names = run.path.resolve().name, [shown_run.name for shown_run in shown_runs]
        copies = sum(known == name or known.startswith(f"{name} (") for known in names)
        shown_runs.append(ShownRun(f"{name} ({copies + 1})" if copies else name, run))
    return Gallery(shown_runs)
