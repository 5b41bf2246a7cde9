"""What a model's reach is, and what every listing of its contents has to tell.

A *pattern* is the reach of one query: which tokens, in which columns of which numbers, seeing each
other how. Its *contents* are all tokens that can stand there in a right line, each with the right
next token. Where they come from depends on the calculation: `columns` lists those of sums and
differences, `cells` those of products, `rows` those of divisions, `insertions` those of sorting.
"""

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
"""A token that is the same whatever the digits are."""
STRANGER = -3
"""A token that has no part in the calculation."""


class NotProvable(AbacistError):
    """No proof can be attempted; the message says why, and what to change."""


class Skeleton(Protocol):
    """One calculation in one line, whose digits do not matter."""

    @property
    def line(self) -> AnnotatedTokens:
        """(1, T)"""

    @property
    def numbers(self) -> list[int]:
        """Of every token which number of the calculation it is a digit of; or SYMBOL, STRANGER."""

    @property
    def queries(self) -> list[int]:
        """The tokens behind which something of the calculation has to be written."""

    @property
    def remedy(self) -> str:
        """What makes a model see no strangers."""


@dataclass(frozen=True)
class Pattern:
    """The reach of one query in one line: which tokens, not yet what they contain."""

    tokens: list[int]
    """Where in the line they stand, in order; the query is the last."""
    coordinates: Coordinates
    ids: list[int]
    """Of which only the symbols mean anything."""
    numbers: list[int]
    key: bytes
    """Equal for patterns that no model with this visibility can tell apart."""


@dataclass(frozen=True)
class Context:
    """What a pattern may contain, n cases."""

    pattern: Pattern
    ids: Tensor
    """int64 (n, R): the tokens of the reach."""
    target: Tensor
    """int64 (n,): the right next token."""
    operands: Callable[[int], list[str]]
    """The numbers of a whole problem in whose line that case stands."""


class Enumeration(Protocol):
    """Everything that can stand in the reaches of a model."""

    claim: str
    """What a model that is right in every reach does."""
    patterns: list[Pattern]
    """Each once."""
    num_cases: int
    """How many cases will be gone through, with repetitions."""

    def parts(self) -> Iterator[tuple[list[Context], int]]:
        """All contents, in parts of one pattern each, and how many cases were gone through for it.

        What is equal, or equal but for the right next token, is in the same part.
        """

    def long_lines(self) -> Iterator[tuple[Tensor, list[Skeleton]]]:
        """A few lines of long numbers: ids (n, T), and all calculations that stand in them."""


Choices = TypeVar("Choices", bound=Hashable)
"""What tells all that may stand in a pattern."""


class GroupedEnumeration(ABC, Generic[Choices]):
    """A listing of patterns and choices, each found any number of times."""

    def __init__(self, claim: str, found: Iterable[tuple[Pattern, Choices]]) -> None:
        self.claim = claim
        groups: dict[bytes, dict[Choices, Pattern]] = {}
        for pattern, choices in found:
            groups.setdefault(pattern.key, {}).setdefault(choices, pattern)
        self.patterns = [next(iter(group.values())) for group in groups.values()]
        self._parts = [
            [self.contents(pattern, choices) for choices, pattern in group.items()]
            for group in groups.values()
        ]
        self.num_cases = sum(map(_num_cases, self._parts))

    def parts(self) -> Iterator[tuple[list[Context], int]]:
        """All contents, pattern by pattern, and how many cases were gone through for it."""
        for part in self._parts:
            yield part, _num_cases(part)

    @abstractmethod
    def contents(self, pattern: Pattern, choices: Choices) -> Context:
        """All that may stand in the pattern."""


def _num_cases(part: list[Context]) -> int:
    return sum(len(contents.target) for contents in part)


def visibility_in(model: Transformer, line: AnnotatedTokens) -> list[Tensor]:
    """Which token of a line sees which, in each layer: bool (T, T)."""
    return [v[0] for v in model.visibility(coordinates_of(line, equal_lengths=True))]


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
            f"Train with {skeleton.remedy}."
        )
    place = line.place[:, tokens]
    row, step = (None if c is None else c[:, tokens] for c in (line.row, line.step))
    ids: list[int] = line.ids[0, tokens].tolist()
    symbols = [
        token if number == SYMBOL else None for token, number in zip(ids, numbers, strict=True)
    ]
    graph = torch.stack([visible[tokens][:, tokens] for visible in visibility])
    description = (
        _relative(place),
        None if row is None else _relative(row),
        None if step is None else _relative(step),
        numbers,
        symbols,
        graph.flatten().tolist(),
    )
    coordinates = Coordinates(torch.arange(len(tokens)).unsqueeze(0), place, row, step)
    return Pattern(tokens, coordinates, ids, numbers, repr(description).encode())


def _relative(coordinate: Tensor) -> list[int]:
    """A coordinate as seen from the query; what has none is told apart from all that have."""
    values = coordinate[0]
    relative: list[int] = torch.where(
        values >= 0, values - values[-1], -1_000_000 + values
    ).tolist()
    return relative


def too_many(cases: int, hours: float | None = None) -> NotProvable:
    """The refusal of a check that would take too long."""
    shown = f"{cases:,}" if cases < 1_000_000_000_000 else f"10^{len(str(cases)) - 1}"
    time = "" if hours is None else f" and checking them would take about {hours:.1f} hours"
    return NotProvable(
        f"the reaches of this model have {shown} possible contents{time}, more than the time given. "
        "Try a narrower window of --model.positions, fewer --model.num_layers or fewer operands, "
        "--format running-sums for many of them, or abacist prove --max-minutes."
    )
