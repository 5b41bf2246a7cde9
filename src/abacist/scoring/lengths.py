"""The suite `lengths`: exact match by number of digits, in training and far beyond.

All problems are distinct ones of the test split, with random numbers of their own. Only the
probes, a carry through every digit, are fixed problems of any split.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist import generators
from abacist.data.config import SplitConfig
from abacist.data.split import draw_from_split
from abacist.scoring.config import ScoringConfig
from abacist.scoring.judge import Judge
from abacist.scoring.records import Section
from abacist.scoring.samples import SHORT_DIGITS, distinct
from abacist.scoring.suite import Progress, Suite, always_applies
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.problems import Problems, Shapes
from abacist.tasks.task import Task


@dataclass(frozen=True)
class _Draw:
    """A row of the section before it is scored."""

    name: str
    kind: str
    digits: int
    num_problems: int
    draw: Callable[[], Problems]
    """Draws the problems, at most `num_problems`."""

    @property
    def work(self) -> int:
        """Share in the progress: about the number of tokens, because long problems take longer."""
        return self.num_problems * (self.digits + 1)


def by_length(trained_model: TrainedModel, on_progress: Progress) -> Section:
    """Score test problems of every length."""
    draws = list(
        _draws(trained_model.task, trained_model.split, trained_model.scoring, trained_model.seed)
    )
    judge = Judge(trained_model, on_progress, total=sum(draw.work for draw in draws))
    rows = [
        judge.scored_row(draw.name, draw.kind, draw.digits, draw.draw(), work=draw.work)
        for draw in draws
    ]
    return judge.section("Exact match on test problems", rows)


LENGTHS = Suite(
    "exact match by number of digits, with intervals",
    always_applies,
    by_length,
    settings=("num_problems", "longest"),
)


def _draws(task: Task, split: SplitConfig, config: ScoringConfig, seed: int) -> Iterator[_Draw]:
    """Yield one row distributed as in training, then one row for each length."""

    def from_test(shapes: Shapes, name: str, count: int) -> Callable[[], Problems]:
        generator = generators.generator(seed, "score", name)
        return lambda: distinct(draw_from_split(task, shapes, "test", split, generator), count)

    has_lengths = isinstance(task, Arithmetic) and not task.config.operand_digits
    longest = task.config.longest_operand if isinstance(task, Arithmetic) else 0
    name = "as in training"
    if isinstance(task, Arithmetic) and has_lengths and task.config.sampling == "lengths":
        least = task.config.min_digits
        digits = f"≤ {longest:,}" if least == 1 else f"{least:,} to {longest:,}"
        name = f"{digits} digits, all pairs"
    count = 10 * config.num_problems
    shapes = task.draw_shapes(count + count // 4, generators.generator(seed, "score", "lengths"))
    yield _Draw(name, "trained", longest, count, from_test(shapes, name, count))
    if isinstance(task, Arithmetic) and has_lengths:
        yield from _draws_by_length(task, config, seed, from_test)


def _draws_by_length(
    task: Arithmetic,
    config: ScoringConfig,
    seed: int,
    from_test: Callable[[Shapes, str, int], Callable[[], Problems]],
) -> Iterator[_Draw]:
    """Yield rows whose operands all have one length, in training and beyond, then the probes."""

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
        # Fewer long problems: by default 1,000 up to 200 digits, 200 of 1,000 and 20 of 10,000.
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
    """Return lengths with one operand of `digits` digits among shorter ones, int64 (B, N)."""
    lengths = torch.randint(1, digits, (count, num_operands), generator=generator)
    longest = torch.randint(num_operands, (count, 1), generator=generator)
    return lengths.scatter(1, longest, digits)
