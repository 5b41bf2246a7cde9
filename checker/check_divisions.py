"""Divisions of numbers of every length: what `check_written_work.py` needs to check them.

`check_certificate.py` beside this file holds the argument, the model and the check, and is to be read
first. This file lists the neighbourhoods of a written division, and says why none is missing.

The algorithm is non-restoring division of a by b, as `docs/certificate-divisions.md` describes it. A step
brings down a digit d of a to the rest r, which makes v = 10 r + d, and writes rows. If b has n digits, a
row has n + 1, units first, with a mark (') where a column borrows from the next one or carries into it.
A number below 0 is written as its ten's complement. A step that subtracts writes the rows `-0:`, `-1:` and so
on with v - b, v - 2 b and so on, until one is below 0. The next step adds, in the rows `+9:`, `+8:` and so
on, until one is not below 0. If the last step subtracts, a row `+9:` adds b once more: it returns. At
the end stands `-0:<end>`. So a row is of one of these kinds, or a mirror image of the second or third:

    kind       the row above holds    the row itself    for all b > 0 and
    first      (digits of a)          v - b             the number v of the first n digits of a, or fewer
    begins     r                      10 r + d - b      0 <= r < b and all digits d
    within     v                      v - b             0 <= v < (10 - c) b, in the row `-c:`, c = 1 ... 9
    returns    r - b                  r                 0 <= r < b

The bounds. A step that subtracts begins with 0 <= r < b, so v < 10 b, and c subtractions leave
v < (10 - c) b. The step ends with -b <= r < 0. Now look into a mirror that shows 9 - x for each digit x of
r, d and v: it shows -1 - r for r, which is at least 0 and less than b, and instead of v + b it shows
(-1 - v) - b, with marks in the same columns. So the next step, which adds, is a step that subtracts in the
mirror; the row `+9:` is the mirror image of `-0:`, and so on. The step ends with 0 <= r < b again.

The closure. What a row and the row above hold in a column follows from a digit of b, a digit of r or v,
and the *state* that the column before hands on: borrows, carries, and how the digits so far compare with
the bound. `Row.states` follows the states in which units are entered with all pairs of digits, until no
new state appears; there are at most 38. So every column of every row is entered in one of them.
The tokens of a row see two columns, and `Row.contexts` runs through all digits of two columns after
each state. If b ends in the first of the two, its digit there is not 0, and the bound has to be kept. If
b goes on, the bound can be kept whatever the two columns hold, because b may lead with a 1 further up, and
r or v with a 0. So no neighbourhood is missing, and each one that is listed occurs in some division.
"""

import random
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import chain, product, starmap
from typing import Any, NamedTuple

from check_certificate import (
    DIGITS,
    END,
    EVERYWHERE,
    FIRST,
    START,
    Columns,
    Neighbourhood,
    Token,
    neighbourhood,
    random_number,
)

State = tuple[Any, ...]  # the last part is true if the number is small enough so far
Case = tuple[str, dict[str, Any]]  # what must follow, and what is seen
TEN = range(10)
WIDE = (EVERYWHERE, EVERYWHERE)  # in all rows and steps
COUNT = (EVERYWHERE, 3, EVERYWHERE)  # where the count of the row in question stands
MIRROR = str.maketrans("0123456789+-", "9876543210-+")


# A column of each kind of row ---------------------------------------------------------------
# From a state, a digit of r or v, and one of b: the next state, the token above, and the token of the row.


def subtract(x: int, y: int, borrow: int) -> tuple[int, int]:
    """The borrow from the next column, and the digit."""
    return int(x - y - borrow < 0), (x - y - borrow) % 10


def marked(digit: int, mark: int) -> str:
    """The token of a digit."""
    return f"{digit}'" if mark else str(digit)


@cache
def first(state: State, x: int | None, b: int) -> tuple[State, str | None, str]:
    """The next digit of v, which is x, stands above; None where a has no more digits."""
    borrow, v, _ = state
    borrow, digit = subtract(v or 0, b, borrow)
    x = None if v is None else x
    return (borrow, x, v is None), None if x is None else str(x), marked(digit, borrow)


@cache
def begins(state: State, r: int, b: int) -> tuple[State, str, str]:
    """The next digit of v, which is r, stands above. That row added b, and carried where r < b so far."""
    borrow, v, carry = state
    borrow, digit = subtract(v, b, borrow)
    carry, _ = subtract(r, b, carry)
    return (borrow, r, carry), marked(r, carry), marked(digit, borrow)


@cache
def within(c: int, state: State, v: int, b: int) -> tuple[State, str, str]:
    """The row above took b from v + b; `rest` is what v - (10 - c) b hands on, below 0 if it is."""
    borrow, above, rest = state
    borrow, digit = subtract(v, b, borrow)
    above, rest = (v + b + above) // 10, (v - (10 - c) * b + rest) // 10
    return (borrow, above, rest), marked(v, above), marked(digit, borrow)


