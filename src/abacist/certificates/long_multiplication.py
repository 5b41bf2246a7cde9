"""What stands in a reach where a product is worked out cell by cell, in rows and columns.

A cell of long multiplication is one small calculation, `³[45]2`: the carry that comes in, the
product of two digits, and the digit that is written, from which the next carry follows,

    carry + multiplicand · multiplier + above = 10 · next carry + digit

where `above` is a digit of the row before. A model that sees, of the work and the given numbers, no
more than one cell and what enters it is right in every cell of every product if it is right for all
that can enter one. Behind the last digit of the multiplicand stands a cell without a product: its
digit is its carry.

What can enter: any digits, and a carry that is at most the multiplier's digit m; in the first row,
where nothing is above, it is less than m, or 0. For if carry ≤ m, then carry + 9m + 9 ≤ 10m + 9, so the
next carry is at most m as well; and if carry ≤ m - 1, then carry + 9m ≤ 10m - 1. All of it does
occur: `_Entering.operands` makes a problem from each.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

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
    pattern_of,
    visibility_in,
)
from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.long_multiplication import LongMultiplicationFormat
from abacist.models.transformer import Transformer
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.problems import Problems, Shapes

MULTIPLICAND, MULTIPLIER, CARRY, PRODUCT, DIGIT, ABOVE, NEXT = range(7)
"""The tokens of a cell: what is given, what is written, the digit of the row above that is added, and
the multiplier's digit for the next row."""
_START, _OPERATOR, _EQUALS, _END = (-1, 0, 0), (-2, 0, 0), (-3, 0, 0), (-4, 0, 0)
"""Tokens that are of no cell, described as those of cells are: what, and in which column and row."""

_LONGEST = 4
"""Numbers of so many digits have every kind of column and row, also one that is not the first, and
behind which one follows that is not the last."""
_LONG = ((12, 9), (9, 12), (30, 3), (3, 30), (40, 1), (1, 40))
_LONG_LINES = 8


@dataclass(frozen=True)
class Cell:
    """One cell of one line; that of column 0 is `=`, behind which the first carry is written."""

    line: AnnotatedTokens
    """(1, T)"""
    column: int
    """1 … num_columns, and one more for the last carry of a row."""
    row: int
    """1 … num_rows"""
    num_columns: int
    num_rows: int
    numbers: list[int]
    """Of every token what it is to this cell: MULTIPLICAND … NEXT, SYMBOL, or STRANGER."""
    queries: list[int]
    remedy: ClassVar[str] = (
        "--model.positions.0.window 0,1 --model.positions.1.window=-1,0 --model.num_layers 1"
    )

    @property
    def has_product(self) -> bool:
        return 1 <= self.column <= self.num_columns

    @property
    def is_in_last_row(self) -> bool:
        return self.row == self.num_rows


@dataclass(frozen=True)
class _Choices:
    """What may enter a cell."""

    has_product: bool
    first_row: bool
    last_row: bool
    smallest: tuple[int, int, int]
    """That the digits of the multiplicand, the multiplier, and of it for the next row may be."""
    next_matters: bool
    """Whether the last of them is in reach."""

    @staticmethod
    def of(cell: Cell, pattern: Pattern) -> "_Choices":
        def leads(column: int, length: int) -> int:
            return int(1 < column == length)

        smallest = (
            leads(cell.column, cell.num_columns),
            leads(cell.row, cell.num_rows),
            leads(cell.row + 1, cell.num_rows),
        )
        in_reach = NEXT in pattern.numbers
        return _Choices(cell.has_product, cell.row == 1, cell.is_in_last_row, smallest, in_reach)

    def entering(self) -> "_Entering":
        """Everything that may enter: with a carry that the multiplier's digit allows."""
        nothing, any_digit = torch.tensor([0]), torch.arange(10)
        multiplicand, multiplier, following = self.smallest
        cases = torch.cartesian_prod(
            torch.arange(multiplicand, 10) if self.has_product else nothing,
            torch.arange(multiplier, 10),
            any_digit,
            any_digit if self.has_product and not self.first_row else nothing,
            torch.arange(following, 10) if self.next_matters else nothing + 1,
        )
        multiplier_n, carry_n = cases[:, 1], cases[:, 2]
        largest = multiplier_n
        if self.first_row:
            largest = (multiplier_n - 1).clamp(min=0)
        return _Entering(self, *cases[carry_n <= largest].unbind(dim=1))


@dataclass(frozen=True)
class _Entering:
    """What enters a cell, int64 (n,) each; 0 where there is none."""

    choices: _Choices
    multiplicand: Tensor
    multiplier: Tensor
    carry: Tensor
    above: Tensor
    next: Tensor

    @property
    def product(self) -> Tensor:
        return self.multiplicand * self.multiplier

    @property
    def total(self) -> Tensor:
        return self.carry + self.product + self.above

    def operands(self, case: int) -> list[str]:
        """A multiplication in which exactly this enters some cell.

        Its carry comes from the first column, or from one below and to the left. A row multiplied
        by 0 moves the one before by a column, and one multiplied by 1 is the multiplicand, so that
        below them any digits can be above.
        """
        multiplicand, multiplier, carry, above, following = (
            int(values[case])
            for values in (self.multiplicand, self.multiplier, self.carry, self.above, self.next)
        )
        below = "" if self.choices.last_row else f"1{following}"
        digit, added = _decade(carry, multiplier)
        if not self.choices.has_product:
            if carry < multiplier or carry == 0:
                return [str(digit), f"{below}{multiplier}"]
            # 99 · 9 = 891, and 99 · m + 89 has the leading digit m.
            return ["99", f"{below}{multiplier}9"]
        if self.choices.first_row:
            return [f"1{multiplicand}{digit}", f"{below}{multiplier}"]
        return [f"1{above}{added}{multiplicand}{digit}", f"{below}{multiplier}01"]


