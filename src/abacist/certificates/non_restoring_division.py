"""Enumerates the contexts of non-restoring division, which works out a quotient row by row.

Each row subtracts the divisor b from the remainder that the previous row left, or adds it, column by
column. In `-2:8'9'9'` the sign says what is done and the 2 how often it was done before in this step;
a digit is marked where its column borrows from the next. Suppose that a model sees no more of the work
than two neighbouring columns of a row and of the row above. Then it is right in every row of every
division if it is right for everything that can stand in these columns.

**Rows that add are mirror images of rows that subtract.** Replace each digit d by 9 - d, each count c
by 9 - c, and addition by subtraction. Then a value v becomes -1 - v, a carry becomes a borrow, and
bringing down a digit means the same as before. So only rows that subtract are enumerated, and then
mirrored. For these rows,

* a step begins with a remainder r, 0 ≤ r < b, to which the row above has added b, and with a digit d
  that is brought down: 0 ≤ 10r + d < 10b;
* before the row that counts c, the remainder is v = 10r + d - cb, so 0 ≤ v < (10 - c)b.

The columns that are not seen matter only through the borrow into the lower of the two columns. `_Choices`
says for each kind of row which borrows and digits are possible, including what the bounds above imply
in the highest columns. All of these do occur: `_Inputs.operands` makes a problem from each.
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
    fill,
    pattern_of,
    visibility_in,
)
from abacist.formats import non_restoring_division as notation
from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.non_restoring_division import NonRestoringDivisionFormat
from abacist.formats.roles import SIGN, Role
from abacist.models.transformer import Transformer
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.problems import Problems, Shapes

BROUGHT_DOWN, DIVISOR, OPERATOR, ACTION_ABOVE, ABOVE, ABOVE_NEXT, ACTION, DIGIT = range(8)
FIRST_SIGN, SECOND_SIGN, OWN_SIGN = range(8, 11)
"""Roles of the tokens around a query in column i.

In order: the digit of the dividend that the step brings down; digit i + 1 of the divisor, or the operator
in its place; the sign and count of the row above, and its digits i and i + 1; the sign and count of the
query's own row, and its digit i. Where operands are signed, the signs of dividend, divisor and remainder.
"""

Row = Literal["first", "begins", "continues", "returns", "ends"]
"""The kind of a row.

The first row of the line; the first row of a later step; any other row of a step; the row that adds the
divisor back when all digits are used and the remainder is negative; and the last, which ends the work.
"""
Column = Literal["equals", "sign", "action", "colon", "inside", "highest", "beyond"]
"""The kind of a query.

