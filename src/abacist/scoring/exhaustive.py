"""The suite `exhaustive`: every problem of a finite space. What it says needs no interval's trust."""

from collections.abc import Iterator

import torch
from torch import Tensor

from abacist.data.split import in_split
from abacist.intervals import Proportion
from abacist.scoring.config import LARGEST_SPACE
from abacist.scoring.judge import Judge
from abacist.scoring.suite import Progress, Row, Section, Suite
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.problems import OPERATIONS

PROBLEMS_PER_CHUNK = 65_536
_MOST_LISTED = 1_000


def every_problem(trained_model: TrainedModel, on_progress: Progress) -> Section:
    """Exact match over the whole space, by operation, and of its test split alone."""
    space = trained_model.task.space()
    assert space is not None
    judge = Judge(trained_model)
    rights: dict[str, Proportion] = {}
    margins: dict[str, float] = {}
    listed: list[str] = []
    done = 0
    for numbers in _chunks(len(space)):
        problems = space.problems(numbers)

        def report(judged: int, before: int = done) -> None:
            on_progress("every problem", before + judged, len(space))

        verdicts = judge.verdicts(problems, report)
        for name, inside in _parts(
            trained_model, problems.operation_B, in_split(problems, "test", trained_model.split)
        ):
            right = verdicts.correct[inside]
            if len(right):
                rights[name] = rights.get(name, Proportion(0, 0)) + Proportion(
                    int(right.sum()), len(right)
                )
                margins[name] = min(
                    margins.get(name, torch.inf), float(verdicts.margins[inside].min())
                )
        wrong = (~verdicts.correct).nonzero().squeeze(1)[: _MOST_LISTED - len(listed)]
        listed += trained_model.task.expressions(problems[wrong])
        done += len(numbers)
    rows = [Row(name, "all", 0, right, margins[name]) for name, right in rights.items()]
    return judge.section(f"All {len(space):,} problems", rows, wrong=listed)


def _obstacle(trained_model: TrainedModel) -> str | None:
    space, limit = trained_model.task.space(), trained_model.scoring.largest_space
    if space is None:
        return (
            "the problems of this task are not numbered, being too many or of varying counts. "
            "Try --suite strata, or --suite counterexamples."
        )
    if len(space) > limit:
        remedy = "Try --suite counterexamples."
        if len(space) <= LARGEST_SPACE:
            remedy = f"Type --largest-space {len(space)}, or try --suite counterexamples."
        return (
            f"the task has {len(space):,} problems, and at most {limit:,} are scored one by one. "
            f"{remedy}"
        )
    return None


EXHAUSTIVE = Suite("every problem of a finite space", _obstacle, every_problem)


def _chunks(count: int) -> Iterator[Tensor]:
    for begin in range(0, count, PROBLEMS_PER_CHUNK):
        yield torch.arange(begin, min(begin + PROBLEMS_PER_CHUNK, count))


def _parts(
    trained_model: TrainedModel, operation_B: Tensor, is_test: Tensor
) -> Iterator[tuple[str, Tensor]]:
    """The rows of the section: their names, and which problems belong to each."""
    yield "all problems", torch.ones_like(is_test)
    if len(trained_model.task.operations) > 1:
        for operation in trained_model.task.operations:
            yield f"operation {operation}", operation_B == OPERATIONS.index(operation)
    yield "of the test split", is_test
