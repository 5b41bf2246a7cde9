"""Sums, differences, products and divisions of integers of either sign, for `check_calculator.py`.

They are those of numbers from 0 up, which the files beside this one cover, with these changes.

Ten's complement. In w digits there is room for n from -10^w to 10^w - 1: it is written as the digits of
n mod 10^w and a sign, which stands for zeros or nines without end. The width is the smallest, and at
least 1. So the nine's complements of the digits of n are those of -1 - n, in the same width.

Sums and differences. Both operands have one width, and the answer one digit more; signs stand in the
column after the last digit. There a sign counts as the digit 0 or 9, and the answer has 0 or 1 if it is not
below 0, else 8 or 9. In the last column, one operand has a digit that is not the one of its sign, since
otherwise a smaller width would do; if w is 1, there is none, but then nothing is carried into the column.

Products. The sign of the product is written before the work, and follows from those of a and b, which stand
at (0, 0) like `=`. It stands nowhere, and is followed by the first carry.

Divisions. The divisor's sign is moved to a, and a is then written in ten's complement, if it is below 0.
The sign of the remainder, which is the divisor's, is written first, and then the rows; these signs stand at
place, row and step 0 like `=`, and that of a at place 2. If a is below 0, its remainder begins as -1, so the
first step adds. In the mirror that shows 9 - x for each digit x, it is a first step that subtracts. All other
rows are as they were: after a step that adds, there follows one that subtracts, and the other way round.
"""

import random
import re
import sys
from collections.abc import Iterator
from itertools import islice, product

from check_certificate import (
    END,
    FIRST,
    NOWHERE,
    Columns,
    Neighbourhood,
    Token,
    neighbourhood,
    random_number,
)
from check_divisions import COUNT, EVERYWHERE, TEN, WIDE, Divisions, Row, first, mirrored
from check_written_work import Products

SIGNS = "⁺⁻"


def parted(problem: str) -> tuple[int, str, int]:
    """The two numbers of a problem, and the operator between them."""
    parts = re.fullmatch(r"(-?\d+)(//|[-+*%])(-?\d+)", problem)
    assert parts is not None
    return int(parts[1]), parts[2], int(parts[3])


def sign(number: int) -> str:
    """The token of a number's sign."""
    return SIGNS[number < 0]


def width(*numbers: int) -> int:
    """The smallest number of digits in which all numbers can be written in ten's complement."""
    return max(len(str(number if number >= 0 else -1 - number)) for number in numbers)


def complement(number: int, digits: int) -> str:
    """The digits of a number in ten's complement, most significant first."""
    return str(number % 10**digits).zfill(digits)


def random_signed(generator: random.Random, most_digits: int) -> int:
    """A random number of either sign."""
    return generator.choice((1, -1)) * int(random_number(generator, most_digits))


def without_signs(line: list[Token]) -> list[Token]:
    """The tokens of a line that it would have without signs."""
    return [token for token in line if token.text not in SIGNS]


class SignedColumns(Columns):
    """Sums or differences in ten's complement."""

    def neighbourhoods(self) -> Iterator[Neighbourhood]:
        """Everything that can stand in two columns: 1 and 2, as only differences count."""
        one, two = self.spacing, 2 * self.spacing  # their places
        for x, y in product(TEN, TEN):
            seen = {"units of a": (x, one, 1), "units of b": (y, one, 2), "last token": ("=", 0, 3)}
            yield neighbourhood(str((x + self.sign * y) % 10), seen)
        both, signs = [*product(TEN, TEN)], [*product(SIGNS, SIGNS)]
        for carry in (0, 1):
            for now, following in (*product(both, both), *product(both, signs)):
                if carry and now == self.digits(following) and following in signs:
                    continue  # another column would not be needed, and the first has no carry
                carry_out, digit = self.column(now, carry)
                _, right = self.column(self.digits(following), carry_out)
                seen = {"a in this column": (now[0], one, 1), "a next": (following[0], two, 1)}
                seen |= {"b in this column": (now[1], one, 2), "b next": (following[1], two, 2)}
                yield neighbourhood(str(right), seen | {"last token": (digit, one, 3)})
            for now in signs:
                _, digit = self.column(self.digits(now), carry)
                seen = {"sign of a": (now[0], one, 1), "sign of b": (now[1], one, 2)}
                yield neighbourhood(SIGNS[digit >= 8], seen | {"last token": (digit, one, 3)})
        for own in SIGNS:
            yield neighbourhood(END, {"last token": (own, one, 3)})

    def digits(self, tokens: tuple[int | str, int | str]) -> tuple[int, int]:
        """The digits that two tokens stand for in a column."""
        a, b = (9 * SIGNS.index(text) if isinstance(text, str) else text for text in tokens)
        return a, b

    def column(self, digits: tuple[int, int], carry: int) -> tuple[int, int]:
        """The carry out of a column, 1 also for a borrow, and the digit written there."""
        carry_out, digit = divmod(digits[0] + self.sign * (digits[1] + carry), 10)
        return abs(carry_out), digit

    def random_problem(self, generator: random.Random) -> str:
        return self.operation.join(str(random_signed(generator, 30)) for _ in range(2))

    def prompt(self, problem: str) -> list[Token]:
        a, _, b = parted(problem)
        digits = width(a, b)
        texts = [[*reversed(complement(n, digits)), sign(n)] for n in (a, b)]
        first_number, second_number = (
            [Token(text, self.spacing * i, row) for i, text in enumerate(number, start=1)]
            for row, number in enumerate(texts, start=1)
        )
        operator = Token(self.operation, NOWHERE, NOWHERE)
        return [FIRST, *first_number, operator, *second_number, Token("=", 0, 3)]

    def is_right(self, problem: str, written: list[str]) -> bool:
        a, _, b = parted(problem)
        answer = a + self.sign * b
        digits = complement(answer, width(a, b) + 1)
        return "".join(written) == digits[::-1] + sign(answer) + END


