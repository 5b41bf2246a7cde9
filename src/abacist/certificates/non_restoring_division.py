"""What stands in a reach where a division is worked out row by row, without going back.

A row of non-restoring division takes the divisor b away from what the row above left, or adds it,
column by column, `-2:8'9'9'`: what is done and how often it was done before, and digits, with a mark
where a column borrows from the next. A model that sees of the work no more than two neighbouring
columns of a row and of the one above is right in every row of every division if it is right for all
that can stand there.

**Rows that add are rows that subtract, seen in a mirror.** Let each digit d be 9 - d, each count c be
9 - c, and adding be subtracting: a value v is then -1 - v, a carry is a borrow, and bringing down a digit
stays what it is. So only rows that subtract are listed, and then once more in the mirror. Of these,

* a step begins with a rest r of 0 ≤ r < b, which the row above has added b to, and a digit d that is
  brought down: 0 ≤ 10r + d < 10b;
* before the row that counts c, v = 10r + d - cb is left, so 0 ≤ v < (10 - c)b.

What the other columns allow is one borrow, or none, into the lower of the two columns that are seen. It is
told for each kind of row in `_Choices`, with what follows from the bounds above in the highest columns.
All of it does occur: `_Entering.operands` makes a problem from each.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cache, partial
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
    pattern_of,
    visibility_in,
)
from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.non_restoring_division import NonRestoringDivisionFormat
from abacist.models.transformer import Transformer
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.problems import Problems, Shapes

BROUGHT_DOWN, DIVISOR, OPERATOR, DONE_ABOVE, ABOVE, ABOVE_NEXT, DONE, DIGIT = range(8)
"""The tokens around a query in column i: the digit of the dividend that a step brings down, digit i + 1
of the divisor or the operator in its place, what is done in the row above and its digits i and i + 1, what is
done in the query's own row and its digit i."""

Row = Literal["first", "begins", "goes on", "returns", "ends"]
"""The first row of all; one that begins a later step; another of a step; the one that adds when no digit
is left and the rest is below 0; and the last, which says that nothing is left to do."""
Column = Literal["equals", "done", "colon", "inside", "highest", "beyond"]
"""What the query is: `=`, what is done, the colon, a digit below the divisor's highest, under it, or beyond."""

_SHORT = (("1", "1"), ("9", "1"), ("1", "9"), ("9", "9"))
"""Digits of dividend and divisor …"""
_LENGTHS = tuple(product((1, 2, 3, 4), (1, 2, 3)))
"""… and how many: their lines have every kind of row and column, below rows of every kind."""
_LONG = ((9, 4), (12, 9), (4, 12), (9, 1), (1, 30), (30, 28))
_EXTRA = 3
"""A row is wider than the divisor by what is done, the colon, and one digit."""


@dataclass(frozen=True)
class Spot:
    """One token of one row, behind which the next one is written; or `=`."""

    line: AnnotatedTokens
    """(1, T)"""
    row: Row
    column: Column
    above_begins: bool
    """Whether the row above begins a step."""
    has_above: bool
    """Whether something stands above the query: in a first row, a leading digit of the dividend."""
    numbers: list[int]
    """Of every token what it is to this query: BROUGHT_DOWN … DIGIT, SYMBOL, or STRANGER."""
    queries: list[int]
    remedy: ClassVar[str] = "--model.positions row-place-step-relative --model.num_layers 1"


