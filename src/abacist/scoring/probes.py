"""The suite `probes`: fixed problems that people try first, whatever their split.

All single digits, both orders of a problem, a carry through every column, powers of ten, operands
of 21 to 30 digits, and what two published notebooks ask their models. Of sorting: lists that are in
order already or in reverse order, and numbers that are equal, wholly or but for one digit.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist import generators
from abacist.errors import ProblemError
from abacist.intervals import Proportion
from abacist.scoring.judge import Judge
from abacist.scoring.samples import as_in_training
from abacist.scoring.solving import solve
from abacist.scoring.suite import Progress, Row, Section, Suite
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.problems import Problems, Shapes
from abacist.tasks.sorting import Sorting

_COMMUTATIVE = ("+", "*")
_DIVISIONS = ("//", "%")
_PAIRS = 100
"""So many random pairs are asked in both orders."""
_LONG_DIGITS = (21, 30)
"""Lengths of the long random operands; a notebook tested its model there and found 0 of 100 right."""
_LONG_PROBLEMS = 100

_COUNT, _MANY = 10, 30
"""Numbers in a list."""
_LIST_DIGITS = (1, 3, 10, 30)
_LONGEST_LIST = 300
"""Digits of all its numbers: those of equal numbers are compared one by one, each with all others."""

_EDGE_CASES = ((123, 456), (999, 1), (0, 0), (999, 999), (500, 500), (111, 222))
"""What a notebook on 3-digit sums asks."""
_PATTERNS = (
    (999_999, 1),
    (1, 999_999),
    (10**15 - 1, 1),
    (10**15, 10**15),
    (123_456_789, 987_654_321),
)
"""What a notebook on sums of up to 20 digits asks."""


@dataclass(frozen=True)
class _Probe:
    """A row before it is scored."""

    name: str
    kind: str
    digits: int
    problems: Problems


def all_probes(trained_model: TrainedModel, on_progress: Progress) -> Section:
    """Exact match on every group of probes, and whether both orders of a problem get one answer."""
    task = trained_model.task
    if isinstance(task, Sorting):
        probes = list(_lists(task))
    else:
        probes = [
            probe for operation in task.operations for probe in _probes(trained_model, operation)
        ]
    total = sum(len(probe.problems) for probe in probes)
    judge = Judge(trained_model)
    rows: list[Row] = []
    done = 0
    for probe in probes:

        def report(judged: int, name: str = probe.name, before: int = done) -> None:
            on_progress(name, before + judged, total)

        try:
            verdicts = judge.verdicts(probe.problems, report, row=probe.name)
            rows.append(judge.row(probe.name, probe.kind, probe.digits, verdicts))
        except ProblemError as error:
            rows.append(Row(probe.name, probe.kind, probe.digits, None, note=str(error)))
        done += len(probe.problems)
    if isinstance(task, Arithmetic) and task.config.max_operands == 2:
        commutative = [operation for operation in task.operations if operation in _COMMUTATIVE]
        rows += [_commuted(trained_model, judge, operation) for operation in commutative]
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
    """Lists that no other sample is likely to hold, of few and many numbers, short and long."""
    config = task.config
    counts = {config.min_numbers, min(_COUNT, config.max_numbers), min(_MANY, config.max_numbers)}
    for digits in _LIST_DIGITS:
        smallest = 10 ** (digits - 1)
        lists: dict[str, list[list[int]]] = {}
        for count in sorted(counts):
            if count * digits > _LONGEST_LIST:
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
        told = ", beyond training" if digits > config.max_digits else ""
        for name, rows in lists.items():
            problems = Problems.from_texts(
                [list(map(str, row)) for row in rows], ["sort"] * len(rows)
            )
            shown = f"{name}, {digits} digit{'s' * (digits > 1)}{told}"
            yield _Probe(shown, "probe", digits, problems)


def _probes(trained_model: TrainedModel, operation: str) -> Iterator[_Probe]:
    task = trained_model.task
    assert isinstance(task, Arithmetic)
    trained = task.config.longest_operand
    prefix = f"{operation}: " if len(task.operations) > 1 else ""

    def probe(name: str, kind: str, pairs: list[tuple[int, int]]) -> Iterator[_Probe]:
        """The pairs that can be asked, those of trained lengths apart from those beyond."""
        asked = [pair for pair in pairs if not (operation in _DIVISIONS and pair[1] == 0)]
        within = [pair for pair in asked if _digits(pair) <= trained]
        beyond = [pair for pair in asked if _digits(pair) > trained]
        for chosen, told in ((within, ""), (beyond, ", beyond training")):
            if chosen:
                longest = max(map(_digits, chosen))
                problems = _problems(chosen, operation, task.config.min_operands)
                yield _Probe(f"{prefix}{name}{told}", kind, longest, problems)

    singles = [(a, b) for a in range(10) for b in range(10)]
    yield from probe(f"single digits, 0{operation}0 to 9{operation}9", "probe", singles)
    lengths = sorted({*range(1, min(trained, 30) + 1), trained, trained + 1, 2 * trained})
    shown, pairs = _carries(operation, lengths)
    yield from probe(shown, "probe", pairs)
    powers = [10**digits for digits in range(min(trained, 30))] + [10**trained, 10 ** (2 * trained)]
    ones = [pair for power in powers for pair in ((power, power), (power, 1), (1, power))]
    yield from probe("powers of ten", "probe", ones)
    yield from probe("edge cases of 3 digits", "published", list(_EDGE_CASES))
    yield from probe("patterns of up to 16 digits", "published", list(_PATTERNS))
    name = f"{prefix}{_LONG_DIGITS[0]}–{_LONG_DIGITS[1]} digits, random"
    yield _Probe(name, "published", _LONG_DIGITS[1], _long(trained_model, operation))


def _carries(operation: str, lengths: list[int]) -> tuple[str, list[tuple[int, int]]]:
    """Problems in which something runs through all columns, and what to call them."""
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
    return max(len(str(number)) for number in pair)


def _problems(pairs: list[tuple[int, int]], operation: str, num_operands: int) -> Problems:
    """The pairs, with zeros for the operands that a task wants beside them."""
    zeros = (0,) * (num_operands - 2)
    return Problems.from_integers([(*pair, *zeros) for pair in pairs], operation)


def _long(trained_model: TrainedModel, operation: str) -> Problems:
    """Random operands of 21 to 30 digits."""
    task = trained_model.task
    assert isinstance(task, Arithmetic)
    generator = generators.generator(trained_model.seed, "score", "long probes", operation)
    low, high = _LONG_DIGITS
    size = (_LONG_PROBLEMS, task.config.min_operands)
    lengths = torch.randint(low, high + 1, size, generator=generator)
    return task.draw(Shapes.of(lengths, operation), generator)


def _commuted(trained_model: TrainedModel, judge: Judge, operation: str) -> Row:
    """Whether `a + b` and `b + a` get the same answer, right or wrong."""
    pairs = as_in_training(trained_model, 4 * _PAIRS, "commuted")
    codes = Shapes.of(pairs.lengths_BN, operation).operation_B
    pairs = pairs[(pairs.operation_B == codes).nonzero().squeeze(1)[:_PAIRS]]
    swapped = Problems(
        pairs.digits_BNW.flip(1), Shapes(pairs.lengths_BN.flip(1), pairs.operation_B)
    )
    name = f"a{operation}b and b{operation}a answered alike"
    first, second = judge.verdicts(pairs, row=name), judge.verdicts(swapped, row=name)
    same = first.correct & second.correct
    # Only where both are wrong the answers themselves have to be compared.
    unclear = (~first.correct & ~second.correct).nonzero().squeeze(1)
    if len(unclear):
        same[unclear] = _same_answers(trained_model, pairs[unclear], swapped[unclear])
    proportion = Proportion(int(same.sum()), len(same))
    return Row(name, "commuted", 0, proportion, measure="same answer")


def _same_answers(trained_model: TrainedModel, first: Problems, second: Problems) -> Tensor:
    answers = [solve(trained_model, problems) for problems in (first, second)]
    return torch.tensor([a.answer == b.answer for a, b in zip(*answers, strict=True)])
