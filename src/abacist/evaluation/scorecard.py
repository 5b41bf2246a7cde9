"""The scorecard: exact match by number of digits, within the training lengths and far beyond.

All problems are of the test split, drawn with their own seed, and distinct. Probes (a carry
through every digit) are single problems whatever their split.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist import seeds
from abacist.data.config import SplitConfig
from abacist.data.split import draw_from_split
from abacist.errors import ProblemError
from abacist.evaluation.config import EvaluationConfig
from abacist.evaluation.exact_match import exact_match
from abacist.evaluation.solving import Solution, solve
from abacist.formats.format import Format
from abacist.intervals import Proportion
from abacist.models.transformer import Transformer
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.problems import Problems, Shapes
from abacist.tasks.task import Task

_MAX_FAILURES = 100
_SHORT_DIGITS = 10
"""Up to here the same problem may well be drawn twice, so a quarter more are drawn and repeats dropped."""


@dataclass(frozen=True)
class Row:
    """One line of the scorecard."""

    name: str
    kind: str
    """`trained`, `beyond` or `probe`."""
    digits: int
    """Of the longest operand; 0 where the task has no such lengths."""
    exact_match: Proportion | None
    """None where the model cannot be given such problems; `note` says why."""
    smallest_margin: float | None
    """Over all answer tokens of all problems of the row, in logits."""
    note: str = ""

    def to_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "kind": self.kind,
            "digits": self.digits,
            "exact_match": self.exact_match and self.exact_match.to_json(),
            "smallest_margin": self.smallest_margin,
            "note": self.note,
        }


@dataclass(frozen=True)
class Scorecard:
    """What a run is worth."""

    rows: list[Row]
    failures: list[Solution]
    """Up to 100 of the problems answered wrongly, with what the model wrote."""
    exempt_digits: int = 0
    """Problems with no longer operand belong to all splits, so that training may have seen them."""

    @property
    def errors(self) -> int:
        return sum(row.exact_match.errors for row in self.rows if row.exact_match)

    def to_json(self) -> dict[str, object]:
        return {
            "rows": [row.to_json() for row in self.rows],
            "errors": self.errors,
            "exempt_digits": self.exempt_digits,
        }


@dataclass(frozen=True)
class _Suite:
    """A row before it is scored."""

    name: str
    kind: str
    digits: int
    num_problems: int
    draw: Callable[[], Problems]


def score(
    model: Transformer,
    task: Task,
    format: Format,
    split: SplitConfig,
    config: EvaluationConfig,
    seed: int,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> Scorecard:
    """Score a model. `on_progress` is told the row's name, problems judged and problems in all."""
    suites = list(_suites(task, split, config, seed))
    total = sum(suite.num_problems for suite in suites)
    rows: list[Row] = []
    failures: list[Solution] = []
    done = 0
    for suite in suites:
        problems = suite.draw()
        begin = done

        def report(judged: int, name: str = suite.name, begin: int = begin) -> None:
            if on_progress is not None:
                on_progress(name, begin + judged, total)

        try:
            verdicts = exact_match(model, task, format, problems, report)
        except ProblemError as error:
            rows.append(Row(suite.name, suite.kind, suite.digits, None, None, str(error)))
            done += suite.num_problems
            continue
        margin = float(verdicts.margins.min())
        rows.append(Row(suite.name, suite.kind, suite.digits, verdicts.proportion, margin))
        wrong = (~verdicts.correct).nonzero().squeeze(1)[: _MAX_FAILURES - len(failures)]
        if len(wrong):
            failures += solve(model, task, format, problems[wrong])
        done += suite.num_problems
    return Scorecard(rows, failures, split.exempt_digits)


def _suites(
    task: Task, split: SplitConfig, config: EvaluationConfig, seed: int
) -> Iterator[_Suite]:
    def from_test(shapes: Shapes, name: str, count: int) -> Callable[[], Problems]:
        generator = seeds.generator(seed, "score", name)
        return lambda: _distinct(draw_from_split(task, shapes, "test", split, generator), count)

    by_length = isinstance(task, Arithmetic) and not task.config.operand_digits
    longest = task.config.longest_operand if isinstance(task, Arithmetic) else 0
    name = "as in training"
    if isinstance(task, Arithmetic) and by_length and task.config.sampling == "lengths":
        name = f"≤ {longest:,} digits, all pairs"
    count = 10 * config.num_problems
    shapes = task.draw_shapes(count + count // 4, seeds.generator(seed, "score", "lengths"))
    yield _Suite(name, "trained", longest, count, from_test(shapes, name, count))
    if isinstance(task, Arithmetic) and by_length:
        yield from _suites_by_length(task, config, seed, from_test)


def _suites_by_length(
    task: Arithmetic,
    config: EvaluationConfig,
    seed: int,
    from_test: Callable[[Shapes, str, int], Callable[[], Problems]],
) -> Iterator[_Suite]:
    """All operands of one length, in training and beyond, and a carry through every digit."""

    def shapes(digits: int, count: int, unequal: bool = False) -> Shapes:
        spare = count // 4 if digits <= _SHORT_DIGITS else 0
        drawn = task.draw_shapes(count + spare, seeds.generator(seed, "score", "shapes", digits))
        lengths = torch.full_like(drawn.lengths_BN, digits)
        if unequal:
            generator = seeds.generator(seed, "score", "unequal", digits)
            lengths = _unequal(digits, len(lengths), lengths.shape[1], generator)
        return Shapes(torch.where(drawn.lengths_BN > 0, lengths, 0), drawn.operation_B)

    trained = task.config.max_digits
    for digits in range(task.config.min_digits, trained + 1):
        name = f"{digits} digit{'s' * (digits > 1)}"
        count = config.num_problems
        yield _Suite(name, "trained", digits, count, from_test(shapes(digits, count), name, count))
    beyond = [d for d in (20, 50, 100, 1_000, 10_000, 100_000) if trained < d <= config.longest]
    for digits in beyond:
        # Fewer of the long ones: 1,000 to 200 digits, 200 of 1,000, 20 of 10,000.
        count = max(1, min(config.num_problems, 200 * config.num_problems // digits))
        name = f"{digits:,} digits"
        yield _Suite(name, "beyond", digits, count, from_test(shapes(digits, count), name, count))
        if digits >= 100:
            name = f"{digits:,} digits, unequal"
            drawn = shapes(digits, count, unequal=True)
            yield _Suite(name, "beyond", digits, count, from_test(drawn, name, count))
    if task.operations != ("+",):
        return
    for digits in sorted({trained, *beyond}):
        nines, others = "9" * digits, ["1", *["0"] * (task.config.min_operands - 2)]
        yield _Suite(
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


def _distinct(problems: Problems, count: int) -> Problems:
    """Up to `count` problems, each once: short operands leave few, and counting one twice would flatter."""
    if problems.digits_BNW.shape[2] > _SHORT_DIGITS:
        return problems[:count]
    rows = torch.cat(
        [
            problems.digits_BNW.flatten(1).long(),
            problems.lengths_BN,
            problems.operation_B.long().unsqueeze(1),
        ],
        dim=1,
    )
    _, inverse = torch.unique(rows, dim=0, return_inverse=True)
    first = torch.full((int(inverse.max()) + 1,), len(rows))
    first.scatter_reduce_(0, inverse, torch.arange(len(rows)), "amin")
    return problems[first.sort().values[:count]]
