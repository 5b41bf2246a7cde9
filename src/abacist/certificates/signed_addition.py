"""Enumerates the contexts of sums and differences of integers in ten's complement.

A digit of the answer follows from two columns: its own and, by the carry, the one below it. Suppose that
a model sees no more of a line than a digit of the answer, both operands in that column, and both in the
next. Then the carry out of its column follows from what it sees, and so does the next digit.

The operands of a line have one width, and their signs stand in the column after it, where they count as
the digit 0 or 9. What can stand in the two columns follows from three statements:

* Below the last column, any digits can stand, and any carry can come in, but none into the first column.
* In the last column, at least one operand has a digit other than that of its sign, since otherwise both
  could be written in a smaller width; unless the width is 1.
* In the column of the signs, any carry can come in.

All of this does occur: `_Inputs.operands` makes a problem from each case.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import ClassVar, Literal

import torch
from torch import Tensor

from abacist import generators
from abacist.certificates.receptive_fields import (
    STRANGER,
    SYMBOL,
    Context,
    GroupedEnumeration,
    Pattern,
    Skeleton,
    fill,
    pattern_of,
    visibility_in,
)
from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.plain import ANSWER, OPERAND
from abacist.formats.roles import SIGN, START, Role
from abacist.formats.signed_addition import SignedAdditionFormat
from abacist.models.transformer import Transformer
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.problems import Problems, Shapes

FIRST, SECOND, FIRST_NEXT, SECOND_NEXT, FIRST_SIGN, SECOND_SIGN, WRITTEN = range(7)
"""Roles of the tokens around a query: the digits of both operands in its column and in the next, the signs
of both, and the token of the answer that the query is."""

Column = Literal["equals", "inside", "last", "signs", "beyond"]
"""The kind of a query: `=`, a digit of the answer below the last column of the operands, in it, or in the
column of the signs, and the sign of the answer, which stands beyond it."""

_LONGEST = 4
"""Number of digits of the operands that show every pattern."""
_LONG = ((60, 60), (60, 35), (12, 57), (9, 4), (1, 1))
_LONG_LINES = 4


@dataclass(frozen=True)
class Spot:
    """One token after which a token of the answer is written, with what that depends on."""

    line: AnnotatedTokens
    """The line, (1, T)."""
    column: Column
    is_first: bool
    """Whether the query stands in the first column."""
    numbers: list[int]
    """For each token its role for this query: FIRST … WRITTEN, SYMBOL, or STRANGER."""
    queries: list[int]
    remedy: ClassVar[str] = "--model.positions row-place-step-relative --model.num_layers 1"


@dataclass(frozen=True)
class _Inputs:
    """What stands around a query and what decides it, int64 (n,) each; 0 where there is no such token."""

    first: Tensor
    second: Tensor
    first_next: Tensor
    second_next: Tensor
    first_sign: Tensor
    """1 for an operand below 0."""
    second_sign: Tensor
    carry: Tensor
    """The carry or borrow into the query's column."""

    @staticmethod
    def of(column: Column, is_first: bool) -> "_Inputs":
        """Return everything that can stand around a query of this kind."""
        nothing, digits, either = torch.tensor([0]), torch.arange(10), torch.arange(2)
        own = digits if column in ("inside", "last") else nothing
        following = digits if column in ("equals", "inside") else nothing
        sign = either if column in ("last", "signs", "beyond") else nothing
        carry = nothing if is_first or column == "equals" else either
        cases = torch.cartesian_prod(own, own, following, following, sign, sign, carry)
        inputs = _Inputs(*cases.unbind(dim=1))
        if column == "last" and not is_first:
            is_needed = (inputs.first != 9 * inputs.first_sign) | (
                inputs.second != 9 * inputs.second_sign
            )
            inputs = _Inputs(*cases[is_needed].unbind(dim=1))
        return inputs


@dataclass(frozen=True)
class _Choices:
    """The kind of a query, which decides what can stand around it."""

    column: Column
    is_first: bool


