"""Batches of problems and of numbers, as digit tensors: exact at any length.

Shapes: B problems, N operands a problem, W columns of digits.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Numbers:
    """A batch of non-negative integers."""

    digits_BW: Tensor
    """uint8, least significant first; zero from the number's length on."""
    lengths_B: Tensor
    """int64, how many digits each number has; 1 for the number 0."""

    def __len__(self) -> int:
        return self.digits_BW.shape[0]

    def texts(self) -> list[str]:
        """Each number in the usual notation, most significant digit first."""
        rows = (self.digits_BW + ord("0")).cpu().numpy()
        lengths = self.lengths_B.tolist()
        return [
            row[:length].tobytes()[::-1].decode() for row, length in zip(rows, lengths, strict=True)
        ]


@dataclass(frozen=True)
class Problems:
    """A batch of problems of one task."""

    digits_BNW: Tensor
    """uint8 digits of the operands, least significant first; zero from each operand's length on."""
    lengths_BN: Tensor
    """int64, how many digits each operand has."""

    def __post_init__(self) -> None:
        if self.digits_BNW.shape[:2] != self.lengths_BN.shape:
            raise ValueError(
                f"digits {tuple(self.digits_BNW.shape)} and lengths "
                f"{tuple(self.lengths_BN.shape)} disagree"
            )

    def __len__(self) -> int:
        return self.digits_BNW.shape[0]

    def __getitem__(self, rows: Tensor | slice) -> "Problems":
        return Problems(self.digits_BNW[rows], self.lengths_BN[rows])

    @property
    def num_operands(self) -> int:
        return self.digits_BNW.shape[1]

    def operand(self, position: int) -> Numbers:
        """One operand of every problem."""
        return Numbers(self.digits_BNW[:, position], self.lengths_BN[:, position])

    @staticmethod
    def from_integers(rows: list[tuple[int, ...]]) -> "Problems":
        """Problems from Python integers, one tuple of operands each."""
        texts = [[str(operand) for operand in row] for row in rows]
        return Problems.from_texts(texts)

    @staticmethod
    def from_texts(rows: list[list[str]]) -> "Problems":
        """Problems from operands in decimal notation, without leading zeros."""
        width = max((len(text) for row in rows for text in row), default=1)
        num_operands = len(rows[0]) if rows else 2
        digits = torch.zeros(len(rows), num_operands, width, dtype=torch.uint8)
        for i, row in enumerate(rows):
            for j, text in enumerate(row):
                reversed_digits = bytearray(text.encode()[::-1])
                digits[i, j, : len(text)] = torch.frombuffer(
                    reversed_digits, dtype=torch.uint8
                ) - ord("0")
        lengths = torch.tensor([[len(text) for text in row] for row in rows], dtype=torch.int64)
        return Problems(digits, lengths.reshape(len(rows), num_operands))
