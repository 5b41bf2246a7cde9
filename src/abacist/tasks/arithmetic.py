"""Calculating with non-negative integers: one operation, or several mixed.

>>> task = Arithmetic(ArithmeticConfig(operations=("+", "//")))
>>> task.answer(task.parse(["999+1", "1000//7"])).texts()
['1000', '142']
"""

import re

import torch
from torch import Tensor

from abacist.errors import ProblemError
from abacist.tasks import carry_chains, digits
from abacist.tasks.column_rule import ColumnRule
from abacist.tasks.config import ArithmeticConfig
from abacist.tasks.problems import OPERATIONS, Numbers, Problems, Shapes
from abacist.tasks.reading import shown, whole_number
from abacist.tasks.space import Space

_VERBS = {
    "+": "adds",
    "-": "subtracts",
    "*": "multiplies",
    "//": "divides",
    "%": "takes remainders of",
}
_DIVISIONS = ("//", "%")
_LONGEST_BINNED = 5
"""Digits of answers whose sizes are worth a histogram of their own."""


class Arithmetic:
    """`a + b + …`, `a - b`, `a * b`, `a // b`, `a % b`, exact at any length."""

    def __init__(self, config: ArithmeticConfig) -> None:
        self.config = config
        self.operations: tuple[str, ...] = config.operations
        self._codes = torch.tensor([OPERATIONS.index(o) for o in self.operations])
        self._divisions = torch.tensor([OPERATIONS.index(o) for o in _DIVISIONS])

    def draw_shapes(self, num_problems: int, generator: torch.Generator) -> Shapes:
        """Operations by their weights, lengths as `sampling` says."""
        config = self.config
        operation = self._codes[: len(self.operations)]
        if len(operation) == 1:
            operation_B = operation.expand(num_problems)
        else:
            weights = torch.tensor(config.weights or [1.0] * len(operation), dtype=torch.float64)
            operation_B = operation[_draw_rows(weights.expand(num_problems, -1), generator)]
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

    def draw(self, shapes: Shapes, generator: torch.Generator) -> Problems:
        """Problems with uniform digits, or with the chains of carries that the shapes ask for."""
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
        return Problems(drawn, shapes)

    def answer(self, problems: Problems) -> Numbers:
        """The exact results; those of a subtraction may be negative."""
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
        return Numbers(results, lengths, negative if "-" in self.operations else None)

    def measures(self, problems: Problems) -> dict[str, Tensor]:
        """Lengths, the answer where it is short, and for sums the longest chain of carries."""
        answer = self.answer(problems)
        found = {
            "digits of the longest operand": problems.lengths_BN.amax(dim=1),
            "digits of the answer": answer.lengths_B,
        }
        if answer.digits_BW.shape[1] <= _LONGEST_BINNED:
            powers = 10 ** torch.arange(answer.digits_BW.shape[1])
            values = (answer.digits_BW.long() * powers).sum(dim=1)
            step = max(1, 10**self.config.longest_operand // 25)
            found[f"size of the answer, in steps of {step:,}"] = values // step
        if self.operations == ("+",):
            found["longest carry chain"] = self.longest_carry_chain(problems)
        return found

    def longest_carry_chain(self, problems: Problems) -> Tensor:
        """int64 (B,): how many columns in a row receive a carry, at most, in any of a sum's additions."""
        chains = [digits.longest_chain(carries) for _, carries in _running_sums(problems)]
        return torch.stack(chains).amax(dim=0)

    def space(self) -> Space | None:
        """Every combination of values of the training lengths; None for varying counts of operands."""
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
        space = Space(self.operations, ranges)
        return space if space.is_countable else None

    def column_rule(self) -> ColumnRule | None:
        """Sums and differences as machines that read columns; None for other operations.

        Digit = (a + b + … + carry) mod 10, and what is left over is carried. Likewise
        (a - b - borrow) mod 10: a borrow left over above all columns means that the answer is
        below 0 and that its ten's complement is written.
        """

        def add(state_n: Tensor, digits_nN: Tensor) -> tuple[Tensor, Tensor]:
            total = digits_nN.sum(dim=1) + state_n
            return total % 10, total // 10

        def subtract(state_n: Tensor, digits_nN: Tensor) -> tuple[Tensor, Tensor]:
            difference = digits_nN[:, 0] - digits_nN[:, 1] - state_n
            return difference % 10, (difference < 0).long()

        if self.operations == ("+",):
            return ColumnRule(add)
        return ColumnRule(subtract, left_over="sign") if self.operations == ("-",) else None

    def parse(self, expressions: list[str], max_digits: int = 100_000) -> Problems:
        """Problems from what a person typed, such as `12 + 34`; leading zeros are dropped.

        Raises `ProblemError`, naming the first expression that is no problem of this task, or has
        an operand of more than `max_digits` digits, or divides by zero.
        """
        read = [self._read(text, max_digits) for text in expressions]
        return Problems.from_texts([operands for _, operands in read], [o for o, _ in read])

    def expressions(self, problems: Problems) -> list[str]:
        """Problems as a person would type them."""
        operands = [problems.operand(i).texts() for i in range(problems.num_operands)]
        symbols = [OPERATIONS[code] for code in problems.operation_B.tolist()]
        return [
            symbol.join(filter(None, row))
            for symbol, row in zip(symbols, zip(*operands, strict=True), strict=True)
        ]

    @property
    def example(self) -> str:
        """A problem to show someone who typed something else."""
        numbers = ["12", "34", "56", "78", "9"]
        if self.operations[0] in ("-", *_DIVISIONS):
            numbers = ["56", "12"]
        count = self.config.min_operands
        return self.operations[0].join(numbers[i % len(numbers)] for i in range(count))

    @property
    def claim(self) -> str:
        """What a model that is always right does."""
        count = self.config.max_operands
        if self.config.min_operands < count:
            what = f"{self.config.min_operands} to {count}"
        else:
            what = "all pairs of" if count == 2 else f"any {count}"
        if len(self.operations) == 1:
            return f"{_VERBS[self.operations[0]]} {what} non-negative integers"
        return f"calculates {' '.join(self.operations)} of {what} non-negative integers"

    def _draw_lengths(
        self, num_problems: int, operation_B: Tensor, generator: torch.Generator
    ) -> Tensor:
        config = self.config
        shape = (num_problems, config.max_operands)
        if config.operand_digits:
            return torch.tensor(config.operand_digits).expand(shape)
        low, high = config.min_digits, config.max_digits
        if config.sampling != "values":
            return torch.randint(low, high + 1, shape, generator=generator)
        # Nine in ten values have the most digits; what is 15 digits shorter never comes.
        choices = torch.arange(max(low, high - 15), high + 1)
        columns = []
        for position in range(config.max_operands):
            zero = torch.ones(num_problems)
            if position:
                zero = (~torch.isin(operation_B, self._divisions)).double()
            weights = 9 * 10.0 ** (choices - high).double().expand(num_problems, -1)
            weights = weights + torch.outer(zero, (choices == 1) * 10.0 ** (1 - high))
            columns.append(choices[_draw_rows(weights, generator)])
        return torch.stack(columns, dim=1)

    def _draw_chains(self, longest: Tensor, generator: torch.Generator) -> Tensor:
        """Lengths of the longest carry chains, by their weights among those that fit."""
        wanted = self.config.carry_chains or [1.0] * (self.config.longest_operand + 1)
        weights = torch.tensor(wanted, dtype=torch.float64).expand(len(longest), -1)
        fits = torch.arange(weights.shape[1]) <= longest.unsqueeze(1)
        weights = weights * fits
        # Where none of the chosen lengths fits, the longest chain that does.
        none = weights.sum(dim=1, keepdim=True) == 0
        weights = torch.where(
            none & fits, torch.arange(weights.shape[1]) == longest.unsqueeze(1), weights
        )
        return _draw_rows(weights.double(), generator)

    def _read(self, expression: str, max_digits: int) -> tuple[str, list[str]]:
        if not expression.strip():
            raise ProblemError(f"empty problem: type {self._kind()}, such as {self.example}.")
        bare = expression.strip().removesuffix("=")
        symbols = re.findall(r"//|[-+*%]", bare)
        parts = [part.strip() for part in re.split(r"//|[-+*%]", bare)]
        operands = [whole_number(part, expression, max_digits) for part in parts]
        known = len(set(symbols)) == 1 and symbols[0] in self.operations
        counted = self.config.min_operands <= len(parts) <= self.config.max_operands
        if not (known and counted and None not in operands):
            raise ProblemError(
                f"cannot read {shown(expression)}: {self._complaint(expression, parts, symbols)} "
                f"Type {self._counts()}, such as {self.example}."
            )
        if symbols[0] in _DIVISIONS and operands[1] == "0":
            raise ProblemError(
                f"{shown(expression)} divides by zero; type a divisor from 1 up, "
                f"such as 56{symbols[0]}12."
            )
        return symbols[0], [operand for operand in operands if operand is not None]

    def _counts(self) -> str:
        low, high = self.config.min_operands, self.config.max_operands
        return f"{low} numbers" if low == high else f"{low} to {high} numbers"

    def _kind(self) -> str:
        return "a sum" if self.operations == ("+",) else "a problem"

    def _complaint(self, expression: str, parts: list[str], symbols: list[str]) -> str:
        """What is wrong with an expression that this task cannot read."""
        numbers = all(part.isascii() and part.isdigit() for part in parts if part)
        if "-" in symbols and ("" in parts or "-" not in self.operations):
            return "it has a minus sign; operands are whole numbers from 0 up."
        unknown = [symbol for symbol in symbols if symbol not in self.operations]
        if unknown and "" not in parts and numbers:
            return f"this task knows {' '.join(self.operations)} only, not {unknown[0]}."
        if numbers and "" in parts:
            return "an operand is missing."
        if numbers and len(set(symbols)) > 1:
            return "one problem has one operation."
        if numbers:
            count = "1 number is" if len(parts) == 1 else f"{len(parts)} numbers are"
            return f"{count} given and this task takes {self._counts()}."
        if "." in expression or "," in expression:
            return "operands are whole numbers without points or commas."
        if "/" in expression:
            return f"this task knows {' '.join(self.operations)} only, not /."
        return f"it is no {'sum' if self.operations == ('+',) else 'calculation'} of whole numbers."


def _rich_in_nines(digits_BNW: Tensor, lengths_BN: Tensor, generator: torch.Generator) -> Tensor:
    """Every other problem, by chance, with about every other digit made a 9."""
    device = digits_BNW.device
    rich = torch.rand(len(digits_BNW), 1, 1, generator=generator, device=device) < 0.5
    chosen = torch.rand(digits_BNW.shape, generator=generator, device=device) < 0.5
    inside = torch.arange(digits_BNW.shape[2], device=device) < lengths_BN.unsqueeze(2)
    return digits_BNW.masked_fill(rich & chosen & inside, 9)


def _propagating(digits_B2W: Tensor, lengths_B2: Tensor, generator: torch.Generator) -> Tensor:
    """A share of each problem's columns, anything from none to all, made to add up to 9.

    Such columns pass a carry on (they propagate, in the words of adder circuits): a long stretch
    of them carries everywhere or nowhere, as what is below it says.
    """
    batch, _, width = digits_B2W.shape
    device = digits_B2W.device
    share = torch.rand(batch, 1, generator=generator, device=device)
    chosen = torch.rand(batch, width, generator=generator, device=device) < share
    column = torch.arange(width, device=device)
    first, second = digits_B2W.unbind(1)
    shorter, longer = lengths_B2.aminmax(dim=1, keepdim=True)
    # A number does not begin with 0, so a column in which it would stays as it is.
    leads = (column == lengths_B2[:, 1:] - 1) & (lengths_B2[:, 1:] > 1) & (first == 9)
    both = chosen & (column < shorter) & ~leads
    alone = (chosen & (column >= shorter) & (column < longer)).unsqueeze(1)
    drawn = torch.stack([first, torch.where(both, 9 - first, second)], dim=1)
    return drawn.masked_fill(alone & (column < lengths_B2.unsqueeze(2)), 9)


def _draw_rows(weights_BN: Tensor, generator: torch.Generator) -> Tensor:
    """int64 (B,): for every row one of its columns, by their weights of any size."""
    if not len(weights_BN):
        return torch.zeros(0, dtype=torch.int64)
    weights = weights_BN / weights_BN.amax(dim=1, keepdim=True)
    return torch.multinomial(weights, 1, generator=generator).squeeze(1)


def _calculate(operation: str, problems: Problems) -> Numbers:
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
    # Its cost is steps times the width of the divisor, which is often the shorter number.
    if len(b):
        b = b[:, : int(problems.lengths_BN[:, 1].max())]
    division = digits.divide(a, b)
    quotient, remainder = division.quotient_SB.t().flip(1), division.remainder_BW
    results = quotient if operation == "//" else remainder
    return Numbers(results, digits.significant(results))


def _running_sums(problems: Problems) -> list[tuple[Tensor, Tensor]]:
    """Sums of the first two, three, … operands, and the carries of each addition."""
    total, sums = problems.operand(0).digits_BW, []
    for position in range(1, problems.num_operands):
        operand = problems.operand(position).digits_BW
        operand = torch.nn.functional.pad(operand, (0, total.shape[1] - operand.shape[1]))
        total, carries = digits.add(total, operand)
        sums.append((total, carries))
    return sums