@cache
def returns(state: State, r: int, b: int) -> tuple[State, str, str]:
    """The row above took b from r, and this row gives it back, with a carry for each borrow."""
    borrow, digit = subtract(r, b, *state)
    return (borrow,), marked(digit, borrow), marked(r, borrow)


class Row(NamedTuple):
    """A kind of row: its count, its columns, the states in which units are entered, and digits of r or v."""

    count: str
    column: Callable[..., tuple[State, Any, str]]
    starts: list[State]
    digits: tuple[int | None, ...] = (*TEN,)

    def states(self) -> list[State]:
        """All states in which a column can be entered. The list grows while it is read."""
        reached = [*self.starts]
        for state in reached:
            for x, b in product(self.digits, TEN):
                after, *_ = self.column(state, x, b)
                reached += [] if after in reached else [after]
        return reached

    def contexts(self) -> dict[tuple[Any, ...], None]:
        """Two columns: the token above, that of the row, the next above, the next of b, the next of the row.

        The next of b is None above the highest digit of b, where the row ends.
        """
        columns = product(self.states(), self.digits, TEN)
        lower = dict.fromkeys((*self.column(*column), column[-1] > 0) for column in columns)
        contexts = dict[tuple[Any, ...], None]()
        for (state, above, own, can_lead), x in product(lower, self.digits):
            for b in TEN:
                _, next_above, following = self.column(state, x, b)
                contexts[above, own, next_above, b, following] = None
            end, next_above, following = self.column(state, x, 0)
            if can_lead and end[-1]:
                contexts[above, own, next_above, None, following] = None
        return contexts


# What is written ----------------------------------------------------------------------------


def mirrored(case: Case) -> Case:
    """Digits x become 9 - x, except those of b, and counts those of the opposite step."""
    right, parts = case
    seen = {
        name: (
            text if text is None or name == "digit of b" else str(text).translate(MIRROR),
            *where,
        )
        for name, (text, *where) in parts.items()
    }
    return right.translate(MIRROR), seen


