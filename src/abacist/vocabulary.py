"""The mapping between tokens and the ids that a model sees.

>>> vocabulary = Vocabulary(("0", "1", "+", "<end>"))
>>> vocabulary.id("+")
2
>>> vocabulary.text([1, 2, 0, 3])
'1+0<end>'
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

DIGITS = tuple("0123456789")


@dataclass(frozen=True)
class Vocabulary:
    """An ordered set of tokens. The id of a token is its index.

    By convention the ten digits come first, so that the id of a digit is its value.
    """

    tokens: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(set(self.tokens)) != len(self.tokens):
            raise ValueError(f"a vocabulary cannot contain a token twice, got {self.tokens}")

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {token: index for index, token in enumerate(self.tokens)}

    def id(self, token: str) -> int:
        """Return the id of a token; raise `KeyError` if the vocabulary lacks it."""
        return self._ids[token]

    def text(self, ids: Iterable[int]) -> str:
        """Return the tokens of `ids` as one text."""
        return "".join(self.tokens[i] for i in ids)

    def __len__(self) -> int:
        return len(self.tokens)
