"""The suite `exhaustive`: every problem of a finite space, so that its result has no sampling error."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from abacist.data.split import in_split
from abacist.intervals import Proportion
from abacist.scoring.config import LARGEST_SPACE
from abacist.scoring.exact_match import Verdicts
from abacist.scoring.judge import Judge
from abacist.scoring.records import Row, Section
from abacist.scoring.suite import Progress, Suite
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.problems import OPERATIONS
from abacist.tasks.space import Space
from abacist.tasks.task import Task

PROBLEMS_PER_CHUNK = 65_536
_MOST_WRONG_LISTED = 1_000
"""Largest number of wrongly answered problems that the section lists."""


def every_problem(trained_model: TrainedModel, on_progress: Progress) -> Section:
    """Score the whole space, each operation of it, and its test split."""
    space = _space(trained_model.task, trained_model.scoring.exhaustive_digits)
    assert space is not None
    judge = Judge(trained_model, on_progress, total=len(space))
    proportions: dict[str, Proportion] = {}
    margins: dict[str, float] = {}
    wrong_problems: list[str] = []
    for begin in range(0, len(space), PROBLEMS_PER_CHUNK):
        problems = space.problems(torch.arange(begin, min(begin + PROBLEMS_PER_CHUNK, len(space))))
        verdicts = judge.verdicts(problems, label="every problem")
        is_test = in_split(problems, "test", trained_model.split)
        for name, inside in _parts(trained_model, problems.operation_B, is_test):
            if bool(inside.any()):
                part = Verdicts(verdicts.correct[inside], verdicts.margins[inside])
                proportions[name] = proportions.get(name, Proportion(0, 0)) + part.proportion
                smallest = float(part.margins.min())
                margins[name] = min(margins.get(name, torch.inf), smallest)
        wrong = (~verdicts.correct).nonzero().squeeze(1)
        wrong = wrong[: _MOST_WRONG_LISTED - len(wrong_problems)]
        wrong_problems += trained_model.task.expressions(problems[wrong])
    rows = [Row(name, "all", 0, right, margins[name]) for name, right in proportions.items()]
    return judge.section(f"All {len(space):,} problems", rows, wrong=wrong_problems)


def _space(task: Task, max_digits: int | None) -> Space | None:
    """Return the problems of the training lengths, or of those up to `max_digits`; None if uncountable."""
    if max_digits is not None and isinstance(task, Arithmetic):
        min_digits = min(task.config.min_digits, max_digits)
        config = replace(
            task.config, min_digits=min_digits, max_digits=max_digits, operand_digits=()
        )
        return Arithmetic(config).space()
    return task.space()


def _most_digits(task: Task, limit: int) -> int | None:
    """Return the longest operands, in digits, of which there are at most `limit` problems; None without any."""
    fitting = None
    if isinstance(task, Arithmetic):
        for max_digits in range(1, task.config.longest_operand):
            space = _space(task, max_digits)
            if space is None or len(space) > limit:
                break
            fitting = max_digits
    return fitting


def _obstacle(trained_model: TrainedModel) -> str | None:
    max_digits = trained_model.scoring.exhaustive_digits
    if max_digits is not None and not isinstance(trained_model.task, Arithmetic):
        return (
            f"--exhaustive-digits is for arithmetic, got {max_digits} with the task "
            f"{trained_model.task.config.kind}. Leave it out."
        )
    space, limit = _space(trained_model.task, max_digits), trained_model.scoring.largest_space
    if space is None:
        return (
            "the problems of this task cannot be enumerated: there are too many, or their number "
            "of operands varies. "
            "Try --suite strata, or --suite counterexamples."
        )
    if len(space) > limit:
        remedy = "Try --suite counterexamples"
        if (fitting := _most_digits(trained_model.task, limit)) is not None:
            remedy += f", --exhaustive-digits {fitting}"
        if len(space) <= LARGEST_SPACE:
            remedy += f", or --largest-space {len(space)}"
        return (
            f"the task has {len(space):,} problems, and this suite scores at most {limit:,}. "
            f"{remedy}."
        )
    return None


EXHAUSTIVE = Suite(
    "every problem of a finite space",
    _obstacle,
    every_problem,
    settings=("exhaustive_digits", "largest_space"),
)


def _parts(
    trained_model: TrainedModel, operation_B: Tensor, is_test: Tensor
) -> Iterator[tuple[str, Tensor]]:
    """Yield the name of each row, and which problems belong to it, bool (B,)."""
    yield "all problems", torch.ones_like(is_test)
    if len(trained_model.task.operations) > 1:
        for operation in trained_model.task.operations:
            yield f"operation {operation}", operation_B == OPERATIONS.index(operation)
    yield "of the test split", is_test
