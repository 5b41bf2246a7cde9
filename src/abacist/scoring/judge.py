"""The judge: scores batches of problems for a suite, keeps failures, counts what they share."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from abacist.models.teacher_forcing import IGNORED
from abacist.scoring.exact_match import Pass, Verdicts, passes
from abacist.scoring.failures import (
    MAX_FAILURES,
    Failure,
    Tally,
    carry_chains,
    first_wrong_places,
)
from abacist.scoring.solving import solve
from abacist.scoring.suite import Row, Section
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.problems import Problems

_KEPT_AT_ONCE = 20
"""So many failures of one batch are kept, so that all of a suite's batches have their share."""

_MOST_STEPS = {True: 12_000, False: 1_000}
"""Tokens that models with a window, and without, may write for one suite's failures, one after the other."""


class Judge:
    """One for each run of a suite."""

    def __init__(self, trained_model: TrainedModel) -> None:
        self.trained_model = trained_model
        self.failures: list[Failure] = []
        self.tally = Tally(trained_model.task)
        self._steps_left = _MOST_STEPS[trained_model.model.is_windowed]

    def verdicts(
        self,
        problems: Problems,
        on_progress: Callable[[int], None] | None = None,
        look: Callable[[Pass], None] | None = None,
        trained_model: TrainedModel | None = None,
        row: str = "",
    ) -> Verdicts:
        """Which problems are answered rightly, with all margins.

        `on_progress` is told how many problems have been judged, `look` is shown every pass.
        `trained_model` stands in for the judge's own: another format, or more recurrences. Failures are
        kept with the name of their `row`.
        """
        who = trained_model or self.trained_model
        margins = torch.empty(len(problems), dtype=torch.float64)
        places = torch.full((len(problems),), -1)
        done = 0
        for batch in passes(who, problems):
            margins_BA = batch.forced.margins()
            margins[batch.rows] = margins_BA.amin(dim=1).double()
            first_wrong = first_wrong_places(batch.places, margins_BA)
            places[batch.rows] = first_wrong
            self.tally.add_places(batch.places, batch.forced.labels != IGNORED, first_wrong)
            if look is not None:
                look(batch)
            done += len(batch.rows)
            if on_progress is not None:
                on_progress(done)
        verdicts = Verdicts(margins > 0, margins)
        self.tally.add(problems, verdicts.correct)
        self._keep(who, problems, verdicts, places, row)
        return verdicts

    def row(self, name: str, kind: str, digits: int, verdicts: Verdicts) -> Row:
        """A row of exact match."""
        margin = float(verdicts.margins.min()) if len(verdicts.margins) else None
        return Row(name, kind, digits, verdicts.proportion, margin)

    def section(
        self, title: str, rows: list[Row], complete: bool = True, **details: Any
    ) -> Section:
        """What the suite found, with the failures seen on the way."""
        return Section(
            title,
            rows,
            self.failures,
            self.tally.common(),
            self.tally.failures,
            details,
            complete,
        )

    def _keep(
        self, who: TrainedModel, problems: Problems, verdicts: Verdicts, places: Tensor, row: str
    ) -> None:
        """Let the model write out its answers to the first problems it got wrong.

        Those whose answers would take too long to write are left out.
        """
        room = min(_KEPT_AT_ONCE, MAX_FAILURES - len(self.failures))
        rows = (~verdicts.correct).nonzero().squeeze(1)[: 10 * room]
        lengths_B = who.format.target_lengths(problems[rows])
        rows = rows[lengths_B <= self._steps_left][:room]
        if not len(rows):
            return
        wrong = problems[rows]
        self._steps_left -= int(who.format.target_lengths(wrong).max())
        chains = carry_chains(who.task, wrong)
        prompts = who.format.prompt(wrong)
        lengths = prompts.lengths.tolist()
        for number, solution in enumerate(solve(who, wrong)):
            place = int(places[rows[number]])
            chain = -1 if chains is None else int(chains[number])
            ids = prompts.ids[number, : lengths[number]].tolist()
            self.failures.append(
                Failure(
                    row,
                    who.format.vocabulary.text(ids),
                    solution,
                    place if place >= 0 else None,
                    chain if chain >= 0 else None,
                    float(verdicts.margins[rows[number]]),
                )
            )
