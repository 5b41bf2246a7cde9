"""Coordinates of tokens while they are generated, one token of every line after the other.

`annotate` needs the whole line, so calling it for every new token would take time proportional to the
square of the line's length. A continuation carries a small state from token to token instead, such as
the current row and place, so each token takes the same time. The coordinates are those of `annotate`.

>>> continuation = continue_lines(format, format.prompt(problems), max_new_tokens=5)
>>> continuation.append(ids_B).place  # the places of the first generated token of every line
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from torch import Tensor

from abacist.arrays import Integers
from abacist.formats.annotated import NO_PLACE, AnnotatedTokens, Field

if TYPE_CHECKING:
    from abacist.formats.format import Format


@dataclass(frozen=True)
class TokenCoordinates:
    """Coordinates of one new token of every line, int64 (B,) each."""

    place: Integers
    row: Integers | None = None
    step: Integers | None = None

    @staticmethod
    def of(lines: AnnotatedTokens, select: Callable[[Tensor], Tensor]) -> "TokenCoordinates":
        """Return what `select` takes from each coordinate of all tokens of lines, (B, T)."""
        row, step = (
            None if values is None else _array(select(values)) for values in (lines.row, lines.step)
        )
        return TokenCoordinates(_array(select(lines.place)), row, step)


class Continuation(ABC):
    """Annotates lines that begin with prompts, one token of every line at a time."""

    falls: Mapping[str, int] = MappingProxyType({})
    """How far each coordinate can fall below that of an earlier generated token, by name.

    Coordinates without such a bound are absent. Negative values do not count. A windowed model forgets
    the tokens that such a coordinate has passed.
    """

    @abstractmethod
    def append(self, ids_B: Integers) -> TokenCoordinates:
        """Return the coordinates of the next token of every line, whose ids are `ids_B`."""

    @property
    def known_beforehand(self) -> TokenCoordinates | None:
        """The coordinates of all new tokens, (S, B) each; None where they depend on the tokens."""
        return None


def continue_lines(format: "Format", prompt: AnnotatedTokens, max_new_tokens: int) -> Continuation:
    """Return the continuation that a format offers, or one that annotates whole lines again and again.

    Args:
        format: a format.
        prompt: lines of `format.prompt`, on the CPU.
        max_new_tokens: largest number of calls of `append`.
    """
    if _offers_continuation(type(format)):
        offered: Callable[[AnnotatedTokens, int], Continuation] = format.continuation  # type: ignore[attr-defined]
        return offered(prompt, max_new_tokens)
    return RepeatedAnnotation(format.annotate, prompt, max_new_tokens)


def _offers_continuation(format_class: type) -> bool:
    """Whether a class of formats has a continuation that belongs to its annotation.

    An extension can derive a format from a built-in one and annotate differently. The continuation that
    it inherits is then not its own.
    """
    for base in format_class.__mro__:
        if "continuation" in vars(base):
            return True
        if "annotate" in vars(base) or "_annotate" in vars(base):
            return False
    return False


class RepeatedAnnotation(Continuation):
    """Annotates the whole line again for every token, which any format can do."""

    def __init__(
        self,
        annotate: Callable[[Tensor], AnnotatedTokens],
        prompt: AnnotatedTokens,
        max_new_tokens: int,
    ) -> None:
        self._annotate, self._count = annotate, 0
        self._ids = torch.nn.functional.pad(prompt.ids, (0, max_new_tokens))
        self._lines, self._lengths = torch.arange(len(prompt.ids)), prompt.lengths

    def append(self, ids_B: Integers) -> TokenCoordinates:
        """Return the coordinates of the next token of every line."""
        index_B = self._lengths + self._count
        self._ids[self._lines, index_B] = torch.from_numpy(ids_B).to(self._ids.dtype)
        self._count += 1
        width = int(index_B.max()) + 1 if len(index_B) else 0
        annotated = self._annotate(self._ids[:, :width])
        return TokenCoordinates.of(annotated, lambda values_BT: values_BT[self._lines, index_B])


class PlannedContinuation(Continuation):
    """The coordinates of all new tokens, where they follow from the prompt and not from the tokens."""

    def __init__(
        self,
        annotate: Callable[[Tensor], AnnotatedTokens],
        prompt: AnnotatedTokens,
        max_new_tokens: int,
        falls: Mapping[str, int],
    ) -> None:
        """Annotate the prompts, each followed by `max_new_tokens` zeros."""
        self.falls, self.count = falls, 0
        batch, width = prompt.ids.shape
        lengths_B1 = prompt.lengths.unsqueeze(1)
        is_prompt = torch.arange(width) < lengths_B1
        ids = torch.where(is_prompt, prompt.ids, 0)
        lines = annotate(torch.nn.functional.pad(ids, (0, max_new_tokens)))
        new_BS = lengths_B1 + torch.arange(max_new_tokens)
        self.planned = TokenCoordinates.of(lines, lambda values_BT: values_BT.gather(1, new_BS).t())
        """The coordinates of all new tokens, (S, B)."""
        self.lines = np.arange(batch)

    def append(self, ids_B: Integers) -> TokenCoordinates:
        """Return the coordinates of the next token of every line."""
        number, self.count = self.count, self.count + 1
        place, row, step = self.planned.place, self.planned.row, self.planned.step
        return TokenCoordinates(
            place[number],
            None if row is None else row[number],
            None if step is None else step[number],
        )

    @property
    def known_beforehand(self) -> TokenCoordinates | None:
        """The coordinates of all new tokens, unless a derived class calculates its own."""
        return self.planned if type(self).append is PlannedContinuation.append else None


class SignFirstContinuation(PlannedContinuation):
    """Answers that may begin with a sign, which has no place and moves all later digits."""

    def __init__(
        self,
        annotate: Callable[[Tensor], AnnotatedTokens],
        prompt: AnnotatedTokens,
        max_new_tokens: int,
        falls: Mapping[str, int],
        sign_id: int,
    ) -> None:
        super().__init__(annotate, prompt, max_new_tokens, falls)
        self._sign_id, self._is_negative = sign_id, np.zeros(len(prompt.ids), dtype=np.int64)

    def append(self, ids_B: Integers) -> TokenCoordinates:
        """Return the coordinates of the next token of every line."""
        number = self.count
        planned = super().append(ids_B)
        if number == 0:
            self._is_negative = (ids_B == self._sign_id).astype(np.int64)
            place = np.where(self._is_negative, NO_PLACE, planned.place)
        else:
            place = self.planned.place[number - self._is_negative, self.lines]
        return TokenCoordinates(place, planned.row)


class RowsByDivisor(Continuation):
    """Base class of divisions whose rows are wider than the divisor by a fixed number of tokens."""

    extra: ClassVar[int]
    """Number of tokens by which a row is wider than the divisor."""

    def __init__(self, prompt: AnnotatedTokens, num_signs: int = 0) -> None:
        """Begin after `=`; each operand has this number of signs besides its digits."""
        self.dividend_length, self.divisor_length = (
            num_tokens(prompt, Field.OPERAND + number) - num_signs for number in range(2)
        )
        self.width = self.divisor_length + self.extra
        self.within = np.full_like(self.width, -1)
        self.row = np.ones_like(self.width)

    def advance(self) -> None:
        """Move on to the next token: update `within`, its index in its row, and `row`, from 1 on."""
        self.within = self.within + 1
        ends_row = self.within == self.width
        self.row = self.row + ends_row
        self.within = np.where(ends_row, 0, self.within)


def num_tokens(prompt: AnnotatedTokens, field: int) -> Integers:
    """Return the number of tokens of a field in each line, int64 (B,)."""
    return _array((prompt.field == field).sum(dim=1))


def _array(values: Tensor) -> Integers:
    array: Integers = values.long().contiguous().numpy()
    return array
