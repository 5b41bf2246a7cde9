"""What a model's reach can look like, and what it can contain.

A *pattern* is the reach of one query: which tokens, in which columns of which numbers, seeing each
other how. Its *contents* are all digits that can stand there in a right line, each with the right
next token, by running the task's column rule over everything that can be. They are listed in
parts that fit into memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

import torch
from torch import Tensor

from abacist.evaluation.sheets import RESULT, STRANGER, SYMBOL, NotProvable, Sheet, Skeleton
from abacist.models.coordinates import Coordinates
from abacist.models.reach import reach_over
from abacist.models.teacher_forcing import coordinates_of
from abacist.models.transformer import Transformer
from abacist.tasks.column_rule import ColumnRule

_CASES_AT_ONCE = 200_000
_MOST_AT_ONCE = 20_000_000

Digit = tuple[int, int]
"""A digit of a given number, as (number, column)."""


@dataclass(frozen=True)
class Pattern:
    """The reach of one query in one line: which tokens, not yet what they contain."""

    skeleton: Skeleton
    coordinates: Coordinates
    """Of the tokens in the reach, in order; the query is the last."""
    ids: list[int]
    """Of which only the symbols mean anything."""
    numbers: list[int]
    columns: list[int]
    key: bytes
    """Equal for patterns that no model with this visibility can tell apart."""

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

    pattern: Pattern
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
        return relative, self.states, bottom - top, self.pattern.skeleton.terminator


@dataclass(frozen=True)
class Contents:
    """A listing of what a pattern may contain, n cases."""

    choices: Choices
    ids: Tensor
    """int64 (n, R): the tokens of the reach."""
    target: Tensor
    """int64 (n,): the right next token."""
    state: Tensor
    """int64 (n,): the rule's state on entering the pattern's lowest column."""
    digits: dict[Digit, Tensor]
    """Every given digit that matters: int64 (n,)."""


# Patterns -----------------------------------------------------------------------------------


def patterns(model: Transformer, sheet: Sheet) -> Iterator[Pattern]:
    """Every pattern of reach that a line of any length can show (with repetitions).

    The reach of a query of place p stays within p - below … p + above. What it holds there
    depends on whether each number reaches these columns and whether the result has begun, so
    numbers of up to below + max(above, 1) + 3 columns show every case: a longer one looks like one
    that just leaves the reach, and a query further up looks like one just clear of the start.
    """
    below, above = _reach_in_places(model)
    for skeleton in sheet.skeletons(below + max(above, 1) + 3, below + 2):
        yield from patterns_in(model, skeleton)


def patterns_in(model: Transformer, skeleton: Skeleton) -> Iterator[Pattern]:
    """The patterns of one calculation, query by query."""
    visibility = visibility_in(model, skeleton)
    for query in skeleton.queries:
        yield pattern_of(skeleton, visibility, query)


def visibility_in(model: Transformer, skeleton: Skeleton) -> list[Tensor]:
    """Which token of a line sees which, in each layer: bool (T, T)."""
    return [v[0] for v in model.visibility(coordinates_of(skeleton.line, equal_lengths=True))]


def reach(visibility: list[Tensor], query: int) -> list[int]:
    """All tokens that can influence the query's logits, in order."""
    reached = torch.zeros(visibility[0].shape[0], dtype=torch.bool)
    reached[query] = True
    for visible in reversed(visibility):
        reached |= visible[reached].any(dim=0)
    tokens: list[int] = reached.nonzero().squeeze(1).tolist()
    return tokens


def pattern_of(skeleton: Skeleton, visibility: list[Tensor], query: int) -> Pattern:
    """The reach of one query. Raises `NotProvable` where it holds what is no part of the calculation."""
    tokens = reach(visibility, query)
    line = skeleton.line
    numbers = [skeleton.numbers[token] for token in tokens]
    if STRANGER in numbers:
        raise NotProvable(
            "a token of this model sees more than the calculation it is part of. "
            "Train with --model.positions place-row-relative --model.num_layers 1."
        )
    place, row = line.place[:, tokens], None if line.row is None else line.row[:, tokens]
    ids: list[int] = line.ids[0, tokens].tolist()
    symbols = [
        token if number == SYMBOL else None for token, number in zip(ids, numbers, strict=True)
    ]
    graph = torch.stack([visible[tokens][:, tokens] for visible in visibility])
    description = (
        _relative(place),
        None if row is None else _relative(row),
        numbers,
        symbols,
        graph.flatten().tolist(),
    )
    return Pattern(
        skeleton,
        Coordinates(torch.arange(len(tokens)).unsqueeze(0), place, row),
        ids,
        numbers,
        [skeleton.columns[token] for token in tokens],
        repr(description).encode(),
    )


def _relative(coordinate: Tensor) -> list[int]:
    """A coordinate as seen from the query; what has none is told apart from all that have."""
    values = coordinate[0]
    relative: list[int] = torch.where(
        values >= 0, values - values[-1], -1_000_000 + values
    ).tolist()
    return relative


def _reach_in_places(model: Transformer) -> tuple[int, int]:
    reached = reach_over(model.config, "place")
    assert reached is not None
    return reached


# Contents -----------------------------------------------------------------------------------


def listings(model: Transformer, sheet: Sheet, most_cases: float) -> list[list[Choices]]:
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
        choices = _choices(pattern, tuple(sorted(ways[len(pattern.skeleton.lengths)])))
        signature = (pattern.key, choices.signature())
        if signature not in listed:
            listed.add(signature)
            found.setdefault(pattern.key, []).append(choices)
    return list(found.values())


def too_many(cases: int, hours: float | None = None) -> NotProvable:
    """The refusal of a check that would take too long."""
    shown = f"{cases:,}" if cases < 1_000_000_000_000 else f"10^{len(str(cases)) - 1}"
    time = "" if hours is None else f" and checking them would take about {hours:.1f} hours"
    return NotProvable(
        f"the reaches of this model have {shown} possible contents{time}, more than the time given. "
        "Try a narrower window of --model.positions, fewer --model.num_layers or fewer operands, "
        "--format running-sums for many of them, or abacist prove --max-minutes."
    )


def contents(group: list[Choices], rule: ColumnRule) -> Iterator[tuple[list[Contents], int]]:
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


def _choices(pattern: Pattern, carried: tuple[int, ...]) -> Choices:
    """In the first column nothing is carried; a higher one stands for any number of columns below."""
    bottom = pattern.lowest_column
    lengths = pattern.skeleton.lengths
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


def _contents(choices: Choices, fixed: dict[Digit, int], rule: ColumnRule) -> Contents:
    """All cases that occur in a right line, by running the column rule; some digits may be fixed."""
    pattern, skeleton = choices.pattern, choices.pattern.skeleton
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
        inside = any(column <= length for length in skeleton.lengths)
        continues = torch.ones_like(possible) if inside else state != 0
        read = [digits.get((number, column), zero) for number in range(len(skeleton.lengths))]
        token, state = rule.step(state, torch.stack(read, dim=1))
        if not inside and skeleton.sign is not None:
            # What is left over is written as one sign, and behind it nothing is left.
            token, state = zero + skeleton.sign, zero
        written[column] = torch.where(continues, token, skeleton.terminator)
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
    return Contents(
        choices,
        torch.stack(ids, dim=1)[possible],
        written[pattern.target_column][possible],
        entering[possible],
        {digit: values[possible] for digit, values in digits.items()},
    )


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
