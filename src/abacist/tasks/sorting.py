"""Sorting labelled numbers: `a:821,b:9` gives `ba`; equal numbers keep their order.

>>> task = Sorting(SortingConfig())
>>> task.answer(task.parse(["a:821,b:9,c:9"])).texts()
['bca']
"""

import torch
from torch import Tensor

from abacist.errors import ProblemError
from abacist.tasks import digits
from abacist.tasks.config import LABELS, MOST_LABELS, SortingConfig
from abacist.tasks.problems import Ordering, Problems, Shapes
from abacist.tasks.reading import quoted, whole_number

_DIGITS_PER_LIMB = 15
"""Number of digits that a float64 holds exactly."""


class Sorting:
    """The task of sorting the numbers a, b, c … in ascending order."""

    operations = ("sort",)

    def __init__(self, config: SortingConfig) -> None:
        self.config = config

    def draw_shapes(self, num_problems: int, generator: torch.Generator) -> Shapes:
        """Draw a count of numbers, a largest length, and lengths up to it, each uniformly."""
        config = self.config

        def between(low: int, high: int, *shape: int) -> Tensor:
            return torch.randint(low, high + 1, shape, generator=generator)

        counts = between(config.min_numbers, config.max_numbers, num_problems, 1)
        limits = between(config.min_digits, config.max_digits, num_problems, 1)
        span = limits - config.min_digits + 1
        random = torch.rand(num_problems, config.max_numbers, generator=generator)
        lengths = config.min_digits + (random * span).long().clamp(max=span - 1)
        return Shapes.of(lengths * (torch.arange(config.max_numbers) < counts), "sort")

    def draw(self, shapes: Shapes, generator: torch.Generator) -> Problems:
        """Draw uniform digits; with sampling `ties`, half of all problems contain only the digits 1 and 2."""
        width = int(shapes.lengths_BN.max()) if len(shapes) else 1
        drawn = digits.draw(shapes.lengths_BN, width, generator)
        if self.config.sampling == "ties":
            tied = torch.rand(len(shapes), 1, 1, generator=generator) < 0.5
            inside = torch.arange(width) < shapes.lengths_BN.unsqueeze(2)
            drawn = torch.where(tied & inside, drawn % 2 + 1, drawn)
        return Problems(drawn, shapes)

    def answer(self, problems: Problems) -> Ordering:
        """Return the stable order, from comparisons of all pairs: N is small, and pairs are compared at once."""
        ranks = ranks_of(problems)
        places = torch.arange(problems.num_operands, device=ranks.device).expand_as(ranks)
        return Ordering(torch.zeros_like(ranks).scatter(1, ranks, places), problems.counts_B)

    def measures(self, problems: Problems) -> dict[str, Tensor]:
        """Measure the count of numbers and the longest length."""
        return {
            "numbers to sort": problems.counts_B,
            "digits of the longest number": problems.lengths_BN.amax(dim=1),
        }

    def space(self) -> None:
        """Return None: with almost all settings, there are too many problems to number."""

    def parse(self, expressions: list[str], max_digits: int = 100_000) -> Problems:
        """Read problems that a person typed: `a:821,b:9`, or `821,9` for short.

        Raises:
            ProblemError: an expression is not a list of numbers, or has too few or too many. The
                message names the first one.
        """
        rows = [self._read(text, max_digits) for text in expressions]
        return Problems.from_texts(rows, ["sort"] * len(rows))

    def expressions(self, problems: Problems) -> list[str]:
        """Return each problem as a person would type it."""
        operands = [problems.operand(i).texts() for i in range(problems.num_operands)]
        return [
            ",".join(
                f"{label}:{number}" for label, number in zip(LABELS, row, strict=False) if number
            )
            for row in zip(*operands, strict=True)
        ]

    @property
    def example(self) -> str:
        """A valid problem, for error messages and help."""
        numbers = ("821", "9", "72")[
            : max(self.config.min_numbers, min(3, self.config.max_numbers))
        ]
        numbers += ("5",) * (self.config.min_numbers - len(numbers))
        return ",".join(f"{a}:{n}" for a, n in zip(LABELS, numbers, strict=False))

    @property
    def claim(self) -> str:
        """What a model that is always right does, as in `sorts up to 10 non-negative integers`."""
        return f"sorts up to {self.config.max_numbers} non-negative integers"

    def _read(self, expression: str, max_digits: int) -> list[str]:
        """Return the numbers of one expression, without their labels."""
        low, high = self.config.min_numbers, self.config.max_numbers
        range_ = f"{low}" if low == high else f"{low} to {high}"
        remedy = f"Type {range_} numbers, such as {self.example}."
        if not expression.strip():
            raise ProblemError(f"empty problem. {remedy}")
        parts = [part.strip() for part in expression.strip().removesuffix("=").split(",")]
        if len(parts) > MOST_LABELS:
            raise ProblemError(
                f"the problem has {len(parts)} numbers and there are {MOST_LABELS} labels. {remedy}"
            )
        numbers = []
        for part, expected in zip(parts, LABELS, strict=False):
            label, colon, text = part.rpartition(":")
            if colon and label.strip() != expected:
                raise ProblemError(
                    f"cannot read {quoted(expression)}: label {quoted(label.strip())} must be "
                    f"{expected!r}. {remedy}"
                )
            number = whole_number(text.strip(), expression, max_digits)
            if number is None:
                raise ProblemError(
                    f"cannot read {quoted(expression)}: {quoted(text.strip())} is not a whole number "
                    f"from 0 up. {remedy}"
                )
            numbers.append(number)
        if not low <= len(numbers) <= high:
            raise ProblemError(
                f"cannot read {quoted(expression)}: it has {len(numbers)} numbers and this task "
                f"sorts {range_}. {remedy}"
            )
        return numbers


def ranks_of(problems: Problems) -> Tensor:
    """Return the rank of each number in ascending order, int64 (B, N), starting at 0.

    Numbers that a problem lacks come last.
    """
    smaller, equal = _compare_pairs(problems.digits_BNW)
    present = problems.lengths_BN > 0
    earlier = torch.ones(equal.shape[1:], dtype=torch.bool, device=equal.device).triu(1)
    before = (smaller | (equal & earlier)) & present.unsqueeze(2)
    # A number that the problem lacks has its own index as its rank.
    own = torch.arange(problems.num_operands, device=equal.device)
    return torch.where(present, before.sum(dim=1), own)


def _compare_pairs(digits_BNW: Tensor) -> tuple[Tensor, Tensor]:
    """Return whether number i is smaller than number j, bool (B, N, N), and whether they are equal."""
    width = digits_BNW.shape[2]
    limbs = -(-width // _DIGITS_PER_LIMB)
    padded = torch.nn.functional.pad(digits_BNW, (0, limbs * _DIGITS_PER_LIMB - width))
    powers = 10.0 ** torch.arange(_DIGITS_PER_LIMB, dtype=torch.float64, device=padded.device)
    values = padded.reshape(*padded.shape[:2], limbs, _DIGITS_PER_LIMB).double() @ powers
    smaller = equal = None
    for limb in reversed(range(limbs)):
        i, j = values[:, :, limb].unsqueeze(2), values[:, :, limb].unsqueeze(1)
        if smaller is None or equal is None:
            smaller, equal = i < j, i == j
        else:
            smaller, equal = smaller | (equal & (i < j)), equal & (i == j)
    assert smaller is not None
    assert equal is not None
    return smaller, equal
