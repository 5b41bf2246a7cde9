"""The sum of two non-negative integers.

>>> task = Addition(AdditionConfig())
>>> task.answer(task.parse(["999+1"])).texts()
['1000']
"""

import re

import torch
from torch import Tensor

from abacist.errors import ProblemError
from abacist.tasks import digits
from abacist.tasks.column_rule import ColumnRule
from abacist.tasks.config import AdditionConfig
from abacist.tasks.problems import Numbers, Problems


class Addition:
    """`a + b`: draws problems, knows their exact answers, reads what a person types."""

    num_operands = 2
    operator = "+"

    def __init__(self, config: AdditionConfig) -> None:
        self.config = config

    def draw_lengths(self, num_problems: int, generator: torch.Generator) -> Tensor:
        """int64 (num_problems, 2): every pair of training lengths equally likely."""
        low, high = self.config.min_digits, self.config.max_digits + 1
        return torch.randint(low, high, (num_problems, 2), generator=generator)

    def draw(self, lengths_BN: Tensor, generator: torch.Generator) -> Problems:
        """Problems with uniform digits and the given operand lengths."""
        width = int(lengths_BN.max()) if lengths_BN.numel() else 1
        return Problems(digits.draw(lengths_BN, width, generator), lengths_BN)

    def answer(self, problems: Problems) -> Numbers:
        """The exact sums."""
        a, b = problems.operand(0), problems.operand(1)
        sums, _ = digits.add(a.digits_BW, b.digits_BW)
        longer = torch.maximum(a.lengths_B, b.lengths_B)
        overflow = sums.gather(1, longer.unsqueeze(1)).squeeze(1) > 0
        return Numbers(sums, longer + overflow)

    def longest_carry_chain(self, problems: Problems) -> Tensor:
        """int64 (B,): how many columns in a row receive a carry, at most."""
        a, b = problems.operand(0), problems.operand(1)
        _, carries = digits.add(a.digits_BW, b.digits_BW)
        return digits.longest_chain(carries)

    def column_rule(self) -> ColumnRule:
        """Digit = (a + b + carry) mod 10, and the next carry is what is left over."""

        def step(state_n: Tensor, digits_nN: Tensor) -> tuple[Tensor, Tensor]:
            total = digits_nN.sum(dim=1) + state_n
            return total % 10, total // 10

        return ColumnRule(num_operands=2, num_states=2, step=step)

    def parse(self, expressions: list[str], max_digits: int = 100_000) -> Problems:
        """Problems from what a person typed, such as `12 + 34`; leading zeros are dropped.

        Raises `ProblemError`, naming the first expression that is not the sum of two
        non-negative integers of at most `max_digits` digits.
        """
        return Problems.from_texts([self._operands(text, max_digits) for text in expressions])

    def expressions(self, problems: Problems) -> list[str]:
        """Problems as a person would type them."""
        a, b = problems.operand(0).texts(), problems.operand(1).texts()
        return [f"{x}+{y}" for x, y in zip(a, b, strict=True)]

    def _operands(self, expression: str, max_digits: int) -> list[str]:
        shown = repr(expression if len(expression) <= 40 else expression[:37] + "...")
        if not expression.strip():
            raise ProblemError("empty problem: type a sum of two integers, such as 12+34.")
        parts = [part.strip() for part in expression.strip().removesuffix("=").split("+")]
        if len(parts) == 2 and all(re.fullmatch(r"[0-9]+", part) for part in parts):
            operands = [part.lstrip("0") or "0" for part in parts]
            longest = max(map(len, operands))
            if longest > max_digits:
                raise ProblemError(
                    f"{shown} has an operand of {longest:,} digits; "
                    f"at most {max_digits:,} are accepted."
                )
            return operands
        raise ProblemError(f"cannot read {shown}: {_complaint(expression, parts)}")


def _complaint(expression: str, parts: list[str]) -> str:
    """What is wrong with an expression that is no sum of two non-negative integers."""
    if len(parts) > 2 and all(part.isdigit() for part in parts):
        return f"it adds {len(parts)} numbers and this task adds 2. Type two, such as 12+34."
    if "-" in expression:
        return "it has a minus sign; operands are whole numbers from 0 up, such as 12+34."
    if "." in expression or "," in expression:
        return "operands are whole numbers without points or commas, such as 12+34."
    if "*" in expression or "/" in expression or "%" in expression:
        return "this task knows + only. Type a sum such as 12+34."
    if len(parts) == 2 and "" in parts:
        return "an operand is missing. Type two, such as 12+34."
    return "type a sum of two integers, such as 12+34."
