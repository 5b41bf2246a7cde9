"""The greatest common divisor of two numbers: `12,18` gives `6`. Measured, not certified."""

import math
from dataclasses import dataclass
from typing import ClassVar

from abacist import OwnTaskConfig, own_recipe, recipe


@dataclass(frozen=True, kw_only=True)
class GcdConfig(OwnTaskConfig):
    """The greatest common divisor of two numbers."""

    kind: ClassVar = "gcd"

    def answer(self, *operands):
        """Return the greatest common divisor, from the operands as texts."""
        return str(math.gcd(*map(int, operands)))


@recipe("gcd")
def gcd():
    """Greatest common divisors of numbers of at most 2 digits, measured on test problems."""
    return own_recipe("gcd", GcdConfig(max_digits=2))