def _decade(carry: int, multiplier: int) -> tuple[int, int]:
    """A digit, times the multiplier, plus another, 0 if possible, that carries this."""
    for added, digit in product(range(10), repeat=2):
        if (digit * multiplier + added) // 10 == carry:
            return digit, added
    raise ValueError(f"nothing carries {carry} at the multiplier {multiplier}")


def _tokens(num_columns: int, num_rows: int) -> list[tuple[int, int, int]]:
    """What the tokens of a line are: a part, its column, and its row; 0 where it is of all of them."""
    given = [
        _START,
        *((MULTIPLICAND, column, 0) for column in range(1, num_columns + 1)),
        _OPERATOR,
        *((MULTIPLIER, 0, row) for row in range(1, num_rows + 1)),
        _EQUALS,
    ]
    written = [
        (part, column, row)
        for row, column in product(range(1, num_rows + 1), range(1, num_columns + 2))
        for part in ((CARRY, PRODUCT, DIGIT) if column <= num_columns else (CARRY, DIGIT))
    ]
    return [*given, *written, _END]


class LongMultiplicationEnumeration(GroupedEnumeration[_Choices]):
    """Everything that the reaches of a model can hold in long multiplications of every length."""

    def __init__(
        self, model: Transformer, task: Arithmetic, format: LongMultiplicationFormat
    ) -> None:
        self._task, self._format = task, format
        super().__init__(f"{task.claim} of every length.", self._found(model))

    def long_lines(self) -> Iterator[tuple[Tensor, list[Skeleton]]]:
        """Lines of random problems, far longer than those the patterns are taken from."""
        generator = generators.generator(0, "locality")
        for lengths in _LONG:
            _, cells = self._cells(*lengths)
            shapes = Shapes.of(torch.tensor([lengths]).expand(_LONG_LINES, 2), "*")
            problems = self._task.draw(shapes, generator)
            ids = self._format.write(problems, self._task.answer(problems)).ids
            yield ids, list(cells)

    def _found(self, model: Transformer) -> Iterator[tuple[Pattern, _Choices]]:
        for lengths in product(range(1, _LONGEST + 1), repeat=2):
            line, cells = self._cells(*lengths)
            visibility = visibility_in(model, line)
            for cell in cells:
                for query in cell.queries:
                    pattern = pattern_of(cell, visibility, query)
                    yield pattern, _Choices.of(cell, pattern)

    def _cells(self, num_columns: int, num_rows: int) -> tuple[AnnotatedTokens, list[Cell]]:
        """The line of numbers of so many digits, and all of its cells."""
        problem = Problems.from_texts([["1" * num_columns, "1" * num_rows]], ["*"])
        line = self._format.write(problem, self._task.answer(problem))
        tokens = _tokens(num_columns, num_rows)
        if self._format.start_id is None:
            tokens.remove(_START)
        assert len(tokens) == line.ids.shape[1]
        places = product(range(1, num_rows + 1), range(1, num_columns + 2))
        cells = []
        for row, column in [(1, 0), *places]:
            here = {
                _START: SYMBOL,
                _EQUALS: SYMBOL,
                (MULTIPLICAND, column, 0): MULTIPLICAND,
                (MULTIPLIER, 0, row): MULTIPLIER,
                (MULTIPLIER, 0, row + 1): NEXT,
                (DIGIT, column + 1, row - 1): ABOVE,
            }
            written = {(part, column, row): part for part in (CARRY, PRODUCT, DIGIT)}
            numbers = [(here | written).get(token, STRANGER) for token in tokens]
            own = {_EQUALS} if column == 0 else set(written)
            queries = [index for index, token in enumerate(tokens) if token in own]
            cells.append(Cell(line, column, row, num_columns, num_rows, numbers, queries))
        return line, cells

    def contents(self, pattern: Pattern, choices: _Choices) -> Context:
        """Tokens from what enters the cell."""
        format, entering = self._format, choices.entering()
        carry = format.first_carry + entering.carry
        product_id = format.product_ids[entering.product].long()
        digit = entering.total % 10
        value = {
            MULTIPLICAND: entering.multiplicand,
            MULTIPLIER: entering.multiplier,
            CARRY: carry,
            PRODUCT: product_id,
            DIGIT: digit,
            ABOVE: entering.above,
            NEXT: entering.next,
        }
        constant = torch.zeros_like(carry)
        if pattern.numbers[-1] == SYMBOL:
            target = constant + format.first_carry
        elif pattern.numbers[-1] == CARRY:
            target = product_id if choices.has_product else digit
        elif pattern.numbers[-1] == PRODUCT:
            target = digit
        elif choices.has_product:
            target = format.first_carry + entering.total // 10
        else:
            target = constant + (format.end_id if choices.last_row else format.first_carry)
        ids = [
            constant + symbol if number == SYMBOL else value[number]
            for number, symbol in zip(pattern.numbers, pattern.ids, strict=True)
        ]
        return Context(pattern, torch.stack(ids, dim=1), target, entering.operands)
