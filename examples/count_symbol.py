"""How often a symbol occurs in a string: `1,10121` gives `3`. Measured, not certified."""

from dataclasses import dataclass
from typing import ClassVar

from abacist import OwnTaskConfig, own_recipe, recipe


@dataclass(frozen=True, kw_only=True)
class CountSymbolConfig(OwnTaskConfig):
    """How often the first character of the first string occurs in the second."""

    kind: ClassVar = "count-symbol"
    is_numeric: ClassVar = False

    def answer(self, *operands):
        """Return the number of occurrences."""
        return str(operands[1].count(operands[0][0]))


@recipe("count-symbol")
def count_symbol():
    """Counts a digit in strings of at most 6 digits, measured on test problems."""
    return own_recipe("count-symbol", CountSymbolConfig(max_digits=6))