class Divisions:
    """Quotients and remainders, which are written in the same way.

    Row k has its count in row 2 k - 1 and all other tokens in row 2 k. Its colon stands at place 0 if it
    begins a step, otherwise at place 1, and its digits at places 3, 5, 7 and so on. Digits of b stand at places
    2, 4, 6 and so on, and the operator follows. Digits of a have steps 2, 4, 6 and so on. The colon of a row
    has the step before that of the last digit brought down, its first digit has the same, and so on.
    """

    problems, most_tokens = "divisions", 1_000
    windows = ({"row": (-2, 0), "place": (0, 2), "step": (0, 2)},)

    def __init__(self, *operators: str) -> None:
        pairs = "all pairs of non-negative integers of every length, except divisions by 0"
        self.operators, self.claim = operators, f"is right for {' and '.join(operators)} of {pairs}"
        digits, counts = [d + mark for mark in ("", "'") for d in DIGITS], product("-+", DIGITS)
        self.vocabulary = (*digits, *map("".join, counts), *operators, "=", ":", END, START)
        self.task = Columns("+").task | {"operations": [[*operators]]}
        self.format = {"kind": ["non-restoring-division"], "start_token": [True]}

    def neighbourhoods(self) -> Iterator[Neighbourhood]:
        """Everything that is seen, with the last token in row 4, or a count in row 3.

        Further down or up, coordinates are others, but their differences are the same.
        """
        yield neighbourhood(":", {"last token": ("-0", *COUNT)})
        for x, b in product(TEN, TEN):
            beside = {"digit of b": (b, 2, *WIDE)}
            above = {"digit of a": (x, 0, EVERYWHERE, 2)}
            yield neighbourhood("-0", above | beside | {"last token": ("=", 0, 0, 0)})
            for colon in (
                None,
                ":",
            ):  # the end: the row above holds the remainder, which has the digit x
                above = {
                    "colon above": (colon, 1, 2, 1),
                    "digit above": (returns((0,), x, b)[2], 3, 2, 2),
                }
                last = {"count": ("-0", *COUNT), "last token": (":", 1, 4, 1)}
                yield neighbourhood(END, beside | above | last)
        first_row = Row("-0", first, [(0, d, False) for d in TEN], (*TEN, None))
        once = self.row(first_row, [None]), self.row(Row("+9", returns, [(0,)]), [None, 1])
        yield from starmap(neighbourhood, chain(*once))
        for case in self.step():
            yield neighbourhood(*case)
            yield neighbourhood(*mirrored(case))

    def step(self) -> Iterator[Case]:
        """The rows of a step that subtracts, and the count after each row."""
        for c in TEN:
            for count in ("+9", f"-{c + 1}")[: 2 - c // 9]:
                above = {"count above": (f"-{c}", EVERYWHERE, 1, EVERYWHERE)}
                yield ":", above | {"last token": (count, *COUNT)}
        yield from self.row(Row("-0", begins, [(0, d, 0) for d in TEN]), [0, 1])
        for c in range(1, 10):  # the colon of the row that begins a step is not seen from place 1
            row = Row(f"-{c}", partial(within, c), [(0, 0, 0)])
            yield from self.row(row, [1 if c > 1 else None])

    def row(self, row: Row, colons: list[int | None]) -> Iterator[Case]:
        """What is seen from the colon of a row on; `colons` has the places of the colon above, or None."""
        moved = row.column in (first, begins)  # what stands above belongs to the step before
        count, step = {"count": (row.count, *COUNT)}, 4 if moved else 2
        for state, x, b, place in product(row.starts, row.digits, TEN, colons):
            _, above, right = row.column(state, x, b)
            seen = {"digit of a": (state[1] if moved else None, 0, EVERYWHERE, 2)}
            seen |= {"digit of b": (b, 2, *WIDE)}
            seen |= {"colon above": (None if place is None else ":", place, 2, step - 1)}
            seen |= {"digit above": (None if moved else above, 3, 2, 2)}
            yield right, seen | count | {"last token": (":", 0 if moved else 1, 4, 1)}
        for above, own, next_above, b, right in row.contexts():
            up = {"digit above": (above, 3, 2, step)}
            up |= {"next digit above": (None if moved else next_above, 5, 2, 4)}
            last = count | {"last token": (own, 3, 4, 2)}
            for operator in self.operators if b is None else (None,):
                beside = {"digit of b": (b, 4, *WIDE), "operator": (operator, 4, *WIDE)}
                # In the first row, what stands above is a digit of a, which comes before b.
                yield right, (up | beside if row.column is first else beside | up) | last
            if b is None:
                seen = {"digit above": (next_above, 3, 2, step)} | count
                yield self.next_count(row, right), seen | {"last token": (right, 3, 4, 2)}

    def next_count(self, row: Row, highest: str) -> str:
        """The next row begins a step, returns or is the last one if the highest digit has a mark."""
        if highest.endswith("'"):
            return "-0" if row.count.startswith("+") else "+9"
        return f"-{int(row.count[1:]) + 1}"

    def random_problem(self, generator: random.Random) -> str:
        a, b = random_number(generator, 7), random_number(generator, 4)
        return f"{a}{generator.choice(self.operators)}{b if int(b) else 1}"

    def prompt(self, problem: str) -> list[Token]:
        """Those digits of a that no step brings down stand above the first row, all others at place 0."""
        a, operator, b = re.split(r"(\D+)", problem)
        line, after_first = [FIRST], max(len(a) - len(b), 0)
        for i, digit in enumerate(a, start=1):
            column = len(a) - i - after_first  # 0 for the digit that the first step brings down
            place, row = (2 * column + 1, 0) if column > 0 else (0, EVERYWHERE)
            line.append(Token(digit, place, row, 2 * (len(a) - i + 1)))
        for i, text in enumerate([operator, *b]):
            line.append(Token(text, 2 * (len(b) + 1 - i), *WIDE))
        return [*line, Token("=", 0, 0, 0)]

    def next(self, line: list[Token], text: str) -> Token:
        last = line[-1]
        operator = next(token for token in line if token.text in self.operators)
        if last.text == "=" or last.place == operator.place + 1:
            return Token(text, EVERYWHERE, last.row + 1, EVERYWHERE)
        if last.place == EVERYWHERE:
            colon = next((token for token in reversed(line) if token.text == ":"), None)
            if colon is None:
                return Token(text, 0, 2, max(token.step for token in line if token.place == 0) - 1)
            begins_step = line[-2].text.endswith("'") and colon.step > 1
            return Token(text, 1 - begins_step, last.row + 1, colon.step - 2 * begins_step)
        after_colon = last.text == ":"
        place = 3 if after_colon else last.place + 2
        return Token(text, place, last.row, last.step + 2 - after_colon)

    def is_right(self, problem: str, written: list[str]) -> bool:
        """The counts of the rows that end a step are the quotient, and the last row is the remainder."""
        a, _, b = re.split(r"(\D+)", problem)
        steps, (quotient, remainder) = max(len(a) - len(b), 0) + 1, divmod(int(a), int(b))
        rows = re.findall(r"[+-](\d):([\d']+)", "".join(written[:-3]))
        ends = "".join(count for count, digits in rows if digits.endswith("'"))
        last = rows[-1][1].replace("'", "") if rows else ""
        numbers = f"{quotient:0{steps}}", f"{remainder:0{len(b) + 1}}"
        return written[-3:] == ["-0", ":", END] and (ends[:steps], last[::-1]) == numbers


if __name__ == "__main__":
    print(
        "This file holds calculations only. Type check_written_work.py or check_calculator.py with a run's directory.",
        file=sys.stderr,
    )
    sys.exit(2)
