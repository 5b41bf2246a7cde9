"""Enumerates the contexts of insertion sort.

A token of such a line points to one token of the prompt, or to nothing, and these two alone decide
the next token (formats/insertion_sort.py): a digit is compared with the digit it points to, and any
other token is followed by a copy of the token it points to. Suppose that a model sees no more than
a token and the token it points to. Then it sorts every list correctly if it is right for every pair.

The pairs are enumerated for lists of up to as many numbers as the task allows. All of them do occur:
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
    fill,
    pattern_of,
    visibility_in,
)
from abacist.formats.annotated import AnnotatedTokens, Field
from abacist.formats.insertion_sort import DIGIT, LABEL, InsertionSortFormat
from abacist.models.transformer import Transformer
from abacist.tasks.problems import Problems, Shapes
from abacist.tasks.sorting import Sorting

WRITTEN, POINTED_TO = range(2)
"""Roles of the two tokens that decide, if they are a digit or a label; other tokens are symbols."""

_NOTHING = "nothing"
_Kinds = tuple[str, str]
"""The kind of a token and the kind of the token it points to."""
_SHORT = ("0", "1", "10")
"""Three of these numbers show every kind of comparison: equal, unequal, longer and shorter."""
_LONG = ((12, 40), (30, 6), (3, 200))
"""Count of numbers, and their digits, in each of the long lines."""


@dataclass(frozen=True)
class Step:
    """One token of the work, or `=`, with the token it points to."""

    line: AnnotatedTokens
    """The line, (1, T)."""
    query: int
    kinds: _Kinds
    """Kinds of the token and of the token it points to: `digit`, `label`, or the symbol itself.

    The second is `nothing` where the number that it points to has no digit at that place.
    """
    pointer: int | None
    """Position of the token that is pointed to; None where there is none."""
    remedy: ClassVar[str] = "--model.positions pointer-relative"

    @property
    def queries(self) -> list[int]:
        """The position of the token itself."""
        return [self.query]

    @cached_property
    def numbers(self) -> list[int]:
        """For each token its role for this one: WRITTEN, POINTED_TO, SYMBOL, or STRANGER."""
        written, pointed_to = self.kinds
        numbers = [STRANGER] * self.line.ids.shape[1]
        if int(self.line.field[0, 0]) == Field.START:
            numbers[0] = SYMBOL
        if self.pointer is not None:
            numbers[self.pointer] = POINTED_TO if pointed_to in (DIGIT, LABEL) else SYMBOL
        numbers[self.query] = WRITTEN if written in (DIGIT, LABEL) else SYMBOL
        return numbers


@dataclass(frozen=True)
class _Pairs:
    """All pairs of a token of one kind and a token it can point to: int64 (n,) each."""

    written: str
    pointed_to: str
    value: Tensor
    """Value of the token: a digit, the number of a label starting at 0, or 0 for a symbol."""
    pointed_value: Tensor
    """The same for the token it points to."""
    fewest: int
    """Smallest count of numbers in a problem."""

    @staticmethod
    def of(kinds: _Kinds, task: Sorting) -> "_Pairs":
        """Return the pairs that occur in lists of at most as many numbers as the task allows.

        While a number is being inserted, the last number of all is never in the list yet; it is
        the only one that is never followed by a comma.
        """
        written, pointed_to = kinds
        last = task.config.max_numbers - 1
        nothing, any_digit = torch.tensor([0]), torch.arange(10)
        in_list, any_label = torch.arange(last), torch.arange(last + 1)
        value, pointed_value = nothing, nothing
        if written == LABEL:
            value = any_label if pointed_to in (LABEL, "=") else in_list
        if written == DIGIT:
            # The shorter number has no digit here, so the digit of the other one leads and is not 0.
            value = any_digit if pointed_to == DIGIT else any_digit[1:]
        if pointed_to == DIGIT:
            pointed_value = any_digit
        if pointed_to == LABEL:
            pointed_value = {LABEL: any_label, ">": any_label[1:]}.get(written, in_list)
        value, pointed_value = torch.cartesian_prod(value, pointed_value).unbind(dim=1)
        possible = torch.ones_like(value, dtype=torch.bool)
        if (written, pointed_to) == (LABEL, LABEL):
            possible = value != pointed_value
        if (written, pointed_to) == (LABEL, DIGIT):
            # What begins with 0 is 0, and so are those before it in the list, which come first.
            possible = (pointed_value > 0) | (value < last - 1)
        fewest = max(task.config.min_numbers, 2 if last else 1)
        return _Pairs(written, pointed_to, value[possible], pointed_value[possible], fewest)

    def target(self, format: InsertionSortFormat) -> Tensor:
        """Return the right next tokens, int64 (n,)."""
        constant = torch.zeros_like(self.value)
        if self.written == "=":
            return constant + format.first_label
        if self.written == DIGIT:
            return format.same_id + (self.value - self.pointed_value).sign()
        if self.pointed_to == "=":
            return constant + format.end_id
        if self.pointed_to == ",":
            return constant + format.comma_id
        return self.pointed_value + (format.first_label if self.pointed_to == LABEL else 0)

    def operands(self, case: int) -> list[str]:
        """Return a list of numbers whose line contains the pair of this case."""
        numbers = self._numbers(int(self.value[case]), int(self.pointed_value[case]))
        return [*numbers, *["0"] * (self.fewest - len(numbers))]

    def _numbers(self, value: int, pointed_value: int) -> list[str]:
        if self.written == DIGIT:
            return (
                [f"{value}", f"{pointed_value}"] if self.pointed_to == DIGIT else [f"{value}0", "0"]
            )
        if self.written == LABEL:
            return self._after_label(value, pointed_value)
        if self.pointed_to == DIGIT:
            return [f"{pointed_value}", "0"] if self.written == "," else [f"1{pointed_value}"] * 2
        if self.pointed_to == _NOTHING:
            return ["0", "10"]
        if self.written == ">":
            return [*["1"] * pointed_value, "0"]
        return [*["0"] * (pointed_value + 1), "1" if self.written == "<" else "0"]

    def _after_label(self, label: int, pointed_value: int) -> list[str]:
        """Return numbers in whose line this label is followed by a token of the kind `pointed_to`."""
        if self.pointed_to in (",", "="):
            # It is the largest.
            return [*["0"] * label, "1", *["0"] * (self.pointed_to == ",")]
        if self.pointed_to == LABEL:
            if pointed_value < label:
                # It is inserted before the other.
                return [
                    *(_with("9", pointed_value, {pointed_value: "1"})),
                    "1",
                    *["9"] * (label - pointed_value - 1),
                    "0",
                ]
            return [*_with("0", pointed_value, {label: "1"}), "1"]
        # The next number of the list is compared with a number that comes after both.
        after = label + 1 if (self.pointed_to, pointed_value) == (DIGIT, 0) else int(label == 0)
        count = max(label, after) + 1
        if self.pointed_to == _NOTHING:
            return [*_with("9", count, {label: "0", after: "1"}), "10"]
        if pointed_value == 0:
            return [*_with("1", count, {label: "0", after: "0"}), "1"]
        return [*_with("99", count, {label: "0", after: f"{pointed_value}0"}), "99"]


def _with(usual: str, count: int, others: dict[int, str]) -> list[str]:
    """Return `count` equal numbers, with the exceptions in `others` by position."""
    return [others.get(position, usual) for position in range(count)]


class InsertionSortEnumeration(GroupedEnumeration[_Kinds]):
    """All contexts of the receptive fields of a model in sorting numbers of every length."""

    def __init__(self, model: Transformer, task: Sorting, format: InsertionSortFormat) -> None:
        self._task, self._format = task, format
        super().__init__(f"{task.claim} of every length.", self._patterns(model))

    def long_lines(self) -> Iterator[tuple[Tensor, list[Skeleton]]]:
        """Yield lines of random problems, far longer than those that show the patterns."""
        generator = generators.generator(0, "locality")
        for count, num_digits in _LONG:
            count = min(count, self._task.config.max_numbers)
            lengths = torch.randint(
                max(1, num_digits - 1), num_digits + 1, (1, count), generator=generator
            )
            problems = self._task.draw(Shapes.of(lengths, "sort"), generator)
            line, steps = self._steps(problems)
            yield line.ids, list(steps)

    def _patterns(self, model: Transformer) -> Iterator[tuple[Pattern, _Kinds]]:
        for count in range(1, min(self._task.config.max_numbers, 3) + 1):
            for numbers in product(_SHORT, repeat=count):
                line, steps = self._steps(Problems.from_texts([list(numbers)], ["sort"]))
                visibility = visibility_in(model, line)
                for step in steps:
                    yield pattern_of(step, visibility, step.query), step.kinds

    def _steps(self, problems: Problems) -> tuple[AnnotatedTokens, list[Step]]:
        """Return the line of one problem, and all its steps."""
        line = self._format.write(problems, self._task.answer(problems))
        kinds = [role.part for role in self._format.roles(line.ids[0])]
        pointers = self._format.pointers(line.ids[0])
        steps = []
        for query in range(kinds.index("="), len(kinds) - 1):
            pointer = pointers[query]
            pointed_to = _NOTHING if pointer is None else kinds[pointer]
            steps.append(Step(line, query, (kinds[query], pointed_to), pointer))
        return line, steps

    def context(self, pattern: Pattern, choices: _Kinds) -> Context:
        """Return the tokens of the pattern for all pairs of these kinds."""
        pairs = _Pairs.of(choices, self._task)
        first = self._format.first_label
        values = {
            WRITTEN: pairs.value + first * (pairs.written == LABEL),
            POINTED_TO: pairs.pointed_value + first * (pairs.pointed_to == LABEL),
        }
        ids = fill(pattern, values, torch.zeros_like(pairs.value))
        return Context(pattern, ids, pairs.target(self._format), pairs.operands)
