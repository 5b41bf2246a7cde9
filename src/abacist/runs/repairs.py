"""The rounds of repairs of a run: each begins with a check, which is recorded.

The check covers every neighbourhood of the certificate. Where nothing can be proved about a model, it
covers problems that are drawn as in training.
"""

import copy
import itertools
from dataclasses import replace
from typing import Any

from abacist import generators
from abacist.certificates.certificate import count_wrong
from abacist.configuration import from_json, to_json
from abacist.data.examples import may_be_listed
from abacist.data.repairs import RepairBatches
from abacist.data.split import draw_from_split
from abacist.data.stream import Batches
from abacist.errors import RunError
from abacist.runs.run import Run
from abacist.scoring.exact_match import exact_match
from abacist.training.checkpoint import Progress
from abacist.training.loop import Observer
from abacist.training.metrics import Repair
from abacist.training.processes import Processes

_NUM_DRAWN = 20_000
"""Number of training problems that stand for all neighbourhoods where nothing can be proved."""


class Repairs:
    """The rounds of repairs of a training: their checks, their problems and their batches."""

    def __init__(
        self,
        run: Run,
        batches: Batches,
        begin: Progress,
        observer: Observer,
        processes: Processes,
    ) -> None:
        """Prepare the rounds that follow `begin`, with the problems of those before it."""
        training = run.recipe.training
        self._run, self._observer, self._processes = run, observer, processes
        self.batches = RepairBatches(
            batches,
            run.task,
            run.format,
            run.recipe.split,
            training.batch_size,
            training.num_steps,
            run.model.device,
        )
        """The batches of the whole training."""
        if not begin.finished:
            for record in _records_up_to(begin.step, run):
                self.batches.add(record["problems"])

    def are_needed(self, step: int) -> bool:
        """Whether anything is wrong after `step` steps; then the next round has problems for it."""
        directory = self._run.directory
        if self._processes.is_first:
            directory.append(directory.repairs, to_json(self._check(step)))
        # The other processes read what the first one has found.
        self._processes.agree()
        record = directory.read_lines(directory.repairs, Repair)[-1]
        repair: Repair = from_json(Repair, record, "record")
        self.batches.add(repair.problems)
        self._observer.on_check(repair)
        return repair.wrong > 0

    def _check(self, step: int) -> Repair:
        """Check the weights as they are, and list problems that the model gets wrong."""
        run = self._run
        run.model.eval()
        repair = _checked_neighbourhoods(run, step) or _checked_sample(run, step)
        run.model.train()
        return repair


def _checked_neighbourhoods(run: Run, step: int) -> Repair | None:
    """Check every neighbourhood, and list a problem for each wrong one; return None if nothing can be proved."""
    trained_model = replace(run.trained_model(), model=copy.deepcopy(run.model).cpu())
    mistakes: dict[str, None] = {}
    num_wrong = count_wrong(trained_model, lambda problem: mistakes.update({problem: None}))
    if num_wrong is None:
        return None
    problems = list(mistakes)
    if problems:
        is_listed = may_be_listed(run.task, run.recipe.split, problems)
        problems = list(itertools.compress(problems, is_listed))
    return Repair(step, num_wrong, tuple(problems))


def _checked_sample(run: Run, step: int) -> Repair:
    """Ask problems of the training split, and list those with a wrong answer."""
    generator = generators.generator(run.seed, "repair", "sample", step)
    shapes = run.task.draw_shapes(_NUM_DRAWN, generator)
    problems = draw_from_split(run.task, shapes, "train", run.recipe.split, generator)
    verdicts = exact_match(run.trained_model(), problems)
    wrong = problems[(~verdicts.correct).nonzero().squeeze(1)]
    expressions = run.task.expressions(wrong) if len(wrong) else []
    return Repair(step, len(wrong), tuple(dict.fromkeys(expressions)), _NUM_DRAWN)


def _records_up_to(step: int, run: Run) -> list[dict[str, Any]]:
    """Return the records of the checks up to `step`; raise `RunError` if one is missing."""
    training, file = run.recipe.training, run.directory.repairs
    records = [r for r in run.directory.read_lines(file, Repair) if r["step"] <= step]
    done = {record["step"] for record in records}
    for checked in range(
        training.num_steps, min(step + 1, training.most_steps), training.repair_steps
    ):
        if checked not in done:
            raise RunError(
                f"{file} has no record of the check after step {checked:,}, so the round of repairs cannot "
                "be resumed. Type --overwrite to train again from the start."
            )
    return records
