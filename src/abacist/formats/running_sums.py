"""Sums of many numbers, written as one addition after the other.

All numbers are written least significant digit first. After `=` there is one row for each operand but
the first: the sum of all operands up to that one. So each row adds just two numbers, however many
operands the problem has.

>>> format.text(problem)  # 12+34+56
'<start>21+43+65=64;201<end>'

    64       12 + 34 = 46
    201      46 + 56 = 102; there are no more numbers, so this is the answer

A digit of a row follows from its column and the previous column of two numbers: the sum before and the
operand to be added. The digit just written shows which carry comes in. If the answer were written at
once, each digit of a sum of ten numbers would depend on twenty digits.

Coordinates: the numbers stand under each other as on paper, so that a row adds the two above it:

    row 1     12      the first operand
    row 2   + 34      the second
    row 3     46      their sum
    row 4   + 56      the third
    row 5    102      the sum of all

`=` and `;` have place 0 of the row after them. A `+` stands in every column of the row to which it
adds the next operand, so that a token that sees a row also sees whether that row is the last.
"""

import numpy as np
import torch
from torch import Tensor

from abacist.arrays import Integers
from abacist.formats.annotated import ANCHOR, EVERYWHERE, AnnotatedTokens, Field
from abacist.formats.calculation import CalculationFormat, is_digit
from abacist.formats.config import Layout, RunningSumsFormatConfig
from abacist.formats.continuation import Continuation, TokenCoordinates
from abacist.formats.pieces import Piece, constant, join
from abacist.formats.roles import Role, decode
from abacist.tasks import digits
from abacist.tasks.config import TaskConfig
from abacist.tasks.problems import Answer, Problems

OPERAND, SUM = "operand", "sum"
"""Parts of a calculation, as `roles` names them."""


class RunningSumsFormat(CalculationFormat):
    """Writes, annotates and reads sums."""

    layout: Layout = "free"
    enumeration = "column-addition"

    def __init__(self, config: RunningSumsFormatConfig, task: TaskConfig) -> None:
        self.config = config
        super().__init__(task, config.start_token, ("+", "=", ";"))
        self.operator_id, self.separator_id = self.vocabulary.id("+"), self.vocabulary.id(";")

    def roles(self, ids_T: Tensor) -> list[Role]:
        """Return the role of each token of one whole line.

        The row of a token is the addition it belongs to: the first operand has row 0, and addition k
        adds operand k + 1 to the sum of row k - 1 (or to the first operand). Its `+`, and the `=`
        or `;` before its sum, have row k as well. Digits of operands and sums have a column.
        """

        def role(token: int, field: int, place: int, row: int) -> Role:
            if is_digit(token):
                part = OPERAND if field >= Field.OPERAND else SUM
                return Role(part, column=place, row=row // 2 if row > 1 else 0)
            symbol = self.vocabulary.tokens[token]
            addition = {"+": (row + 1) // 2, "=": row // 2, ";": row // 2}
            return Role(symbol, row=addition.get(symbol, 0))

        return decode(self.annotate(ids_T.unsqueeze(0)), role)

    def continuation(self, prompt: AnnotatedTokens, max_new_tokens: int) -> Continuation:
        """Return the coordinates of new tokens."""
        return _SumsContinuation(self.separator_id, len(prompt.ids))

    def target_lengths(self, problems: Problems) -> Tensor:
        """Return the largest possible number of tokens after `=`, int64 (B,)."""
        lengths = problems.lengths_BN
        # A sum of at most 10 operands has at most one digit more than the longest, of 100 two, and so on.
        counts = torch.arange(1, lengths.shape[1] + 1, device=lengths.device)
        more = 1 + (counts > 10).long() + (counts > 100).long()
        widths = lengths.cummax(dim=1).values + more + 1
        return (widths * (lengths > 0))[:, 1:].sum(dim=1)

    def _target_piece(self, problems: Problems, answer: Answer) -> Piece:
        batch, device = len(problems), problems.digits_BNW.device
        separator = constant(self.separator_id, batch, device).ids_BW
        total, pieces = problems.operand(0).digits_BW, []
        for position in range(1, problems.num_operands):
            operand = problems.operand(position)
            is_present = (operand.lengths_B > 0).long()
            addend = operand.digits_BW
            addend = torch.nn.functional.pad(addend, (0, total.shape[1] - addend.shape[1]))
            total, _ = digits.add(total, addend)
            if position > 1:
                pieces.append(Piece(separator, is_present))
            pieces.append(Piece(total, digits.significant(total) * is_present))
        widths = torch.stack([piece.widths() for piece in pieces])
        return Piece(join(pieces, self.end_id), widths.sum(dim=0))

    def _annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        parts = self._parts(ids_BT)
        is_equals, is_operator = parts.is_equals, parts.is_operator
        is_separator = (ids_BT == self.separator_id) & parts.after_equals
        is_boundary = is_operator | is_equals | is_separator

        # Columns are counted from the last operator, `=` or `;`; these tokens do not count.
        is_counted = ~(is_boundary | parts.is_start)
        num_counted = is_counted.cumsum(dim=1, dtype=torch.int32)
        place = num_counted - torch.where(is_boundary, num_counted, 0).cummax(dim=1).values
        place.masked_fill_(is_operator, EVERYWHERE)

        operand = is_operator.cumsum(dim=1, dtype=torch.int32)
        sum_number = (is_equals | is_separator).cumsum(dim=1, dtype=torch.int32)
        row = torch.where(sum_number > 0, 2 * sum_number + 1, (2 * operand).clamp(min=1))
        row -= is_operator.int()

        is_last = sum_number >= operand
        work = torch.where(is_last & ~is_separator, int(Field.ANSWER), int(Field.SCRATCH))
        # A field is a byte, so the 248th operand and all further ones share one field.
        operand_field = (Field.OPERAND + operand).clamp(max=255)
        field = torch.where(parts.after_equals, work, operand_field).to(torch.uint8)
        field.masked_fill_(is_operator, int(Field.OPERATOR))
        field.masked_fill_(is_equals, int(Field.EQUALS))
        parts.mark_ends(field, place, row)
        return AnnotatedTokens(ids_BT, place, field, parts.target, row=row)

    def _read_work(self, operation: str, lengths: list[int], tokens: list[int]) -> str | None:
        if not all(is_digit(token) or token == self.separator_id for token in tokens):
            return None
        rows = self.vocabulary.decode(reversed(tokens)).split(";")
        if len(rows) != len(lengths) - 1 or not all(map(_is_number, rows)):
            return None
        return rows[0]


class _SumsContinuation(Continuation):
    """Counts the sums and, in each of them, the columns."""

    def __init__(self, separator_id: int, batch: int) -> None:
        self.falls = {"row": 0}
        self._separator_id = separator_id
        self._place, self._sum_number = np.zeros(batch, np.int64), np.ones(batch, np.int64)

    def append(self, ids_B: Integers) -> TokenCoordinates:
        """Return the coordinates of the next token of every line."""
        is_separator = ids_B == self._separator_id
        self._place = np.where(is_separator, ANCHOR, self._place + 1)
        self._sum_number = self._sum_number + is_separator
        return TokenCoordinates(self._place, 2 * self._sum_number + 1)


def _is_number(text: str) -> bool:
    """Whether a text of digits is a number without leading zeros."""
    return text == "0" or (text != "" and not text.startswith("0"))