@dataclass(frozen=True)
class _Choices:
    """What may stand around a query."""

    row: Row
    column: Column
    above_begins: bool
    has_above: bool

    @staticmethod
    def of(spot: Spot) -> "_Choices":
        return _Choices(spot.row, spot.column, spot.above_begins, spot.has_above)

    def entering(self, num_operators: int) -> "_Entering":
        """Everything that may stand there."""
        listings: dict[Column, Callable[[], _Entering]] = {
            "equals": self._before_the_rows,
            "done": self._done,
            "colon": self._colon,
            "inside": partial(self._digit, 1),
            "highest": partial(self._digit, num_operators),
            "beyond": self._beyond,
        }
        listed = listings[self.column]()
        return listed.with_mirror() if self.row in ("begins", "goes on") else listed

    def _cases(self, **values: Tensor) -> "_Entering":
        """Every combination of these values; of a row that returns, in the mirror."""
        columns = torch.cartesian_prod(*values.values()).view(-1, len(values)).unbind(dim=1)
        given = dict(zip(values, columns, strict=True))
        nothing = torch.zeros_like(columns[0])
        named = {
            part.name: given.get(part.name, nothing)
            for part in fields(_Entering)
            if part.name not in ("choices", "adds")
        }
        return _Entering(choices=self, adds=nothing + (self.row == "returns"), **named)

    @property
    def _counts(self) -> Tensor:
        """How often the divisor may have been taken away before."""
        if self.row != "goes on":
            return torch.tensor([0])
        return torch.tensor([1]) if self.above_begins else torch.arange(2, 10)

    @property
    def _counts_above(self) -> Tensor:
        """What the row above may count, where it does the opposite: it begins with 9."""
        if self.row in ("first", "goes on"):
            return torch.tensor([0])
        return torch.tensor([9]) if self.above_begins else torch.arange(9)

    def _before_the_rows(self) -> "_Entering":
        return self._cases(brought_down=torch.arange(10), next_divisor=torch.arange(10))

    def _done(self) -> "_Entering":
        return self._cases(count=self._counts, count_above=self._counts_above)

    def _colon(self) -> "_Entering":
        """Any digits. The first column borrows as they say, both here and above."""
        digit = "brought_down" if self.row in ("first", "begins") else "above_next"
        cases = self._cases(
            **{digit: torch.arange(10)},
            next_divisor=torch.arange(10),
            count=self._counts,
            count_above=self._counts_above[:1],
        )
        return replace(cases, mark_above_next=cases.borrowed_above_next(0))

    def _digit(self, num_operators: int) -> "_Entering":
        """Any digits, and any borrow into them, but for what the row above would not leave."""
        highest, goes_on = self.column == "highest", self.row == "goes on"
        nothing, any_digit, either = torch.tensor([0]), torch.arange(10), torch.arange(2)
        begins = self.row in ("first", "begins")
        cases = self._cases(
            count=self._counts,
            minuend=any_digit,
            divisor=torch.arange(int(highest), 10),
            borrow=either,
            borrow_above=nothing if self.row in ("first", "returns") else either,
            above=any_digit if begins and self.has_above else nothing,
            next_divisor=nothing if highest else any_digit,
            above_next=any_digit if goes_on or (self.row == "returns" and not highest) else nothing,
            operator=torch.arange(num_operators),
        )
        if self.row == "first":
            return cases
        if self.row == "returns":
            # What was added above is taken away again: the same columns borrow.
            cases = replace(cases, borrow_above=cases.borrow)
        if not begins:
            cases = replace(cases, above=cases.minuend)
        cases = replace(cases, mark_above=cases.borrowed_above())
        cases = replace(cases, mark_above_next=cases.borrowed_above_next(cases.mark_above))
        return cases[cases.is_left_by_the_row_above()]

    def _beyond(self) -> "_Entering":
        """Less than 10 - c divisors are left before the row, and less than 9 - c of them behind it."""
        begins = self.row in ("first", "begins")
        has_digit = self.row in ("begins", "goes on")
        cases = self._cases(
            count=self._counts,
            minuend=torch.arange(10) if has_digit else torch.tensor([0]),
            borrow=torch.arange(2) if self.row != "returns" else torch.tensor([1]),
        )
        opposite = torch.full_like(cases.borrow, self.row in ("begins", "returns"))
        cases = replace(cases, above=0 * opposite if begins else cases.minuend, mark_above=opposite)
        left = cases.difference < 9 - cases.count
        return cases[(cases.minuend < 10 - cases.count) & left]


