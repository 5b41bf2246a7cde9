"""Sums of many numbers, one addition after the other: `12+34+56` is `21+43+65=64;201<end>`.

All numbers are least significant digit first. Behind `=` stands a row for each operand but the
first: the sum of all operands up to it. So every row adds two numbers, however many are asked:

    64       12 + 34 = 46
    201      46 + 56 = 102; there are no more numbers, so this is the answer

A digit of a row needs its column and the one before of two numbers, the sum before and the operand
to be added; which carry comes in follows from the digit before. Written all at once, a sum of ten
numbers needs twenty digits for each of its own.

Coordinates: the numbers stand under each other as on paper, so that a row adds the two above it:

    row 1     12      the first operand
    row 2   + 34      the second
    row 3     46      their sum
    row 4   + 56      the third
    row 5    102      the sum of all

`=` and `;` are column 0 of the row behind them. A `+` stands in every column of the row to which
it adds something, so that whoever looks at a row sees whether it is the last.
"""

import torch
from torch import Tensor

from abacist.formats.annotated import EVERYWHERE, AnnotatedTokens, Field
from abacist.formats.calculation import CalculationFormat
from abacist.formats.config import Layout, RunningSumsFormatConfig
from abacist.formats.lines import Piece, constant, join, once_per_pattern
from abacist.formats.roles import Role, decode
from abacist.tasks import digits
from abacist.tasks.config import ArithmeticConfig, TaskConfig
from abacist.tasks.problems import Answer, Problems
from abacist.vocabulary import DIGITS, Vocabulary

OPERAND, SUM = "operand", "sum"
"""The parts of a calculation, as `roles` names them."""


class RunningSumsFormat(CalculationFormat):
    """Writes, annotates and reads sums."""

    layout: Layout = "free"
    enumeration = "column-addition"

    def __init__(self, config: RunningSumsFormatConfig, task: TaskConfig) -> None:
        assert isinstance(task, ArithmeticConfig)
        self.config = config
        start = ("<start>",) if config.start_token else ()
        vocabulary = Vocabulary((*DIGITS, "+", "=", ";", "<end>", *start))
        super().__init__(vocabulary, task.operations, config.start_token)
        self.operator_id, self.separator_id = vocabulary.id("+"), vocabulary.id(";")

    def annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        """Place, row, field and target of every token, from the ids alone.

        What stands behind `=` is annotated from the prompt and the tokens before it.
        """
        return once_per_pattern(ids_BT, self._annotate)

    def read(self, ids_BT: Tensor) -> list[str | None]:
        """The answers of whole lines in the usual notation; None where one is malformed.

        Strict: a row for every operand but the first, each a number without a leading zero, `;`
        between them and an end token. Only the last row is read.
        """
        return [self._read(row) for row in ids_BT.tolist()]

    def roles(self, ids_T: Tensor) -> list[Role]:
        """Return the role of each token of one whole line.

        The row of a token is the addition it belongs to: the first operand has row 0, and addition k
        adds operand k + 1 to the sum of row k - 1 (or to the first operand). Its `+`, and the `=`
        or `;` before its sum, have row k as well. Digits of operands and sums have a column.
        """

        def role(token: int, field: int, place: int, row: int) -> Role:
            if token < len(DIGITS):
                part = OPERAND if field >= Field.OPERAND else SUM
                return Role(part, column=place, row=row // 2 if row > 1 else 0)
            symbol = self.vocabulary.tokens[token]
            addition = {"+": (row + 1) // 2, "=": row // 2, ";": row // 2}
            return Role(symbol, row=addition.get(symbol, 0))

        return decode(self.annotate(ids_T.unsqueeze(0)), role)

    def target_lengths(self, problems: Problems) -> Tensor:
        """int64 (B,): tokens behind `=`, at most."""
        lengths = problems.lengths_BN
        # Ten operands add one digit at most to the longest, more of them two.
        more = torch.where(torch.arange(lengths.shape[1], device=lengths.device) < 10, 1, 2)
        widths = lengths.cummax(dim=1).values + more + 1
        return (widths * (lengths > 0))[:, 1:].sum(dim=1)

    def _target_piece(self, problems: Problems, answer: Answer) -> Piece:
        """All rows and the separators between them."""
        batch, device = len(problems), problems.digits_BNW.device
        separator = constant(self.separator_id, batch, device).ids_BW
        total, pieces = problems.operand(0).digits_BW, []
        for position in range(1, problems.num_operands):
            operand = problems.operand(position)
            present = (operand.lengths_B > 0).long()
            addend = operand.digits_BW
            addend = torch.nn.functional.pad(addend, (0, total.shape[1] - addend.shape[1]))
            total, _ = digits.add(total, addend)
            if position > 1:
                pieces.append(Piece(separator, present))
            pieces.append(Piece(total, digits.significant(total) * present))
        widths = torch.stack(
            [
                torch.full_like(problems.lengths_BN[:, 0], 1) if p.widths_B is None else p.widths_B
                for p in pieces
            ]
        )
        return Piece(join(pieces, self.end_id), widths.sum(dim=0))

    def _annotate(self, ids: Tensor) -> AnnotatedTokens:
        parts = self._parts(ids)
        is_equals, is_operator = parts.is_equals, parts.is_operator
        is_separator = (ids == self.separator_id) & parts.answering
        is_boundary = is_operator | is_equals | is_separator

        # Columns are counted from the last operator, `=` or `;`; these tokens do not count.
        counts = ~(is_boundary | parts.is_start)
        counted = counts.cumsum(dim=1, dtype=torch.int32)
        place = counted - torch.where(is_boundary, counted, 0).cummax(dim=1).values
        place.masked_fill_(is_operator, EVERYWHERE)

        operand = is_operator.cumsum(dim=1, dtype=torch.int32)
        sum_number = (is_equals | is_separator).cumsum(dim=1, dtype=torch.int32)
        row = torch.where(sum_number > 0, 2 * sum_number + 1, (2 * operand).clamp(min=1))
        row -= is_operator.int()

        last = sum_number >= operand
        work = torch.where(last & ~is_separator, int(Field.ANSWER), int(Field.SCRATCH))
        # A byte tells so many operands apart; beyond, the model is told the same of them.
        operand_field = (Field.OPERAND + operand).clamp(max=255)
        field = torch.where(parts.answering, work, operand_field).to(torch.uint8)
        field.masked_fill_(is_operator, int(Field.OPERATOR))
        field.masked_fill_(is_equals, int(Field.EQUALS))
        parts.mark_ends(field, place, row)
        return AnnotatedTokens(ids, place, field, parts.target, row=row)

    def _read(self, ids: list[int]) -> str | None:
        if self.equals_id not in ids:
            return None
        equals_at = ids.index(self.equals_id)
        num_rows = ids[:equals_at].count(self.operator_id)
        tokens = ids[equals_at + 1 :]
        if self.end_id not in tokens:
            return None
        tokens = tokens[: tokens.index(self.end_id)]
        if any(token >= 10 and token != self.separator_id for token in tokens):
            return None
        rows = self.vocabulary.text(reversed(tokens)).split(";")
        if len(rows) != num_rows or not all(map(_is_number, rows)):
            return None
        return rows[0]


def _is_number(text: str) -> bool:
    return text == "0" or (text != "" and not text.startswith("0"))
