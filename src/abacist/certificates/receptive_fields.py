"""Receptive fields, the contexts they can hold, and what every enumeration of them provides.

A *pattern* is the receptive field of one query: which tokens it holds, in which columns of which
numbers, and which of them see each other. A *context* fills a pattern with tokens of a right line
and names the right next token. Which contexts occur depends on the calculation, so each algorithm
has a module of its own: `column_addition`, `signed_addition`, `long_multiplication`,
`non_restoring_division` and `insertion_sort`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import torch
from torch import Tensor

from abacist.errors import AbacistError
from abacist.formats.annotated import AnnotatedTokens
from abacist.models.coordinates import Coordinates
from abacist.models.teacher_forcing import coordinates_of
from abacist.models.transformer import Transformer

SYMBOL = -1
"""The role of a token that is the same whatever the digits are."""
STRANGER = -3
"""The role of a token that takes no part in the calculation."""


class NotProvable(AbacistError):
    """No proof can be attempted; the message says why, and what to change."""


class Skeleton(Protocol):
    """One calculation in one line. Its digits do not matter, only their roles."""

    @property
    def line(self) -> AnnotatedTokens:
        """The line, (1, T)."""

    @property
    def numbers(self) -> list[int]:
        """For each token, the number of the calculation it is a digit of; or SYMBOL or STRANGER."""

    @property
    def queries(self) -> list[int]:
        """Positions of the tokens after which a token of the calculation has to be written."""

    @property
    def remedy(self) -> str:
        """Options that train a model which sees no strangers."""


@dataclass(frozen=True)
class Pattern:
    """The receptive field of one query in one line: which tokens it holds, not what they say."""

    tokens: list[int]
    """Positions in the line in ascending order; the query is the last."""
    coordinates: Coordinates
    """Coordinates of these tokens, (1, M) each."""
    ids: list[int]
    """Ids of these tokens in the line that showed the pattern; only those of symbols matter."""
    numbers: list[int]
    """Roles of these tokens, as in `Skeleton.numbers`."""
    key: bytes
    """Equal for patterns that no model with this visibility can distinguish."""
    alike: list[list[int]]
    """Groups of tokens, by their index in `tokens`, that the query can distinguish by their ids only."""


@dataclass(frozen=True)
class Context:
    """Everything that a pattern can hold, as n cases."""

    pattern: Pattern
    ids: Tensor
    """int64 (n, M): the tokens of the receptive field."""
    target: Tensor
    """int64 (n,): the right next token."""
    operands: Callable[[int], list[str]]
    """Returns the operands of a whole problem whose line contains the case of that number."""
    operations: tuple[str, ...] = ()
    """Operations of which this problem can be one; empty for all operations of the task."""


class Enumeration(Protocol):
    """All contexts that the receptive fields of a model can hold in right lines."""

    claim: str
    """What a model does that is right in every context."""
    patterns: list[Pattern]
    """All patterns, each once."""
    num_cases: int
    """Number of cases that `parts` yields, repetitions included."""

    def parts(self) -> Iterator[tuple[list[Context], int]]:
        """Yield the contexts of one pattern at a time, and the number of cases that made them.

        Cases that are equal, or equal except for the right next token, are in the same part.
        """

    def long_lines(self) -> Iterator[tuple[Tensor, list[Skeleton]]]:
        """Yield a few lines of long numbers: ids (n, T), and all calculations they contain."""


Choices = TypeVar("Choices", bound=Hashable)
"""A description from which all contexts of a pattern can be generated."""


class GroupedEnumeration(ABC, Generic[Choices]):
    """An enumeration made of pairs of a pattern and its choices, repetitions allowed."""

    def __init__(self, claim: str, pairs: Iterable[tuple[Pattern, Choices]]) -> None:
        self.claim = claim
        groups: dict[bytes, dict[Choices, Pattern]] = {}
        for pattern, choices in pairs:
            groups.setdefault(pattern.key, {}).setdefault(choices, pattern)
        self.patterns = [next(iter(group.values())) for group in groups.values()]
        self._parts = [
            [self.context(pattern, choices) for choices, pattern in group.items()]
            for group in groups.values()
        ]
        self.num_cases = sum(map(_num_cases, self._parts))

    def parts(self) -> Iterator[tuple[list[Context], int]]:
        """Yield the contexts of one pattern at a time, and the number of cases that made them."""
        for part in self._parts:
            yield part, _num_cases(part)

    @abstractmethod
    def context(self, pattern: Pattern, choices: Choices) -> Context:
        """Return everything that the pattern can hold."""


def _num_cases(part: list[Context]) -> int:
    return sum(len(context.target) for context in part)


def fill(pattern: Pattern, values: dict[int, Tensor], constant: Tensor) -> Tensor:
    """Return the ids int64 (n, M) of a pattern whose roles hold these values, (n,) each.

    Symbols keep their ids; `constant` is a tensor of n zeros.
    """
    ids = [
        constant + symbol if number == SYMBOL else values[number]
        for number, symbol in zip(pattern.numbers, pattern.ids, strict=True)
    ]
    return torch.stack(ids, dim=1)


def visibility_in(model: Transformer, line: AnnotatedTokens) -> list[Tensor]:
    """Return, for each layer, which token of a line sees which: bool (T, T), query by key."""
    return [v[0] for v in model.visibility(coordinates_of(line, equal_lengths=True))]


def receptive_field(visibility: list[Tensor], query: int) -> list[int]:
    """Return the positions of all tokens that can influence the logits at `query`, in ascending order.

    Args:
        visibility: one bool tensor (T, T) per layer, indexed [query, key].
        query: position of the token whose logits are read.
    """
    influential = torch.zeros(visibility[0].shape[0], dtype=torch.bool)
    influential[query] = True
    for visible in reversed(visibility):
        influential |= visible[influential].any(dim=0)
    tokens: list[int] = influential.nonzero().squeeze(1).tolist()
    return tokens


def pattern_of(skeleton: Skeleton, visibility: list[Tensor], query: int) -> Pattern:
    """Return the pattern of one query.

    Raises `NotProvable` if the receptive field holds a token that takes no part in the calculation.
    """
    tokens = receptive_field(visibility, query)
    line = skeleton.line
    numbers = [skeleton.numbers[token] for token in tokens]
    if STRANGER in numbers:
        raise NotProvable(
            "a token of this model sees more than the calculation it is part of. "
            f"Train with {skeleton.remedy}."
        )
    place = line.place[:, tokens]
    row, step = (None if c is None else c[:, tokens] for c in (line.row, line.step))
    ids: list[int] = line.ids[0, tokens].tolist()
    symbols = [
        token if number == SYMBOL else None for token, number in zip(ids, numbers, strict=True)
    ]
    at = torch.tensor(tokens)
    graph = torch.stack([visible[at.unsqueeze(1), at] for visible in visibility])
    description = (
        _relative(place),
        None if row is None else _relative(row),
        None if step is None else _relative(step),
        numbers,
        symbols,
        graph.flatten().tolist(),
    )
    coordinates = Coordinates(torch.arange(len(tokens)).unsqueeze(0), place, row, step)
    # In a second layer, tokens of equal coordinates can differ in what they have seen themselves.
    alike = _of_equal_coordinates([place, row, step]) if len(visibility) == 1 else []
    return Pattern(tokens, coordinates, ids, numbers, repr(description).encode(), alike)


def _of_equal_coordinates(coordinates: list[Tensor | None]) -> list[list[int]]:
    """Return the groups of two tokens or more, other than the query, that share all coordinates (1, M)."""
    groups: dict[tuple[int, ...], list[int]] = {}
    values = [coordinate[0, :-1].tolist() for coordinate in coordinates if coordinate is not None]
    for token, own in enumerate(zip(*values, strict=True)):
        groups.setdefault(own, []).append(token)
    return [group for group in groups.values() if len(group) > 1]


def _relative(coordinate: Tensor) -> list[int]:
    """Return a coordinate relative to the query's, or to the smallest if the query has none.

    Tokens without one keep a value of their own.
    """
    # A receptive field has a few tokens, for which Python is faster than tensors.
    values: list[int] = coordinate[0].tolist()
    origin = values[-1]
    if origin < 0:
        origin = min((value for value in values if value >= 0), default=origin)
    return [value - origin if value >= 0 else -1_000_000 + value for value in values]


def too_many(log_cases: float, hours: float | None = None) -> NotProvable:
    """Return the refusal of a check that would take too long.

    Args:
        log_cases: decimal logarithm of the number of cases, which can be too large for a number.
        hours: estimate of the time that the check would take.
    """
    count = f"{round(10**log_cases):,}" if log_cases < 12 else f"10^{math.floor(log_cases):,}"
    time = "" if hours is None else f", and checking them would take about {_duration(hours)}"
    return NotProvable(
        f"the receptive fields of this model have {count} possible contexts{time}, which is more "
        "than the time limit allows. Try a narrower window of --model.positions, fewer "
        "--model.num_layers, fewer operands, --format running-sums for many operands, or a higher "
        "abacist prove --max-minutes."
    )


def _duration(hours: float) -> str:
    """Return a time in the unit in which it is at least 1, down to seconds."""
    if hours >= 1:
        return f"{hours:,.1f} hours"
    return f"{60 * hours:.1f} minutes" if 60 * hours >= 1 else f"{3600 * hours:.2g} seconds"
