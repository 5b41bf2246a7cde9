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
from abacist.formats.reversed import ReversedFormat
from abacist.intervals import Proportion
from abacist.models.transformer import Transformer
from abacist.tasks.addition import Addition
from abacist.tasks.problems import Problems

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
    """Of the longer operand."""
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

    @property
    def errors(self) -> int:
        return sum(row.exact_match.errors for row in self.rows if row.exact_match)

    def to_json(self) -> dict[str, object]:
        return {"rows": [row.to_json() for row in self.rows], "errors": self.errors}


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
    task: Addition,
    format: ReversedFormat,
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
    return Scorecard(rows, failures)


def _suites(
    task: Addition, split: SplitConfig, config: EvaluationConfig, seed: int
) -> Iterator[_Suite]:
    def from_test(lengths: Tensor, name: str, count: int) -> Callable[[], Problems]:
        generator = seeds.generator(seed, "score", name)
        return lambda: _distinct(draw_from_split(task, lengths, "test", split, generator), count)

    def equal(digits: int, count: int) -> Tensor:
        spare = count // 4 if digits <= _SHORT_DIGITS else 0
        return torch.full((count + spare, task.num_operands), digits)

    trained = task.config.max_digits
    name, count = f"≤ {trained:,} digits, all pairs", 10 * config.num_problems
    lengths = task.draw_lengths(count + count // 4, seeds.generator(seed, "score", "lengths"))
    yield _Suite(name, "trained", trained, count, from_test(lengths, name, count))
    for digits in range(task.config.min_digits, trained + 1):
        name = f"{digits} digit{'s' * (digits > 1)}"
        count = config.num_problems
        yield _Suite(name, "trained", digits, count, from_test(equal(digits, count), name, count))
    beyond = [d for d in (20, 50, 100, 1_000, 10_000, 100_000) if trained < d <= config.longest]
    for digits in beyond:
        # Fewer of the long ones: 1,000 to 200 digits, 200 of 1,000, 20 of 10,000.
        count = max(1, min(config.num_problems, 200 * config.num_problems // digits))
        name = f"{digits:,} digits"
        yield _Suite(name, "beyond", digits, count, from_test(equal(digits, count), name, count))
        if digits >= 100:
            name = f"{digits:,} digits, unequal"
            generator = seeds.generator(seed, "score", "unequal", digits)
            lengths = _unequal(digits, count, task.num_operands, generator)
            yield _Suite(name, "beyond", digits, count, from_test(lengths, name, count))
    for digits in sorted({trained, *beyond}):
        nines, others = "9" * digits, ["1", *["0"] * (task.num_operands - 2)]
        yield _Suite(
            f"99…9+1, {digits:,} digits",
            "probe",
            digits,
            2,
            lambda nines=nines, others=others: Problems.from_texts(  # type: ignore[misc]
                [[nines, *others], [*others, nines]]
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
    rows = torch.cat([problems.digits_BNW.flatten(1).long(), problems.lengths_BN], dim=1)
    _, inverse = torch.unique(rows, dim=0, return_inverse=True)
    first = torch.full((int(inverse.max()) + 1,), len(rows))
    first.scatter_reduce_(0, inverse, torch.arange(len(rows)), "amin")
    return problems[first.sort().values[:count]]
