"""Check that one trained model calculates + - * // % without a mistake.

    python checker/check_calculator.py RUN

This combines calculations of the files beside it, which are to be read first: `check_certificate.py` with
the argument, the model, the check, and sums and differences; products in `check_written_work.py`; and
`check_divisions.py`. Where operands are signed, their notations are in `check_signed_operands.py`.

One model writes all five operations, each in its own notation. A line of sums begins with `<sum>` instead
of `<start>`, and likewise for the other notations. Like every start token, these stand everywhere, so each
token sees which notation it belongs to, and no neighbourhood belongs to two. So the neighbourhoods
are those of the four notations, and the induction, which follows one line, is that of its notation.

The model has the windows of divisions, rows -2 ... 0, places 0 ... 2 and steps 0 ... 2, in which sums
and products would see too much. So they stand wider apart, and all in step 1 (`one step` below):

Sums and differences. Column i is place 2 i. The window of places holds 2 i and 2 i + 2, which are columns
i and i + 1.

Products. The cell of column i and row j has its carry and product at (3 i, 3 j), written (place, row), and
its digit at (3 i - 1, 3 j + 1). Digit i of a stands at place 3 i in all rows, and digit j of b at row
3 j - 2 in all places. A carry or product sees places 3 i ... 3 i + 2 and rows 3 j - 2 ... 3 j. There stand its
own cell's carry and product, these two digits of a and b, and the digit (3 i + 2, 3 j - 2) of the next
column in the row above. A digit sees places 3 i - 1 ... 3 i + 1 and rows 3 j - 1 ... 3 j + 1. There stand its
own cell's tokens, digit i of a, and digit j + 1 of b. So every token sees what it does in a product alone.
"""

import random
import sys
from collections.abc import Iterator
from typing import ClassVar

from check_certificate import (
    DIGITS,
    END,
    NOWHERE,
    START,
    Columns,
    Neighbourhood,
    Token,
    main,
    shared,
)
from check_divisions import Divisions
from check_signed_operands import SIGNS, SignedColumns, SignedDivisions, SignedProducts, parted
from check_written_work import Products

COUNTS = {f"{sign}{digit}": f"[{sign}{digit}]" for sign in "-+" for digit in DIGITS}


class Calculator:
    """Five operations in four notations, of which the start token says which one a line is in.

    The counts of the rows of a division stand in brackets.
    """

    pairs = "all pairs of non-negative integers of every length, except divisions by 0"
    claim = f"is right for +, -, *, // and % of {pairs}"
    problems, most_tokens = "problems of five operations", 1_000
    starts = ("<sum>", "<difference>", "<product>", "<division>")
    divisions = Divisions("//", "%")
    notations = (Columns("+", spacing=2), Columns("-", spacing=2), Products(spacing=3), divisions)
    vocabulary = (
        *(*DIGITS, *(f"{digit}'" for digit in DIGITS), *COUNTS.values()),
        *("+", "-", "*", "//", "%", "=", ":", END, *starts),
        *(*Products.carries, *(f"[{number}]" for number in Products.products)),
    )
    windows = divisions.windows
    task = divisions.task | {"operations": [["+", "-", "*", "//", "%"]]}
    format: ClassVar = {"kind": ["calculator"]}

    def neighbourhoods(self) -> Iterator[Neighbourhood]:
        """Those of the four notations."""
        for start, notation in zip(self.starts, self.notations, strict=True):
            for seen, right, words in notation.neighbourhoods():
                tokens = tuple(self.token(token, start) for token in seen)
                yield Neighbourhood(tokens, COUNTS.get(right, right), f"{start}, {words}")

    def token(self, token: Token, start: str) -> Token:
        """A token of a notation alone as one of the calculator."""
        text = start if token.text == START else COUNTS.get(token.text, token.text)
        one_step = 1 if token.step == NOWHERE else token.step  # divisions have steps of their own
        return shared(text, token.place, token.row, one_step)

    def notation(self, problem: str) -> int:
        """The number of a problem's notation."""
        return next((i for i, operator in enumerate("+-*") if operator in problem), 3)

    def random_problem(self, generator: random.Random) -> str:
        """Each of the five operations is equally likely."""
        return generator.choice([*self.notations, self.divisions]).random_problem(generator)

    def prompt(self, problem: str) -> list[Token]:
        number = self.notation(problem)
        line = self.notations[number].prompt(problem)
        return [self.token(token, self.starts[number]) for token in line]

    def next(self, line: list[Token], text: str) -> Token:
        start = line[0].text
        notation = self.notations[self.starts.index(start)]
        return self.token(notation.next(line, text), start)

    def is_right(self, problem: str, written: list[str]) -> bool:
        alone = {count: text for text, count in COUNTS.items()}
        notation = self.notations[self.notation(problem)]
        return notation.is_right(problem, [alone.get(text, text) for text in written])


class SignedCalculator(Calculator):
    """The same with operands of either sign, whose notations are others."""

    problems = "problems of five operations with signs"
    pairs = "all pairs of integers of every length, except divisions by 0"
    claim = f"is right for +, -, *, // and % of {pairs}"
    divisions = SignedDivisions("//", "%")
    notations = (
        *(SignedColumns("+", spacing=2), SignedColumns("-", spacing=2)),
        *(SignedProducts(spacing=3), divisions),
    )
    carry = Calculator.vocabulary.index(Products.carries[0])
    vocabulary = (*Calculator.vocabulary[:carry], *SIGNS, *Calculator.vocabulary[carry:])
    task = Calculator.task | {"signed": [True]}

    def notation(self, problem: str) -> int:
        _, operator, _ = parted(problem)
        return min("+-*/%".index(operator[0]), 3)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], [Calculator(), SignedCalculator()]))
