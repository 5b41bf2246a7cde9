"""Enumerates the contexts of column addition, which works from column to column: sums and differences.

A receptive field holds digits of a few columns. Which contexts it can hold follows from the task's
column rule, run over all combinations of digits and states, and from the layout, which says where
the calculation stands in a line. Contexts are enumerated in parts that fit into memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count, product
from math import log10, prod

import torch
from torch import Tensor

from abacist import generators
from abacist.certificates.calculation_layout import (
    CLOSING,
    OPENING,
    RESULT,
    Calculation,
    CalculationLayout,
)
from abacist.certificates.receptive_fields import (
    SYMBOL,
    Context,
    Pattern,
    Skeleton,
    pattern_of,
    too_many,
    visibility_in,
)
from abacist.formats.annotated import EVERYWHERE
from abacist.models.receptive_field import receptive_field_over
from abacist.models.transformer import Transformer
from abacist.tasks.column_rule import ColumnRule
from abacist.tasks.problems import DIGIT_CHARACTERS

MARKS = (SYMBOL, OPENING, CLOSING)
"""The roles of tokens that are the same whatever the digits are."""
_CASES_AT_ONCE = 200_000
_MOST_AT_ONCE = 20_000_000

Digit = tuple[int, int]
"""A digit of an operand, as (number of the operand, column)."""
Columns = list[tuple[int, ...]]
"""Consecutive columns of digits, in the order in which they are read; one digit for each operand."""


@dataclass(frozen=True)
class ColumnPattern(Pattern):
    """The receptive field of one query of a calculation that works from column to column."""

    calculation: Calculation

    @cached_property
    def columns(self) -> list[int]:
        """For each token, its column in its number."""
        return [self.calculation.columns[token] for token in self.tokens]

    @property
    def target_number(self) -> int:
        """The role of the right next token, unless the result ends there."""
        written = self.calculation.written
        if self.numbers[-1] == SYMBOL:
            return written[0]
        return written[(written.index(self.numbers[-1]) + 1) % len(written)]

    @property
    def target_column(self) -> int:
        """The last column that decides the right next token."""
        number, column = self.numbers[-1], self.columns[-1]
        if number == SYMBOL:
            return column + 1
        # What is written of a state has the column that is entered in it.
        of_written = column if number in (RESULT, OPENING) else column - 1
        return of_written + (number == self.calculation.written[-1])

    @cached_property
    def lowest_column(self) -> int:
        """The lowest column of which the receptive field holds a digit; 1 if it holds none."""
        held = zip(self.numbers, self.columns, strict=True)
        return min((column for number, column in held if number not in MARKS), default=1)

    @cached_property
    def shows_its_start(self) -> bool:
        """Whether the receptive field holds the symbol after which the result begins.

        Then it says in which column the query stands, because equal patterns have equal distances.
        """
        tokens = zip(self.numbers, self.columns, strict=True)
        return any(number == SYMBOL and column != EVERYWHERE for number, column in tokens)

    @cached_property
    def held(self) -> list[Digit]:
        """The digits of operands that the receptive field holds, in order."""
        tokens = zip(self.numbers, self.columns, strict=True)
        return [(number, column) for number, column in tokens if number >= 0]


@dataclass(frozen=True)
class Choices:
    """What can vary within a pattern."""

    pattern: ColumnPattern
    digits: dict[Digit, int]
    """The digits that matter, with the smallest value of each: 1 for a leading digit of several."""
    below: dict[int, Columns]
    """For every state in which the rule can enter the lowest column, columns that lead there."""
    base: int = 10

    @property
    def num_cases(self) -> int:
        """Number of combinations, including those that no right line contains."""
        return len(self.below) * prod(self.base - smallest for smallest in self.digits.values())

    def signature(self) -> tuple[object, ...]:
        """Return a value that is equal for equal choices within patterns of equal key."""
        top, bottom = self.pattern.target_column, self.pattern.lowest_column
        relative = tuple(
            (number, column - top, smallest) for (number, column), smallest in self.digits.items()
        )
        return relative, tuple(self.below), bottom - top, self.pattern.calculation.terminator


class ColumnAdditionEnumeration:
    """All contexts of the receptive fields of a model in the lines of a layout."""

    def __init__(self, model: Transformer, layout: CalculationLayout, most_cases: float) -> None:
        self.layout, self.claim = layout, layout.claim
        self.groups = enumerate_choices(model, layout, most_cases)
        self.patterns: list[Pattern] = [group[0].pattern for group in self.groups]
        self.num_cases = sum(choices.num_cases for group in self.groups for choices in group)

    def parts(self) -> Iterator[tuple[list[Context], int]]:
        """Yield the contexts of one pattern at a time, and the number of cases that made them."""
        for group in self.groups:
            yield from contexts(group, self.layout.rule)

    def long_lines(self) -> Iterator[tuple[Tensor, list[Skeleton]]]:
        """Yield lines of random digits, of numbers longer than any pattern."""
        generator = generators.generator(0, "locality")
        for calculation in self.layout.long_calculations():
            line = calculation.line
            is_digit = torch.tensor([number != SYMBOL for number in calculation.numbers])
            base = self.layout.rule.base
            is_digit = is_digit & (line.ids < base)
            random_digits = torch.randint(base, (16, line.ids.shape[1]), generator=generator)
            yield torch.where(is_digit, random_digits, line.ids), [calculation]


# Patterns -----------------------------------------------------------------------------------


def patterns(model: Transformer, layout: CalculationLayout) -> Iterator[ColumnPattern]:
    """Yield every pattern that a line of any length can show, with repetitions.

    The receptive field of a query of place p stays within p - below … p + above. What it holds
    depends on whether each number extends to these columns and whether the result has begun. So
    numbers of up to below + max(above, 1) + 3 columns show every case: a longer number looks like
    one that just leaves the receptive field, and a higher query like one just clear of the start.
    """
    below, above = _extent_in_places(model)
    for calculation in layout.calculations(below + max(above, 1) + 3, below + 2):
        yield from patterns_in(model, calculation)


def patterns_in(model: Transformer, calculation: Calculation) -> Iterator[ColumnPattern]:
    """Yield the patterns of one calculation, query by query."""
    visibility = visibility_in(model, calculation.line)
    for query in calculation.queries:
        pattern = pattern_of(calculation, visibility, query)
        yield ColumnPattern(**vars(pattern), calculation=calculation)


def _extent_in_places(model: Transformer) -> tuple[int, int]:
    extent = receptive_field_over(model.config, "place")
    assert extent is not None
    return extent


# Contexts -----------------------------------------------------------------------------------


def enumerate_choices(
    model: Transformer, layout: CalculationLayout, most_cases: float
) -> list[list[Choices]]:
    """Return, for each pattern, the list of its distinct choices.

    Raises `NotProvable` if there are certainly more than `most_cases`.
    """
    below, above = _extent_in_places(model)
    num_digits = layout.counts()[-1] * (below + max(above, layout.ahead) + 1)
    log_richest = num_digits * log10(layout.rule.base)
    if log_richest > log10(max(1, most_cases)):
        raise too_many(log_richest)
    rule = layout.rule
    anywhere = {number: columns_below(rule, number) for number in layout.counts()}
    choices_by_key: dict[bytes, list[Choices]] = {}
    signatures = set()
    for pattern in patterns(model, layout):
        lengths, bottom = pattern.calculation.lengths, pattern.lowest_column
        paths = anywhere[len(lengths)]
        # A state can be carried into any column, unless it is known which column it is.
        if bottom == 1 or pattern.shows_its_start:
            paths = columns_below(rule, len(lengths), bottom - 1, max(lengths) == 1)
        choices = _choices(pattern, paths, rule)
        signature = (pattern.key, choices.signature(), _begins_with_a_digit(pattern, rule))
        if signature not in signatures:
            signatures.add(signature)
            choices_by_key.setdefault(pattern.key, []).append(choices)
    return list(choices_by_key.values())


def contexts(group: list[Choices], rule: ColumnRule) -> Iterator[tuple[list[Context], int]]:
    """Yield the contexts of one pattern in parts without repetitions, and the cases of each part.

    Parts differ in digits that the receptive field holds, so cases that are equal, or equal except
    for the right next token, are always in the same part.
    """
    num_cases = sum(choices.num_cases for choices in group)
    num_held = len(group[0].pattern.held)
    num_split = 0
    base = rule.base
    while num_cases > _CASES_AT_ONCE * base**num_split and num_split < num_held:
        num_split += 1
    if num_cases > _MOST_AT_ONCE * base**num_split:
        raise too_many(log10(num_cases))
    for number, values in enumerate(product(range(base), repeat=num_split), start=1):
        parts = []
        for choices in group:
            fixed = dict(zip(choices.pattern.held, values, strict=False))
            if all(value >= choices.digits[digit] for digit, value in fixed.items()):
                parts.append(_context(choices, fixed, rule))
        num_done = num_cases * number // base**num_split
        yield parts, num_done - num_cases * (number - 1) // base**num_split


def _choices(pattern: ColumnPattern, below: dict[int, Columns], rule: ColumnRule) -> Choices:
    """Return what can vary in a pattern above the columns of `below`."""
    bottom = pattern.lowest_column
    lengths = pattern.calculation.lengths
    # Digits outside the receptive field still matter if they decide a digit inside it, or the next one.
    deciding = {
        (number, column)
        for number, length in enumerate(lengths)
        for column in range(bottom, min(pattern.target_column, length) + 1)
    }
    digits = sorted({*pattern.held, *deciding}, key=lambda digit: (digit[1], digit[0]))
    smallest = {
        (number, column): 1
        if 1 < column == lengths[number] and not rule.most_significant_first
        else 0
        for number, column in digits
    }
    return Choices(pattern, smallest, below, rule.base)


def _begins_with_a_digit(pattern: ColumnPattern, rule: ColumnRule) -> bool:
    """Whether the lowest column cannot hold zeros only: it is read first, of several columns."""
    is_first = pattern.lowest_column == 1 < pattern.calculation.lengths[0]
    return rule.most_significant_first and is_first


def _context(choices: Choices, fixed: dict[Digit, int], rule: ColumnRule) -> Context:
    """Return all cases that occur in a right line, by running the column rule; `fixed` holds some digits."""
    pattern, calculation = choices.pattern, choices.pattern.calculation
    domains = [
        torch.tensor([fixed[digit]]) if digit in fixed else torch.arange(smallest, rule.base)
        for digit, smallest in choices.digits.items()
    ]
    cases = torch.cartesian_prod(*domains, torch.tensor([*choices.below]))
    cases = cases.view(-1, len(domains) + 1)
    digits = {digit: cases[:, i] for i, digit in enumerate(choices.digits)}
    state = entering = cases[:, -1]

    zero, written = torch.zeros_like(state), {}
    entered = {pattern.lowest_column: state}

    def tokens_of_state(column: int) -> dict[int, Tensor]:
        """Return what is written of the state in which a column is entered, by role."""
        assert calculation.state_tokens is not None
        tokens = calculation.state_tokens(entered[column])
        return dict(zip(calculation.written[1:], tokens, strict=True))

    possible = torch.ones(len(cases), dtype=torch.bool)
    if _begins_with_a_digit(pattern, rule):
        possible = torch.stack([digits[digit] for digit in digits if digit[1] == 1]).any(dim=0)
    for column in range(pattern.lowest_column, pattern.target_column + 1):
        inside = any(column <= length for length in calculation.lengths)
        continues = torch.ones_like(possible) if inside else state != 0
        if not inside and calculation.state_tokens is not None and rule.left_over != "digits":
            continues = torch.zeros_like(possible)
        read = [digits.get((number, column), zero) for number in range(len(calculation.lengths))]
        token, following = rule.step(state, torch.stack(read, dim=1))
        if not inside and calculation.left_over is not None:
            # The state that is left over is written as one token, and nothing is left after it.
            token, following = calculation.left_over(state), zero
        state = following
        written[column] = torch.where(continues, token, calculation.terminator)
        entered[column + 1] = state
        if column < pattern.target_column:
            possible &= continues  # the query belongs to the result, so the result got this far
    top = pattern.target_column
    target = written[top]
    if pattern.target_number != RESULT:
        target, possible = tokens_of_state(top + 1)[pattern.target_number], possible & continues
    ids = []
    for number, column, symbol in zip(pattern.numbers, pattern.columns, pattern.ids, strict=True):
        if number in MARKS:
            ids.append(zero + symbol)
        elif number == RESULT:
            ids.append(written[column])
        else:
            ids.append(digits[number, column] if number >= 0 else tokens_of_state(column)[number])
    entering = entering[possible]
    digits = {digit: values[possible] for digit, values in digits.items()}
    return Context(
        pattern,
        torch.stack(ids, dim=1)[possible],
        target[possible],
        partial(_operands, choices, rule, entering, digits),
    )


def _operands(
    choices: Choices,
    rule: ColumnRule,
    entering: Tensor,
    digits: dict[Digit, Tensor],
    case: int,
) -> list[str]:
    """Return the operands of a problem that contains the case: lower columns cause its state."""
    calculation, bottom = choices.pattern.calculation, choices.pattern.lowest_column
    lower = choices.below[int(entering[case])]
    operands = []
    for number, length in enumerate(calculation.lengths):
        text = [column[number] for column in lower]
        for column in range(bottom, length + 1):
            # Digits that the case does not fix can be anything; 1 can be a leading digit as well.
            values = digits.get((number, column))
            text.append(1 if values is None else int(values[case]))
        descending = text if rule.most_significant_first else reversed(text)
        written = "".join(DIGIT_CHARACTERS[digit] for digit in descending)
        # Shorter operands have zeros before them where the most significant column is read first.
        operands.append((written.lstrip("0") or "0") if rule.most_significant_first else written)
    return calculation.operands(operands)


def columns_below(
    rule: ColumnRule,
    num_operands: int,
    num_columns: int | None = None,
    has_one_column: bool = False,
) -> dict[int, Columns]:
    """Return, for every state that the rule can enter, in ascending order, columns that lead there.

    With `num_columns`, it is entered after that number of columns, and otherwise after one or more, as
    few as possible. A 0 is used only where no other digit leads there, so that an operand can end in
    any of these columns. Where the most significant column is read first, it holds a digit other than
    0, unless it is the only column.
    """
    digits = torch.tensor([*range(1, rule.base), 0])
    columns = torch.cartesian_prod(*[digits] * num_operands)
    columns = columns.view(-1, num_operands)
    has_zeros = has_one_column or not rule.most_significant_first
    first = columns if has_zeros else columns[columns.any(dim=1)]
    entered: dict[int, Columns] = {}
    frontier: dict[int, Columns] = {0: []}
    for _ in count() if num_columns is None else range(num_columns):
        reached: dict[int, Columns] = {}
        for state, path in frontier.items():
            possible = columns if path else first
            _, following = rule.step(torch.full((len(possible),), state), possible)
            for number, next_state in enumerate(following.tolist()):
                if next_state not in entered and next_state not in reached:
                    reached[next_state] = [*path, tuple(possible[number].tolist())]
        frontier = reached
        if num_columns is None:
            entered |= reached
        if not frontier:
            break
    return dict(sorted((entered if num_columns is None else frontier).items()))
