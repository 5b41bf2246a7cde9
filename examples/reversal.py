"""A string written backwards: `0a1b` gives `b1a0`. Measured, not certified."""

from dataclasses import dataclass
from typing import ClassVar

from abacist import OwnTaskConfig, own_recipe, recipe


@dataclass(frozen=True, kw_only=True)
class ReversalConfig(OwnTaskConfig):
    """Strings of digits and letters, written backwards."""

    kind: ClassVar = "reversal"
    base: ClassVar = 36
    num_operands: ClassVar = 1
    is_numeric: ClassVar = False

    def answer(self, *operands):
        """Return the string backwards."""
        return operands[0][::-1]


@recipe("reversal")
def reversal():
    """Reverses strings of at most 8 digits and letters, measured on test problems."""
    return own_recipe("reversal", ReversalConfig(max_digits=8))
