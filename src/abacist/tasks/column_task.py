"""The task that a machine of columns carries out, exact at any length.

>>> task = ColumnTask(ColumnTaskConfig(machine="add-base-7"))
>>> task.answer(task.parse(["16,1"])).texts()          # 13 + 1 = 14
['20']
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.errors import ConfigurationError
from abacist.tasks.column_machine import ColumnMachine
from abacist.tasks.column_rule import ColumnRule
from abacist.tasks.config import COLUMN_TASKS, ColumnTaskConfig
from abacist.tasks.own_task import OwnTask
from abacist.tasks.problems import DIGIT_CHARACTERS, Problems

_MOST_COMPARED_DIGITS = 1_000
"""Length of the longest operands that are compared with an oracle, in digits.

Python converts at most 4,300 digits between text and integers, also those of a product of four operands.
"""


@dataclass(frozen=True)
class ColumnAnswer:
    """The digits that a machine writes and the states that it enters, in the order of its columns."""

    digits_BW: Tensor
    """Digit written in each column, uint8; 0 after a problem's last column."""
    states_BW: Tensor
    """State after each column, int64; after a problem's last column, its final state."""
    lengths_B: Tensor
    """Number of columns written, int64."""
    rule: ColumnRule

    def __len__(self) -> int:
        return self.digits_BW.shape[0]

    @property
    def final_B(self) -> Tensor:
        """The final state of each problem, int64."""
        return self.states_BW[:, -1]

    def texts(self) -> list[str]:
        """Return each answer without leading zeros, with its sign or its final state."""
        rows, lengths = self.digits_BW.tolist(), self.lengths_B.tolist()
        return [
            answer_text(row[:length], state, self.rule)
            for row, length, state in zip(rows, lengths, self.final_B.tolist(), strict=True)
        ]


def answer_text(written: list[int], state: int, rule: ColumnRule) -> str:
    """Return an answer as a person would write it.

    Args:
        written: the digits in the order in which the machine writes them.
        state: the final state.
        rule: the machine's rule.
    """
    descending = written if rule.most_significant_first else written[::-1]
    sign = ""
    if state and rule.left_over == "sign":
        sign, descending = "-", _complement(descending, rule.base)
    text = sign + ("".join(DIGIT_CHARACTERS[digit] for digit in descending).lstrip("0") or "0")
    return f"{text};{state}" if state and rule.left_over == "state" else text


def _complement(descending: list[int], base: int) -> list[int]:
    """Return base ** W minus a number of W digits; of 0, base ** W itself."""
    carry, result = 1, []
    for digit in reversed(descending):
        carry, remaining = divmod(base - 1 - digit + carry, base)
        result.append(remaining)
    return [carry, *reversed(result)]


class ColumnTask(OwnTask):
    """The task of a registered machine."""

    def __init__(self, config: ColumnTaskConfig) -> None:
        self.config: ColumnTaskConfig = config
        self.machine: ColumnMachine = COLUMN_TASKS[config.machine]
        self.rule = self.machine.rule
        self.base, self.num_operands = self.rule.base, self.machine.num_operands
        self.symbol, self.is_numeric = self.machine.symbol, True

    def answer(self, problems: Problems) -> ColumnAnswer:
        """Run the machine over the columns of all problems at once."""
        rule, lengths_B = self.rule, problems.lengths_BN.amax(dim=1)
        width = int(lengths_B.max()) if len(problems) else 1
        columns_WBN = problems.digits_BNW.long().permute(2, 0, 1)
        if rule.most_significant_first:
            # Column w from the left of a number of W digits is column W - 1 - w from the right.
            index = (lengths_B - 1 - torch.arange(width).unsqueeze(1)).clamp(min=0)
            index = index.unsqueeze(2).expand(-1, -1, columns_WBN.shape[2])
            columns_WBN = columns_WBN.gather(0, index)
        state_B = torch.zeros_like(lengths_B)
        written, states, count_B = [], [], lengths_B
        column = 0
        while column < width or (rule.left_over == "digits" and bool((state_B != 0).any())):
            inside = column < lengths_B
            if column < width:
                digits_BN = torch.where(inside.unsqueeze(1), columns_WBN[column], 0)
            else:
                digits_BN = torch.zeros_like(columns_WBN[0])
            continues = inside | ((state_B != 0) & (rule.left_over == "digits"))
            digit_B, following_B = rule.step(state_B, digits_BN)
            written.append(torch.where(continues, digit_B, 0).to(torch.uint8))
            state_B = torch.where(continues, following_B, state_B)
            states.append(state_B)
            count_B = torch.where(continues, column + 1, count_B)
            column += 1
        return ColumnAnswer(torch.stack(written, 1), torch.stack(states, 1), count_B, rule)

    def check_oracle(self, problems: Problems) -> int:
        """Return the number of problems that were compared: those of operands of at most 1,000 digits.

        Raises `ConfigurationError`, naming the first problem, if the oracle gives another answer.
        """
        oracle = self.machine.oracle
        if oracle is None:
            return 0
        is_short = problems.lengths_BN.amax(dim=1) <= _MOST_COMPARED_DIGITS
        problems = problems[is_short.nonzero().squeeze(1)]
        if not len(problems):
            return 0
        rows = zip(
            self.operand_texts(problems),
            self.expressions(problems),
            self.answer(problems).texts(),
            strict=True,
        )
        for operands, expression, written in rows:
            numbers = [int(operand, self.base) for operand in operands]
            try:
                expected = str(oracle(*numbers))
            except Exception as error:
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                raise ConfigurationError(
                    f"{self.config.name}: for {expression}, answer raises {reason}. Correct it."
                ) from error
            if expected != written:
                raise ConfigurationError(
                    f"{self.config.name}: for {expression} the machine writes {written} and answer "
                    f"returns {expected}. Correct one of them."
                )
        return len(problems)


def in_base(number: int, base: int) -> str:
    """Return an integer in a base from 2 to 36, as operands and answers are written.

    Raises `ConfigurationError` if the base is outside that range.

    >>> in_base(-14, 7)
    '-20'
    """
    if not 2 <= base <= len(DIGIT_CHARACTERS):
        raise ConfigurationError(
            f"base must be a whole number from 2 to {len(DIGIT_CHARACTERS)}, got {base!r}. Try base 10."
        )
    magnitude, text = abs(number), ""
    while magnitude or not text:
        magnitude, digit = divmod(magnitude, base)
        text = DIGIT_CHARACTERS[digit] + text
    return "-" + text if number < 0 else text
