"""What stands in a reach where a calculation goes from column to column: sums and differences.

A reach holds digits of a few columns. What it may contain is told by the task's column rule, run
over everything that can be, and by the sheet, which tells where the calculation stands in a line.
Context are listed in parts that fit into memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from math import prod

import torch
from torch import Tensor

from abacist import generators
from abacist.certificates.calculation_layout import RESULT, Calculation, CalculationLayout
from abacist.certificates.receptive_fields import (
    SYMBOL,
    Context,
    Pattern,
    Skeleton,
    pattern_of,
    too_many,
    visibility_in,
)
from abacist.models.receptive_field import receptive_field_over
from abacist.models.transformer import Transformer
from abacist.tasks.column_rule import ColumnRule

_CASES_AT_ONCE = 200_000
_MOST_AT_ONCE = 20_000_000

Digit = tuple[int, int]
"""A digit of a given number, as (number, column)."""


@dataclass(frozen=True)
class ColumnPattern(Pattern):
    """The reach of one query of a calculation that goes from column to column."""

    calculation: Calculation

    @cached_property
    def columns(self) -> list[int]:
        """Of every token its column in its number."""
        return [self.calculation.columns[token] for token in self.tokens]

    @property
    def target_column(self) -> int:
        """The column of the result that the right next token stands in."""
        return self.columns[-1] + 1

    @cached_property
    def lowest_column(self) -> int:
        """The lowest column of which the reach holds a digit; the first where it holds none."""
        held = zip(self.numbers, self.columns, strict=True)
        return min((column for number, column in held if number != SYMBOL), default=1)

    @cached_property
    def held(self) -> list[Digit]:
        """The given digits in the reach, in order."""
        tokens = zip(self.numbers, self.columns, strict=True)
        return [(number, column) for number, column in tokens if number >= 0]


@dataclass(frozen=True)
class Choices:
    """What may vary within a pattern."""

    pattern: ColumnPattern
    digits: dict[Digit, int]
    """The digits that matter, with the smallest that each may be: 1 where it leads a number of several."""
    states: tuple[int, ...]
    """In which the rule may enter the lowest column."""

    @property
    def num_cases(self) -> int:
        """How many combinations there are, before those that no right line contains are left out."""
        return len(self.states) * prod(10 - smallest for smallest in self.digits.values())

    def signature(self) -> tuple[object, ...]:
        """Equal for choices within patterns of equal key that may be the very same."""
        top, bottom = self.pattern.target_column, self.pattern.lowest_column
        relative = tuple(
            (number, column - top, smallest) for (number, column), smallest in self.digits.items()
        )
        return relative, self.states, bottom - top, self.pattern.calculation.terminator


class ColumnAdditionEnumeration:
    """Everything that the reaches of a model can hold in the lines of a sheet."""

    def __init__(self, model: Transformer, sheet: CalculationLayout, most_cases: float) -> None:
        self.sheet, self.claim = sheet, sheet.claim
        self.groups = listings(model, sheet, most_cases)
        self.patterns: list[Pattern] = [group[0].pattern for group in self.groups]
        self.num_cases = sum(choices.num_cases for group in self.groups for choices in group)

    def parts(self) -> Iterator[tuple[list[Context], int]]:
        """All contents, in parts of one pattern each, and how many cases were gone through for it."""
        for group in self.groups:
            yield from contents(group, self.sheet.rule)

    def long_lines(self) -> Iterator[tuple[Tensor, list[Skeleton]]]:
        """Lines of random digits, of numbers longer than any pattern."""
        generator = generators.generator(0, "locality")
        for calculation in self.sheet.long_calculations():
            line = calculation.line
            is_digit = torch.tensor([number != SYMBOL for number in calculation.numbers])
            is_digit = is_digit & (line.ids < 10)
            random_digits = torch.randint(10, (16, line.ids.shape[1]), generator=generator)
            yield torch.where(is_digit, random_digits, line.ids), [calculation]


# Patterns -----------------------------------------------------------------------------------


def patterns(model: Transformer, sheet: CalculationLayout) -> Iterator[ColumnPattern]:
    """Every pattern of reach that a line of any length can show (with repetitions).

    The reach of a query of place p stays within p - below … p + above. What it holds there
    depends on whether each number reaches these columns and whether the result has begun, so
    numbers of up to below + max(above, 1) + 3 columns show every case: a longer one looks like one
    that just leaves the reach, and a query further up looks like one just clear of the start.
    """
    below, above = _reach_in_places(model)
    for calculation in sheet.calculations(below + max(above, 1) + 3, below + 2):
        yield from patterns_in(model, calculation)


def patterns_in(model: Transformer, calculation: Calculation) -> Iterator[ColumnPattern]:
    """The patterns of one calculation, query by query."""
    visibility = visibility_in(model, calculation.line)
    for query in calculation.queries:
        pattern = pattern_of(calculation, visibility, query)
        yield ColumnPattern(**vars(pattern), calculation=calculation)


def _reach_in_places(model: Transformer) -> tuple[int, int]:
    reached = receptive_field_over(model.config, "place")
    assert reached is not None
    return reached


# Context -----------------------------------------------------------------------------------


def listings(
    model: Transformer, sheet: CalculationLayout, most_cases: float
) -> list[list[Choices]]:
    """All that may vary in each pattern, and nothing twice; a list for each pattern.

    Raises `NotProvable` where there are certainly more than `most_cases`.
    """
    below, above = _reach_in_places(model)
    richest = 10 ** (sheet.counts()[-1] * (below + max(above, 1) + 1))
    if richest > most_cases:
        raise too_many(richest)
    ways = {count: columns_below(sheet.rule, count) for count in sheet.counts()}
    found: dict[bytes, list[Choices]] = {}
    listed = set()
    for pattern in patterns(model, sheet):
        choices = _choices(pattern, tuple(sorted(ways[len(pattern.calculation.lengths)])))
        signature = (pattern.key, choices.signature())
        if signature not in listed:
            listed.add(signature)
            found.setdefault(pattern.key, []).append(choices)
    return list(found.values())


def contents(group: list[Choices], rule: ColumnRule) -> Iterator[tuple[list[Context], int]]:
    """Everything that one pattern may contain, in parts of which none repeats another's.

    With each part, how many cases were gone through. Parts differ in digits that the reach holds,
    so what is equal, or equal but for the right next token, is always in the same part.
    """
    num_cases = sum(choices.num_cases for choices in group)
    num_held = len(group[0].pattern.held)
    num_split = 0
    while num_cases > _CASES_AT_ONCE * 10**num_split and num_split < num_held:
        num_split += 1
    if num_cases > _MOST_AT_ONCE * 10**num_split:
        raise too_many(num_cases)
    for number, values in enumerate(product(range(10), repeat=num_split), start=1):
        parts = []
        for choices in group:
            fixed = dict(zip(choices.pattern.held, values, strict=False))
            if all(value >= choices.digits[digit] for digit, value in fixed.items()):
                parts.append(_contents(choices, fixed, rule))
        gone_through = num_cases * number // 10**num_split
        yield parts, gone_through - num_cases * (number - 1) // 10**num_split


def _choices(pattern: ColumnPattern, carried: tuple[int, ...]) -> Choices:
    """In the first column nothing is carried; a higher one stands for any number of columns below."""
    bottom = pattern.lowest_column
    lengths = pattern.calculation.lengths
    # Digits the reach does not hold still matter where they decide a digit it holds, or the next.
    deciding = {
        (number, column)
        for number, length in enumerate(lengths)
        for column in range(bottom, min(pattern.target_column, length) + 1)
    }
    digits = sorted({*pattern.held, *deciding}, key=lambda digit: (digit[1], digit[0]))
    smallest = {
        (number, column): 1 if 1 < column == lengths[number] else 0 for number, column in digits
    }
    return Choices(pattern, smallest, (0,) if bottom == 1 else carried)


def _contents(choices: Choices, fixed: dict[Digit, int], rule: ColumnRule) -> Context:
    """All cases that occur in a right line, by running the column rule; some digits may be fixed."""
    pattern, calculation = choices.pattern, choices.pattern.calculation
    domains = [
        torch.tensor([fixed[digit]]) if digit in fixed else torch.arange(smallest, 10)
        for digit, smallest in choices.digits.items()
    ]
    cases = torch.cartesian_prod(*domains, torch.tensor(choices.states))
    cases = cases.view(-1, len(domains) + 1)
    digits = {digit: cases[:, i] for i, digit in enumerate(choices.digits)}
    state = entering = cases[:, -1]

    zero, written = torch.zeros_like(state), {}
    possible = torch.ones(len(cases), dtype=torch.bool)
    for column in range(pattern.lowest_column, pattern.target_column + 1):
        inside = any(column <= length for length in calculation.lengths)
        continues = torch.ones_like(possible) if inside else state != 0
        read = [digits.get((number, column), zero) for number in range(len(calculation.lengths))]
        token, state = rule.step(state, torch.stack(read, dim=1))
        if not inside and calculation.sign is not None:
            # What is left over is written as one sign, and behind it nothing is left.
            token, state = zero + calculation.sign, zero
        written[column] = torch.where(continues, token, calculation.terminator)
        if column < pattern.target_column:
            possible &= continues  # the query belongs to the result, so the result got this far
    ids = [
        zero + symbol
        if number == SYMBOL
        else written[column]
        if number == RESULT
        else digits[number, column]
        for number, column, symbol in zip(
            pattern.numbers, pattern.columns, pattern.ids, strict=True
        )
    ]
    entering = entering[possible]
    digits = {digit: values[possible] for digit, values in digits.items()}
    return Context(
        pattern,
        torch.stack(ids, dim=1)[possible],
        written[pattern.target_column][possible],
        partial(_operands, pattern, rule, entering, digits),
    )


def _operands(
    pattern: ColumnPattern,
    rule: ColumnRule,
    entering: Tensor,
    digits: dict[Digit, Tensor],
    case: int,
) -> list[str]:
    """The numbers of a problem that holds that case: columns below bring about its state."""
    calculation, bottom = pattern.calculation, pattern.lowest_column
    ways = columns_below(rule, len(calculation.lengths))
    way = ways[int(entering[case])] if bottom > 1 else []
    given = []
    for number, length in enumerate(calculation.lengths):
        text = [column[number] for column in way]
        for column in range(bottom, length + 1):
            # Digits the neighbourhood does not tell may be anything; 1 can also lead.
            values = digits.get((number, column))
            text.append(1 if values is None else int(values[case]))
        given.append("".join(map(str, reversed(text))))
    return calculation.operands(given)


def columns_below(rule: ColumnRule, num_operands: int) -> dict[int, list[tuple[int, ...]]]:
    """For every state that can be carried somewhere, a shortest way there from the initial one.

    The way is a list of columns, each the operands' digits. A 0 is used only where nothing else
    leads there, so that an operand may end on any of them.
    """
    digits = torch.tensor([1, 2, 3, 4, 5, 6, 7, 8, 9, 0])
    columns = torch.cartesian_prod(*[digits] * num_operands)
    columns = columns.view(-1, num_operands)
    ways: dict[int, list[tuple[int, ...]]] = {}
    frontier: dict[int, list[tuple[int, ...]]] = {0: []}
    while frontier:
        found: dict[int, list[tuple[int, ...]]] = {}
        for state, way in frontier.items():
            _, following = rule.step(torch.full((len(columns),), state), columns)
            for number, next_state in enumerate(following.tolist()):
                if next_state not in ways and next_state not in found:
                    found[next_state] = [*way, tuple(columns[number].tolist())]
        ways |= found
        frontier = found
    return ways
