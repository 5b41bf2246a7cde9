"""Calculations with integers: one operation, or a mixture of several.

>>> task = Arithmetic(ArithmeticConfig(operations=("+", "//")))
>>> task.answer(task.parse(["999+1", "1000//7"])).texts()
['1000', '142']
"""

import itertools
import math
import re

import torch
from torch import Tensor

from abacist.errors import ProblemError
from abacist.tasks import carry_chains, digits
from abacist.tasks.column_rule import ColumnRule
from abacist.tasks.config import MOST_ASKED_OPERANDS, ArithmeticConfig
from abacist.tasks.problems import OPERATIONS, Numbers, Problems, Shapes
from abacist.tasks.reading import quoted, signed_number, whole_number
from abacist.tasks.space import Space

_VERBS = {
    "+": "adds",
    "-": "subtracts",
    "*": "multiplies",
    "//": "divides",
    "%": "takes remainders of",
}
_DIVISIONS = ("//", "%")
_TYPOGRAPHIC = {"−": "-", "–": "-", "—": "-", "×": "*", "·": "*", "⋅": "*", "÷": "//"}
"""Operators as they are printed, with those that a problem is typed with."""
MOST_SHAPES = 1_000_000
"""Largest number of combinations of lengths that are listed."""
_LONGEST_BINNED = 5
"""Width of the widest answers, in digits, whose sizes get a histogram of their own."""


