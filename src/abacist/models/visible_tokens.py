"""Finds the tokens that the next token of a line sees through the windows of a model."""

from collections.abc import Iterable, Mapping
from itertools import product

from abacist.models.config import PositionScheme
from abacist.models.coordinates import Coordinates


class VisibleTokens:
    """The tokens of one line that later tokens can see, each with a number that its user chooses.

    The number is a token's slot in a cache, or its id. Tokens are listed by their coordinates, so that
    finding those inside the windows takes the same time at any length. A token is forgotten when a
    coordinate has passed it that can no longer return.
    """

    def __init__(self, schemes: tuple[PositionScheme, ...], falls: Mapping[str, int]) -> None:
        """Begin an empty line.

        Args:
            schemes: the position schemes of a model, at least one of them with a window.
            falls: see `Continuation.falls`.
        """
        self._windowed = [
            (number, scheme.window, scheme.coordinate == "index")
            for number, scheme in enumerate(schemes)
            if scheme.window is not None
        ]
        falls = {"index": 0, **falls}
        # Tokens are forgotten by the first windowed scheme whose coordinate hardly falls.
        self._passing: tuple[int, int] | None = next(
            (
                (position, low - falls[schemes[number].coordinate])
                for position, (number, (low, _), _) in enumerate(self._windowed)
                if schemes[number].coordinate in falls
            ),
            None,
        )
        self._numbers: dict[tuple[int, ...], list[int]] = {}
        self._keys_of_value: dict[int, set[tuple[int, ...]]] = {}
        self._largest = self._smallest_kept = 0

    def __len__(self) -> int:
        return sum(map(len, self._numbers.values()))

    def add(self, number: int, values: tuple[int, ...]) -> bool:
        """List a token with the coordinate of every scheme; False if no later token can see it."""
        key = tuple([values[scheme] for scheme, _, _ in self._windowed])
        if Coordinates.NO_PLACE in key:
            return False
        self._numbers.setdefault(key, []).append(number)
        if self._passing is not None:
            self._keys_of_value.setdefault(key[self._passing[0]], set()).add(key)
        return True

    def find(self, values: tuple[int, ...]) -> list[tuple[tuple[int, ...], list[int]]]:
        """Return the numbers of all listed tokens that a token with these coordinates sees.

        Tokens that share the coordinates of all schemes with a window come together, after these.
        """
        columns = [
            self._column(values[scheme], window, is_index)
            for scheme, window, is_index in self._windowed
        ]
        numbers = self._numbers
        return [(key, numbers[key]) for key in product(*columns) if key in numbers]

    def forget(self, values: tuple[int, ...]) -> list[int]:
        """Forget the tokens that no generated token can see from this one on, and return their numbers."""
        forgotten: list[int] = []
        if self._passing is None:
            return forgotten
        position, low = self._passing
        self._largest = max(self._largest, values[self._windowed[position][0]])
        for value in range(self._smallest_kept, self._largest + low):
            for key in self._keys_of_value.pop(value, ()):
                forgotten += self._numbers.pop(key)
        self._smallest_kept = max(self._smallest_kept, self._largest + low)
        return forgotten

    @staticmethod
    def _column(value: int, window: tuple[int, int], is_index: bool) -> Iterable[int]:
        """Return the coordinates of one scheme that a token with this coordinate sees."""
        if is_index:
            return range(value + window[0], value + window[1] + 1)
        if value < 0:
            return (Coordinates.EVERYWHERE,)
        low = max(0, value + window[0])
        return (Coordinates.EVERYWHERE, *range(low, value + window[1] + 1))
