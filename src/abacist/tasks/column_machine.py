"""Column tasks as an extension states them, checked when they are registered.

A machine is checked in every state that it can enter and for every column of digits, so that whatever
is wrong with it is reported in one line, with the state and the digits, and never during a training.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from abacist.errors import ConfigurationError
from abacist.tasks.column_rule import ColumnRule
from abacist.tasks.config import check_notation

MOST_STATES = 10_000
"""Largest number of states of a machine."""
_MOST_STEPS = 100_000_000
"""Largest number of pairs of a state and a column that are checked."""
_STEPS_AT_ONCE = 1_000_000
_MOST_OPERANDS = 4

Oracle = Callable[..., str]
"""Returns the answer to one problem from its operands, which are passed as Python integers."""


@dataclass(frozen=True)
class ColumnMachine:
    """A finite-state machine that reads columns of digits and writes one digit for each.

    Raises `ConfigurationError` when it is constructed with settings outside their ranges, or with a
    step that is not defined in every state.
    """

    name: str
    rule: ColumnRule
    num_operands: int = 2
    symbol: str = ","
    oracle: Oracle | None = None
    """An independent definition of the answer, with which tests and `abacist data check` compare."""

    def __post_init__(self) -> None:
        self._check_settings()
        assert self.transitions
        assert self.most_extra_columns >= 0

    @property
    def states(self) -> Tensor:
        """All states that the machine can enter, int64, ascending."""
        return self.transitions[0]

    @property
    def num_states(self) -> int:
        """One more than the largest state."""
        return int(self.states.max()) + 1

    @property
    def state_is_described(self) -> bool:
        """Whether the digits of a column and the digit written determine the next state."""
        return self.transitions[1]

    @property
    def depth(self) -> int:
        """Number of columns after which every state can have been entered."""
        return self.transitions[2]

    @cached_property
    def transitions(self) -> tuple[Tensor, bool, int]:
        """The states that the machine can enter, and values of `state_is_described` and `depth`."""
        columns = self.all_columns()
        base = self.rule.base
        smallest = torch.full((len(columns) * base,), MOST_STATES)
        largest = torch.full((len(columns) * base,), -1)
        known = torch.zeros(MOST_STATES, dtype=torch.bool)
        known[0] = True
        frontier, num_rounds = [0], 0
        while frontier:
            num_rounds += 1
            entered = []
            if int(known.sum()) * len(columns) > _MOST_STEPS:
                raise ConfigurationError(
                    f"the column task {self.name!r} has {int(known.sum()):,} states or more and "
                    f"{len(columns):,} columns of digits, and at most {_MOST_STEPS:,} pairs of the two "
                    "are checked. Try a smaller base, fewer operands or fewer states."
                )
            at_once = max(1, _STEPS_AT_ONCE // len(columns))
            for begin in range(0, len(frontier), at_once):
                some = torch.tensor(frontier[begin : begin + at_once])
                state = some.repeat_interleave(len(columns))
                written, following = self._step(state, columns.repeat(len(some), 1))
                index = torch.arange(len(columns)).repeat(len(some)) * base + written
                smallest.scatter_reduce_(0, index, following, "amin")
                largest.scatter_reduce_(0, index, following, "amax")
                entered.append(torch.unique(following))
            new = torch.unique(torch.cat(entered))
            new = new[~known[new]]
            known[new] = True
            frontier = new.tolist()
        described = bool(((smallest == largest) | (largest < 0)).all())
        # The last round finds no new state.
        return known.nonzero().squeeze(1), described, num_rounds - 1

    def all_columns(self) -> Tensor:
        """Return every column of digits, int64 (base ** N, N)."""
        digits = torch.arange(self.rule.base)
        return torch.cartesian_prod(*[digits] * self.num_operands).view(-1, self.num_operands)

    def oracle_problems(self) -> Iterator[tuple[int, ...]]:
        """Yield a few hundred problems for a comparison with the oracle: small numbers, then random ones."""
        generator = random.Random(0)
        largest = min(self.rule.base**2, int(200 ** (1 / self.num_operands)) + 1)
        for number in range(largest**self.num_operands):
            yield tuple(number // largest**i % largest for i in range(self.num_operands))
        for digits in range(2, 8):
            for _ in range(20):
                yield tuple(
                    generator.randrange(self.rule.base**digits) for _ in range(self.num_operands)
                )

    def _check_settings(self) -> None:
        rule, name = self.rule, self.name
        check_notation(
            name,
            rule.base,
            self.num_operands,
            self.symbol,
            most_operands=_MOST_OPERANDS,
            setting="operands",
        )
        if rule.left_over not in ("digits", "sign", "state", "nothing"):
            raise ConfigurationError(
                f"{name}: left_over must be digits, sign, state or nothing, got {rule.left_over!r}."
            )
        if rule.left_over == "digits" and rule.most_significant_first:
            raise ConfigurationError(
                f"{name}: left_over 'digits' is for direction 'least-significant-first', because no "
                "column follows the least significant one. Try left_over='state'."
            )

    @cached_property
    def most_extra_columns(self) -> int:
        """Largest number of columns that the machine writes after the last one of its operands.

        Raises `ConfigurationError` if it would write digits forever.
        """
        state = self.states
        for columns in range(len(state) + 1):
            left = state != 0
            if self.rule.left_over != "digits" or not left.any():
                return columns
            zeros = torch.zeros(len(state), self.num_operands, dtype=torch.int64)
            state = torch.where(left, self.rule.step(state, zeros)[1], 0)
        stuck = int(self.states[state != 0][0])
        raise ConfigurationError(
            f"{self.name}: from state {stuck}, columns of zeros never lead back to state 0, so "
            "left_over 'digits' would write digits forever. Try left_over='state' or 'nothing'."
        )

    def _step(self, state_n: Tensor, digits_nN: Tensor) -> tuple[Tensor, Tensor]:
        """Carry out steps and check what they return."""
        try:
            complaint, result = self._complaint(state_n, digits_nN)
        except Exception as error:
            if len(state_n) > 1:
                # Find the case that fails.
                for half in (slice(0, len(state_n) // 2), slice(len(state_n) // 2, None)):
                    self._step(state_n[half], digits_nN[half])
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            complaint = f"the step {self._case(state_n, digits_nN, 0)} raises {reason}"
        if complaint is not None:
            raise ConfigurationError(f"{self.name}: {complaint}.")
        return result

    def _complaint(
        self, state_n: Tensor, digits_nN: Tensor
    ) -> tuple[str | None, tuple[Tensor, Tensor]]:
        """Return what is wrong with steps, or None, and what they return."""
        shape = (len(state_n),)
        nothing = (state_n, state_n)
        result = self.rule.step(state_n, digits_nN)
        if not isinstance(result, tuple) or len(result) != 2:
            return "the step must return two tensors, the digit written and the next state", nothing
        for value, noun in zip(result, ("digit", "next state"), strict=True):
            if not isinstance(value, Tensor):
                return f"the {noun} must be a tensor, got {type(value).__name__}", nothing
            if value.dtype.is_floating_point or value.dtype.is_complex:
                remedy = (
                    "Use // in place of /" if value.dtype.is_floating_point else "Use whole numbers"
                )
                return f"the {noun} must be whole numbers, got {value.dtype}. {remedy}", nothing
            if value.shape != shape:
                return (
                    f"the {noun} must have shape {shape}, one for each case, got "
                    f"{tuple(value.shape)}. Sum over the last dimension with sum(-1)",
                    nothing,
                )
        written, following = (value.long() for value in result)
        for value, noun, end in (
            (written, "digit", self.rule.base),
            (following, "state", MOST_STATES),
        ):
            outside = (value < 0) | (value >= end)
            if outside.any():
                case = int(outside.nonzero()[0])
                return (
                    f"the step {self._case(state_n, digits_nN, case)} gives {noun} {int(value[case])}, "
                    f"and a {noun} must be 0 to {end - 1:,}",
                    nothing,
                )
        return None, (written, following)

    def _case(self, state_n: Tensor, digits_nN: Tensor, case: int) -> str:
        digits = ", ".join(map(str, digits_nN[case].tolist()))
        return f"in state {int(state_n[case])} with digits {digits}"
