"""Tasks whose operands are texts of digits or letters, which extensions define.

An extension states the exact answer to one problem; problems, reading and measures follow.

>>> task = OwnTask(GcdConfig())
>>> task.answer(task.parse(["12,18"])).texts()
['6']
"""

import itertools

import torch
from torch import Tensor

from abacist.errors import ConfigurationError, ProblemError
from abacist.tasks import digits
from abacist.tasks.config import OwnTaskConfig
from abacist.tasks.problems import DIGIT_CHARACTERS, OWN, Answer, Problems, Shapes, Texts
from abacist.tasks.reading import quoted


class OwnTask:
    """A task that draws operands of uniform lengths with uniform digits."""

    operations = (OWN,)

    def __init__(self, config: OwnTaskConfig) -> None:
        self.config = config
        self.base, self.num_operands = config.base, config.num_operands
        self.symbol, self.is_numeric = config.symbol, config.is_numeric

    def draw_shapes(self, num_problems: int, generator: torch.Generator) -> Shapes:
        """Draw all combinations of lengths with equal probability."""
        low, high = self.config.min_digits, self.config.max_digits
        shape = (num_problems, self.num_operands)
        return Shapes.of(torch.randint(low, high + 1, shape, generator=generator), OWN)

    def draw(self, shapes: Shapes, generator: torch.Generator) -> Problems:
        """Draw uniform digits; a number of several digits does not begin with 0."""
        width = int(shapes.lengths_BN.max()) if len(shapes) else 1
        if self.is_numeric:
            drawn = digits.draw(shapes.lengths_BN, width, generator, base=self.base)
        else:
            inside = torch.arange(width) < shapes.lengths_BN.unsqueeze(2)
            drawn = torch.randint(self.base, inside.shape, generator=generator) * inside
        return Problems(drawn.to(torch.uint8), shapes)

    def answer(self, problems: Problems) -> Answer:
        """Return the exact answers, one problem after the other."""
        return Texts([self._answer(operands) for operands in self.operand_texts(problems)])

    def _answer(self, operands: tuple[str, ...]) -> str:
        """Return the answer to one problem. Raises `ConfigurationError` if it cannot be written."""
        answer = self.config.answer(*operands)
        characters = DIGIT_CHARACTERS[: self.base]
        if not isinstance(answer, str) or not answer or not set(answer) <= set(characters):
            raise ConfigurationError(
                f"{self.config.name}: for {self.symbol.join(operands)}, answer must return text of the "
                f"digits {characters[0]} to {characters[-1]}, got {answer!r}."
            )
        return answer

    def measures(self, problems: Problems) -> dict[str, Tensor]:
        """Measure the length of the longest operand."""
        return {"digits of the longest operand": problems.lengths_BN.amax(dim=1)}

    def space(self) -> None:
        """Return None: the problems have no index."""

    def operand_texts(self, problems: Problems) -> list[tuple[str, ...]]:
        """Return the operands of each problem in the usual notation."""
        columns = [problems.operand(i).texts() for i in range(self.num_operands)]
        return list(zip(*columns, strict=True))

    def parse(self, expressions: list[str], max_digits: int = 100_000) -> Problems:
        """Read problems that a person typed: operands with the task's symbol between them.

        Raises:
            ProblemError: an expression is not a problem of this task. The message names the first one.
        """
        if not expressions:
            # Without an operand to count, the number of operands would be unknown.
            return self.draw(
                Shapes.of(torch.zeros(0, self.num_operands).long(), OWN), torch.Generator()
            )
        rows = [self._read(text, max_digits) for text in expressions]
        return Problems.from_texts(rows, [OWN] * len(rows))

    def expressions(self, problems: Problems) -> list[str]:
        """Return each problem as a person would type it."""
        return [self.symbol.join(operands) for operands in self.operand_texts(problems)]

    @property
    def example(self) -> str:
        """A valid problem, for error messages and help."""
        numbers = ("12", "34", "56", "78") if self.base >= 9 else ("10", "11", "1", "101")
        return self.symbol.join(itertools.islice(itertools.cycle(numbers), self.num_operands))

    @property
    def claim(self) -> str:
        """What a model that is always right does."""
        return f"carries out {self.config.name}"

    def _read(self, expression: str, max_digits: int) -> list[str]:
        """Return the operands of one expression."""
        characters = DIGIT_CHARACTERS[: self.base]
        remedy = (
            f"Type {_operands(self.num_operands)} of the digits {characters[0]} to {characters[-1]}, "
            f"such as {self.example}."
        )
        if not expression.strip():
            raise ProblemError(f"empty problem. {remedy}")
        operands = []
        for part in expression.strip().removesuffix("=").split(self.symbol):
            text = part.strip().lower()
            if not text or not set(text) <= set(characters):
                raise ProblemError(
                    f"cannot read {quoted(expression)}: {quoted(part)} is not a number in base "
                    f"{self.base}. {remedy}"
                )
            if self.is_numeric:
                text = text.lstrip("0") or "0"
            if len(text) > max_digits:
                raise ProblemError(
                    f"{quoted(expression)} has an operand of {len(text):,} digits; "
                    f"at most {max_digits:,} are accepted."
                )
            operands.append(text)
        if len(operands) != self.num_operands:
            raise ProblemError(
                f"cannot read {quoted(expression)}: it has {_operands(len(operands))}. {remedy}"
            )
        return operands


def _operands(number: int) -> str:
    return f"{number} operand{'s' * (number != 1)}"
