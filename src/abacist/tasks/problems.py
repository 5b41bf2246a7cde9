"""Batches of problems and of answers, as digit tensors: exact at any length.

Shapes: B problems, N operands a problem at most, W columns of digits.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.tasks.config import LABELS

OPERATIONS = ("+", "-", "*", "//", "%", "sort", "+ mod")
"""What a problem can ask; `Problems.operation_B` numbers them in this order."""


@dataclass(frozen=True)
class Numbers:
    """A batch of integers."""

    digits_BW: Tensor
    """uint8, least significant first; zero from the number's length on."""
    lengths_B: Tensor
    """int64, how many digits each number has; 1 for the number 0."""
    negative_B: Tensor | None = None
    """bool, which numbers are below 0; None where none is."""

    def __len__(self) -> int:
        return self.digits_BW.shape[0]

    def texts(self) -> list[str]:
        """Each number in the usual notation, most significant digit first."""
        rows = (self.digits_BW + ord("0")).cpu().numpy()
        lengths = self.lengths_B.tolist()
        texts = [
            row[:length].tobytes()[::-1].decode() for row, length in zip(rows, lengths, strict=True)
        ]
        if self.negative_B is None:
            return texts
        negative = self.negative_B.tolist()
        return ["-" * below + text for below, text in zip(negative, texts, strict=True)]


@dataclass(frozen=True)
class Ordering:
    """A batch of sorted orders."""

    ranked_BN: Tensor
    """int64: which number comes first, second, …; what stands beyond a problem's count means nothing."""
    counts_B: Tensor
    """int64, how many numbers each problem has."""

    def __len__(self) -> int:
        return self.ranked_BN.shape[0]

    def texts(self) -> list[str]:
        """Each order as labels: `cab`."""
        rows, counts = self.ranked_BN.tolist(), self.counts_B.tolist()
        return [
            "".join(LABELS[number] for number in row[:count])
            for row, count in zip(rows, counts, strict=True)
        ]


Answer = Numbers | Ordering


@dataclass(frozen=True)
class Shapes:
    """What problems look like before their digits are drawn: two of one shape are written alike."""

    lengths_BN: Tensor
    """int64, digits of every operand; 0 for one that is not there."""
    operation_B: Tensor
    """uint8 numbers of `OPERATIONS`."""
    chain_B: Tensor | None = None
    """int64, the longest chain of carries that the problem shall have; None leaves it to chance."""

    def __len__(self) -> int:
        return self.lengths_BN.shape[0]

    def __getitem__(self, rows: Tensor | slice) -> "Shapes":
        chain = None if self.chain_B is None else self.chain_B[rows]
        return Shapes(self.lengths_BN[rows], self.operation_B[rows], chain)

    def repeat_each(self, times: int) -> "Shapes":
        """Every shape `times` times in a row."""
        return self[torch.arange(len(self)).repeat_interleave(times)]

    @staticmethod
    def of(lengths_BN: Tensor, operation: str) -> "Shapes":
        """Shapes of one operation."""
        code = OPERATIONS.index(operation)
        return Shapes(lengths_BN, torch.full(lengths_BN.shape[:1], code, dtype=torch.uint8))


@dataclass(frozen=True)
class Problems:
    """A batch of problems."""

    digits_BNW: Tensor
    """uint8 digits of the operands, least significant first; zero from each operand's length on."""
    shapes: Shapes

    def __post_init__(self) -> None:
        if self.digits_BNW.shape[:2] != self.lengths_BN.shape:
            raise ValueError(
                f"digits {tuple(self.digits_BNW.shape)} and lengths "
                f"{tuple(self.lengths_BN.shape)} disagree"
            )

    def __len__(self) -> int:
        return self.digits_BNW.shape[0]

    def __getitem__(self, rows: Tensor | slice) -> "Problems":
        return Problems(self.digits_BNW[rows], self.shapes[rows])

    @property
    def lengths_BN(self) -> Tensor:
        """int64, digits of every operand; 0 for one that is not there."""
        return self.shapes.lengths_BN

    @property
    def operation_B(self) -> Tensor:
        """uint8 numbers of `OPERATIONS`."""
        return self.shapes.operation_B

    @property
    def num_operands(self) -> int:
        """Of the problem that has most."""
        return self.digits_BNW.shape[1]

    @property
    def counts_B(self) -> Tensor:
        """int64, operands of every problem."""
        return (self.lengths_BN > 0).sum(dim=1)

    def operand(self, position: int) -> Numbers:
        """One operand of every problem; length 0 where it is not there."""
        return Numbers(self.digits_BNW[:, position], self.lengths_BN[:, position])

    @staticmethod
    def from_integers(rows: list[tuple[int, ...]], operation: str = "+") -> "Problems":
        """Problems from Python integers, one tuple of operands each."""
        texts = [[str(operand) for operand in row] for row in rows]
        return Problems.from_texts(texts, [operation] * len(rows))

    @staticmethod
    def from_texts(rows: list[list[str]], operations: list[str]) -> "Problems":
        """Problems from operands in decimal notation, without leading zeros, and what is asked."""
        width = max((len(text) for row in rows for text in row), default=1)
        num_operands = max((len(row) for row in rows), default=2)
        digits = torch.zeros(len(rows), num_operands, width, dtype=torch.uint8)
        lengths = torch.zeros(len(rows), num_operands, dtype=torch.int64)
        for i, row in enumerate(rows):
            for j, text in enumerate(row):
                reversed_digits = bytearray(text.encode()[::-1])
                digits[i, j, : len(text)] = torch.frombuffer(
                    reversed_digits, dtype=torch.uint8
                ) - ord("0")
                lengths[i, j] = len(text)
        numbers = torch.tensor([OPERATIONS.index(o) for o in operations], dtype=torch.uint8)
        return Problems(digits, Shapes(lengths, numbers))


def first_of_equal(rows: Tensor) -> Tensor:
    """int64, ascending: numbers of the rows, (B,) or (B, C), that equal none before them."""
    if not len(rows):
        return torch.zeros(0, dtype=torch.int64)
    _, inverse = torch.unique(rows, dim=0, return_inverse=True)
    first = torch.full((int(inverse.max()) + 1,), len(rows))
    first.scatter_reduce_(0, inverse, torch.arange(len(rows)), "amin")
    return first.sort().values


def joined(parts: list[Problems]) -> Problems:
    """All problems of several batches, of the same most operands, in one."""
    width = max(part.digits_BNW.shape[2] for part in parts)
    pad = torch.nn.functional.pad
    digits = [pad(part.digits_BNW, (0, width - part.digits_BNW.shape[2])) for part in parts]
    shapes = Shapes(
        torch.cat([part.lengths_BN for part in parts]),
        torch.cat([part.operation_B for part in parts]),
    )
    return Problems(torch.cat(digits), shapes)
