"""The judge: scores batches of problems for a suite, keeps failures, and counts what they share."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from abacist.errors import ProblemError
from abacist.models.teacher_forcing import IGNORED
from abacist.scoring.exact_match import ScoredBatch, Verdicts, scored_batches
from abacist.scoring.failures import (
    MAX_FAILURES,
    Tally,
    carry_chains,
    first_wrong_places,
)
from abacist.scoring.records import Failure, Row, Section
from abacist.scoring.solving import solve
from abacist.scoring.suite import Progress
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.problems import Problems

_FAILURES_PER_CALL = 20
"""Largest number of failures kept of one call, so that all parts of a suite have their share."""

_MOST_STEPS = {True: 12_000, False: 1_000}
"""Largest number of generation steps per suite for writing out failures, with a window and without."""


class Judge:
    """Scores problems for one run of a suite, and collects what its section reports."""

    def __init__(
        self, trained_model: TrainedModel, on_progress: Progress | None = None, total: int = 0
    ) -> None:
        """Prepare a run of a suite that scores `total` problems, and report its progress."""
        self.trained_model = trained_model
        self.on_progress, self.total, self.done = on_progress, total, 0
        self.failures: list[Failure] = []
        self.tally = Tally(trained_model.task)
        self._steps_left = _MOST_STEPS[trained_model.model.is_windowed]

    def verdicts(
        self,
        problems: Problems,
        row: str = "",
        *,
        trained_model: TrainedModel | None = None,
        on_batch: Callable[[ScoredBatch], None] | None = None,
        label: str | None = None,
        work: int | None = None,
    ) -> Verdicts:
        """Decide which problems are answered correctly.

        Args:
            problems: the problems.
            row: name of the row that these problems belong to, kept with failures.
            trained_model: replaces the judge's own, as with another format or more recurrences.
            on_batch: called with every batch.
            label: what the progress is called; None takes `row`.
            work: how much these problems add to the progress; None means 1 each.

        Raises `ProblemError` where a line is too long for the model.
        """
        trained_model = trained_model or self.trained_model
        work = len(problems) if work is None else work
        begin, num_judged = self.done, 0
        self.done += work
        margins = torch.empty(len(problems), dtype=torch.float64)
        places = torch.full((len(problems),), -1)
        for batch in scored_batches(trained_model, problems):
            margins_BA = batch.predictions.margins()
            margins[batch.indices] = margins_BA.amin(dim=1).double()
            first_wrong = first_wrong_places(batch.places, margins_BA)
            places[batch.indices] = first_wrong
            is_target = batch.predictions.labels != IGNORED
            self.tally.add_places(batch.places, is_target, first_wrong)
            if on_batch is not None:
                on_batch(batch)
            num_judged += len(batch.indices)
            if self.on_progress is not None:
                done = begin + work * num_judged // len(problems)
                self.on_progress(row if label is None else label, done, self.total)
        verdicts = Verdicts(margins > 0, margins)
        self.tally.add(problems, verdicts.correct)
        self._keep_failures(trained_model, problems, verdicts, places, row)
        return verdicts

    def row(self, name: str, kind: str, digits: int, verdicts: Verdicts) -> Row:
        """Return a row of exact match."""
        margin = float(verdicts.margins.min()) if len(verdicts.margins) else None
        return Row(name, kind, digits, verdicts.proportion, margin)

    def scored_row(
        self,
        name: str,
        kind: str,
        digits: int,
        problems: Problems,
        trained_model: TrainedModel | None = None,
        work: int | None = None,
    ) -> Row:
        """Score problems and return their row, with a note where the model cannot read them."""
        try:
            verdicts = self.verdicts(problems, name, trained_model=trained_model, work=work)
        except ProblemError as error:
            return Row(name, kind, digits, None, note=str(error))
        return self.row(name, kind, digits, verdicts)

    def section(
        self, title: str, rows: list[Row], complete: bool = True, **details: Any
    ) -> Section:
        """Return the section of the scorecard, with the failures collected so far."""
        return Section(
            title,
            rows,
            self.failures,
            self.tally.common_features(),
            self.tally.failures,
            details,
            complete,
        )

    def _keep_failures(
        self,
        trained_model: TrainedModel,
        problems: Problems,
        verdicts: Verdicts,
        places_B: Tensor,
        row: str,
    ) -> None:
        """Let the model write out its answers to the first problems that it got wrong.

        Problems whose answers would take too long to write are left out.
        """
        room = min(_FAILURES_PER_CALL, MAX_FAILURES - len(self.failures))
        indices = (~verdicts.correct).nonzero().squeeze(1)[: 10 * room]
        lengths_B = trained_model.format.target_lengths(problems[indices])
        indices = indices[lengths_B <= self._steps_left][:room]
        if not len(indices):
            return
        wrong = problems[indices]
        self._steps_left -= int(trained_model.format.target_lengths(wrong).max())
        chains = carry_chains(trained_model.task, wrong)
        prompts = trained_model.format.prompt(wrong)
        lengths = prompts.lengths.tolist()
        for number, solution in enumerate(solve(trained_model, wrong)):
            place = int(places_B[indices[number]])
            chain = -1 if chains is None else int(chains[number])
            ids = prompts.ids[number, : lengths[number]].tolist()
            self.failures.append(
                Failure(
                    row,
                    trained_model.format.vocabulary.decode(ids),
                    solution,
                    place if place >= 0 else None,
                    chain if chain >= 0 else None,
                    float(verdicts.margins[indices[number]]),
                )
            )
