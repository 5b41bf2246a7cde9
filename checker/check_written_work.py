"""Check that a trained model adds many numbers, multiplies, divides, or sorts, without a mistake.

    python checker/check_written_work.py RUN

This adds calculations to `check_certificate.py` beside it, which holds the argument, the model and the
check, and is to be read first. All write down their work, so that each token follows from a few others.
What differs is only which tokens these are, and what they can be. Divisions are in `check_divisions.py`.

What is written is the sum, the product, the quotient with the remainder, or the order: the pages on
certificates in `docs/` prove it, and `is_right` compares.
"""

import random
import re
import sys
from collections.abc import Iterator
from itertools import accumulate, product
from typing import ClassVar

from check_certificate import (
    DIGITS,
    END,
    EVERYWHERE,
    FIRST,
    NOWHERE,
    START,
    Columns,
    Neighbourhood,
    Token,
    main,
    neighbourhood,
    random_number,
)
from check_divisions import Divisions


class RunningSums:
    """Sums of many numbers, one addition after the other: `12+34+56` is `21+43+65=64;201<end>`.

    The numbers stand under each other: in row 1 the first one, in row 2 j the one that is added to row
    2 j - 1, in row 2 j + 1 their sum. Each plus sign stands in all columns of the row to which it adds. So a
    digit sees what it does in a sum of two, and the plus sign of the row above and, if another row
    follows, of its own row. Before the first digit of a row stands `=` or `;`, which sees that of the row above.
    """

    claim = "adds any two or more non-negative integers, however many, of every length"
    problems, most_tokens = "sums", 300
    vocabulary = (*DIGITS, "+", "=", ";", END, START)
    windows = ({"place": (0, 1), "row": (-2, 0)},)
    task: ClassVar = Columns("+").task | {"min_operands": None, "max_operands": None}
    format: ClassVar = {"kind": ["running-sums"], "start_token": [True]}

    def neighbourhoods(self) -> Iterator[Neighbourhood]:
        """Those of a sum of two, as row 3 of a line: in the first row or below, the last or not.

        The sum so far can be any number, for example that number plus 0.
        """
        for case, is_first, goes_on in product(Columns("+").neighbourhoods(), *[(True, False)] * 2):
            _, *operands, last = case.seen
            names = {(1, 1): "sum in this column", (1, 2): "number in this column"}
            names |= {(2, 1): "sum in the next", (2, 2): "number in the next"}
            above, added = (
                {names[token.place, row]: token for token in operands if token.row == row}
                for row in (1, 2)
            )
            added = {"plus": ("+", EVERYWHERE, 1)} | added
            added |= {"next plus": ("+" if goes_on else None, EVERYWHERE, 3)}
            right = ";" if case.right == END and goes_on else case.right
            if is_first:
                yield neighbourhood(right, above | added | {"last token": last})
            elif last.text != "=":
                yield neighbourhood(right, added | above | {"last token": last})
            else:
                for mark in "=;":
                    seen = added | {"mark above": (mark, 0, 1)} | above
                    yield neighbourhood(right, seen | {"last token": (";", 0, 3)})

    def random_problem(self, generator: random.Random) -> str:
        numbers = generator.choice([2, 2, 3, 4, 7])
        return "+".join(random_number(generator, 8) for _ in range(numbers))

    def prompt(self, problem: str) -> list[Token]:
        line = [FIRST]
        for k, number in enumerate(problem.split("+")):
            line += [Token("+", EVERYWHERE, 2 * k - 1)] * (k > 0)
            row = 2 * k or 1
            line += [Token(x, place, row) for place, x in enumerate(reversed(number), start=1)]
        return [*line, Token("=", 0, 3)]

    def next(self, line: list[Token], text: str) -> Token:
        place, row = (0, line[-1].row + 2) if text == ";" else (line[-1].place + 1, line[-1].row)
        return Token(text, place, row)

    def is_right(self, problem: str, written: list[str]) -> bool:
        sums = list(accumulate(map(int, problem.split("+"))))[1:]
        return "".join(written) == ";".join(str(x)[::-1] for x in sums) + END