`=`, the remainder's sign where there is one, sign and count of a row, colon, a digit below the divisor's
highest, at it, or beyond it.
"""

_SHORT = (("1", "1"), ("9", "1"), ("1", "9"), ("9", "9"))
"""Digits of which the dividend and the divisor consist."""
_LENGTHS = tuple(product((1, 2, 3, 4), (1, 2, 3)))
"""Numbers of digits of both. Lines of these numbers show every kind of row and column, below rows of every kind."""
_LONG = ((9, 4), (12, 9), (4, 12), (9, 1), (1, 30), (30, 28))


@dataclass(frozen=True)
class Spot:
    """One token of a row, or `=`, together with what the next token depends on."""

    line: AnnotatedTokens
    """The line, (1, T)."""
    row: Row
    column: Column
    above_begins: bool
    """Whether the row above begins a step."""
    has_above: bool
    """Whether a digit stands above the query; in the first row, a leading digit of the dividend."""
    numbers: list[int]
    """For each token its role for this query: BROUGHT_DOWN … OWN_SIGN, SYMBOL, or STRANGER."""
    queries: list[int]
    remedy: ClassVar[str] = "--model.positions row-place-step-relative --model.num_layers 1"


@dataclass(frozen=True)
class _Choices:
    """The kind of a query and its row, which decide what can stand around it."""

    row: Row
    column: Column
    above_begins: bool
    has_above: bool

    @staticmethod
    def of(spot: Spot) -> "_Choices":
        return _Choices(spot.row, spot.column, spot.above_begins, spot.has_above)

    def inputs(self, num_operators: int, signed: bool) -> "_Inputs":
        """Return everything that can stand around such a query; `signed` says whether operands have signs."""
        enumerated: dict[Column, Callable[[], _Inputs]] = {
            "equals": partial(self._before_the_rows, signed),
            "sign": partial(self._before_the_rows, signed),
            "action": self._action,
            "colon": self._colon,
            "inside": partial(self._digit, 1),
            "highest": partial(self._digit, num_operators),
            "beyond": self._beyond,
        }
        inputs = enumerated[self.column]()
        # The first row subtracts, unless the dividend is below 0.
        has_mirror = self.row in ("begins", "continues") or (self.row == "first" and signed)
        return inputs.with_mirror() if has_mirror else inputs

    def _cases(self, **values: Tensor) -> "_Inputs":
        """Return every combination of these values; mirrored for a row that returns."""
        columns = torch.cartesian_prod(*values.values()).view(-1, len(values)).unbind(dim=1)
        combined = dict(zip(values, columns, strict=True))
        nothing = torch.zeros_like(columns[0])
        named = {
            part.name: combined.get(part.name, nothing)
            for part in fields(_Inputs)
            if part.name not in ("choices", "adds")
        }
        return _Inputs(choices=self, adds=nothing + (self.row == "returns"), **named)

    @property
    def _counts(self) -> Tensor:
        """How often the divisor can have been subtracted before in this step."""
        if self.row != "continues":
            return torch.tensor([0])
        return torch.tensor([1]) if self.above_begins else torch.arange(2, 10)

    @property
    def _counts_above(self) -> Tensor:
        """Possible counts of the row above if it has the opposite sign; such rows begin with 9."""
        if self.row in ("first", "continues"):
            return torch.tensor([0])
        return torch.tensor([9]) if self.above_begins else torch.arange(9)

    def _before_the_rows(self, signed: bool) -> "_Inputs":
        return self._cases(
            brought_down=torch.arange(10),
            next_divisor=torch.arange(10),
            divisor_sign=torch.arange(1 + signed),
        )

    def _action(self) -> "_Inputs":
        return self._cases(count=self._counts, count_above=self._counts_above)

    def _colon(self) -> "_Inputs":
        """Return any digits; they decide whether the first column borrows, in this row and above."""
        digit = "brought_down" if self.row in ("first", "begins") else "above_next"
        cases = self._cases(
            **{digit: torch.arange(10)},
            next_divisor=torch.arange(10),
            count=self._counts,
            count_above=self._counts_above[:1],
        )
        return replace(cases, mark_above_next=cases.borrowed_above_next(0))

    def _digit(self, num_operators: int) -> "_Inputs":
        """Return any digits and borrows, except those that the row above cannot leave."""
        highest, continues = self.column == "highest", self.row == "continues"
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
            above_next=any_digit
            if continues or (self.row == "returns" and not highest)
            else nothing,
            operator=torch.arange(num_operators),
        )
        if self.row == "first":
            return cases
        if self.row == "returns":
            # The row above added what this row subtracts: the same columns borrow.
            cases = replace(cases, borrow_above=cases.borrow)
        if not begins:
            cases = replace(cases, above=cases.minuend)
        cases = replace(cases, mark_above=cases.borrowed_above())
        cases = replace(cases, mark_above_next=cases.borrowed_above_next(cases.mark_above))
        return cases[cases.is_left_by_the_row_above()]

    def _beyond(self) -> "_Inputs":
        """Return digits for which the remainder is below (10 - c)b before the row and (9 - c)b after it."""
        begins = self.row in ("first", "begins")
        has_digit = self.row in ("begins", "continues")
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
class _Inputs:
    """What stands around a query and what decides it, int64 (n,) each; 0 where there is no such token.

    All fields except `adds` describe a row that subtracts; a row that adds is its mirror image.
    """

    choices: _Choices
    adds: Tensor
    """1 where the row adds."""
    count: Tensor
    count_above: Tensor
    """The count of the row above, if that has the opposite sign."""
    brought_down: Tensor
    minuend: Tensor
    """The digit from which the row subtracts in the query's column."""
    divisor: Tensor
    borrow: Tensor
    """Whether the column below borrows."""
    borrow_above: Tensor
    """Whether the column below borrows in the row above."""
    above: Tensor
    mark_above: Tensor
    next_divisor: Tensor
    above_next: Tensor
    mark_above_next: Tensor
    operator: Tensor
    divisor_sign: Tensor
    """1 where the divisor is below 0."""

    def changed(self, change: Callable[[Tensor], Tensor]) -> "_Inputs":
        """Apply the same change to all tensors."""
        names = [part.name for part in fields(self) if part.name != "choices"]
        return _Inputs(self.choices, **{name: change(getattr(self, name)) for name in names})

    def __getitem__(self, cases: Tensor) -> "_Inputs":
        return self.changed(lambda values: values[cases])

    def with_mirror(self) -> "_Inputs":
        """Return these cases, and their mirror images in rows that add."""
        twice = self.changed(lambda values: values.repeat(2))
        return replace(twice, adds=torch.cat([self.adds, 1 - self.adds]))

    @property
    def difference(self) -> Tensor:
        """The difference in the query's column; if negative, the column borrows."""
        return self.minuend - self.divisor - self.borrow

    @property
    def next_difference(self) -> Tensor:
        """The difference in the column that is to be written next."""
        row, column = self.choices.row, self.choices.column
        if column == "colon" and row in ("first", "begins"):
            return self.brought_down - self.next_divisor
        minuend = self.above if row in ("first", "begins") else self.above_next
        return minuend - self.next_divisor - (self.difference < 0).long()

    def borrowed_above(self) -> Tensor:
        """Return whether the row above has marked its digit in the query's column."""
        return self._borrowed(self.above, self.divisor + self.borrow_above)

    def borrowed_above_next(self, borrow: Tensor | int) -> Tensor:
        """Return whether it has marked the next digit, given the borrow of this column."""
        return self._borrowed(self.above_next, self.next_divisor + borrow)

    def is_left_by_the_row_above(self) -> Tensor:
        """Return bool (n,): whether the bounds of remainders allow these digits."""
        highest = self.choices.column == "highest"
        if self.choices.row == "begins":
            # The lower digits of the remainder are R, and D is brought down after them. With B the
            # lower digits of the divisor, neither 0R ≥ B > RD nor 9R < B ≤ RD is possible.
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

    def _borrowed(self, left: Tensor, subtracted: Tensor) -> Tensor:
        """Return whether a column borrowed that left this digit, or carried if the row above added."""
        if self.choices.row == "continues":
            return (left + subtracted > 9).long()
        return (left < subtracted).long()

    # Problems ------------------------------------------------------------------------------

    def operands(self, case: int) -> list[str]:
        """Return dividend and divisor of a problem in which this case stands around some query."""
        row = self.choices.row
        one = self[torch.tensor([case])]
        divisor, left = one._divisor_and_left()
        if row == "first":
            dividend = -1 - left if bool(one.adds) else left
            sign = -1 if bool(one.divisor_sign) else 1
            return [str(sign * dividend), str(sign * divisor)]
        adds, count_above = bool(one.adds), int(one.count_above)
        brought_down = left + int(one.count) * divisor
        if adds:
            brought_down = -1 - brought_down
        remainder, digit = divmod(brought_down, 10)
        if row in ("returns", "ends"):
            remainder = brought_down
        # The division has this many steps before, the first of which subtracts; the count of the
        # last of them is the last digit of the quotient.
        steps = 3 if adds else 4
        last = -count_above if adds else count_above
        quotient = 10 ** (len(str(divisor)) + steps - 2) // divisor + 2
        quotient += (last - quotient) % 10
        dividend = quotient * divisor + remainder
        if row in ("begins", "continues"):
            dividend = 10 * dividend + digit
        return [str(dividend), str(divisor)]

    def _divisor_and_left(self) -> tuple[int, int]:
        """Return a divisor and the remainder before a row that subtracts it, for the only case."""
        row, column = self.choices.row, self.choices.column
        named = {part.name: int(getattr(self, part.name)) for part in fields(self)[1:]}
        minuend, borrow, following = named["minuend"], named["borrow"], named["next_divisor"]
        if column == "action":
            return 10, 0
        if column == "beyond":
            return 99, 100 * minuend + (0 if borrow else 99)
        if column in ("equals", "sign", "colon"):
            digit = named["brought_down"] + named["above_next"]
            return 10 + following, digit + 10 * (row == "first" and column == "colon")
        above = named["above"] if row in ("first", "begins") else named["above_next"]
        left, divisor = 10 * above + minuend, named["divisor"]
        if column == "inside":
            divisor += 100 + 10 * following
        if row == "first" and self.choices.has_above:
            left += 100
        if row == "begins" and column == "inside":
            lower = _lower_of_a_remainder(minuend, borrow, named["borrow_above"])
            return 100 * divisor + lower[1], 100 * left + lower[0]
        lower = _LOWER[borrow, 1 if row == "begins" else named["borrow_above"]]
        return 1000 * divisor + lower[1], 1000 * left + lower[0]


