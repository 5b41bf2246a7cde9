"""Batches of problems and of answers as digit tensors, exact at any length.

Shapes: B problems, N operands (of the problem that has the most), W digit columns.
"""

import string
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from abacist.tasks.config import LABELS

OWN = "own"
"""Operation of the problems of tasks that extensions define."""
OPERATIONS = ("+", "-", "*", "//", "%", "sort", "+ mod", OWN)
"""Operations that a problem can ask for; `Problems.operation_B` holds indices of this tuple."""

DIGIT_CHARACTERS = string.digits + string.ascii_lowercase
"""Digits of all bases up to 36 as they are written."""
_TO_CHARACTER = bytes(DIGIT_CHARACTERS.encode()).ljust(256)
_TO_DIGIT = bytes(max(0, DIGIT_CHARACTERS.find(chr(code))) for code in range(256))


@dataclass(frozen=True)
class Numbers:
    """A batch of integers."""

    digits_BW: Tensor
    """Digits, uint8, least significant first; 0 after a number's last digit."""
    lengths_B: Tensor
    """Number of digits of each number, int64; 1 for the number 0."""
    negative_B: Tensor | None = None
    """Which numbers are below 0, bool; None if no number is."""

    def __len__(self) -> int:
        return self.digits_BW.shape[0]

    def __getitem__(self, rows: Tensor) -> "Numbers":
        negative_B = None if self.negative_B is None else self.negative_B[rows]
        return Numbers(self.digits_BW[rows], self.lengths_B[rows], negative_B)

    @property
    def is_negative_B(self) -> Tensor:
        """Which numbers are below 0, bool (B,), also if none is."""
        if self.negative_B is not None:
            return self.negative_B
        return torch.zeros_like(self.lengths_B, dtype=torch.bool)

    def texts(self) -> list[str]:
        """Return each number in the usual notation, most significant digit first."""
        # One text for all numbers: converting each alone takes several times as long.
        rows = self.digits_BW.flip(1).cpu().numpy()
        whole = rows.tobytes().translate(_TO_CHARACTER).decode()
        ends = self.digits_BW.shape[1] * torch.arange(1, len(self) + 1)
        begins = ends - self.lengths_B.cpu()
        texts = [
            whole[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
        ]
        if self.negative_B is None:
            return texts
        signs = ["-" * negative for negative in self.negative_B.tolist()]
        return [sign + text for sign, text in zip(signs, texts, strict=True)]


@dataclass(frozen=True)
class Ordering:
    """A batch of sorted orders, the answers of sorting."""

    ranked_BN: Tensor
    """Index of the number that comes first, second, …, int64; entries after a problem's count mean nothing."""
    counts_B: Tensor
    """Count of numbers in each problem, int64."""

    def __len__(self) -> int:
        return self.ranked_BN.shape[0]

    def texts(self) -> list[str]:
        """Return each order as labels, as in `cab`."""
        rows, counts = self.ranked_BN.tolist(), self.counts_B.tolist()
        return [
            "".join(LABELS[number] for number in row[:count])
            for row, count in zip(rows, counts, strict=True)
        ]


@dataclass(frozen=True)
class Texts:
    """A batch of answers that are texts."""

    of_problems: list[str]

    def __len__(self) -> int:
        return len(self.of_problems)

    def texts(self) -> list[str]:
        """Return each answer."""
        return self.of_problems


class Answer(Protocol):
    """A batch of answers."""

    def __len__(self) -> int: ...

    def texts(self) -> list[str]:
        """Return each answer as a person would write it."""


@dataclass(frozen=True)
class Shapes:
    """Properties of problems that are fixed before their digits are drawn, and that determine the layout."""

    lengths_BN: Tensor
    """Number of digits of every operand, int64; 0 for an operand that the problem lacks."""
    operation_B: Tensor
    """Indices in `OPERATIONS`, uint8."""
    chain_B: Tensor | None = None
    """Length of the longest carry chain that the problem must have, int64; None for a random one."""

    def __len__(self) -> int:
        return self.lengths_BN.shape[0]

    def __getitem__(self, rows: Tensor | slice) -> "Shapes":
        chain = None if self.chain_B is None else self.chain_B[rows]
        return Shapes(self.lengths_BN[rows], self.operation_B[rows], chain)

    def repeat_each(self, times: int) -> "Shapes":
        """Return each shape `times` times in succession."""
        return self[torch.arange(len(self)).repeat_interleave(times)]

    @staticmethod
    def of(lengths_BN: Tensor, operation: str) -> "Shapes":
        """Return shapes that all have one operation."""
        code = OPERATIONS.index(operation)
        return Shapes(lengths_BN, torch.full(lengths_BN.shape[:1], code, dtype=torch.uint8))


@dataclass(frozen=True)
class Problems:
    """A batch of problems."""

    digits_BNW: Tensor
    """Digits of the operands, uint8, least significant first; 0 after an operand's last digit."""
    shapes: Shapes
    negative_BN: Tensor | None = None
    """Which operands are below 0, bool; None if no operand is. The number 0 is not."""

    def __post_init__(self) -> None:
        if self.digits_BNW.shape[:2] != self.lengths_BN.shape:
            raise ValueError(
                f"digits {tuple(self.digits_BNW.shape)} and lengths "
                f"{tuple(self.lengths_BN.shape)} disagree"
            )

    def __len__(self) -> int:
        return self.digits_BNW.shape[0]

    def __getitem__(self, rows: Tensor | slice) -> "Problems":
        negative = None if self.negative_BN is None else self.negative_BN[rows]
        return Problems(self.digits_BNW[rows], self.shapes[rows], negative)

    def with_signs(self, negative_BN: Tensor) -> "Problems":
        """Return problems of the same magnitudes, with these operands below 0 unless they are 0."""
        is_zero_BN = (self.digits_BNW == 0).all(dim=2)
        return Problems(self.digits_BNW, self.shapes, negative_BN & ~is_zero_BN)

    @property
    def lengths_BN(self) -> Tensor:
        """Number of digits of every operand, int64; 0 for an operand that the problem lacks."""
        return self.shapes.lengths_BN

    @property
    def operation_B(self) -> Tensor:
        """Indices in `OPERATIONS`, uint8."""
        return self.shapes.operation_B

    @property
    def num_operands(self) -> int:
        """N, the number of operands of the problem that has the most."""
        return self.digits_BNW.shape[1]

    @property
    def counts_B(self) -> Tensor:
        """Number of operands of every problem, int64."""
        return (self.lengths_BN > 0).sum(dim=1)

    @property
    def is_negative_BN(self) -> Tensor:
        """Which operands are below 0, bool (B, N), also if none is."""
        if self.negative_BN is not None:
            return self.negative_BN
        return torch.zeros_like(self.lengths_BN, dtype=torch.bool)

    def operand(self, position: int) -> Numbers:
        """Return one operand of every problem, with length 0 if the problem lacks it."""
        negative_B = None if self.negative_BN is None else self.negative_BN[:, position]
        return Numbers(self.digits_BNW[:, position], self.lengths_BN[:, position], negative_B)

    @staticmethod
    def from_integers(rows: list[tuple[int, ...]], operation: str = "+") -> "Problems":
        """Return problems from Python integers, one tuple of operands per problem."""
        texts = [[str(operand) for operand in row] for row in rows]
        return Problems.from_texts(texts, [operation] * len(rows))

    @staticmethod
    def from_texts(rows: list[list[str]], operations: list[str]) -> "Problems":
        """Return problems from their operands in the usual notation, most significant digit first.

        Args:
            rows: operands of each problem; those below 0 begin with `-`.
            operations: operation of each problem, of `OPERATIONS`.
        """
        num_operands = max((len(row) for row in rows), default=2)
        texts = [text for row in rows for text in (*row, *[""] * (num_operands - len(row)))]
        magnitudes = [text.removeprefix("-") for text in texts]
        width = max(map(len, magnitudes), default=1)
        # In one piece, since a tensor for every operand takes several microseconds.
        written = bytearray("".join(text.zfill(width) for text in magnitudes), "ascii")
        digits = torch.from_numpy(np.frombuffer(written.translate(_TO_DIGIT), dtype=np.uint8))
        shape = (len(rows), num_operands)
        lengths = torch.tensor([len(text) for text in magnitudes], dtype=torch.int64).view(shape)
        codes = torch.tensor([OPERATIONS.index(o) for o in operations], dtype=torch.uint8)
        problems = Problems(digits.view(*shape, width).flip(-1), Shapes(lengths, codes))
        if magnitudes == texts:
            return problems
        return problems.with_signs(
            torch.tensor([text.startswith("-") for text in texts]).view(shape)
        )


def first_occurrences(rows: Tensor) -> Tensor:
    """Return the indices, int64, ascending, of the rows (B, …) that equal no earlier row."""
    if not len(rows):
        return torch.zeros(0, dtype=torch.int64)
    _, inverse = torch.unique(rows, dim=0, return_inverse=True)
    first = torch.full((int(inverse.max()) + 1,), len(rows))
    first.scatter_reduce_(0, inverse, torch.arange(len(rows)), "amin")
    return first.sort().values


def concatenate(parts: list[Problems]) -> Problems:
    """Return the problems of several batches, all with the same number N of operands, as one batch."""
    width = max(part.digits_BNW.shape[2] for part in parts)
    pad = torch.nn.functional.pad
    digits = [pad(part.digits_BNW, (0, width - part.digits_BNW.shape[2])) for part in parts]
    shapes = Shapes(
        torch.cat([part.lengths_BN for part in parts]),
        torch.cat([part.operation_B for part in parts]),
    )
    if all(part.negative_BN is None for part in parts):
        return Problems(torch.cat(digits), shapes)
    return Problems(torch.cat(digits), shapes, torch.cat([part.is_negative_BN for part in parts]))