class Products:
    """Long multiplication: a row for each digit of b, in it a cell for each digit of a.

    A cell holds the carry c, the product p of the two digits, and the digit d, where c + p + u is
    d + 10 times the next carry, and u is the digit of the row above, one column further up (0 in the
    first row). A row ends with its last carry, written once more as a digit. A carry is at most the
    row's digit b, and in the first row less, or 0: c + p + u <= b + 9 b + 9 = 10 b + 9.

    With the `spacing` s, the cell of column i and row j has its carry and product at place s i and row s j,
    and its digit at place s i - 1 and row s j + 1. Digit j of b stands at row s (j - 1) + 1.
    """

    claim = "multiplies all pairs of non-negative integers of every length"
    problems, most_tokens = "products", 300
    carries, products = "⁰¹²³⁴⁵⁶⁷⁸⁹", sorted({a * b for a, b in product(range(10), repeat=2)})
    vocabulary = (*DIGITS, "*", "=", END, START, *carries, *(f"[{p}]" for p in products))
    windows = ({"place": (0, 1), "row": (-1, 0)},)
    task: ClassVar = Columns("+").task | {"operations": [["*"]]}
    format: ClassVar = {"kind": ["long-multiplication"], "start_token": [True]}

    def __init__(self, spacing: int = 2) -> None:
        self.spacing = spacing

    def neighbourhoods(self) -> Iterator[Neighbourhood]:
        """Everything that the tokens of a cell see: of column 1, row 2, as only differences count.

        A carry sees a, b and u; a product sees its carry as well. A digit sees a, its carry and product,
        and b of the next row. The last carry of a row sees b, and the digit after it that carry and b
        of the next row.
        """
        yield neighbourhood("⁰", {"last token": ("=", 0, 0)})
        s = self.spacing
        for is_first, b in product((True, False), range(10)):
            most = max(b - 1, 0) if is_first else b
            followers = [*DIGITS, None] if is_first or b > 0 else [*DIGITS]  # b has no leading 0
            for carry, above in product(range(most + 1), [None] if is_first else range(10)):
                c, up = (self.carries[carry], s, 2 * s), (above, 2 * s - 1, s + 1)
                multiplier = (b, EVERYWHERE, s + 1)
                for a in range(10):
                    next_carry, digit = divmod(carry + a * b + (above or 0), 10)
                    p, d = (f"[{a * b}]", s, 2 * s), (digit, s - 1, 2 * s + 1)
                    cell = {"digit of a": (a, s, EVERYWHERE), "digit of b": multiplier, "above": up}
                    yield neighbourhood(p[0], cell | {"carry": c})
                    yield neighbourhood(str(digit), cell | {"carry": c, "product": p})
                    for follower in followers:
                        following = {"next digit of b": (follower, EVERYWHERE, 2 * s + 1)}
                        seen = {"digit of a": cell["digit of a"]} | following
                        seen |= {"carry": c, "product": p, "digit written": d}
                        yield neighbourhood(self.carries[next_carry], seen)
                yield neighbourhood(
                    str(carry), {"digit of b": multiplier, "last carry of a row": c}
                )
                for follower in followers:
                    following = {"next digit of b": (follower, EVERYWHERE, 2 * s + 1)}
                    last = {"digit written": (carry, s - 1, 2 * s + 1)}
                    seen = following | {"last carry of a row": c} | last
                    yield neighbourhood(END if follower is None else "⁰", seen)

    def random_problem(self, generator: random.Random) -> str:
        return "*".join(random_number(generator, 6) for _ in range(2))

    def prompt(self, problem: str) -> list[Token]:
        """Both numbers with their units first."""
        a, b = (enumerate(reversed(number), start=1) for number in problem.split("*"))
        above = [Token(digit, self.spacing * i, EVERYWHERE) for i, digit in a]
        beside = [Token(digit, EVERYWHERE, self.spacing * (j - 1) + 1) for j, digit in b]
        return [FIRST, *above, Token("*", NOWHERE, NOWHERE), *beside, Token("=", 0, 0)]

    def next(self, line: list[Token], text: str) -> Token:
        """The k-th token after `=` belongs to a row and a column, both counted from 0 here."""
        texts = [token.text for token in line]
        width = texts.index("*") - 1
        row, within = divmod(len(line) - texts.index("=") - 1, 3 * width + 2)
        column, kind = divmod(within, 3)
        is_digit = kind == (2 if column < width else 1)
        place, line_of_cells = self.spacing * (column + 1), self.spacing * (row + 1)
        return Token(text, place - is_digit, line_of_cells + is_digit)

    def is_right(self, problem: str, written: list[str]) -> bool:
        """The first digit of each row, then the other digits of the last row, are the product's."""
        a, b = problem.split("*")
        size = 3 * len(a) + 2
        if len(written) != size * len(b) + 1 or written[-1] != END:
            return False
        rows = [written[i : i + size] for i in range(0, len(written) - 1, size)]
        digits = [row[2] for row in rows] + [*rows[-1][5::3], rows[-1][-1]]
        return ("".join(reversed(digits)).lstrip("0") or "0") == str(int(a) * int(b))