class SignedProducts(Products):
    """Long multiplication of magnitudes, with the sign of the product before it."""

    def neighbourhoods(self) -> Iterator[Neighbourhood]:
        yield from islice(super().neighbourhoods(), 1, None)  # the first is that of `=`
        for a, b in product(SIGNS, SIGNS):
            seen = {"sign of a": (a, 0, 0), "sign of b": (b, 0, 0), "last token": ("=", 0, 0)}
            yield neighbourhood(SIGNS[a != b], seen)
        for own in SIGNS:
            yield neighbourhood("⁰", {"last token": (own, NOWHERE, NOWHERE)})

    def random_problem(self, generator: random.Random) -> str:
        return "*".join(str(random_signed(generator, 6)) for _ in range(2))

    def prompt(self, problem: str) -> list[Token]:
        a, _, b = parted(problem)
        signs = {"*": Token(sign(a), 0, 0), "=": Token(sign(b), 0, 0)}
        line = super().prompt(f"{abs(a)}*{abs(b)}")
        return [t for token in line for t in (signs.get(token.text), token) if t is not None]

    def next(self, line: list[Token], text: str) -> Token:
        if line[-1].text == "=":
            return Token(text, NOWHERE, NOWHERE)
        return super().next(without_signs(line), text)

    def is_right(self, problem: str, written: list[str]) -> bool:
        """The sign of a product 0 means nothing."""
        a, _, b = parted(problem)
        signs = [*SIGNS] if a * b == 0 else [sign(a * b)]
        return written[0] in signs and super().is_right(f"{abs(a)}*{abs(b)}", written[1:])


class SignedDivisions(Divisions):
    """Quotients that are rounded down, and remainders with the sign of the divisor."""

    def neighbourhoods(self) -> Iterator[Neighbourhood]:
        for case in super().neighbourhoods():
            if case.seen[-1].text != "=":
                yield case
        yield from self.beginnings()

    def beginnings(self) -> Iterator[Neighbourhood]:
        """Those that have to do with signs: before the first row, and in a first row that adds."""
        yield neighbourhood(":", {"last token": ("+9", *COUNT)})
        first_row = Row("-0", first, [(0, d, False) for d in TEN], (*TEN, None))
        for row in self.row(first_row, [None]):
            yield neighbourhood(*mirrored(row))
        for x, b, of_a, of_b in product(TEN, TEN, SIGNS, SIGNS):
            seen = {"sign of a": (of_a, 2, 0, 0), "digit of a": (x, 0, EVERYWHERE, 2)}
            seen |= {"sign of b": (of_b, 0, 0, 0), "digit of b": (b, 2, *WIDE)}
            yield neighbourhood(of_b, seen | {"last token": ("=", 0, 0, 0)})
            seen |= {"equals": ("=", 0, 0, 0), "last token": (of_b, 0, 0, 0)}
            yield neighbourhood("-0" if of_a == SIGNS[0] else "+9", seen)

    def random_problem(self, generator: random.Random) -> str:
        a, b = random_signed(generator, 7), random_signed(generator, 4)
        return f"{a}{generator.choice(self.operators)}{b or 1}"

    def prompt(self, problem: str) -> list[Token]:
        a, operator, b = parted(problem)
        moved = a if b > 0 else -a
        line = super().prompt(f"{complement(moved, width(moved))}{operator}{abs(b)}")
        signs = [Token(sign(moved), 2, 0, 0), Token(sign(b), 0, 0, 0)]
        after = [token.text for token in line].index(operator) + 1
        return [line[0], signs[0], *line[1:after], signs[1], *line[after:]]

    def next(self, line: list[Token], text: str) -> Token:
        if line[-1].text == "=":
            return Token(text, 0, 0, 0)
        return super().next(without_signs(line), text)

    def is_right(self, problem: str, written: list[str]) -> bool:
        """If the first row adds, the counts of the rows that end a step are in ten's complement."""
        a, _, b = parted(problem)
        steps = max(width(a if b > 0 else -a) - len(str(abs(b))), 0) + 1
        rows = re.findall(r"([+-])(\d):([\d']+)", "".join(written[1:-3]))
        ends = "".join(count for _, count, digits in rows if digits.endswith("'"))[:steps]
        if written[-3:] != ["-0", ":", END] or len(ends) < steps:
            return False
        quotient = int(ends) - 10**steps * (rows[0][0] == "+")
        remainder = int(rows[-1][2].replace("'", "")[::-1]) * (-1 if written[0] == SIGNS[1] else 1)
        return (quotient, remainder) == divmod(a, b)


if __name__ == "__main__":
    print(
        "This file holds calculations only. Type check_calculator.py with a run's directory.",
        file=sys.stderr,
    )
    sys.exit(2)
