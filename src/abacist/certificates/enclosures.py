"""Numbers with bounds on their errors, and how implementations round; `rounding.py` says what is bounded."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.certificates.receptive_fields import NotProvable

SLACK = 1 + 2.0**-32
"""Factor that makes up for the rounding of the bounds themselves, which are sums of positive numbers."""


@dataclass(frozen=True)
class Precision:
    """How an implementation rounds."""

    name: str
    unit: float
    """Unit roundoff u: half the distance from 1 to the next larger number."""
    factor_unit: float = 0.0
    """Unit roundoff of the factors of a matrix product, if they are rounded first."""
    sum_unit: float = 2.0**-24
    """Unit roundoff in which sums are accumulated before their result is rounded."""
    underflow: float = 2.0**-126
    """Largest absolute error of a result that is too small for full precision; it may become 0."""
    largest: float = 2.0**126
    """Results below this are finite, sums of two of them as well."""

    def gamma(self, terms: int) -> float:
        """Relative error bound of a sum of `terms` products, its final rounding included."""
        if terms * self.sum_unit >= 0.5:
            raise NotProvable(f"sums of {terms:,} terms are too long for a bound in {self.name}.")
        summed = terms * self.sum_unit / (1 - terms * self.sum_unit)
        return summed + self.unit + summed * self.unit

    def elementwise(self, operations: int) -> float:
        """Relative error bound of several operations one after the other."""
        # 1 + u is 1 in float64 where u is the unit roundoff of float64 itself.
        return math.expm1(operations * math.log1p(self.unit))


FLOAT64 = Precision("float64", 2.0**-53, 0.0, 2.0**-53, 2.0**-1022, 2.0**1022)
FLOAT32 = Precision("float32", 2.0**-24)
TF32 = Precision("TF32", 2.0**-24, factor_unit=2.0**-11)
BFLOAT16 = Precision("bfloat16", 2.0**-8, factor_unit=2.0**-8)
"""Products of bfloat16 numbers, added up in float32; everything else is rounded to bfloat16."""
PRECISIONS = {precision.name.lower(): precision for precision in (FLOAT32, TF32, BFLOAT16)}


@dataclass(frozen=True)
class Enclosure:
    """Numbers with their bounds; all three tensors are float64 and have one shape."""

    value: Tensor
    own: Tensor
    """Largest distance of `value` from the real number."""
    error: Tensor
    """Largest distance of an implementation's number from the real number."""

    @staticmethod
    def exact(value: Tensor) -> "Enclosure":
        """Numbers that are known and represented exactly, such as weights."""
        value = value.double()
        return Enclosure(value, torch.zeros_like(value), torch.zeros_like(value))

    @property
    def largest(self) -> Tensor:
        """A bound on the absolute value, real or implemented."""
        return (self.value.abs() + self.own + self.error) * SLACK

    def __getitem__(self, index: object) -> "Enclosure":
        return Enclosure(self.value[index], self.own[index], self.error[index])  # type: ignore[index]

    def reshaped(self, *shape: int) -> "Enclosure":
        """The same numbers in another shape."""
        return Enclosure(*(x.reshape(shape) for x in (self.value, self.own, self.error)))


@dataclass(frozen=True)
class Normed:
    """Normalised numbers (..., D), of whose error a part is common to all of a token's numbers.

    The mean and the variance of a token err only once. What they do to its numbers is a multiple of
    a known direction, and in a linear layer less than errors that could conspire.
    """

    x: Enclosure
    """The numbers with the errors that are their own."""
    direction: Tensor
    """Directions of the common errors, of the variance and of the mean: (..., 2, D)."""
    size: Tensor
    """Largest multiple of each direction, (..., 2, 1)."""

    @property
    def enclosure(self) -> Enclosure:
        """The numbers with all errors."""
        common = finite_product(self.direction.abs(), self.size).sum(dim=-2)
        return Enclosure(self.x.value, self.x.own, (self.x.error + common) * SLACK)


def stack(parts: Sequence[Enclosure], dim: int) -> Enclosure:
    """Concatenate enclosures."""
    return Enclosure(
        torch.cat([part.value for part in parts], dim),
        torch.cat([part.own for part in parts], dim),
        torch.cat([part.error for part in parts], dim),
    )


def finite_product(known: Tensor, bound: Tensor) -> Tensor:
    """Multiply known numbers with bounds, of which some may be infinite; 0 times infinity is 0."""
    return torch.where(known == 0, 0.0, known * bound)
