"""Enumerates the contexts of long multiplication, which works out a product cell by cell.

A cell of long multiplication is one small calculation, `³[45]2`: the carry that comes in, the
product of two digits, and the digit that is written, from which the next carry follows,

    carry + multiplicand · multiplier + above = 10 · next carry + digit

where `above` is a digit of the previous row. Suppose that a model sees no more of the operands and
the work than one cell and its inputs. Then it is right in every cell of every product if it is right
for every possible input of a cell. The cell after the last digit of the multiplicand has no product:
its digit is its carry.

The inputs of a cell are any digits, and a carry of at most m, the multiplier's digit; in the first
row, where there is nothing above, the carry is less than m, or 0. For if carry ≤ m, then
carry + 9m + 9 ≤ 10m + 9, so the next carry is at most m as well; and if carry ≤ m - 1, then
carry + 9m ≤ 10m - 1. All these inputs do occur: `_Inputs.operands` makes a problem from each.
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
    fill,
    pattern_of,
    visibility_in,
)
from abacist.formats import long_multiplication as notation
from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.long_multiplication import LongMultiplicationFormat
from abacist.formats.roles import SIGN, Role
from abacist.models.transformer import Transformer
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.problems import Problems, Shapes

MULTIPLICAND, MULTIPLIER, CARRY, PRODUCT, DIGIT, ABOVE, NEXT = range(7)
"""Roles of the tokens of a cell: the two digits that are multiplied, the carry, product and digit that
are written, the digit of the row above that is added, and the multiplier's digit for the next row."""
FIRST_SIGN, SECOND_SIGN, OWN_SIGN = range(7, 10)
"""Roles of the signs of both operands and of the product, where operands are signed."""
_LONGEST = 4
"""Number of digits of the operands that show every pattern: with four there is every kind of column
and row, including one that is not the first and is followed by one that is not the last."""
_LONG = ((12, 9), (9, 12), (30, 3), (3, 30), (40, 1), (1, 40))
_LONG_LINES = 8


@dataclass(frozen=True)
class Cell:
    """One cell of one line.

    The cell of column 0 is `=`, after which the first carry is written. If operands are signed, the
    product's sign is written after it, and has column -1.
    """

    line: AnnotatedTokens
    """The line, (1, T)."""
    column: int
    """Column, 1 … num_columns, or num_columns + 1 for the last carry of a row."""
    row: int
    """Row, 1 … num_rows."""
    num_columns: int
    num_rows: int
    numbers: list[int]
    """For each token its role in this cell: MULTIPLICAND … NEXT, SYMBOL, or STRANGER."""
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
    """The kind of a cell, which decides what its inputs can be."""

    has_product: bool
    first_row: bool
    last_row: bool
    smallest: tuple[int, int, int]
    """Smallest value of the multiplicand's digit, the multiplier's, and the multiplier's for the next row."""
    next_matters: bool
    """Whether the last of these digits is in the receptive field."""

    @staticmethod
    def of(cell: Cell, pattern: Pattern) -> "_Choices":
        def leads(column: int, length: int) -> int:
            return int(1 < column == length)

        smallest = (
            leads(cell.column, cell.num_columns),
            leads(cell.row, cell.num_rows),
            leads(cell.row + 1, cell.num_rows),
        )
        next_matters = NEXT in pattern.numbers
        return _Choices(
            cell.has_product, cell.row == 1, cell.is_in_last_row, smallest, next_matters
        )

    def inputs(self) -> "_Inputs":
        """Return all inputs whose carry the multiplier's digit allows."""
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
        return _Inputs(self, *cases[carry_n <= largest].unbind(dim=1))


