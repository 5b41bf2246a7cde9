"""Addition modulo a number: the task on which grokking was found (arXiv 2201.02177 §3).

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
from abacist.tasks.reading import shown, whole_number
from abacist.tasks.space import Space


class ModularAddition:
    """`(a + b) mod p` for residues a and b."""

    operations = ("+ mod",)

    def __init__(self, config: ModularAdditionConfig) -> None:
        self.config = config
        self.num_digits = len(str(config.modulus - 1))

    def draw_shapes(self, num_problems: int, generator: torch.Generator) -> Shapes:
        """Lengths of residues, every residue equally likely."""
        residues = torch.randint(self.config.modulus, (num_problems, 2), generator=generator)
        return Shapes.of(digits.significant(digits.of_values(residues, self.num_digits)), "+ mod")

    def draw(self, shapes: Shapes, generator: torch.Generator) -> Problems:
        """Problems with the residues of these lengths equally likely."""
        first = torch.where(shapes.lengths_BN > 1, 10 ** (shapes.lengths_BN - 1), 0)
        end = (10**shapes.lengths_BN).clamp(max=self.config.modulus)
        fortune = torch.rand(first.shape, generator=generator, dtype=torch.float64)
        residues = first + (fortune * (end - first)).long()
        return Problems(digits.of_values(residues, self.num_digits), shapes)

    def answer(self, problems: Problems) -> Numbers:
        """The residues of the sums."""
        residues = residues_of(problems).sum(dim=1) % self.config.modulus
        results = digits.of_values(residues, self.num_digits)
        return Numbers(results, digits.significant(results))

    def measures(self, problems: Problems) -> dict[str, Tensor]:
        """The answers."""
        return {"answer": residues_of(problems).sum(dim=1) % self.config.modulus}

    def space(self) -> Space:
        """All pairs of residues."""
        return Space(self.operations, (((0, self.config.modulus),) * 2,))

    def parse(self, expressions: list[str], max_digits: int = 100_000) -> Problems:
        """Problems from what a person typed: `95+30`, or `95+30 mod 113`."""
        rows = [self._read(text, max_digits) for text in expressions]
        return Problems.from_texts(rows, ["+ mod"] * len(rows))

    def expressions(self, problems: Problems) -> list[str]:
        """Problems as a person would type them."""
        a, b = problems.operand(0).texts(), problems.operand(1).texts()
        return [f"{x}+{y} mod {self.config.modulus}" for x, y in zip(a, b, strict=True)]

    @property
    def example(self) -> str:
        """A problem to show someone who typed something else."""
        return f"{self.config.modulus - 1}+1"

    @property
    def claim(self) -> str:
        """What a model that is always right does."""
        return f"adds all pairs of residues modulo {self.config.modulus}"

    def _read(self, expression: str, max_digits: int) -> list[str]:
        modulus = self.config.modulus
        remedy = f"Type two numbers from 0 to {modulus - 1}, such as {self.example}."
        if not expression.strip():
            raise ProblemError(f"empty problem. {remedy}")
        bare = expression.strip().removesuffix("=").strip()
        bare = (
            bare.removesuffix(str(modulus)).rstrip().removesuffix("mod") if "mod" in bare else bare
        )
        operands = [whole_number(part.strip(), expression, max_digits) for part in bare.split("+")]
        numbers = [operand for operand in operands if operand is not None]
        if len(numbers) != len(operands) or len(numbers) != 2:
            raise ProblemError(
                f"cannot read {shown(expression)}: it is no sum modulo {modulus}. {remedy}"
            )
        for number in numbers:
            if len(number) > self.num_digits or int(number) >= modulus:
                raise ProblemError(
                    f"cannot read {shown(expression)}: {shown(number)} is no residue modulo "
                    f"{modulus}. {remedy}"
                )
        return numbers


def residues_of(problems: Problems) -> Tensor:
    """The operands as int64 (B, 2)."""
    powers = 10 ** torch.arange(problems.digits_BNW.shape[2])
    return (problems.digits_BNW.long() * powers.to(problems.digits_BNW.device)).sum(dim=2)
