"""Characters and the ids a model sees.

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
    """An ordered set of tokens; the id of a token is its rank.

    By convention of this package the ten digits come first, so a digit's id is its value.
    """

    tokens: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(set(self.tokens)) != len(self.tokens):
            raise ValueError(f"a vocabulary cannot hold a token twice, got {self.tokens}")

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {token: rank for rank, token in enumerate(self.tokens)}

    def id(self, token: str) -> int:
        """The id of one token; `KeyError` when it is not in the vocabulary."""
        return self._ids[token]

    def text(self, ids: Iterable[int]) -> str:
        """The tokens of `ids`, written one after the other."""
        return "".join(self.tokens[i] for i in ids)

    def __len__(self) -> int:
        return len(self.tokens)
