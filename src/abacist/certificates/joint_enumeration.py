"""Joins the enumerations of several notations that one model writes.

The lines of each notation begin with a start token of their own, which every query sees. So no two
notations share a pattern, and all contexts of a model are those of its notations, one after the other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from torch import Tensor

from abacist.certificates.receptive_fields import Context, Enumeration, Pattern, Skeleton


class JointEnumeration:
    """All contexts of the receptive fields of a model that writes several notations."""

    def __init__(self, claim: str, members: Sequence[tuple[tuple[str, ...], Enumeration]]) -> None:
        """Join the enumerations of all notations, each with the operations that it is written for."""
        self.claim, self._members = claim, members
        self.patterns: list[Pattern] = [
            pattern for _, member in members for pattern in member.patterns
        ]
        self.num_cases = sum(member.num_cases for _, member in members)

    def parts(self) -> Iterator[tuple[list[Context], int]]:
        """Yield the contexts of one pattern at a time, and the number of cases that made them."""
        for operations, member in self._members:
            for part, num_cases in member.parts():
                yield [replace(context, operations=operations) for context in part], num_cases

    def long_lines(self) -> Iterator[tuple[Tensor, list[Skeleton]]]:
        """Yield the long lines of every notation."""
        for _, member in self._members:
            yield from member.long_lines()