@dataclass(frozen=True)
class _Entering:
    """What stands around a query, and what decides it, int64 (n,) each; 0 where there is none.

    All but `adds` is told of a row that subtracts; one that adds is its mirror image.
    """

    choices: _Choices
    adds: Tensor
    """1 where the row adds."""
    count: Tensor
    count_above: Tensor
    """Only where the row above does the opposite."""
    brought_down: Tensor
    minuend: Tensor
    """The digit that the row takes from in the query's column."""
    divisor: Tensor
    borrow: Tensor
    """Whether the column below borrows."""
    borrow_above: Tensor
    """Whether it does in the row above."""
    above: Tensor
    mark_above: Tensor
    next_divisor: Tensor
    above_next: Tensor
    mark_above_next: Tensor
    operator: Tensor

    def changed(self, change: Callable[[Tensor], Tensor]) -> "_Entering":
        """The same done to all tensors."""
        names = [part.name for part in fields(self) if part.name != "choices"]
        return _Entering(self.choices, **{name: change(getattr(self, name)) for name in names})

    def __getitem__(self, cases: Tensor) -> "_Entering":
        return self.changed(lambda values: values[cases])

    def with_mirror(self) -> "_Entering":
        """All of this, and once more of rows that add."""
        twice = self.changed(lambda values: values.repeat(2))
        return replace(twice, adds=torch.cat([self.adds, 1 - self.adds]))

    @property
    def difference(self) -> Tensor:
        """What the query's column comes to; below 0 it borrows."""
        return self.minuend - self.divisor - self.borrow

    @property
    def next_difference(self) -> Tensor:
        """What the column that is to be written comes to."""
        row, column = self.choices.row, self.choices.column
        if column == "colon" and row in ("first", "begins"):
            return self.brought_down - self.next_divisor
        minuend = self.above if row in ("first", "begins") else self.above_next
        return minuend - self.next_divisor - (self.difference < 0).long()

    def borrowed_above(self) -> Tensor:
        """Whether the row above has a mark on its digit in the query's column."""
        return self._borrowed(self.above, self.divisor + self.borrow_above)

    def borrowed_above_next(self, borrow: Tensor | int) -> Tensor:
        """Whether it has one on the next, if this column of it borrows."""
        return self._borrowed(self.above_next, self.next_divisor + borrow)

    def is_left_by_the_row_above(self) -> Tensor:
        """bool (n,): what the bounds of rests and of what is left allow."""
        highest = self.choices.column == "highest"
        if self.choices.row == "begins":
            # The rest ends in this digit and others, R, below which D is brought down: 0R ≥ B > RD is
            # never so, nor 9R < B ≤ RD.
            shifted = torch.where(self.minuend == 0, self.borrow <= self.borrow_above, True)
            shifted &= torch.where(self.minuend == 9, self.borrow >= self.borrow_above, True)
            return shifted & ((self.mark_above == 1) | (not highest))
        if not highest:
            return torch.ones_like(self.count, dtype=torch.bool)
        if self.choices.row == "returns":
            return self.mark_above == 1
        # With M = 10^(n-1), v = yM + l and b = dM + m: yM + l < (10 - c)(dM + m), where the lower
        # parts are l < m if this row borrows, and l + m ≥ M if the row above did.
        divisors = 10 - self.count
        excess = 10 * self.above_next + self.minuend - divisors * self.divisor
        most = torch.where(self.borrow == 1, 2 * divisors, (divisors - 1) * (1 + self.borrow_above))
        return 2 * excess < most

    def _borrowed(self, left: Tensor, taken: Tensor) -> Tensor:
        """Whether a column borrowed of which this is left; or carried, where the row above added."""
        if self.choices.row == "goes on":
            return (left + taken > 9).long()
        return (left < taken).long()

    # Problems ------------------------------------------------------------------------------

    def operands(self, case: int) -> list[str]:
        """A division in which exactly this stands around some query."""
        row = self.choices.row
        one = self[torch.tensor([case])]
        divisor, left = one._divisor_and_left()
        if row == "first" or self.choices.column == "equals":
            return [str(left), str(divisor)]
        adds, count_above = bool(one.adds), int(one.count_above)
        brought_down = left + int(one.count) * divisor
        if adds:
            brought_down = -1 - brought_down
        rest, digit = divmod(brought_down, 10)
        if row in ("returns", "ends"):
            rest = brought_down
        # So many steps are done, which begin by subtracting; what the last of them counted is the
        # last digit of the quotient.
        steps = 3 if adds else 4
        last = -count_above if adds else count_above
        quotient = 10 ** (len(str(divisor)) + steps - 2) // divisor + 2
        quotient += (last - quotient) % 10
        dividend = quotient * divisor + rest
        if row in ("begins", "goes on"):
            dividend = 10 * dividend + digit
        return [str(dividend), str(divisor)]

    def _divisor_and_left(self) -> tuple[int, int]:
        """Of the only case: a divisor, and what is left before a row that subtracts it."""
        row, column = self.choices.row, self.choices.column
        named = {part.name: int(getattr(self, part.name)) for part in fields(self)[1:]}
        minuend, borrow, following = named["minuend"], named["borrow"], named["next_divisor"]
        if column == "done":
            return 10, 0
        if column == "beyond":
            return 99, 100 * minuend + (0 if borrow else 99)
        if column in ("equals", "colon"):
            given = named["brought_down"] + named["above_next"]
            return 10 + following, given + 10 * (row == "first" and column == "colon")
        above = named["above"] if row in ("first", "begins") else named["above_next"]
        left, divisor = 10 * above + minuend, named["divisor"]
        if column == "inside":
            divisor += 100 + 10 * following
        if row == "first" and self.choices.has_above:
            left += 100
        if row == "begins" and column == "inside":
            lower = _lower_of_a_rest(minuend, borrow, named["borrow_above"])
            return 100 * divisor + lower[1], 100 * left + lower[0]
        lower = _LOWER[borrow, 1 if row == "begins" else named["borrow_above"]]
        return 1000 * divisor + lower[1], 1000 * left + lower[0]


