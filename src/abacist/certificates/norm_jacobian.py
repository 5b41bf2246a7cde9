"""Normalisation near given points: how errors pass through it, to first order and beyond."""

import torch
from torch import Tensor, nn

from abacist.certificates.enclosures import SLACK


class NormAt:
    """A normalisation near given points: its Jacobian, and a bound on what that leaves out."""

    def __init__(self, norm: nn.Module, x: Tensor) -> None:
        """`x`: float64 (n, D)."""
        assert isinstance(norm, nn.LayerNorm | nn.RMSNorm)
        assert norm.eps is not None
        self.is_centred = isinstance(norm, nn.LayerNorm)
        self.gain, self.width = norm.weight, x.shape[-1]
        self.centred = x - x.mean(dim=-1, keepdim=True) if self.is_centred else x
        self.square = (self.centred**2).mean(dim=-1, keepdim=True) + norm.eps
        self.root = self.square**-0.5

    def before(self, rows: Tensor) -> Tensor:
        """Multiply rows (n, R, D) by the Jacobian: how each depends on the input, (n, R, D)."""
        scaled = rows * self.gain
        along = (scaled * self.centred.unsqueeze(1)).sum(dim=-1, keepdim=True)
        along = along * (self.centred / (self.width * self.square)).unsqueeze(1)
        if self.is_centred:
            scaled = scaled - scaled.mean(dim=-1, keepdim=True)
        return (scaled - along) * self.root.unsqueeze(1)

    def passed_on(self, error: Tensor) -> Tensor:
        """Bound what errors up to `error`, (n, D), become, with absolute values of the Jacobian: (n, D)."""
        size = self.centred.abs()
        along = (size * error).sum(dim=-1, keepdim=True) / (self.width * self.square)
        total = error + size * along
        if self.is_centred:
            total = total + error.mean(dim=-1, keepdim=True)
        return total * self.gain.abs() * self.root

    def remainder(self, error: Tensor) -> Tensor:
        """Bound what the Jacobian leaves out if the input errs by at most `error`, (n, D) each.

        With c the centred input, q its mean square plus ε, and the change t of q relative to q,
        (1 + t)^-1/2 = 1 - t/2 + R with |R| ≤ 3/8 t² (1 - |t|)^-5/2.
        """

        def mean(values: Tensor) -> Tensor:
            return values.mean(dim=-1, keepdim=True)

        shift = error + mean(error) if self.is_centred else error
        along = mean(self.centred.abs() * error) / self.square
        second = mean(error**2) / self.square
        change = 2 * along + second
        rest = 0.375 * change**2 * (1 - change).clamp(min=1e-3) ** -2.5
        rest = torch.where(change < 0.99, rest, torch.inf)
        inner = self.centred.abs() * (second / 2 + rest) + shift * (along + second / 2 + rest)
        return torch.as_tensor(self.gain.abs() * self.root * inner * SLACK)