_LOWER = {(0, 0): (499, 499), (0, 1): (999, 999), (1, 0): (0, 999), (1, 1): (1, 999)}
"""Three lower digits of the remainder and of the divisor, by whether a row borrows and the one above did.

The remainder is about as small, and the divisor about as large, as this allows.
"""


@cache
def _lower_of_a_remainder(minuend: int, borrow: int, borrow_above: int) -> tuple[int, int]:
    """Return two digits of a remainder, the second brought down, and two of the divisor.

    With them a row borrows as `borrow` says, and the row above as `borrow_above` says: the remainder
    consists of the minuend and the first digit, and the row subtracts from both digits.
    """
    for lower, divisor in product(range(100), repeat=2):
        remainder = 10 * minuend + lower // 10
        if (remainder < divisor, lower < divisor) == (bool(borrow_above), bool(borrow)):
            return lower, divisor
    raise ValueError(f"no remainder borrows {borrow_above}, {borrow} at {minuend}")


class NonRestoringDivisionEnumeration(GroupedEnumeration[_Choices]):
    """All contexts of the receptive fields of a model in divisions of every length."""

    def __init__(
        self, model: Transformer, task: Arithmetic, format: NonRestoringDivisionFormat
    ) -> None:
        self._task, self._format = task, format
        claim = f"{task.claim} of every length, except divisions by 0."
        super().__init__(claim, self._patterns(model))

    def long_lines(self) -> Iterator[tuple[Tensor, list[Skeleton]]]:
        """Yield lines of random problems, far longer than those that show the patterns."""
        generator = generators.generator(0, "locality")
        for number, lengths in enumerate(_LONG):
            operation = self._task.operations[number % len(self._task.operations)]
            shapes = Shapes.of(torch.tensor([lengths]), operation)
            ids, spots = self._spots(self._task.draw(shapes, generator))
            yield ids, list(spots)

    def _patterns(self, model: Transformer) -> Iterator[tuple[Pattern, _Choices]]:
        signs = ("", "-") if self._format.signed else ("",)
        for lengths, (first, second), sign in product(_LENGTHS, _SHORT, signs):
            problem = Problems.from_texts(
                [[sign + first * lengths[0], second * lengths[1]]], [self._task.operations[0]]
            )
            _, spots = self._spots(problem)
            visibility = visibility_in(model, spots[0].line)
            for spot in spots:
                for query in spot.queries:
                    yield pattern_of(spot, visibility, query), _Choices.of(spot)

    def _spots(self, problem: Problems) -> tuple[Tensor, list[Spot]]:
        """Return the line of one problem, ids (1, T), and all of its queries."""
        line = self._format.write(problem, self._task.answer(problem))
        token_of = {role: token for token, role in enumerate(self._format.roles(line.ids[0]))}
        length = max(role.column for role in token_of if role.part == notation.DIVISOR)
        spots = []

        def add(query: Role, row: Row, column: Column, seen: dict[Role, int], **kind: bool) -> None:
            numbers = [STRANGER] * line.ids.shape[1]
            for role, number in ({Role("<start>"): SYMBOL} | seen).items():
                if role in token_of:
                    numbers[token_of[role]] = number
            has_above = any(seen[role] == ABOVE for role in seen if role in token_of)
            above_begins = kind.get("above_begins", False)
            spots.append(
                Spot(line, row, column, above_begins, has_above, numbers, [token_of[query]])
            )

        def divisor(column: int) -> dict[Role, int]:
            if column > length:
                return {Role(notation.OPERATOR): OPERATOR}
            return {Role(notation.DIVISOR, column): DIVISOR}

        equals = Role("=")
        units = Role(notation.DIVIDEND, step=self._num_steps(token_of))
        seen = {units: BROUGHT_DOWN, equals: SYMBOL} | divisor(1)
        signs = {Role(SIGN, row=1): FIRST_SIGN, Role(SIGN, row=2): SECOND_SIGN}
        add(equals, "first", "equals", seen | signs)
        if self._format.signed:
            add(Role(SIGN), "first", "sign", seen | signs | {Role(SIGN): OWN_SIGN})
        above: Role | None = None
        above_row: Row = "ends"
        for action, row in self._rows(line.ids[0], token_of):

            def own(part: str, column: int = 0, action: Role = action) -> Role:
                return Role(part, column, action.row, action.step)

            def upper(part: str, column: int = 0, above: Role | None = above) -> Role:
                return Role(part, column, above.row, above.step) if above else Role("nothing")

            begins = row in ("first", "begins")
            kind = {"above_begins": above is not None and above_row in ("first", "begins")}
            own_action = {own(notation.ACTION): ACTION}
            seen = own_action | {upper(notation.ACTION): ACTION_ABOVE}
            add(own(notation.ACTION), row, "action", seen, **kind)
            seen = own_action | {own(notation.COLON): SYMBOL, upper(notation.COLON): SYMBOL}
            if begins:
                seen[Role(notation.DIVIDEND, step=action.step)] = BROUGHT_DOWN
            else:
                seen[upper(notation.DIGIT, 1)] = ABOVE_NEXT
            add(own(notation.COLON), row, "colon", seen | divisor(1), **kind)
            for column in range(1, length + 2 if row != "ends" else 1):
                seen = own_action | {own(notation.DIGIT, column): DIGIT}
                leading = Role(notation.DIVIDEND, column)
                seen[leading if row == "first" else upper(notation.DIGIT, column)] = ABOVE
                if column <= length:
                    seen |= divisor(column + 1)
                if column <= length and not begins:
                    seen[upper(notation.DIGIT, column + 1)] = ABOVE_NEXT
                place: Column = "inside" if column < length else "highest"
                place = place if column <= length else "beyond"
                add(own(notation.DIGIT, column), row, place, seen, **kind)
            above, above_row = action, row
        return line.ids.long(), spots

    def _rows(self, ids: Tensor, token_of: dict[Role, int]) -> Iterator[tuple[Role, Row]]:
        """Yield the role of each row's sign and count, and the kind of the row."""
        actions = [role for role in token_of if role.part == notation.ACTION]
        num_steps, step = self._num_steps(token_of), 0
        row: Row = "first"
        adds = False
        for action in actions:
            if action.row > 1:
                if row == "returns" or (action.step > num_steps and adds):
                    row = "ends"
                elif action.step > num_steps:
                    row = "returns"
                else:
                    row = "continues" if action.step == step else "begins"
            yield action, row
            step = action.step
            adds = int(ids[token_of[action]]) >= self._format.first_done + 10

    def _num_steps(self, token_of: dict[Role, int]) -> int:
        """Return how many digits of the dividend are brought down."""
        return max(role.step for role in token_of if role.part == notation.DIVIDEND)

    def context(self, pattern: Pattern, choices: _Choices) -> Context:
        """Return the tokens that the pattern holds for everything that can stand around the query."""
        format = self._format
        inputs = choices.inputs(len(format.operator_ids), format.signed)
        adds = inputs.adds

        def mirrored(number: Tensor) -> Tensor:
            return torch.where(adds == 1, 9 - number, number)

        def digit(number: Tensor, mark: Tensor) -> Tensor:
            return mirrored(number) + format.first_marked * mark

        def done(sign: Tensor, count: Tensor) -> Tensor:
            return format.first_done + 10 * sign + mirrored(count)

        def column(difference: Tensor) -> Tensor:
            return digit(difference % 10, (difference < 0).long())

        constant = torch.zeros_like(adds)
        above_has_the_same_sign = choices.row == "continues"
        value = {
            BROUGHT_DOWN: mirrored(inputs.brought_down),
            DIVISOR: inputs.next_divisor,
            OPERATOR: torch.tensor(format.operator_ids)[inputs.operator],
            ACTION_ABOVE: (
                done(adds, inputs.count - 1)
                if above_has_the_same_sign
                else done(1 - adds, inputs.count_above)
            ),
            ABOVE: digit(inputs.above, inputs.mark_above),
            ABOVE_NEXT: digit(inputs.above_next, inputs.mark_above_next),
            ACTION: done(adds, inputs.count),
            DIGIT: column(inputs.difference),
        }
        if format.signed:
            signs = torch.tensor([format.plus_id, format.minus_id])
            value[FIRST_SIGN] = signs[adds]
            value[SECOND_SIGN] = value[OWN_SIGN] = signs[inputs.divisor_sign]
        if choices.column == "equals" and format.signed:
            target = value[OWN_SIGN]
        elif choices.column in ("equals", "sign"):
            target = done(adds, constant)
        elif choices.column == "action":
            target = constant + format.colon_id
        elif choices.row == "ends":
            target = constant + format.end_id
        elif choices.column == "beyond":
            ends_step = inputs.difference < 0
            target = torch.where(
                ends_step, done(1 - adds, constant + 9), done(adds, inputs.count + 1)
            )
        else:
            target = column(inputs.next_difference)
        return Context(pattern, fill(pattern, value, constant), target, inputs.operands)
