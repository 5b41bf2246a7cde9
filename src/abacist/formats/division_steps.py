"""Steps of long divisions, for the three formats that write them out.

A division brings down one digit of the dividend after the other, and subtracts the divisor from what
is left as often as it goes in. So 97 // 8 has two steps:

    9 is brought down:     9 - 8 = 1;  one more would be below 0            quotient digit 1
    7 is brought down:    17 - 8 = 9,  9 - 8 = 1;  one more is below 0      quotient digit 2
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.formats.pieces import Piece, merge
from abacist.tasks import digits
from abacist.tasks.problems import Problems


@dataclass(frozen=True)
class DivisionSteps:
    """The steps of divisions whose divisors all have W digits.

    All problems of the batch have the S steps of the longest dividend; those of shorter dividends
    come last.
    """

    num_steps_B: Tensor
    """int64, steps of each problem; they are its last ones."""
    quotient_BS: Tensor
    """uint8, the digit of the quotient that each step finds."""
    brought_down: Tensor
    """uint8 (B, S, W + 1): what is left after the step's digit has been brought down."""
    differences: Tensor
    """uint8 (B, S, 11, W + 1): that number less 0, 1 … 10 times the divisor, modulo 10^(W + 1)."""
    remainder_BW: Tensor
    """uint8, what is left at the end."""

    @property
    def number_BS(self) -> Tensor:
        """int64, the number of each step, starting at 0; below 0 for steps that a problem lacks."""
        steps = self.quotient_BS.shape[1]
        step = torch.arange(steps, device=self.num_steps_B.device)
        return step - (steps - self.num_steps_B).unsqueeze(1)

    @staticmethod
    def of(problems: Problems, divisor_length: int) -> "DivisionSteps":
        """Divide; all divisors must have `divisor_length` digits."""
        dividend = problems.operand(0).digits_BW[:, : int(problems.lengths_BN[:, 0].max())]
        division = digits.divide(dividend, problems.operand(1).digits_BW[:, :divisor_length])
        brought_down = division.brought_down_SBW.transpose(0, 1)
        multiples = division.multiples.transpose(0, 1)
        batch, steps, width = brought_down.shape
        shape = (batch, steps, multiples.shape[1], width)
        differences, _ = digits.subtract_modulo(
            brought_down.unsqueeze(2).expand(shape).reshape(-1, width),
            multiples.unsqueeze(1).expand(shape).reshape(-1, width),
        )
        return DivisionSteps(
            num_steps_B=count_steps(problems),
            quotient_BS=division.quotient_SB.t(),
            brought_down=brought_down,
            differences=differences.view(shape),
            remainder_BW=division.remainder_BW,
        )


def count_steps(problems: Problems) -> Tensor:
    """Return the number of digits of each dividend that are brought down, int64 (B,)."""
    return (problems.lengths_BN[:, 0] - problems.lengths_BN[:, 1] + 1).clamp(min=1)


def write_by_divisor_length(problems: Problems, write: Callable[[Problems, int], Piece]) -> Piece:
    """Write divisions whose divisors have one length together, since their rows have one width."""
    lengths_B = problems.lengths_BN[:, 1]
    parts = []
    for length in torch.unique(lengths_B).tolist():
        lines = (lengths_B == length).nonzero().squeeze(1)
        parts.append((lines, write(problems[lines], length)))
    return merge(parts, len(problems), lengths_B.device)
