"""Addition modulo a number: the task on which grokking was discovered (arXiv 2201.02177 §3).

>>> task = ModularAddition(ModularAdditionConfig(modulus=113))
>>> task.answer(task.parse(["95+30"])).texts()
['12']
"""

import torch
from torch import Tensor

from abacist.errors import ProblemError
from abacist.tasks import digits
from abacist.tasks.config import ModularAdditionConfig
from abacist.tasks.problems import Numbers, Problems, Shapes
from abacist.tasks.reading import quoted, whole_number
from abacist.tasks.space import Space


class ModularAddition:
    """The task of calculating `(a + b) mod p` for residues a and b."""

    operations = ("+ mod",)

    def __init__(self, config: ModularAdditionConfig) -> None:
        self.config = config
        self.num_digits = len(str(config.modulus - 1))

    def draw_shapes(self, num_problems: int, generator: torch.Generator) -> Shapes:
        """Draw lengths of residues, with every residue equally likely."""
        residues = torch.randint(self.config.modulus, (num_problems, 2), generator=generator)
        return Shapes.of(digits.significant(digits.of_values(residues, self.num_digits)), "+ mod")

    def draw(self, shapes: Shapes, generator: torch.Generator) -> Problems:
        """Draw residues of these lengths, all equally likely."""
        first = torch.where(shapes.lengths_BN > 1, 10 ** (shapes.lengths_BN - 1), 0)
        end = (10**shapes.lengths_BN).clamp(max=self.config.modulus)
        random = torch.rand(first.shape, generator=generator, dtype=torch.float64)
        residues = first + (random * (end - first)).long()
        return Problems(digits.of_values(residues, self.num_digits), shapes)

    def answer(self, problems: Problems) -> Numbers:
        """Return the sums modulo the modulus."""
        residues = residues_of(problems).sum(dim=1) % self.config.modulus
        results = digits.of_values(residues, self.num_digits)
        return Numbers(results, digits.significant(results))

    def measures(self, problems: Problems) -> dict[str, Tensor]:
        """Measure the answers."""
        return {"answer": residues_of(problems).sum(dim=1) % self.config.modulus}

    def space(self) -> Space:
        """Return all pairs of residues."""
        return Space(self.operations, (((0, self.config.modulus),) * 2,))

    def parse(self, expressions: list[str], max_digits: int = 100_000) -> Problems:
        """Read problems that a person typed: `95+30`, or `95+30 mod 113`.

        Raises:
            ProblemError: an expression is not a sum of two residues. The message names the first one.
        """
        rows = [self._read(text, max_digits) for text in expressions]
        return Problems.from_texts(rows, ["+ mod"] * len(rows))

    def expressions(self, problems: Problems) -> list[str]:
        """Return each problem as a person would type it."""
        a, b = problems.operand(0).texts(), problems.operand(1).texts()
        return [f"{x}+{y} mod {self.config.modulus}" for x, y in zip(a, b, strict=True)]

    @property
    def example(self) -> str:
        """A valid problem, for error messages and help."""
        return f"{self.config.modulus - 1}+1"

    @property
    def claim(self) -> str:
        """What a model that is always right does, as in `adds all pairs of residues modulo 113`."""
        return f"adds all pairs of residues modulo {self.config.modulus}"

    def _read(self, expression: str, max_digits: int) -> list[str]:
        """Return the operands of one expression."""
        modulus = self.config.modulus
        remedy = f"Type two numbers from 0 to {modulus - 1}, such as {self.example}."
        if not expression.strip():
            raise ProblemError(f"empty problem. {remedy}")
        question = expression.strip().removesuffix("=").strip()
        if "mod" in question:
            question = question.removesuffix(str(modulus)).rstrip().removesuffix("mod")
        operands = [
            whole_number(part.strip(), expression, max_digits) for part in question.split("+")
        ]
        numbers = [operand for operand in operands if operand is not None]
        if len(numbers) != len(operands) or len(numbers) != 2:
            raise ProblemError(
                f"cannot read {quoted(expression)}: it is not a sum modulo {modulus}. {remedy}"
            )
        for number in numbers:
            if len(number) > self.num_digits or int(number) >= modulus:
                raise ProblemError(
                    f"cannot read {quoted(expression)}: {quoted(number)} is not a residue modulo "
                    f"{modulus}. {remedy}"
                )
        return numbers


def residues_of(problems: Problems) -> Tensor:
    """Return the operands as int64 (B, 2)."""
    powers = 10 ** torch.arange(problems.digits_BNW.shape[2])
    return (problems.digits_BNW.long() * powers.to(problems.digits_BNW.device)).sum(dim=2)
