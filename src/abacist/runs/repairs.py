"""The rounds of repairs of a run: each begins with a check of every neighbourhood, which is recorded."""

import copy
import itertools
from dataclasses import replace
from typing import Any

import torch

from abacist.certificates.certificate import count_wrong, obstacle_to_proof
from abacist.configuration import to_json
from abacist.data.examples import may_be_listed
from abacist.data.repairs import RepairBatches
from abacist.data.stream import Batches
from abacist.errors import RunError
from abacist.runs.run import Run
from abacist.scoring.trained_model import TrainedModel
from abacist.training.checkpoint import Progress
from abacist.training.loop import Observer
from abacist.training.metrics import Repair
from abacist.training.processes import Processes


def warning_about_repairs(untrained: TrainedModel) -> str | None:
    """Return why no round of repairs can follow the training; None if one can."""
    obstacle = obstacle_to_proof(untrained)
    if obstacle is None:
        return None
    return f"no round of repairs will follow, because nothing can be proved: {obstacle}"


class Repairs:
    """The rounds of repairs of a training: their checks, their problems and their batches."""

    def __init__(
        self,
        run: Run,
        batches: Batches,
        begin: Progress,
        observer: Observer,
        device: torch.device,
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
            device,
        )
        """The batches of the whole training."""
        if not begin.finished:
            for record in _records_up_to(begin.step, run):
                self.batches.add(record["problems"])

    def are_needed(self, step: int) -> bool:
        """Whether a neighbourhood is wrong after `step` steps, for which the next round then has problems."""
        directory = self._run.directory
        if self._processes.is_first:
            directory.append(directory.repairs, to_json(self._check(step)))
        # The other processes read what the first one has found.
        self._processes.agree()
        record = directory.read_lines(directory.repairs, Repair)[-1]
        self.batches.add(record["problems"])
        self._observer.on_check(step, record["wrong"], len(record["problems"]))
        return bool(record["wrong"])

    def _check(self, step: int) -> Repair:
        """Check every neighbourhood with the weights as they are, and list problems for what is wrong."""
        run = self._run
        run.model.eval()
        model = copy.deepcopy(run.model).cpu()
        run.model.train()
        mistakes: dict[str, None] = {}
        num_wrong = count_wrong(
            replace(run.trained_model(), model=model),
            lambda problem: mistakes.update({problem: None}),
        )
        problems = list(mistakes)
        if problems:
            is_listed = may_be_listed(run.task, run.recipe.split, problems)
            problems = list(itertools.compress(problems, is_listed))
        return Repair(step, num_wrong or 0, tuple(problems))


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
