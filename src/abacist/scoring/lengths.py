"""The suite `lengths`: exact match by number of digits, in training and far beyond.

All problems are of the test split, drawn with their own seed, and distinct. Probes (a carry
through every digit) are single problems whatever their split.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist import generators
from abacist.data.config import SplitConfig
from abacist.data.split import draw_from_split
from abacist.errors import ProblemError
from abacist.scoring.config import ScoringConfig
from abacist.scoring.judge import Judge
from abacist.scoring.samples import SHORT_DIGITS, distinct
from abacist.scoring.suite import Progress, Row, Section, Suite
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.problems import Problems, Shapes
from abacist.tasks.task import Task


@dataclass(frozen=True)
class _Draw:
    """A row before it is scored."""

    name: str
    kind: str
    digits: int
    num_problems: int
    draw: Callable[[], Problems]


def by_length(trained_model: TrainedModel, on_progress: Progress) -> Section:
    """Exact match on test problems of every length; told the row's name as it goes."""
    draws = list(
        _draws(trained_model.task, trained_model.split, trained_model.scoring, trained_model.seed)
    )
    total = sum(draw.num_problems for draw in draws)
    judge = Judge(trained_model)
    rows: list[Row] = []
    done = 0
    for draw in draws:
        problems = draw.draw()

        def report(judged: int, name: str = draw.name, begin: int = done) -> None:
            on_progress(name, begin + judged, total)

        try:
            verdicts = judge.verdicts(problems, report, row=draw.name)
            rows.append(judge.row(draw.name, draw.kind, draw.digits, verdicts))
        except ProblemError as error:
            rows.append(Row(draw.name, draw.kind, draw.digits, None, note=str(error)))
        done += draw.num_problems
    return judge.section("Exact match on test problems", rows)


LENGTHS = Suite(
    "exact match by number of digits, with intervals", lambda trained_model: None, by_length
)


def _draws(task: Task, split: SplitConfig, config: ScoringConfig, seed: int) -> Iterator[_Draw]:
    def from_test(shapes: Shapes, name: str, count: int) -> Callable[[], Problems]:
        generator = generators.generator(seed, "score", name)
        return lambda: distinct(draw_from_split(task, shapes, "test", split, generator), count)

    by_length = isinstance(task, Arithmetic) and not task.config.operand_digits
    longest = task.config.longest_operand if isinstance(task, Arithmetic) else 0
    name = "as in training"
    if isinstance(task, Arithmetic) and by_length and task.config.sampling == "lengths":
        name = f"≤ {longest:,} digits, all pairs"
    count = 10 * config.num_problems
    shapes = task.draw_shapes(count + count // 4, generators.generator(seed, "score", "lengths"))
    yield _Draw(name, "trained", longest, count, from_test(shapes, name, count))
    if isinstance(task, Arithmetic) and by_length:
        yield from _draws_by_length(task, config, seed, from_test)


def _draws_by_length(
    task: Arithmetic,
    config: ScoringConfig,
    seed: int,
    from_test: Callable[[Shapes, str, int], Callable[[], Problems]],
) -> Iterator[_Draw]:
    """All operands of one length, in training and beyond, and a carry through every digit."""

    def shapes(digits: int, count: int, unequal: bool = False) -> Shapes:
        spare = count // 4 if digits <= SHORT_DIGITS else 0
        drawn = task.draw_shapes(
            count + spare, generators.generator(seed, "score", "shapes", digits)
        )
        lengths = torch.full_like(drawn.lengths_BN, digits)
        if unequal:
            generator = generators.generator(seed, "score", "unequal", digits)
            lengths = _unequal(digits, len(lengths), lengths.shape[1], generator)
        return Shapes(torch.where(drawn.lengths_BN > 0, lengths, 0), drawn.operation_B)

    trained = task.config.max_digits
    for digits in range(task.config.min_digits, trained + 1):
        name = f"{digits} digit{'s' * (digits > 1)}"
        count = config.num_problems
        yield _Draw(name, "trained", digits, count, from_test(shapes(digits, count), name, count))
    beyond = [d for d in (20, 50, 100, 1_000, 10_000, 100_000) if trained < d <= config.longest]
    for digits in beyond:
        # Fewer of the long ones: 1,000 to 200 digits, 200 of 1,000, 20 of 10,000.
        count = max(1, min(config.num_problems, 200 * config.num_problems // digits))
        name = f"{digits:,} digits"
        yield _Draw(name, "beyond", digits, count, from_test(shapes(digits, count), name, count))
        if digits >= 100:
            name = f"{digits:,} digits, unequal"
            drawn = shapes(digits, count, unequal=True)
            yield _Draw(name, "beyond", digits, count, from_test(drawn, name, count))
    if task.operations != ("+",):
        return
    for digits in sorted({trained, *beyond}):
        nines, others = "9" * digits, ["1", *["0"] * (task.config.min_operands - 2)]
        yield _Draw(
            f"99…9+1, {digits:,} digits",
            "probe",
            digits,
            2,
            lambda nines=nines, others=others: Problems.from_texts(  # type: ignore[misc]
                [[nines, *others], [*others, nines]], ["+", "+"]
            ),
        )


def _unequal(digits: int, count: int, num_operands: int, generator: torch.Generator) -> Tensor:
    """One operand of `digits` digits, anywhere among others of any smaller numbers of digits."""
    lengths = torch.randint(1, digits, (count, num_operands), generator=generator)
    longest = torch.randint(num_operands, (count, 1), generator=generator)
    return lengths.scatter(1, longest, digits)
