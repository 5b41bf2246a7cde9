"""The sum of two or more non-negative integers.

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
    """`a + b + …`: draws problems, knows their exact answers, reads what a person types."""

    operator = "+"

    def __init__(self, config: AdditionConfig) -> None:
        self.config = config
        self.num_operands = config.num_operands

    def draw_lengths(self, num_problems: int, generator: torch.Generator) -> Tensor:
        """int64 (num_problems, N): every combination of training lengths equally likely."""
        low, high = self.config.min_digits, self.config.max_digits + 1
        return torch.randint(low, high, (num_problems, self.num_operands), generator=generator)

    def draw(self, lengths_BN: Tensor, generator: torch.Generator) -> Problems:
        """Problems with uniform digits and the given operand lengths."""
        width = int(lengths_BN.max()) if lengths_BN.numel() else 1
        return Problems(digits.draw(lengths_BN, width, generator), lengths_BN)

    def answer(self, problems: Problems) -> Numbers:
        """The exact sums."""
        sums, _ = self._running_sums(problems)[-1]
        columns = torch.arange(1, sums.shape[1] + 1, device=sums.device)
        return Numbers(sums, (columns * (sums > 0)).amax(dim=1).clamp(min=1))

    def longest_carry_chain(self, problems: Problems) -> Tensor:
        """int64 (B,): how many columns in a row receive a carry, at most, in any of the additions."""
        chains = [digits.longest_chain(carries) for _, carries in self._running_sums(problems)]
        return torch.stack(chains).amax(dim=0)

    def _running_sums(self, problems: Problems) -> list[tuple[Tensor, Tensor]]:
        """Sums of the first two, three, … operands, and the carries of each addition."""
        total, sums = problems.operand(0).digits_BW, []
        for position in range(1, problems.num_operands):
            operand = problems.operand(position).digits_BW
            operand = torch.nn.functional.pad(operand, (0, total.shape[1] - operand.shape[1]))
            total, carries = digits.add(total, operand)
            sums.append((total, carries))
        return sums

    def column_rule(self) -> ColumnRule:
        """Digit = (a + b + … + carry) mod 10, and the next carry is what is left over."""

        def step(state_n: Tensor, digits_nN: Tensor) -> tuple[Tensor, Tensor]:
            total = digits_nN.sum(dim=1) + state_n
            return total % 10, total // 10

        return ColumnRule(num_operands=self.num_operands, step=step)

    def parse(self, expressions: list[str], max_digits: int = 100_000) -> Problems:
        """Problems from what a person typed, such as `12 + 34`; leading zeros are dropped.

        Raises `ProblemError`, naming the first expression that is not a sum of as many
        non-negative integers as the task adds, of at most `max_digits` digits.
        """
        return Problems.from_texts([self._operands(text, max_digits) for text in expressions])

    def expressions(self, problems: Problems) -> list[str]:
        """Problems as a person would type them."""
        operands = [problems.operand(i).texts() for i in range(problems.num_operands)]
        return ["+".join(row) for row in zip(*operands, strict=True)]

    @property
    def example(self) -> str:
        """A problem to show someone who typed something else."""
        return "+".join(("12", "34", "56", "78", "9")[i % 5] for i in range(self.num_operands))

    @property
    def deed(self) -> str:
        """What a model that is always right does."""
        what = "all pairs of" if self.num_operands == 2 else f"any {self.num_operands}"
        return f"adds {what} non-negative integers"

    def _operands(self, expression: str, max_digits: int) -> list[str]:
        shown = repr(expression if len(expression) <= 40 else expression[:37] + "...")
        if not expression.strip():
            raise ProblemError(f"empty problem: type a sum, such as {self.example}.")
        parts = [part.strip() for part in expression.strip().removesuffix("=").split("+")]
        numbers = all(re.fullmatch(r"[0-9]+", part) for part in parts)
        if numbers and len(parts) == self.num_operands:
            operands = [part.lstrip("0") or "0" for part in parts]
            longest = max(map(len, operands))
            if longest > max_digits:
                raise ProblemError(
                    f"{shown} has an operand of {longest:,} digits; "
                    f"at most {max_digits:,} are accepted."
                )
            return operands
        raise ProblemError(
            f"cannot read {shown}: {self._complaint(expression, parts)} "
            f"Type {self.num_operands} numbers, such as {self.example}."
        )

    def _complaint(self, expression: str, parts: list[str]) -> str:
        """What is wrong with an expression that this task cannot read."""
        if all(part.isdigit() for part in parts) and len(parts) != self.num_operands:
            count = "1 number is" if len(parts) == 1 else f"{len(parts)} numbers are"
            return f"{count} given and this task adds {self.num_operands}."
        if "-" in expression:
            return "it has a minus sign; operands are whole numbers from 0 up."
        if "." in expression or "," in expression:
            return "operands are whole numbers without points or commas."
        if "*" in expression or "/" in expression or "%" in expression:
            return "this task knows + only."
        if "" in parts and all(part.isdigit() for part in parts if part):
            return "an operand is missing."
        return "it is no sum of whole numbers."