class Arithmetic:
    """The task of calculating `a + b + …`, `a - b`, `a * b`, `a // b` or `a % b`, exact at any length."""

    def __init__(self, config: ArithmeticConfig) -> None:
        self.config = config
        self.operations: tuple[str, ...] = config.operations
        self._codes = torch.tensor([OPERATIONS.index(o) for o in self.operations])
        self._divisions = torch.tensor([OPERATIONS.index(o) for o in _DIVISIONS])

    def draw_shapes(self, num_problems: int, generator: torch.Generator) -> Shapes:
        """Draw operations by their weights, and lengths as the setting `sampling` says."""
        config = self.config
        operation = self._codes[: len(self.operations)]
        if len(operation) == 1:
            operation_B = operation.expand(num_problems)
        else:
            weights = torch.tensor(config.weights or [1.0] * len(operation), dtype=torch.float64)
            operation_B = operation[_draw_columns(weights.expand(num_problems, -1), generator)]
        lengths = self._draw_lengths(num_problems, operation_B, generator)
        if config.min_operands < config.max_operands:
            counts = torch.randint(
                config.min_operands,
                config.max_operands + 1,
                (num_problems, 1),
                generator=generator,
            )
            lengths = lengths * (torch.arange(config.max_operands) < counts)
        chain = None
        if config.sampling == "carry-chains":
            chain = self._draw_chains(lengths.amax(dim=1), generator)
        return Shapes(lengths, operation_B.to(torch.uint8), chain)

    def every_shape(self) -> Shapes | None:
        """Return every operation with every combination of lengths, which are equally likely.

        Returns None for samplings other than `lengths`, where the number of operands varies, and for
        more than `MOST_SHAPES` combinations.
        """
        config = self.config
        if config.sampling != "lengths" or config.min_operands != config.max_operands:
            return None
        ranges = [range(d, d + 1) for d in config.operand_digits]
        ranges = ranges or [range(config.min_digits, config.max_digits + 1)] * config.max_operands
        if math.prod(map(len, ranges)) * len(self.operations) > MOST_SHAPES:
            return None
        lengths = list(itertools.product(*ranges))
        codes = self._codes.repeat_interleave(len(lengths)).to(torch.uint8)
        return Shapes(torch.tensor(lengths).repeat(len(self.operations), 1), codes)

    def draw(self, shapes: Shapes, generator: torch.Generator) -> Problems:
        """Draw uniform digits, or digits with the carry chains that the shapes require."""
        if shapes.chain_B is not None:
            return Problems(carry_chains.draw(shapes.lengths_BN, shapes.chain_B, generator), shapes)
        width = int(shapes.lengths_BN.max()) if len(shapes) else 1
        nonzero = None
        if any(operation in _DIVISIONS for operation in self.operations):
            nonzero = torch.zeros_like(shapes.lengths_BN, dtype=torch.bool)
            nonzero[:, 1] = torch.isin(shapes.operation_B, self._divisions)
        drawn = digits.draw(shapes.lengths_BN, width, generator, nonzero)
        if self.config.sampling == "nines":
            drawn = _rich_in_nines(drawn, shapes.lengths_BN, generator)
        elif self.config.sampling == "propagate":
            drawn = _propagating(drawn, shapes.lengths_BN, generator)
        problems = Problems(drawn, shapes)
        if not self.config.signed:
            return problems
        half = torch.rand(shapes.lengths_BN.shape, generator=generator) < 0.5
        return problems.with_signs(half & (shapes.lengths_BN > 0))

    def answer(self, problems: Problems) -> Numbers:
        """Return the exact results, as Python does: quotients are rounded down."""
        if len(self.operations) == 1:
            return _calculate(self.operations[0], problems)
        parts = []
        for operation in self.operations:
            rows = problems.operation_B == OPERATIONS.index(operation)
            if rows.any():
                parts.append((rows, _calculate(operation, problems[rows])))
        width = max((part.digits_BW.shape[1] for _, part in parts), default=1)
        results = problems.digits_BNW.new_zeros(len(problems), width)
        lengths = problems.lengths_BN.new_ones(len(problems))
        negative = torch.zeros_like(lengths, dtype=torch.bool)
        for rows, part in parts:
            results[rows, : part.digits_BW.shape[1]] = part.digits_BW
            lengths[rows] = part.lengths_B
            if part.negative_B is not None:
                negative[rows] = part.negative_B
        may_be_negative = self.config.signed or "-" in self.operations
        return Numbers(results, lengths, negative if may_be_negative else None)

    def measures(self, problems: Problems) -> dict[str, Tensor]:
        """Measure lengths, the answer if it is short, and for sums the longest carry chain."""
        answer = self.answer(problems)
        measures = {
            "digits of the longest operand": problems.lengths_BN.amax(dim=1),
            "digits of the answer": answer.lengths_B,
        }
        if answer.digits_BW.shape[1] <= _LONGEST_BINNED:
            powers = 10 ** torch.arange(answer.digits_BW.shape[1])
            values = (answer.digits_BW.long() * powers).sum(dim=1)
            step = max(1, 10**self.config.longest_operand // 25)
            measures[f"size of the answer, in steps of {step:,}"] = values // step
        if self.operations == ("+",) and not self.config.signed:
            measures["longest carry chain"] = self.longest_carry_chain(problems)
        return measures

    def longest_carry_chain(self, problems: Problems) -> Tensor:
        """Return int64 (B,): the largest number of adjacent columns that receive a carry.

        A sum of many numbers is a series of additions, of which the longest chain counts.
        """
        chains = [digits.longest_chain(carries) for _, carries in _running_sums(problems)]
        return torch.stack(chains).amax(dim=0)

    def space(self) -> Space | None:
        """Return all problems of the training lengths; None if the number of operands varies."""
        config = self.config
        if config.min_operands != config.max_operands or config.longest_operand > 18:
            return None
        limits = [(d, d) for d in config.operand_digits]
        limits = limits or [(config.min_digits, config.max_digits)] * config.max_operands
        values = [(10 ** (low - 1) if low > 1 else 0, 10**high) for low, high in limits]
        divided = [values[0], (max(1, values[1][0]), values[1][1])]
        ranges = tuple(
            tuple(divided if operation in _DIVISIONS else values) for operation in self.operations
        )
        space = Space(self.operations, ranges, config.signed)
        return space if space.is_countable else None

    def column_rule(self) -> ColumnRule | None:
        """Return addition or subtraction as a machine that reads columns; None for other tasks.

        A sum has the digit (a + b + … + carry) mod 10, and the rest is carried. A difference has
        the digit (a - b - borrow) mod 10. A borrow that remains after the last column means that
        the answer is below 0 and that its ten's complement was written.
        """

        def add(state_n: Tensor, digits_nN: Tensor) -> tuple[Tensor, Tensor]:
            total = digits_nN.sum(dim=1) + state_n
            return total % 10, total // 10

        def subtract(state_n: Tensor, digits_nN: Tensor) -> tuple[Tensor, Tensor]:
            difference = digits_nN[:, 0] - digits_nN[:, 1] - state_n
            return difference % 10, (difference < 0).long()

        if self.config.signed:
            return None
        if self.operations == ("+",):
            return ColumnRule(add)
        return ColumnRule(subtract, left_over="sign") if self.operations == ("-",) else None

    def parse(self, expressions: list[str], max_digits: int = 100_000) -> Problems:
        """Read problems that a person typed, such as `12 + 34`; leading zeros are dropped.

        Raises:
            ProblemError: an expression is not a problem of this task, divides by zero, or has an
                operand of more than `max_digits` digits. The message names the first of them.
        """
        problems = [self._read(text, max_digits) for text in expressions]
        return Problems.from_texts([operands for _, operands in problems], [o for o, _ in problems])

    def expressions(self, problems: Problems) -> list[str]:
        """Return each problem as a person would type it."""
        operands = [problems.operand(i).texts() for i in range(problems.num_operands)]
        symbols = [OPERATIONS[code] for code in problems.operation_B.tolist()]
        return [
            symbol.join(filter(None, row))
            for symbol, row in zip(symbols, zip(*operands, strict=True), strict=True)
        ]

    @property
    def example(self) -> str:
        """A valid problem, for error messages and help."""
        numbers = ["12", "34", "56", "78", "9"]
        if self.operations[0] in ("-", *_DIVISIONS):
            numbers = ["56", "12"]
        count = self.config.min_operands
        return self.operations[0].join(numbers[i % len(numbers)] for i in range(count))

    @property
    def claim(self) -> str:
        """What a model that is always right does, as in `adds all pairs of non-negative integers`."""
        count = self.config.max_operands
        kind = "integers" if self.config.signed else "non-negative integers"
        if self.config.min_operands < count:
            operands = f"{self.config.min_operands} to {count}"
        else:
            operands = "all pairs of" if count == 2 else f"any {count}"
        if len(self.operations) == 1:
            return f"{_VERBS[self.operations[0]]} {operands} {kind}"
        *others, last = self.operations
        return f"is right for {', '.join(others)} and {last} of {operands} {kind}"

    def _draw_lengths(
        self, num_problems: int, operation_B: Tensor, generator: torch.Generator
    ) -> Tensor:
        """Return lengths, int64 (B, N), as if all problems had the largest number of operands."""
        config = self.config
        shape = (num_problems, config.max_operands)
        if config.operand_digits:
            return torch.tensor(config.operand_digits).expand(shape)
        low, high = config.min_digits, config.max_digits
        if config.sampling != "values":
            return torch.randint(low, high + 1, shape, generator=generator)
        # Nine in ten values have the most digits; numbers 15 digits shorter have a chance of 1e-15.
        choices = torch.arange(max(low, high - 15), high + 1)
        columns = []
        for position in range(config.max_operands):
            zero = torch.ones(num_problems)
            if position:
                zero = (~torch.isin(operation_B, self._divisions)).double()
            weights = 9 * 10.0 ** (choices - high).double().expand(num_problems, -1)
            weights = weights + torch.outer(zero, (choices == 1) * 10.0 ** (1 - high))
            columns.append(choices[_draw_columns(weights, generator)])
        return torch.stack(columns, dim=1)

    def _draw_chains(self, longest: Tensor, generator: torch.Generator) -> Tensor:
        """Draw lengths of longest carry chains, int64 (B,), by their weights among those that fit.

        Args:
            longest: length of each problem's longest operand, int64 (B,).
        """
        frequencies = self.config.carry_chains or [1.0] * (self.config.longest_operand + 1)
        weights = torch.tensor(frequencies, dtype=torch.float64).expand(len(longest), -1)
        fits = torch.arange(weights.shape[1]) <= longest.unsqueeze(1)
        weights = weights * fits
        # If no length with a weight fits, take the longest chain that does.
        none = weights.sum(dim=1, keepdim=True) == 0
        weights = torch.where(
            none & fits, torch.arange(weights.shape[1]) == longest.unsqueeze(1), weights
        )
        return _draw_columns(weights.double(), generator)

    def _read(self, expression: str, max_digits: int) -> tuple[str, list[str]]:
        """Return the operation and the operands of one expression."""
        if not expression.strip():
            raise ProblemError(f"empty problem: type {self._kind()}, such as {self.example}.")
        question = expression.strip().removesuffix("=")
        if self.config.signed:
            symbols, parts = _signed_parts(question)
            operands = [signed_number(part, expression, max_digits) for part in parts]
        else:
            symbols = re.findall(r"//|[-+*%]", question)
            parts = [part.strip() for part in re.split(r"//|[-+*%]", question)]
            operands = [whole_number(part, expression, max_digits) for part in parts]
        is_known = len(set(symbols)) == 1 and symbols[0] in self.operations
        is_counted = self.config.min_operands <= len(parts) <= self._most_asked
        if not (is_known and is_counted and None not in operands):
            raise ProblemError(
                f"cannot read {quoted(expression)}: {self._complaint(expression, parts, symbols)} "
                f"Type {self._counts()}, such as {self.example}."
            )
        if symbols[0] in _DIVISIONS and operands[1] == "0":
            divisor = "other than 0" if self.config.signed else "from 1 up"
            raise ProblemError(
                f"{quoted(expression)} divides by zero; type a divisor {divisor}, "
                f"such as 56{symbols[0]}12."
            )
        return symbols[0], [operand for operand in operands if operand is not None]

    def _counts(self) -> str:
        low, high = self.config.min_operands, self._most_asked
        return f"{low} numbers" if low == high else f"{low} to {high:,} numbers"

    @property
    def _most_asked(self) -> int:
        """Largest number of operands that can be asked for: a task with several takes more than in training."""
        config = self.config
        varies = config.min_operands < config.max_operands
        return MOST_ASKED_OPERANDS if varies else config.max_operands

    def _kind(self) -> str:
        return "a sum" if self.operations == ("+",) else "a problem"

    def _complaint(self, expression: str, parts: list[str], symbols: list[str]) -> str:
        """Say what is wrong with an expression that this task cannot read."""
        for sign, typed in _TYPOGRAPHIC.items():
            if sign in expression:
                return f"type {typed} instead of {sign}."
        if re.search(r"(^|[-+*/%(])\s*\+\s*\d", expression):
            return "a number has no plus sign."
        magnitudes = [part.removeprefix("-") if self.config.signed else part for part in parts]
        numbers = all(part.isascii() and part.isdigit() for part in magnitudes if part)
        is_minus_sign = "-" in symbols and "" in parts
        is_minus_sign |= re.search(r"\(\s*-", expression) is not None
        if is_minus_sign and not self.config.signed:
            return "it has a minus sign; operands are whole numbers from 0 up."
        if re.search(r"(^|[-+*/%(])\s*-\s*-", expression):
            return "a number has one minus sign at most."
        unknown = [symbol for symbol in symbols if symbol not in self.operations]
        if unknown and "" not in parts and numbers:
            return f"this task knows {' '.join(self.operations)} only, not {unknown[0]}."
        if numbers and not any(magnitudes):
            return "it has no number."
        if numbers and "" in parts:
            return "an operand is missing."
        if numbers and len(set(symbols)) > 1:
            return "a problem has only one kind of operation."
        if numbers:
            count = "1 number" if len(parts) == 1 else f"{len(parts):,} numbers"
            return f"it has {count} and this task takes {self._counts()}."
        if "." in expression or "," in expression:
            return "operands are whole numbers without points or commas."
        if "/" in expression:
            return f"this task knows {' '.join(self.operations)} only, not /."
        return (
            f"it is not a {'sum' if self.operations == ('+',) else 'calculation'} of whole numbers."
        )


def _signed_parts(question: str) -> tuple[list[str], list[str]]:
    """Return the operators of what a person typed, such as `-12 - (-3)`, and its operands.

    A minus sign belongs to the operand after it if no digit stands before it, as in Python.
    """
    symbols: list[str] = []
    parts = [""]
    for token in re.findall(r"\([^()]*\)|//|[-+*%]|[^-+*%/()]+|.", question):
        is_operator = token in ("//", "+", "-", "*", "%")
        if is_operator and (token != "-" or parts[-1].strip().strip("-")):
            symbols.append(token)
            parts.append("")
        else:
            parts[-1] += token
    bracketed = (re.sub(r"^\((.*)\)$", r"\1", part.strip()) for part in parts)
    return symbols, [re.sub(r"^\s*-\s*", "-", part).strip() for part in bracketed]


def _rich_in_nines(digits_BNW: Tensor, lengths_BN: Tensor, generator: torch.Generator) -> Tensor:
    """Return digits in which a random half of all problems has a random half of its digits set to 9."""
    device = digits_BNW.device
    rich = torch.rand(len(digits_BNW), 1, 1, generator=generator, device=device) < 0.5
    nine = torch.rand(digits_BNW.shape, generator=generator, device=device) < 0.5
    inside = torch.arange(digits_BNW.shape[2], device=device) < lengths_BN.unsqueeze(2)
    return digits_BNW.masked_fill(rich & nine & inside, 9)


def _propagating(digits_B2W: Tensor, lengths_B2: Tensor, generator: torch.Generator) -> Tensor:
    """Return digits in which many columns add up to 9, so that they pass on an incoming carry.

    Such columns propagate a carry, in the words of adder circuits: in a long stretch of them either
    all columns carry or none does, depending on the carry into the stretch. In a random half of the
    problems they are a random share of the columns, 0…1, and in the others one stretch of neighbouring
    columns; see `_stretches`.
    """
    batch, _, width = digits_B2W.shape
    device = digits_B2W.device
    column = torch.arange(width, device=device)
    share = torch.rand(batch, 1, generator=generator, device=device)
    scattered = torch.rand(batch, width, generator=generator, device=device) < share
    low, high = _stretches(lengths_B2.amax(dim=1, keepdim=True), generator)
    neighbouring = (low <= column) & (column < high)
    is_stretch = torch.rand(batch, 1, generator=generator, device=device) < 0.5
    propagates = torch.where(is_stretch, neighbouring, scattered)
    first, second = digits_B2W.unbind(1)
    shorter, longer = lengths_B2.aminmax(dim=1, keepdim=True)
    # A number does not begin with 0, so a column in which it would stays as it is.
    leads = (column == lengths_B2[:, 1:] - 1) & (lengths_B2[:, 1:] > 1) & (first == 9)
    both = propagates & (column < shorter) & ~leads
    alone = (propagates & (column >= shorter) & (column < longer)).unsqueeze(1)
    drawn = torch.stack([first, torch.where(both, 9 - first, second)], dim=1)
    return drawn.masked_fill(alone & (column < lengths_B2.unsqueeze(2)), 9)


def _stretches(longest_B1: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw a stretch of columns for each problem: the first column, and the one after the last, int64 (B, 1).

    Half of the stretches have random ends. The others leave out at most two columns at each end: the
    longest stretches are the hardest for a model, and random ends would make them rare.
    """
    shape, device = (len(longest_B1), 2), longest_B1.device
    ends = (torch.rand(shape, generator=generator, device=device) * (longest_B1 + 1)).long()
    low, high = ends.aminmax(dim=1, keepdim=True)
    left_out = torch.randint(0, 3, shape, generator=generator, device=device)
    is_long = torch.rand(len(longest_B1), 1, generator=generator, device=device) < 0.5
    return (
        torch.where(is_long, left_out[:, :1], low),
        torch.where(is_long, longest_B1 - left_out[:, 1:], high),
    )


def _draw_columns(weights: Tensor, generator: torch.Generator) -> Tensor:
    """Draw one column for every row, int64 (B,), by weights of any size (B, columns)."""
    if not len(weights):
        return torch.zeros(0, dtype=torch.int64)
    shares = weights / weights.amax(dim=1, keepdim=True)
    return torch.multinomial(shares, 1, generator=generator).squeeze(1)


def _calculate(operation: str, problems: Problems) -> Numbers:
    """Return the results of problems that all have the same operation."""
    if problems.negative_BN is not None:
        return _calculate_signed(operation, problems, *problems.negative_BN.unbind(dim=1))
    if operation == "+":
        sums, _ = _running_sums(problems)[-1]
        return Numbers(sums, digits.significant(sums))
    a, b = problems.operand(0).digits_BW, problems.operand(1).digits_BW
    if operation == "-":
        differences, negative = digits.subtract(a, b)
        return Numbers(differences, digits.significant(differences), negative)
    if operation == "*":
        results = digits.multiply(a, b)
        return Numbers(results, digits.significant(results))
    quotient, remainder = _divided(problems)
    results = quotient if operation == "//" else remainder
    return Numbers(results, digits.significant(results))


def _divided(problems: Problems) -> tuple[Tensor, Tensor]:
    """Return the quotients and the remainders of the magnitudes, uint8 (B, W), in different widths W."""
    a, b = problems.operand(0).digits_BW, problems.operand(1).digits_BW
    # The cost is the number of steps times the width of the divisor, often the shorter number.
    if len(b):
        b = b[:, : int(problems.lengths_BN[:, 1].max())]
    division = digits.divide(a, b)
    return division.quotient_SB.t().flip(1), division.remainder_BW


def _calculate_signed(
    operation: str, problems: Problems, a_negative_B: Tensor, b_negative_B: Tensor
) -> Numbers:
    """Return the results of problems of two operands, from their magnitudes and signs."""
    magnitudes = Problems(problems.digits_BNW, problems.shapes)
    differ_B = a_negative_B != b_negative_B
    if operation in ("+", "-"):
        # a - b is a + (-b). Magnitudes are added if the signs are equal, and else subtracted.
        added, subtracted = _calculate("+", magnitudes), _calculate("-", magnitudes)
        adds_B = differ_B if operation == "-" else ~differ_B
        wider = added.digits_BW.shape[1] - subtracted.digits_BW.shape[1]
        difference = torch.nn.functional.pad(subtracted.digits_BW, (0, wider))
        results = torch.where(adds_B.unsqueeze(1), added.digits_BW, difference)
        assert subtracted.negative_B is not None
        return _signed(results, a_negative_B ^ (~adds_B & subtracted.negative_B))
    if operation == "*":
        return _signed(_calculate("*", magnitudes).digits_BW, differ_B)
    quotient, remainder = _divided(magnitudes)
    # If the signs differ and there is a remainder, rounding down changes the quotient and the remainder.
    changes_B = differ_B & (remainder != 0).any(dim=1)
    if operation == "//":
        one = torch.zeros_like(quotient)
        one[:, 0] = changes_B
        return _signed(digits.add(quotient, one)[0], differ_B)
    divisor = problems.operand(1).digits_BW[:, : remainder.shape[1]]
    complement, _ = digits.subtract_modulo(divisor, remainder)
    return _signed(torch.where(changes_B.unsqueeze(1), complement, remainder), b_negative_B)


def _signed(results_BW: Tensor, negative_B: Tensor) -> Numbers:
    """Return results of these magnitudes; 0 is never negative."""
    is_zero_B = (results_BW == 0).all(dim=1)
    return Numbers(results_BW, digits.significant(results_BW), negative_B & ~is_zero_B)


def _running_sums(problems: Problems) -> list[tuple[Tensor, Tensor]]:
    """Return the sums of the first two, three, … operands and the carries of each addition."""
    total, sums = problems.operand(0).digits_BW, []
    for position in range(1, problems.num_operands):
        operand = problems.operand(position).digits_BW
        operand = torch.nn.functional.pad(operand, (0, total.shape[1] - operand.shape[1]))
        total, carries = digits.add(total, operand)
        sums.append((total, carries))
    return sums
