"""The suite `probes`: fixed problems that people try first, of any split.

For calculations: all single digits, both orders of a problem, a carry through every column, powers
of ten, operands of 21 to 30 digits, and the problems that two published notebooks ask. For
sorting: lists that are already in order or in reverse order, and numbers that are equal or differ
in one digit only.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from abacist import generators
from abacist.errors import ProblemError
from abacist.intervals import Proportion
from abacist.scoring.judge import Judge
from abacist.scoring.records import Row, Section
from abacist.scoring.samples import as_in_training
from abacist.scoring.solving import solve
from abacist.scoring.suite import Progress, Suite
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.problems import Problems, Shapes
from abacist.tasks.sorting import Sorting

_COMMUTATIVE = ("+", "*")
_DIVISIONS = ("//", "%")
_PAIRS = 100
"""Number of random pairs that are asked in both orders."""
_LONG_DIGITS = (21, 30)
"""Shortest and longest of the long random operands; the model of a notebook got 0 of 100 such sums right."""
_LONG_PROBLEMS = 100

_LIST_LENGTHS = (10, 30)
"""Numbers in a list, besides the smallest number of training."""
_LIST_DIGITS = (1, 3, 10, 30)
"""Digits of each number of a list."""
_MOST_LIST_DIGITS = 300
"""Largest number of digits in a list, since equal numbers take a quadratic number of steps to sort."""

_EDGE_CASES = ((123, 456), (999, 1), (0, 0), (999, 999), (500, 500), (111, 222))
"""The problems of a notebook about 3-digit sums."""
_PATTERNS = (
    (999_999, 1),
    (1, 999_999),
    (10**15 - 1, 1),
    (10**15, 10**15),
    (123_456_789, 987_654_321),
)
"""The problems of a notebook about sums of up to 20 digits."""


@dataclass(frozen=True)
class _Probe:
    """A row of the section before it is scored."""

    name: str
    kind: str
    digits: int
    problems: Problems


def all_probes(trained_model: TrainedModel, on_progress: Progress) -> Section:
    """Score every group of probes, and whether both orders of a problem get the same answer."""
    task = trained_model.task
    if isinstance(task, Sorting):
        probes = list(_lists(task))
    else:
        probes = [
            probe for operation in task.operations for probe in _probes(trained_model, operation)
        ]
    judge = Judge(trained_model, on_progress, total=sum(len(probe.problems) for probe in probes))
    rows = [
        judge.scored_row(probe.name, probe.kind, probe.digits, probe.problems) for probe in probes
    ]
    if isinstance(task, Arithmetic) and task.config.max_operands == 2:
        commutative = [operation for operation in task.operations if operation in _COMMUTATIVE]
        for operation in commutative:
            rows += [
                _commuted(trained_model, judge, operation),
                *_commuted_digits(judge, operation),
            ]
    return judge.section("Probes, whatever their split", rows)


def _obstacle(trained_model: TrainedModel) -> str | None:
    if isinstance(trained_model.task, Arithmetic | Sorting):
        return None
    return (
        f"there are probes for calculations and sorting only, and this model {trained_model.task.claim}. "
        "Try --suite strata."
    )


PROBES = Suite(
    "fixed problems: single digits, both orders, long carries, powers of ten, 21–30 digits; lists in order",
    _obstacle,
    all_probes,
)


def _lists(task: Sorting) -> Iterator[_Probe]:
    """Yield lists that random samples hardly ever contain, of few and many numbers, short and long."""
    config = task.config
    counts = {config.min_numbers, *(min(count, config.max_numbers) for count in _LIST_LENGTHS)}
    for digits in _LIST_DIGITS:
        smallest = 10 ** (digits - 1)
        lists: dict[str, list[list[int]]] = {}
        for count in sorted(counts):
            if count * digits > _MOST_LIST_DIGITS:
                continue
            ascending = [smallest + min(k, 8 * smallest) for k in range(count)]
            for name, numbers in (
                ("all equal", [smallest] * count),
                ("in order", ascending),
                ("in reverse order", ascending[::-1]),
                ("equal but for the units", [smallest + 7 * k % 9 for k in range(count)]),
                (
                    "equal but for the first digit",
                    [smallest * (1 + 7 * k % 9) for k in range(count)],
                ),
                ("99…9 and 10…0", [10 * smallest - k % 2 for k in range(count)]),
            ):
                lists.setdefault(name, []).append(numbers)
        suffix = ", beyond training" if digits > config.max_digits else ""
        for name, rows in lists.items():
            problems = Problems.from_texts(
                [list(map(str, row)) for row in rows], ["sort"] * len(rows)
            )
            name = f"{name}, {digits} digit{'s' * (digits > 1)}{suffix}"
            yield _Probe(name, "probe", digits, problems)


def _probes(trained_model: TrainedModel, operation: str) -> Iterator[_Probe]:
    """Yield the probes of one operation; if operands are signed, each with all combinations of signs."""
    task = trained_model.task
    assert isinstance(task, Arithmetic)
    trained = task.config.longest_operand
    prefix = f"{operation}: " if len(task.operations) > 1 else ""

    def probe(name: str, kind: str, pairs: list[tuple[int, int]]) -> Iterator[_Probe]:
        """Yield one probe of trained lengths and one beyond, without divisions by zero."""
        if task.config.signed:
            pairs = [pair for a, b in pairs for pair in dict.fromkeys(product((a, -a), (b, -b)))]
        possible = [pair for pair in pairs if not (operation in _DIVISIONS and pair[1] == 0)]
        within = [pair for pair in possible if _digits(pair) <= trained]
        beyond = [pair for pair in possible if _digits(pair) > trained]
        for some, suffix in ((within, ""), (beyond, ", beyond training")):
            if some:
                longest = max(map(_digits, some))
                problems = _problems(some, operation, task.config.min_operands)
                yield _Probe(f"{prefix}{name}{suffix}", kind, longest, problems)

    singles = [(a, b) for a in range(10) for b in range(10)]
    low = "-9" if task.config.signed else "0"
    yield from probe(f"single digits, {low}{operation}{low} to 9{operation}9", "probe", singles)
    lengths = sorted({*range(1, min(trained, 30) + 1), trained, trained + 1, 2 * trained})
    name, pairs = _carries(operation, lengths)
    yield from probe(name, "probe", pairs)
    powers = [10**digits for digits in range(min(trained, 30))] + [10**trained, 10 ** (2 * trained)]
    ones = [pair for power in powers for pair in ((power, power), (power, 1), (1, power))]
    yield from probe("powers of ten", "probe", ones)
    yield from probe("edge cases of 3 digits", "published", list(_EDGE_CASES))
    yield from probe("patterns of up to 16 digits", "published", list(_PATTERNS))
    name = f"{prefix}{_LONG_DIGITS[0]}–{_LONG_DIGITS[1]} digits, random"
    yield _Probe(name, "published", _LONG_DIGITS[1], _long(trained_model, operation))


def _carries(operation: str, lengths: list[int]) -> tuple[str, list[tuple[int, int]]]:
    """Return problems in which a carry or borrow runs through all columns, after their name."""
    nines = [10**digits - 1 for digits in lengths]
    if operation == "+":
        return "99…9+1 and 1+99…9", [pair for n in nines for pair in ((n, 1), (1, n))]
    if operation == "-":
        # 10…0 is one digit longer than the nines of its length.
        ones = [(n + 1) // 10 for n in nines]
        return "10…0-1 and 1-10…0", [pair for n in ones for pair in ((n, 1), (1, n))]
    if operation == "*":
        return "99…9*99…9 and 99…9*9", [pair for n in nines for pair in ((n, n), (n, 9))]
    return (
        f"99…9{operation}9 and 10…0{operation}99…9",
        [pair for n in nines for pair in ((n, 9), ((n + 1) // 10, max(1, n // 100)))],
    )


def _digits(pair: tuple[int, int]) -> int:
    return max(len(str(abs(number))) for number in pair)


def _problems(pairs: list[tuple[int, int]], operation: str, num_operands: int) -> Problems:
    """Return problems of these pairs, with zeros for any further operands that the task needs."""
    zeros = (0,) * (num_operands - 2)
    return Problems.from_integers([(*pair, *zeros) for pair in pairs], operation)


def _long(trained_model: TrainedModel, operation: str) -> Problems:
    """Draw problems with operands of 21 to 30 digits."""
    task = trained_model.task
    assert isinstance(task, Arithmetic)
    generator = generators.generator(trained_model.seed, "score", "long probes", operation)
    low, high = _LONG_DIGITS
    size = (_LONG_PROBLEMS, task.config.min_operands)
    lengths = torch.randint(low, high + 1, size, generator=generator)
    return task.draw(Shapes.of(lengths, operation), generator)


def _commuted(trained_model: TrainedModel, judge: Judge, operation: str) -> Row:
    """Return the row that says how often `a + b` and `b + a` get the same answer, right or wrong."""
    pairs = as_in_training(trained_model, 4 * _PAIRS, "commuted")
    codes = Shapes.of(pairs.lengths_BN, operation).operation_B
    pairs = pairs[(pairs.operation_B == codes).nonzero().squeeze(1)[:_PAIRS]]
    swapped = Problems(
        pairs.digits_BNW.flip(1),
        Shapes(pairs.lengths_BN.flip(1), pairs.operation_B),
        None if pairs.negative_BN is None else pairs.negative_BN.flip(1),
    )
    name = f"a{operation}b and b{operation}a answered alike"
    first, second = (judge.verdicts(problems, name, work=0) for problems in (pairs, swapped))
    same = first.correct & second.correct
    # Only where both answers are wrong, they have to be written out and compared.
    unclear = (~first.correct & ~second.correct).nonzero().squeeze(1)
    if len(unclear):
        same[unclear] = _same_answers(trained_model, pairs[unclear], swapped[unclear])
    proportion = Proportion(int(same.sum()), len(same))
    return Row(name, "commuted", 0, proportion, measure="same answer")


def _commuted_digits(judge: Judge, operation: str) -> list[Row]:
    """Return how often both orders of two single digits are right, as a notebook about sums asks.

    One row counts the 45 pairs of different digits, which are right if both orders are. The other
    counts answers as the notebook does: both orders of the 55 pairs with a ≤ b, so that a + a counts
    twice.
    """
    pairs = [(a, b) for a in range(10) for b in range(a, 10)]
    asked = [_problems(order, operation, 2) for order in (pairs, [(b, a) for a, b in pairs])]
    name = f"single digits, a{operation}b and b{operation}a"
    try:
        first, second = (judge.verdicts(problems, name, work=0) for problems in asked)
    except ProblemError as error:
        return [Row(name, "commuted", 1, None, note=str(error))]
    both = first.correct & second.correct
    differ = torch.tensor([a != b for a, b in pairs])
    right = int(first.correct.sum() + second.correct.sum())
    return [
        Row(
            name,
            "commuted",
            1,
            Proportion(int(both[differ].sum()), int(differ.sum())),
            measure="both right",
        ),
        Row(name, "commuted", 1, Proportion(right, 2 * len(pairs)), measure="answers right"),
    ]


def _same_answers(trained_model: TrainedModel, first: Problems, second: Problems) -> Tensor:
    """Return whether the model writes the same answer to both problems, bool (B,)."""
    answers = [solve(trained_model, problems) for problems in (first, second)]
    return torch.tensor([a.answer == b.answer for a, b in zip(*answers, strict=True)])
