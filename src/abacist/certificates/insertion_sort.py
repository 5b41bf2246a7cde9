"""What stands in a reach where numbers are sorted by insertion.

A token of such a line points to one place of the prompt, or to nothing, and what follows is told by
these two alone (formats/insertion_sort.py): a digit is compared with the one it points to, anything
else is followed by a copy of what it points to. A model that sees no more than the token itself and
what it points to is right in every sorting if it is right for each pair of them.

Which pairs there are is listed here for as many numbers as the task allows. All of them do occur:
`_Pairs.operands` makes a problem from each.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import ClassVar

import torch
from torch import Tensor

from abacist import generators
from abacist.certificates.receptive_fields import (
    STRANGER,
    SYMBOL,
    Context,
    GroupedEnumeration,
    Pattern,
    Skeleton,
    pattern_of,
    visibility_in,
)
from abacist.formats.annotated import AnnotatedTokens, Field
from abacist.formats.insertion_sort import InsertionSortFormat
from abacist.models.transformer import Transformer
from abacist.tasks.problems import Problems, Shapes
from abacist.tasks.sorting import Sorting

WRITTEN, POINTED_TO = range(2)
"""The two tokens that count, where they are a digit or a label; others are symbols."""

_DIGIT, _LABEL, _NOTHING = "digit", "label", "nothing"
_Kinds = tuple[str, str]
"""Of a token and of what it points to."""
_SHORT = ("0", "1", "10")
"""Numbers of which three show every kind of comparison: equal, unequal, longer and shorter ones."""
_LONG = ((12, 40), (30, 6), (3, 200))
"""Numbers and digits of long lines."""


@dataclass(frozen=True)
class Step:
    """One token of the work, or `=`, with what it points to."""

    line: AnnotatedTokens
    """(1, T)"""
    query: int
    kinds: _Kinds
    """`digit`, `label`, or the symbol that the token is, and the same of what it points to; `nothing` where that has no digit there."""  # noqa: E501
    pointer: int | None
    """Where in the line that stands."""
    remedy: ClassVar[str] = "--model.positions pointer-relative"

    @property
    def queries(self) -> list[int]:
        """The token itself."""
        return [self.query]

    @cached_property
    def numbers(self) -> list[int]:
        """Of every token what it is to this one: WRITTEN, POINTED_TO, SYMBOL, or STRANGER."""
        written, pointed_to = self.kinds
        numbers = [STRANGER] * self.line.ids.shape[1]
        if int(self.line.field[0, 0]) == Field.START:
            numbers[0] = SYMBOL
        if self.pointer is not None:
            numbers[self.pointer] = POINTED_TO if pointed_to in (_DIGIT, _LABEL) else SYMBOL
        numbers[self.query] = WRITTEN if written in (_DIGIT, _LABEL) else SYMBOL
        return numbers


@dataclass(frozen=True)
class _Pairs:
    """All that a token of one kind may be, and what it may point to: int64 (n,) each."""

    written: str
    pointed_to: str
    here: Tensor
    """Digits, or numbers of labels from 0; 0 for a symbol."""
    there: Tensor
    fewest: int
    """Numbers of a problem, at least."""

    @staticmethod
    def of(kinds: _Kinds, task: Sorting) -> "_Pairs":
        """Which pairs occur, with as many numbers as the task has at most.

        Where something is inserted, the last number of all is never in the list before; it is
        the only one that is never followed by a comma.
        """
        written, pointed_to = kinds
        last = task.config.max_numbers - 1
        nothing, any_digit = torch.tensor([0]), torch.arange(10)
        in_list, any_label = torch.arange(last), torch.arange(last + 1)
        here, there = nothing, nothing
        if written == _LABEL:
            here = any_label if pointed_to in (_LABEL, "=") else in_list
        if written == _DIGIT:
            # A digit that is not there belongs to the shorter number, and the other's leads.
            here = any_digit if pointed_to == _DIGIT else any_digit[1:]
        if pointed_to == _DIGIT:
            there = any_digit
        if pointed_to == _LABEL:
            there = {_LABEL: any_label, ">": any_label[1:]}.get(written, in_list)
        here, there = torch.cartesian_prod(here, there).unbind(dim=1)
        possible = torch.ones_like(here, dtype=torch.bool)
        if (written, pointed_to) == (_LABEL, _LABEL):
            possible = here != there
        if (written, pointed_to) == (_LABEL, _DIGIT):
            # What begins with 0 is 0, and so are those before it in the list, which come first.
            possible = (there > 0) | (here < last - 1)
        fewest = max(task.config.min_numbers, 2 if last else 1)
        return _Pairs(written, pointed_to, here[possible], there[possible], fewest)

    def target(self, format: InsertionSortFormat) -> Tensor:
        """What follows, int64 (n,)."""
        constant = torch.zeros_like(self.here)
        if self.written == "=":
            return constant + format.first_label
        if self.written == _DIGIT:
            return format.same_id + (self.here - self.there).sign()
        if self.pointed_to == "=":
            return constant + format.end_id
        if self.pointed_to == ",":
            return constant + format.comma_id
        return self.there + (format.first_label if self.pointed_to == _LABEL else 0)

    def operands(self, case: int) -> list[str]:
        """Numbers in whose line this pair stands."""
        numbers = self._numbers(int(self.here[case]), int(self.there[case]))
        return [*numbers, *["0"] * (self.fewest - len(numbers))]

    def _numbers(self, here: int, there: int) -> list[str]:
        if self.written == _DIGIT:
            return [f"{here}", f"{there}"] if self.pointed_to == _DIGIT else [f"{here}0", "0"]
        if self.written == _LABEL:
            return self._behind_label(here, there)
        if self.pointed_to == _DIGIT:
            return [f"{there}", "0"] if self.written == "," else [f"1{there}"] * 2
        if self.pointed_to == _NOTHING:
            return ["0", "10"]
        if self.written == ">":
            return [*["1"] * there, "0"]
        return [*["0"] * (there + 1), "1" if self.written == "<" else "0"]

    def _behind_label(self, label: int, there: int) -> list[str]:
        """Numbers in whose lists something stands behind that label."""
        if self.pointed_to in (",", "="):
            # It is the largest.
            return [*["0"] * label, "1", *["0"] * (self.pointed_to == ",")]
        if self.pointed_to == _LABEL:
            if there < label:
                # It is inserted before the other.
                return [*(_with("9", there, {there: "1"})), "1", *["9"] * (label - there - 1), "0"]
            return [*_with("0", there, {label: "1"}), "1"]
        # The next in the list is compared with a number behind both.
        after = label + 1 if (self.pointed_to, there) == (_DIGIT, 0) else int(label == 0)
        count = max(label, after) + 1
        if self.pointed_to == _NOTHING:
            return [*_with("9", count, {label: "0", after: "1"}), "10"]
        if there == 0:
            return [*_with("1", count, {label: "0", after: "0"}), "1"]
        return [*_with("99", count, {label: "0", after: f"{there}0"}), "99"]


def _with(usual: str, count: int, others: dict[int, str]) -> list[str]:
    """So many numbers, all the same but for some."""
    return [others.get(position, usual) for position in range(count)]


class InsertionSortEnumeration(GroupedEnumeration[_Kinds]):
    """Everything that the reaches of a model can hold in sortings of numbers of every length."""

    def __init__(self, model: Transformer, task: Sorting, format: InsertionSortFormat) -> None:
        self._task, self._format = task, format
        super().__init__(f"{task.claim} of every length.", self._found(model))

    def long_lines(self) -> Iterator[tuple[Tensor, list[Skeleton]]]:
        """Lines of random problems, far longer than those the patterns are taken from."""
        generator = generators.generator(0, "locality")
        for count, num_digits in _LONG:
            count = min(count, self._task.config.max_numbers)
            lengths = torch.randint(
                max(1, num_digits - 1), num_digits + 1, (1, count), generator=generator
            )
            problems = self._task.draw(Shapes.of(lengths, "sort"), generator)
            line, steps = self._steps(problems)
            yield line.ids, list(steps)

    def _found(self, model: Transformer) -> Iterator[tuple[Pattern, _Kinds]]:
        for count in range(1, min(self._task.config.max_numbers, 3) + 1):
            for numbers in product(_SHORT, repeat=count):
                line, steps = self._steps(Problems.from_texts([list(numbers)], ["sort"]))
                visibility = visibility_in(model, line)
                for step in steps:
                    yield pattern_of(step, visibility, step.query), step.kinds

    def _steps(self, problems: Problems) -> tuple[AnnotatedTokens, list[Step]]:
        """The line of one problem, and all its steps."""
        format = self._format
        line = format.write(problems, self._task.answer(problems))
        assert line.row is not None
        ids, place, row = (tensor[0].tolist() for tensor in (line.ids, line.place, line.row))
        first = line.target[0].tolist().index(True)
        given = {
            at: token
            for token, at in enumerate(zip(place[:first], row[:first], strict=True))
            if min(at) >= 0
        }
        steps = []
        for query in range(first - 1, len(ids) - 1):
            # `=` stands where it would point to.
            pointer = None if query < first else given.get((place[query], row[query]))
            pointed_to = _NOTHING if pointer is None else self._kind(ids[pointer])
            steps.append(Step(line, query, (self._kind(ids[query]), pointed_to), pointer))
        return line, steps

    def _kind(self, token: int) -> str:
        if token < 10:
            return _DIGIT
        return (
            _LABEL if token >= self._format.first_label else self._format.vocabulary.tokens[token]
        )

    def contents(self, pattern: Pattern, choices: _Kinds) -> Context:
        """The tokens of a pattern for everything that may stand there."""
        pairs = _Pairs.of(choices, self._task)
        first = self._format.first_label
        values = {
            WRITTEN: pairs.here + first * (pairs.written == _LABEL),
            POINTED_TO: pairs.there + first * (pairs.pointed_to == _LABEL),
        }
        constant = torch.zeros_like(pairs.here)
        ids = [
            constant + symbol if number == SYMBOL else values[number]
            for number, symbol in zip(pattern.numbers, pattern.ids, strict=True)
        ]
        return Context(pattern, torch.stack(ids, dim=1), pairs.target(self._format), pairs.operands)
