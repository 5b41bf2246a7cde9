"""What formats must have in common so that one model can write the lines of all of them.

A format by itself numbers its tokens and spaces its columns as suits its own calculation. In the
calculator (`formats/calculator.py`), sums, differences, products and divisions share one vocabulary
and one window of attention, and a model must always see which of them a line is. So each line begins
with a start token of its own kind, and columns and rows are as far apart as the common window asks.
"""

from dataclasses import dataclass

from abacist.vocabulary import Vocabulary

SIGNS = ("⁺", "⁻")
"""The signs of numbers from 0 up and below 0, which are no operators."""


@dataclass(frozen=True)
class SharedNotation:
    """The vocabulary, the start token and the spacing of a format that shares its model with others.

    Lines of such a format have steps, even if the calculation is one single step.
    """

    vocabulary: Vocabulary
    """Tokens of all formats that share the model."""
    start: str
    """The token that begins the lines of this format, and stands in every place, row and step."""
    spacing: int
    """Distance between the places of neighbouring columns, where the format lets it be chosen."""

    @property
    def start_id(self) -> int:
        """The id of the start token."""
        return self.vocabulary.id(self.start)
