"""Tasks such as extensions define, for tests of formats and certificates."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch

from abacist.tasks.column_machine import ColumnMachine
from abacist.tasks.column_rule import ColumnRule
from abacist.tasks.config import COLUMN_TASKS, ColumnTaskConfig, OwnTaskConfig


def adds(base):
    """Addition in a base, from the least significant column up."""

    def step(carry, digits):
        total = digits.sum(-1) + carry
        return total % base, total // base

    return step


def subtracts(borrow, digits):
    """Subtraction in base 5; a state left over is a sign."""
    difference = digits[:, 0] - digits[:, 1] - borrow
    return difference % 5, (difference < 0).long()


def divides(remainder, digits):
    """Division by 3 from the most significant column down."""
    value = 10 * remainder + digits[:, 0]
    return value // 3, value % 3


def remains(remainder, digits):
    """Division of a binary number by 263, whose remainders need three digits."""
    value = 2 * remainder + digits[:, 0]
    return value // 263, value % 263


def divides_by_five(remainder, digits):
    """Division of a binary number by 5: after one column the state is 0 or 1, after two 0 to 3."""
    value = 2 * remainder + digits[:, 0]
    return value // 5, value % 5


def compares(larger, digits):
    """The larger of two numbers in base 3; the state says which one is larger."""
    a, b = digits.unbind(-1)
    larger = torch.where(larger == 0, (a > b) + 2 * (b > a), larger)
    return torch.where(larger == 2, b, a), larger


def counts_ones(parity, digits):
    """Running parity of the bits of one number."""
    parity = (parity + digits[:, 0]) % 2
    return parity, parity


def complements(state, digits):
    """Nine minus each digit: no state decides anything, and zeros inside a number have to be seen."""
    return 9 - digits[:, 0], 0 * state


def larger_digits(state, digits):
    """The larger digit of each column of two numbers in base 3."""
    return digits.amax(-1), 0 * state


MACHINES = {
    "test-add": ColumnMachine("test-add", ColumnRule(adds(7), base=7)),
    "test-add-hexadecimal": ColumnMachine("test-add-hexadecimal", ColumnRule(adds(16), base=16)),
    "test-add-three": ColumnMachine("test-add-three", ColumnRule(adds(3), base=3), 3, "&"),
    "test-subtract": ColumnMachine("test-subtract", ColumnRule(subtracts, "sign", 5)),
    "test-divide": ColumnMachine(
        "test-divide", ColumnRule(divides, "state", most_significant_first=True), 1
    ),
    "test-remainder": ColumnMachine(
        "test-remainder", ColumnRule(remains, "state", 2, most_significant_first=True), 1
    ),
    "test-fifth": ColumnMachine(
        "test-fifth", ColumnRule(divides_by_five, "state", 2, most_significant_first=True), 1
    ),
    "test-compare": ColumnMachine(
        "test-compare", ColumnRule(compares, "state", 3, most_significant_first=True)
    ),
    "test-complement": ColumnMachine(
        "test-complement", ColumnRule(complements, "nothing", most_significant_first=True), 1
    ),
    "test-larger-digits": ColumnMachine(
        "test-larger-digits", ColumnRule(larger_digits, "nothing", 3, most_significant_first=True)
    ),
    "test-parity": ColumnMachine("test-parity", ColumnRule(counts_ones, "nothing", 2), 1),
}
COLUMN_TASKS.update(MACHINES)


def column_task(name):
    """The configuration of one of the machines."""
    return ColumnTaskConfig(machine=name)


@dataclass(frozen=True, kw_only=True)
class LargerTextConfig(OwnTaskConfig):
    """The later one of two words in alphabetical order."""

    kind: ClassVar = "test-larger-text"
    base: ClassVar = 36
    is_numeric: ClassVar = False

    def answer(self, *operands):
        return max(operands)


@dataclass(frozen=True, kw_only=True)
class GreatestCommonDivisorConfig(OwnTaskConfig):
    """The greatest common divisor of two numbers."""

    kind: ClassVar = "test-gcd"

    def answer(self, *operands):
        return str(math.gcd(*map(int, operands)))