class SignedAdditionEnumeration(GroupedEnumeration[_Choices]):
    """All contexts of the receptive fields of a model in sums or differences of integers of every length."""

    def __init__(self, model: Transformer, task: Arithmetic, format: SignedAdditionFormat) -> None:
        self._task, self._format = task, format
        (self._operation,) = task.operations
        super().__init__(f"{task.claim} of every length.", self._patterns(model))

    def long_lines(self) -> Iterator[tuple[Tensor, list[Skeleton]]]:
        """Yield lines of random problems, far longer than those that show the patterns."""
        generator = generators.generator(0, "locality")
        for lengths in _LONG:
            shapes = Shapes.of(torch.tensor([lengths]), self._operation)
            for _ in range(_LONG_LINES):
                line, spots = self._spots(self._task.draw(shapes, generator))
                yield line.ids, list(spots)

    def context(self, pattern: Pattern, choices: _Choices) -> Context:
        """Return the tokens that the pattern holds for everything that can stand around the query."""
        format, column = self._format, choices.column
        assert format.plus_id is not None
        assert format.minus_id is not None
        inputs = _Inputs.of(column, choices.is_first)
        constant = torch.zeros_like(inputs.carry)
        signs = 9 * inputs.first_sign, 9 * inputs.second_sign
        own = signs if column in ("signs", "beyond") else (inputs.first, inputs.second)
        digit, carry = self._column(*own, inputs.carry)
        sign = torch.where(digit >= 8, format.minus_id, format.plus_id)
        if column == "signs":
            target = sign
        elif column == "beyond":
            target = constant + format.end_id
        else:
            following = signs if column == "last" else (inputs.first_next, inputs.second_next)
            target, _ = self._column(*following, constant if column == "equals" else carry)
        value = {
            FIRST: inputs.first,
            SECOND: inputs.second,
            FIRST_NEXT: inputs.first_next,
            SECOND_NEXT: inputs.second_next,
            FIRST_SIGN: torch.where(inputs.first_sign == 1, format.minus_id, format.plus_id),
            SECOND_SIGN: torch.where(inputs.second_sign == 1, format.minus_id, format.plus_id),
            WRITTEN: sign if column == "beyond" else digit,
        }

        def operands(case: int) -> list[str]:
            return self._operands(column, *(int(values[case]) for values in vars(inputs).values()))

        return Context(pattern, fill(pattern, value, constant), target, operands)

    def _column(self, first: Tensor, second: Tensor, carry: Tensor) -> tuple[Tensor, Tensor]:
        """Return the answer's digit in a column, and the carry or borrow into the next."""
        if self._operation == "+":
            total = first + second + carry
            return total % 10, total // 10
        difference = first - second - carry
        return difference % 10, (difference < 0).long()

    def _operands(
        self,
        column: Column,
        first: int,
        second: int,
        first_next: int,
        second_next: int,
        first_sign: int,
        second_sign: int,
        carry: int,
    ) -> list[str]:
        """Return the operands of a problem in which this case stands around some query."""
        # Digits that carry 1, and digits that carry nothing.
        below = {"+": ((0, 0), (9, 9)), "-": ((1, 0), (0, 1))}[self._operation][carry]
        columns = {
            "equals": [(first_next, second_next)],
            "inside": [below] * carry + [(first, second), (first_next, second_next), (1, 1)],
            "last": [below] * carry + [(first, second)],
            "signs": [below],
            "beyond": [below],
        }[column]
        return [
            str(sum(d * 10**i for i, d in enumerate(number)) - sign * 10 ** len(number))
            for number, sign in zip(
                zip(*columns, strict=True), (first_sign, second_sign), strict=True
            )
        ]

    def _patterns(self, model: Transformer) -> Iterator[tuple[Pattern, _Choices]]:
        for lengths in product(range(1, _LONGEST + 1), repeat=2):
            rows = [["1" * length for length in lengths]]
            _, spots = self._spots(Problems.from_texts(rows, [self._operation]))
            visibility = visibility_in(model, spots[0].line)
            for spot in spots:
                for query in spot.queries:
                    yield (
                        pattern_of(spot, visibility, query),
                        _Choices(spot.column, spot.is_first),
                    )

    def _spots(self, problem: Problems) -> tuple[AnnotatedTokens, list[Spot]]:
        """Return the line of one problem and all of its queries."""
        line = self._format.write(problem, self._task.answer(problem))
        roles = self._format.roles(line.ids[0])
        width = max(role.column for role in roles if role.part == OPERAND)
        spots = []
        for query, role in enumerate(roles):
            if role.part != "=" and (role.part not in (ANSWER, SIGN) or role.row):
                continue
            own = role.column
            seen = {
                Role(START): SYMBOL,
                Role("="): SYMBOL if role.part == "=" else STRANGER,
                Role(OPERAND, own, 1): FIRST,
                Role(OPERAND, own, 2): SECOND,
                Role(OPERAND, own + 1, 1): FIRST_NEXT,
                Role(OPERAND, own + 1, 2): SECOND_NEXT,
                Role(SIGN, width + 1, 1): FIRST_SIGN if own in (width, width + 1) else STRANGER,
                Role(SIGN, width + 1, 2): SECOND_SIGN if own in (width, width + 1) else STRANGER,
                role: SYMBOL if role.part == "=" else WRITTEN,
            }
            column: Column = "inside" if own < width else "last" if own == width else "signs"
            column = "equals" if role.part == "=" else "beyond" if role.part == SIGN else column
            numbers = [seen.get(other, STRANGER) for other in roles]
            spots.append(Spot(line, column, own == 1, numbers, [query]))
        return line, spots