_LOWER = {(0, 0): (499, 499), (0, 1): (999, 999), (1, 0): (0, 999), (1, 1): (1, 999)}
"""By whether a row borrows and whether the one above did: three digits of what is left and of the divisor.
What is left is as small and the divisor as large as this allows, or nearly so."""


@cache
def _lower_of_a_rest(minuend: int, borrow: int, borrow_above: int) -> tuple[int, int]:
    """Two digits of a rest with another brought down, and of the divisor, for which both is so.

    The rest has the minuend and the first of these digits; the row takes from both of these.
    """
    for lower, divisor in product(range(100), repeat=2):
        rest = 10 * minuend + lower // 10
        if (rest < divisor, lower < divisor) == (bool(borrow_above), bool(borrow)):
            return lower, divisor
    raise ValueError(f"no rest borrows {borrow_above}, {borrow} at {minuend}")


class NonRestoringDivisionEnumeration(GroupedEnumeration[_Choices]):
    """Everything that the reaches of a model can hold in divisions of every length."""

    def __init__(
        self, model: Transformer, task: Arithmetic, format: NonRestoringDivisionFormat
    ) -> None:
        self._task, self._format = task, format
        claim = f"{task.claim} of every length whose second is not 0."
        super().__init__(claim, self._found(model))

    def long_lines(self) -> Iterator[tuple[Tensor, list[Skeleton]]]:
        """Lines of random problems, far longer than those the patterns are taken from."""
        generator = generators.generator(0, "locality")
        for number, lengths in enumerate(_LONG):
            operation = self._task.operations[number % len(self._task.operations)]
            shapes = Shapes.of(torch.tensor([lengths]), operation)
            ids, spots = self._spots(self._task.draw(shapes, generator))
            yield ids, list(spots)

    def _found(self, model: Transformer) -> Iterator[tuple[Pattern, _Choices]]:
        for lengths, (first, second) in product(_LENGTHS, _SHORT):
            problem = Problems.from_texts(
                [[first * lengths[0], second * lengths[1]]], [self._task.operations[0]]
            )
            _, spots = self._spots(problem)
            visibility = visibility_in(model, spots[0].line)
            for spot in spots:
                for query in spot.queries:
                    yield pattern_of(spot, visibility, query), _Choices.of(spot)

    def _spots(self, problem: Problems) -> tuple[Tensor, list[Spot]]:
        """The line of one problem, ids (1, T), and all of its queries."""
        format = self._format
        line = format.write(problem, self._task.answer(problem))
        num_columns, length = problem.lengths_BN[0].tolist()
        operator_at = num_columns + (0 if format.start_id is None else 1)
        equals_at = operator_at + length + 1
        num_steps = max(1, num_columns - length + 1)
        spots = []

        def add(
            query: int, row: Row, column: Column, seen: dict[int, int], above_begins: bool = False
        ) -> None:
            numbers = [STRANGER] * line.ids.shape[1]
            if format.start_id is not None:
                numbers[0] = SYMBOL
            for token, number in seen.items():
                numbers[token] = number
            has_above = ABOVE in seen.values()
            spots.append(Spot(line, row, column, above_begins, has_above, numbers, [query]))

        units = {operator_at - 1: BROUGHT_DOWN, equals_at - 1: DIVISOR}
        add(equals_at, "first", "equals", units | {equals_at: SYMBOL})
        rows = self._rows(line.ids[0].tolist()[equals_at + 1 :], length + _EXTRA, num_steps)
        for number, (row, begin, steps_done) in enumerate(rows):
            begin += equals_at + 1
            above = begin - length - _EXTRA
            above_begins = number > 0 and rows[number - 1][0] in ("first", "begins")
            seen = {begin: DONE}
            add(begin, row, "done", seen | ({above: DONE_ABOVE} if number else {}), above_begins)
            here = seen | {begin + 1: SYMBOL, equals_at - 1: DIVISOR}
            if number:
                here[above + 1] = SYMBOL
            if row in ("first", "begins"):
                here[operator_at - num_steps + steps_done] = BROUGHT_DOWN
            else:
                here[above + 2] = ABOVE_NEXT
            add(begin + 1, row, "colon", here, above_begins)
            for digit in range(1, length + 2 if row != "ends" else 1):
                here = seen | {begin + 1 + digit: DIGIT}
                if digit <= length:
                    next_divisor = equals_at - 1 - digit
                    here[next_divisor] = DIVISOR if digit < length else OPERATOR
                leading = operator_at - num_steps - digit
                if row != "first":
                    here[above + 1 + digit] = ABOVE
                elif leading >= operator_at - num_columns:
                    here[leading] = ABOVE
                if row not in ("first", "begins") and digit <= length:
                    here[above + 2 + digit] = ABOVE_NEXT
                column: Column = "inside" if digit < length else "highest"
                add(
                    begin + 1 + digit,
                    row,
                    column if digit <= length else "beyond",
                    here,
                    above_begins,
                )
        return line.ids.long(), spots

    def _rows(self, work: list[int], width: int, num_steps: int) -> list[tuple[Row, int, int]]:
        """What the rows of a line are, where they begin, and how many steps are done before each."""
        rows: list[tuple[Row, int, int]] = [("first", 0, 0)]
        while rows[-1][0] != "ends":
            _, begin, steps_done = rows[-1]
            adds = work[begin] >= self._format.first_done + 10
            ends_step = work[begin + width - 1] >= self._format.first_marked
            steps_done += ends_step
            row: Row = "goes on"
            if ends_step and steps_done < num_steps:
                row = "begins"
            elif ends_step:
                row = "ends" if adds else "returns"
            rows.append((row, begin + width, steps_done))
        return rows

    def contents(self, pattern: Pattern, choices: _Choices) -> Context:
        """Tokens from what stands around the query."""
        format = self._format
        entering = choices.entering(len(format.operator_ids))
        adds = entering.adds

        def mirrored(number: Tensor) -> Tensor:
            return torch.where(adds == 1, 9 - number, number)

        def digit(number: Tensor, mark: Tensor) -> Tensor:
            return mirrored(number) + format.first_marked * mark

        def done(sign: Tensor, count: Tensor) -> Tensor:
            return format.first_done + 10 * sign + mirrored(count)

        def column(difference: Tensor) -> Tensor:
            return digit(difference % 10, (difference < 0).long())

        constant = torch.zeros_like(adds)
        above_goes_the_same_way = choices.row == "goes on"
        value = {
            BROUGHT_DOWN: mirrored(entering.brought_down),
            DIVISOR: entering.next_divisor,
            OPERATOR: torch.tensor(format.operator_ids)[entering.operator],
            DONE_ABOVE: (
                done(adds, entering.count - 1)
                if above_goes_the_same_way
                else done(1 - adds, entering.count_above)
            ),
            ABOVE: digit(entering.above, entering.mark_above),
            ABOVE_NEXT: digit(entering.above_next, entering.mark_above_next),
            DONE: done(adds, entering.count),
            DIGIT: column(entering.difference),
        }
        if choices.column == "equals":
            target = constant + format.first_done
        elif choices.column == "done":
            target = constant + format.colon_id
        elif choices.row == "ends":
            target = constant + format.end_id
        elif choices.column == "beyond":
            ends_step = entering.difference < 0
            target = torch.where(
                ends_step, done(1 - adds, constant + 9), done(adds, entering.count + 1)
            )
        else:
            target = column(entering.next_difference)
        ids = [
            constant + symbol if number == SYMBOL else value[number]
            for number, symbol in zip(pattern.numbers, pattern.ids, strict=True)
        ]
        return Context(pattern, torch.stack(ids, dim=1), target, entering.operands)