@dataclass(frozen=True)
class _Inputs:
    """The inputs of a cell, int64 (n,) each; 0 where there is no such input."""

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
        """Return the operands of a product in which some cell has exactly the inputs of this case.

        The carry comes from the first column, or from the column before. A row that is multiplied
        by 0 shifts the previous row by one column, and a row that is multiplied by 1 is the
        multiplicand, so that any digit can stand above the rows that follow them.
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
    """Return digits d and a, with a = 0 if possible, for which d · multiplier + a carries `carry`."""
    for added, digit in product(range(10), repeat=2):
        if (digit * multiplier + added) // 10 == carry:
            return digit, added
    raise ValueError(f"nothing carries {carry} at the multiplier {multiplier}")


class LongMultiplicationEnumeration(GroupedEnumeration[_Choices]):
    """All contexts of the receptive fields of a model in long multiplications of every length."""

    def __init__(
        self, model: Transformer, task: Arithmetic, format: LongMultiplicationFormat
    ) -> None:
        self._task, self._format = task, format
        super().__init__(f"{task.claim} of every length.", self._patterns(model))

    def long_lines(self) -> Iterator[tuple[Tensor, list[Skeleton]]]:
        """Yield lines of random problems, far longer than those that show the patterns."""
        generator = generators.generator(0, "locality")
        for lengths in _LONG:
            _, cells = self._cells(*lengths)
            shapes = Shapes.of(torch.tensor([lengths]).expand(_LONG_LINES, 2), "*")
            problems = self._task.draw(shapes, generator)
            ids = self._format.write(problems, self._task.answer(problems)).ids
            yield ids, list(cells)

    def _patterns(self, model: Transformer) -> Iterator[tuple[Pattern, _Choices]]:
        for lengths in product(range(1, _LONGEST + 1), repeat=2):
            line, cells = self._cells(*lengths)
            visibility = visibility_in(model, line)
            for cell in cells:
                for query in cell.queries:
                    pattern = pattern_of(cell, visibility, query)
                    yield pattern, _Choices.of(cell, pattern)

    def _cells(self, num_columns: int, num_rows: int) -> tuple[AnnotatedTokens, list[Cell]]:
        """Return the line of two numbers with these numbers of digits, and all of its cells."""
        problem = Problems.from_texts([["1" * num_columns, "1" * num_rows]], ["*"])
        line = self._format.write(problem, self._task.answer(problem))
        roles = self._format.roles(line.ids[0])
        places = product(range(1, num_rows + 1), range(1, num_columns + 2))
        cells = []
        before = [(1, 0), (1, -1)] if self._format.signed else [(1, 0)]
        for row, column in [*before, *places]:
            seen = {
                Role("<start>"): SYMBOL,
                Role("="): SYMBOL,
                Role(notation.MULTIPLICAND, column): MULTIPLICAND,
                Role(notation.MULTIPLIER, row=row): MULTIPLIER,
                Role(notation.MULTIPLIER, row=row + 1): NEXT,
                Role(notation.DIGIT, column + 1, row - 1): ABOVE,
            }
            written = {
                Role(notation.CARRY, column, row): CARRY,
                Role(notation.PRODUCT, column, row): PRODUCT,
                Role(notation.DIGIT, column, row): DIGIT,
            }
            own = {Role("=")} if column == 0 else set(written)
            if column == 0:
                seen |= {Role(SIGN, row=1): FIRST_SIGN, Role(SIGN, row=2): SECOND_SIGN}
            elif column == -1:
                own = {Role(SIGN)}
                seen |= {Role(SIGN): OWN_SIGN}
            numbers = [(seen | written).get(role, STRANGER) for role in roles]
            queries = [token for token, role in enumerate(roles) if role in own]
            cells.append(Cell(line, column, row, num_columns, num_rows, numbers, queries))
        return line, cells

    def context(self, pattern: Pattern, choices: _Choices) -> Context:
        """Return the tokens that the pattern holds for all inputs of the cell."""
        if self._format.signed and pattern.numbers[-1] in (SYMBOL, OWN_SIGN):
            return self._context_of_signs(pattern)
        format, inputs = self._format, choices.inputs()
        carry = format.first_carry + inputs.carry
        product_id = format.product_ids[inputs.product].long()
        digit = inputs.total % 10
        value = {
            MULTIPLICAND: inputs.multiplicand,
            MULTIPLIER: inputs.multiplier,
            CARRY: carry,
            PRODUCT: product_id,
            DIGIT: digit,
            ABOVE: inputs.above,
            NEXT: inputs.next,
        }
        constant = torch.zeros_like(carry)
        if pattern.numbers[-1] == SYMBOL:
            target = constant + format.first_carry
        elif pattern.numbers[-1] == CARRY:
            target = product_id if choices.has_product else digit
        elif pattern.numbers[-1] == PRODUCT:
            target = digit
        elif choices.has_product:
            target = format.first_carry + inputs.total // 10
        else:
            target = constant + (format.end_id if choices.last_row else format.first_carry)
        return Context(pattern, fill(pattern, value, constant), target, inputs.operands)

    def _context_of_signs(self, pattern: Pattern) -> Context:
        """Return the signs before the product's sign is written, or the sign after which the work begins."""
        format = self._format
        assert format.plus_id is not None
        assert format.minus_id is not None
        signs = torch.tensor([format.plus_id, format.minus_id])
        first, second = torch.cartesian_prod(signs, signs).unbind(dim=1)
        own = torch.where(first == second, format.plus_id, format.minus_id)
        value = {FIRST_SIGN: first, SECOND_SIGN: second, OWN_SIGN: own}
        constant = torch.zeros_like(own)
        target = constant + format.first_carry if pattern.numbers[-1] == OWN_SIGN else own

        def operands(case: int) -> list[str]:
            return ["1" if int(sign[case]) == format.plus_id else "-1" for sign in (first, second)]

        return Context(pattern, fill(pattern, value, constant), target, operands)
