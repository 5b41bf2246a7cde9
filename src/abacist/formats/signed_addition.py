"""Sums and differences of integers of either sign, in ten's complement.

A number below 0 is written as what is left of a power of ten: -12 is `88` with the sign `⁻`, which
stands for nines without end, ...9988. A number from 0 up has the sign `⁺`, which stands for zeros. With
the signs read as these digits, columns are added as always, and no rule about signs is needed.

>>> format.text(problem)  # -12+34
'<sum>88⁻+43⁺=220⁺<end>'
>>> format.text(problem)  # 5--3
'<difference>5⁺-7⁻=80⁺<end>'
>>> format.text(problem)  # -7-123
'<difference>399⁻-321⁺=0789⁻<end>'

* Numbers are written least significant digit first, and their sign follows in the next column.
* Both operands have one width, the smallest in which both can be written, so at least one of them needs
  its last column. In w digits there is room for -10^w … 10^w - 1: `0⁻` is -10.
* The answer has one digit more. Its last digit follows from the two signs and a carry: it is 0 or 1 if
  the answer is not below 0, and else 8 or 9. The sign follows from this digit.

The digits of -1 - a are the nine's complements of those of a, in the same width. So numbers of both
signs are mirror images of each other, and every combination of digits occurs with every sign.
"""

import torch
from torch import Tensor

from abacist.formats.annotated import ANCHOR, NO_PLACE, AnnotatedTokens, Field
from abacist.formats.calculation import CalculationFormat, is_digit, number_text
from abacist.formats.config import Layout
from abacist.formats.continuation import Continuation, PlannedContinuation
from abacist.formats.pieces import Piece, constant, operators
from abacist.formats.plain import ANSWER, OPERAND, negative_of_complement
from abacist.formats.roles import SIGN, START, Role, decode
from abacist.formats.shared_notation import SharedNotation
from abacist.tasks import digits
from abacist.tasks.config import TaskConfig
from abacist.tasks.problems import Answer, Numbers, Problems


class SignedAdditionFormat(CalculationFormat):
    """Writes, annotates and reads sums and differences of integers."""

    layout: Layout = "similar"
    enumeration = "signed-addition"

    def __init__(self, task: TaskConfig, shared: SharedNotation) -> None:
        super().__init__(task, True, (), shared=shared)
        self._spacing = shared.spacing

    def continuation(self, prompt: AnnotatedTokens, max_new_tokens: int) -> Continuation:
        """Return the coordinates of new tokens, which follow from the prompt alone."""
        falls = {"row": 0, "place": 0}
        return PlannedContinuation(self.annotate, prompt, max_new_tokens, falls)

    def roles(self, ids_T: Tensor) -> list[Role]:
        """Return the role of each token of one whole line.

        A digit or sign of an operand has the operand's row, starting at 1, and its column. Those of the
        answer have row 0. Symbols have neither.
        """

        def role(token: int, field: int, place: int, row: int) -> Role:
            if field == Field.START:
                return Role(START)
            if field not in (Field.OPERAND, Field.OPERAND + 1, Field.ANSWER) or (
                token == self.end_id
            ):
                return Role(self.vocabulary.tokens[token])
            column = place // self._spacing
            own_row = row if field >= Field.OPERAND else 0
            if not is_digit(token):
                return Role(SIGN, column, own_row)
            return Role(OPERAND if own_row else ANSWER, column, own_row)

        return decode(self.annotate(ids_T.unsqueeze(0)), role)

    def columns(self, lines: AnnotatedTokens) -> Tensor:
        """Return the column of each digit, 1 for units, int32 (B, T); other tokens have their place."""
        return lines.columns(self._spacing)

    def target_lengths(self, problems: Problems) -> Tensor:
        """Return the largest possible number of tokens after `=`, int64 (B,)."""
        return problems.lengths_BN.amax(dim=1) + 3

    def _prompt_pieces(self, problems: Problems) -> list[Piece]:
        batch, device = len(problems), problems.digits_BNW.device
        written = [self._written(problems.operand(position)) for position in range(2)]
        width_B = self._widths(problems)
        (first, first_sign), (second, second_sign) = (
            (Piece(ids, width_B), Piece(sign)) for ids, sign in written
        )
        operator = Piece(operators(problems.operation_B, self.token_of))
        assert self.start_id is not None
        start, equals = (
            constant(token, batch, device) for token in (self.start_id, self.equals_id)
        )
        return [start, first, first_sign, operator, second, second_sign, equals]

    def _target_piece(self, problems: Problems, answer: Answer) -> Piece:
        assert isinstance(answer, Numbers)
        ids_BW, sign_B1 = self._written(answer)
        end_B1 = self._widths(problems).unsqueeze(1) + 1
        wider = max(0, int(end_B1.max()) + 1 - ids_BW.shape[1]) if len(answer) else 0
        ids_BW = torch.nn.functional.pad(ids_BW, (0, wider))
        fill_B1 = 9 * answer.is_negative_B.unsqueeze(1).to(torch.uint8)
        is_fill = torch.arange(ids_BW.shape[1], device=ids_BW.device) >= ids_BW.shape[1] - wider
        ids_BW = torch.where(is_fill, fill_B1, ids_BW)
        return Piece(ids_BW.scatter(1, end_B1, sign_B1), end_B1.squeeze(1) + 1)

    def _written(self, numbers: Numbers) -> tuple[Tensor, Tensor]:
        """Return the digits of each number, uint8 (B, W), and the token of its sign, uint8 (B, 1)."""
        ids_BW, _ = digits.tens_complement(numbers.digits_BW, numbers.is_negative_B)
        return ids_BW, self.signs(numbers.is_negative_B)

    def _widths(self, problems: Problems) -> Tensor:
        """Return the number of digits of both operands, int64 (B,)."""
        operands = (problems.operand(position) for position in range(2))
        widths = [digits.tens_complement(n.digits_BW, n.is_negative_B)[1] for n in operands]
        return torch.maximum(*widths)

    def _annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        parts = self._parts(ids_BT)
        index, operator_index, equals_index = (
            parts.index,
            parts.operator_index,
            parts.equals_index,
        )
        is_second = index > operator_index
        before = torch.where(is_second, operator_index, parts.begin - 1)
        before = torch.where(parts.after_equals, equals_index, before)
        place = self._spacing * (index - before)
        row = 1 + is_second.int() + (parts.after_equals | parts.is_equals).int()
        field = torch.where(is_second, Field.OPERAND + 1, int(Field.OPERAND))
        field = torch.where(parts.after_equals, int(Field.ANSWER), field).to(torch.uint8)
        for tensor, value in ((place, NO_PLACE), (row, NO_PLACE), (field, Field.OPERATOR)):
            tensor.masked_fill_(parts.is_operator, int(value))
        place.masked_fill_(parts.is_equals, ANCHOR)
        field.masked_fill_(parts.is_equals, int(Field.EQUALS))
        step = torch.ones_like(ids_BT)
        parts.mark_ends(field, place, row, step)
        return AnnotatedTokens(
            ids_BT.int(), place.int(), field, parts.target, row.int(), step.int()
        )

    def _read_work(self, operation: str, lengths: list[int], tokens: list[int]) -> str | None:
        width = max(lengths) + 1
        *written, sign = tokens or [self.end_id]
        if len(written) != width or not all(map(is_digit, written)):
            return None
        if sign not in (self.plus_id, self.minus_id):
            return None
        text = number_text(written)
        return text if sign == self.plus_id else negative_of_complement(text, width)