class Sorting:
    """Insertion sort: each number is compared with those sorted before it until one is larger.

    In the prompt number k stands in row 2 k, its label at place 0, the comma before it, or `=` after
    the last, at place 0 of row 2 k - 1. A token of the work sees the start token, itself, and the one
    token of the prompt that stands at its own coordinates, if any: the one it *points to*.
    """

    claim = "sorts up to 52 non-negative integers of every length"
    problems, most_tokens = "lists", 1_000
    labels = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    vocabulary = (*DIGITS, *":,=", END, START, *"<~>", *labels)
    windows = ({"row": (0, 0), "place": (0, 0), "step": (0, 0)},)
    task: ClassVar = {"kind": ["sorting"], "max_numbers": [52], "min_numbers": None}
    task |= dict.fromkeys(("min_digits", "max_digits", "sampling"))
    format: ClassVar = {"kind": ["insertion-sort"], "start_token": [True]}

    def neighbourhoods(self) -> Iterator[Neighbourhood]:
        """Every pair of a last token and the token it points to; None if it points to none."""

        def case(last: str, pointed_to: str | None, right: str) -> Neighbourhood:
            target = (pointed_to, 1, 2, EVERYWHERE)
            return neighbourhood(right, {"points to": target, "last token": (last, 1, 2, 1)})

        *listed, newest = self.labels  # a list into which a number is inserted lacks the last label
        yield neighbourhood("a", {"last token": ("=", 0, 1, EVERYWHERE)})
        for last, digit in product([",", *listed], [*DIGITS, None]):
            # A first digit 0 is the number 0. All before it are 0, too, and have earlier labels.
            if (last, digit) != (listed[-1], "0"):
                yield case(last, digit, digit or "0")
        for last, digit in product(DIGITS, DIGITS):
            yield case(last, digit, "<" if last < digit else ">" if last > digit else "~")
        for digit in DIGITS:
            yield case("~", digit, digit)
            if digit != "0":  # the first digit of the longer number
                yield case(digit, None, ">")
        for label in self.labels:
            for last in {*self.labels} - {label}:
                yield case(last, label, label)
            if label != newest:
                yield case("<", label, label)
                yield case("~", label, label)
                yield case(label, ",", ",")
            if label != "a":
                yield case(">", label, label)
            yield case(label, "=", END)

    def random_problem(self, generator: random.Random) -> str:
        numbers = [random_number(generator, 3) for _ in range(generator.choice([1, 2, 3, 6, 12]))]
        return ",".join(map(":".join, zip(self.labels, numbers, strict=False)))

    def prompt(self, problem: str) -> list[Token]:
        line = [FIRST]
        for k, part in enumerate(problem.split(","), start=1):
            places = [0, NOWHERE, *range(len(part) - 2, 0, -1)]
            line += [Token(",", 0, 2 * k - 1, EVERYWHERE)] * (k > 1)
            line += [Token(t, p, 2 * k, EVERYWHERE) for t, p in zip(part, places, strict=True)]
        return [*line, Token("=", 0, line[-1].row + 1, EVERYWHERE)]

    def next(self, line: list[Token], text: str) -> Token:
        """Where the next token points, which follows from how far the insertion has come."""
        if text == END:
            return Token(text, NOWHERE, NOWHERE)
        work = [token.text for token in line if token.step > 0] + [text]
        *_, before, current = ["", *"".join(work).split(",")]
        listed = [mark for mark in before if mark in self.labels]
        labels = [mark for mark in current if mark in self.labels]
        new = 2 + 2 * work.count(",")  # the row of the number that is inserted
        passed = len(labels) - (">" in current)  # how many of those listed are in the new list
        other = 2 + 2 * self.labels.index(listed[passed]) if passed < len(listed) else new
        height = max(t.place for t in line if t.row in (new, other) and t.step == EVERYWHERE)
        compared = height - re.split(f"[{self.labels}]", current)[-1].count("~")
        copies = text in self.labels and (">" in current or passed == len(listed))
        if text in self.labels and 2 * len(labels) == new:
            row, place = new + 1, 0
        elif text == ">":
            row, place = new, 0
        elif text == "<" or copies:
            row, place = other, 0
        else:
            row, place = new if text in DIGITS else other, compared
        return Token(text, place, row, len(work))

    def is_right(self, problem: str, written: list[str]) -> bool:
        numbers = dict(part.split(":") for part in problem.split(","))
        order = sorted(numbers, key=lambda label: int(numbers[label]))
        last_list = "".join(written[:-1]).split(",")[-1]
        return written[-1:] == [END] and [t for t in last_list if t in self.labels] == order


if __name__ == "__main__":
    divisions = [Divisions("//", "%"), Divisions("%")]
    sys.exit(main(sys.argv[1:], [RunningSums(), Products(), Sorting(), *divisions]))
