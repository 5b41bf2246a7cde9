"""Division without going back: the remainder may fall below 0, and is then brought up again.

As in long division, one digit of the dividend after the other is brought down, and for each the divisor
is subtracted again and again. Long division notices that it has subtracted once too often, and goes
back to the row before. Here the remainder is left below 0, the next digit is brought down to it, and
the divisor is *added* until the remainder is no longer below 0. This is non-restoring division, well
known from hardware in base 2. Each row follows from the row directly above.

>>> format.text(problem)  # 97//8
"<start>97//8=-0:10-1:3'9'+9:5'4+8:3'5+7:1'6+6:96+5:7'7+4:5'8+3:3'9+2:1'0'-0:<end>"

A row holds an action, such as `-1`, and the remainder after it. The action says whether the divisor is
subtracted or added, and how often this was done before. The remainder is one digit wider than the
divisor and least significant digit first; if it is below 0, it is written as its ten's complement. A
mark after a digit says that its column borrows from the next column, or carries into it.

    -0:10       9 is brought down: 9 - 8 = 1
    -1:3'9'     1 - 8 = -7, written 93. It is below 0, so the divisor went in once
    +9:5'4      7 is brought down: -70 + 7 = -63, and -63 + 8 = -55, written 45
    +8:3'5      … 8 is added until the remainder is no longer below 0:
    +2:1'0'     -7 + 8 = 1. Eight additions undo all but 2 of 10 subtractions, so the divisor went in twice
    -0:         no digit is left, and the remainder is not below 0: the division is complete

Counts go up from 0 while subtracting and down from 9 while adding. The count of a row whose last digit
has a mark is a digit of the quotient: 12. The last row but one is the remainder, 1; if it would be
below 0, the divisor is added once more. The lines of `//` and `%` are the same.

Each token follows from at most five others. A digit follows from the digit above, the divisor's digit,
the mark before it, and the action. An action follows from the action above and the last mark. The
coordinates bring just these tokens together in one layer with windows (-2, 0) over rows and (0, 2) over
places and steps:

* Digit i of row j has row 2j and place 2i + 1, and step 2k if it stands under column k of the dividend.
  Rows of one step stand under each other in both. In the first row of the next step, digit i stands
  under digit i - 1 of the row above: it has the same step, but another place.
* Digit i of the divisor has place 2i, between the digits i - 1 and i of every row and step. The
  operator has the place of one more digit.
* The action of row j has row 2j - 1 and stands in every place and step; only its own row sees it.
* The colon stands before the row's first digit. If the row begins a step, the colon has place 0 and
  sees the digit that is brought down, which has place 0 in every row of its step. Otherwise it has
  place 1 and sees the digit above; so it does in rows after the last digit was brought down.
* The leading digits of the dividend, one fewer than the divisor has, are row 0.

If operands are signed, the prompt has their signs before their digits, and the sign of the remainder is
written first, which is that of the divisor. `//` rounds down, as in Python, so the line is that of a
division by a number above 0 once the divisor's sign is moved to the dividend: a // b is -a // -b, and
a % b is -(-a % -b). The dividend of that division is written with its own sign, and in ten's complement
if it is below 0.

    ⁺97//⁺8=⁺[-0]:10…   97 // 8
    ⁻03//⁺8=⁺[+9]:…     -97 // 8, where -97 is …9903
    ⁻03//⁻8=⁻[+9]:…     97 // -8, which is -97 // 8; its remainder is that of -97 // 8 with a minus sign

The remainder of a number below 0 begins as -1, which is …999, instead of 0. It is below 0, so the first
row adds, and from there on the rules are the same: the remainder that is brought up is at least 0, which
is rounding down, and the quotient is read in ten's complement. Rows of -1 - a are the mirror images of
those of a, with 9 - d for each digit d and 9 - c for each count c.

The signs of operands and remainder have row and step 0, where `=` stands and no row sees them. Those of
divisor and remainder have place 0, and that of the dividend has place 2: a model that saw both operands'
signs at one place could not distinguish -7//2 from -7//-2.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from abacist.arrays import Integers
from abacist.formats.annotated import ANCHOR, EVERYWHERE, AnnotatedTokens, Field
from abacist.formats.calculation import CalculationFormat, Parts, number_text
from abacist.formats.config import Layout, NonRestoringDivisionFormatConfig
from abacist.formats.continuation import Continuation, RowsByDivisor, TokenCoordinates
from abacist.formats.division_steps import DivisionSteps, count_steps, write_by_divisor_length
from abacist.formats.pieces import Piece, select
from abacist.formats.plain import negative_of_complement
from abacist.formats.roles import SIGN, START, Role
from abacist.formats.shared_notation import SharedNotation
from abacist.tasks import digits
from abacist.tasks.config import ArithmeticConfig, TaskConfig
from abacist.tasks.problems import Answer, Problems, Shapes
from abacist.vocabulary import DIGITS

DIVIDEND, DIVISOR, OPERATOR = "dividend", "divisor", "operator"
ACTION, COLON, DIGIT = "action", "colon", "digit"
"""Parts of a calculation, as `roles` names them."""

MARKED = tuple(f"{digit}'" for digit in DIGITS)
ACTIONS = tuple(f"{sign}{digit}" for sign in "-+" for digit in DIGITS)
"""Tokens of the work. In a vocabulary, marked digits follow the digits, and actions follow these."""

_EXTRA = 3
"""A row is wider than the divisor by its action, the colon, and one digit."""
_DIVIDEND_SIGN_PLACE = 2
_MOST_ROWS = 10
"""Largest possible number of rows in one step."""


@dataclass(frozen=True)
class _Rows:
    """The row that each token after `=` belongs to, int32 (B, T); meaningless for other tokens."""

    column: Tensor
    """Column of a digit, 1 for units; 0 for the colon, -1 for the action."""
    row: Tensor
    """Number of the row, starting at 1."""
    step: Tensor
    """Number of the row's step, starting at 1; one more than `num_steps` after the last step."""
    begins_step: Tensor
    """bool: whether the row of this colon begins a step, for which a digit is brought down."""
    num_steps: Tensor
    """int32 (B, 1): digits of the dividend that are brought down."""


class NonRestoringDivisionFormat(CalculationFormat):
    """Writes, annotates and reads divisions."""

    layout: Layout = "similar"
    enumeration = "non-restoring-division"
    usual_order = True

    def __init__(
        self,
        config: NonRestoringDivisionFormatConfig,
        task: TaskConfig,
        shared: SharedNotation | None = None,
    ) -> None:
        assert isinstance(task, ArithmeticConfig)
        self.config = config
        symbols = (*MARKED, *ACTIONS, *task.operations, "=", ":")
        super().__init__(task, config.start_token, symbols, shared=shared)
        # The calculator spells counts differently; they follow the marked digits there as well.
        self.first_marked = self.vocabulary.id(MARKED[0])
        self.first_done = self.first_marked + len(MARKED)
        self.colon_id = self.vocabulary.id(":")

    def annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        """Return place, row, step, field and target of every token, from the ids alone.

        The annotation of a token after `=` depends on the prompt and on the tokens before it.
        """
        return self._annotate(ids_BT.int())

    def continuation(self, prompt: AnnotatedTokens, max_new_tokens: int) -> Continuation:
        """Return the coordinates of new tokens."""
        marked = range(self.first_marked, self.first_done)
        return _RowsContinuation(prompt, marked, int(self.signed))

    def roles(self, ids_T: Tensor) -> list[Role]:
        """Return the role of each token of one whole line.

        A digit of the dividend has the step that brings it down; the leading digits are brought down
        in no step and have their column in row 0 instead. A digit of the divisor has a column. ACTION,
        COLON and DIGIT have a row and a step, and DIGIT also has a column. Rows after the last digit
        was brought down and used up have a step that is one more than there are digits to bring down.
        Where operands are signed, the signs of dividend, divisor and remainder have rows 1, 2 and 0.
        """
        ids = ids_T.int().unsqueeze(0)
        parts = self._parts(ids)
        rows = self._find_rows(ids, parts)
        operator_index, equals_index = int(parts.operator_index), int(parts.equals_index)
        roles = [Role(START)] * parts.begin
        roles += [Role(SIGN, row=1)] * parts.num_signs
        for column in range(operator_index - len(roles), 0, -1):
            step = int(rows.num_steps) - column + 1
            roles.append(Role(DIVIDEND, step=step) if step > 0 else Role(DIVIDEND, 1 - step))
        roles.append(Role(OPERATOR))
        roles += [Role(SIGN, row=2)] * parts.num_signs
        divisor_length = equals_index - len(roles)
        roles += [Role(DIVISOR, column) for column in range(divisor_length, 0, -1)]
        roles.append(Role("="))
        roles += [Role(SIGN)] * parts.num_signs
        columns = (tensor[0].tolist() for tensor in (rows.column, rows.row, rows.step))
        for column, row, step in list(zip(*columns, strict=True))[len(roles) :]:
            part = ACTION if column < 0 else COLON if column == 0 else DIGIT
            roles.append(Role(part, max(0, column), row, step))
        is_end = parts.is_end[0].tolist()
        return [Role("<end>") if end else role for role, end in zip(roles, is_end, strict=True)]

    def target_lengths(self, problems: Problems) -> Tensor:
        """Return the largest possible number of tokens after `=`, int64 (B,)."""
        rows = _MOST_ROWS * count_steps(problems) + 1
        return rows * (problems.lengths_BN[:, 1] + _EXTRA) + 3 + self.signed

    # Annotating ----------------------------------------------------------------------------

    def _annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        parts = self._parts(ids_BT)
        index, after_equals = parts.index, parts.after_equals
        operator_index, equals_index = parts.operator_index, parts.equals_index
        rows = self._find_rows(ids_BT, parts)
        # The prompt: the dividend, whose leading digits are row 0, and the divisor.
        column = operator_index - index
        leads = column > rows.num_steps
        place = torch.where(leads, 2 * (column - rows.num_steps) + 1, 0)
        row = torch.where(leads, 0, EVERYWHERE)
        step = 2 * column
        is_second = index >= operator_index
        place = torch.where(is_second, 2 * (equals_index - index), place)
        row = torch.where(is_second, EVERYWHERE, row)
        step = torch.where(is_second, EVERYWHERE, step)
        # The operator stands where the divisor would have one more digit.
        place = torch.where(parts.is_operator, place - 2 * parts.num_signs, place)
        field = torch.where(is_second, Field.OPERAND + 1, int(Field.OPERAND)).to(torch.uint8)
        field.masked_fill_(parts.is_operator, int(Field.OPERATOR))
        is_answer_sign = after_equals & (index <= equals_index + parts.num_signs)
        for tensor in (place, row, step):
            tensor.masked_fill_(parts.is_equals | parts.is_sign, ANCHOR)
        place.masked_fill_(parts.is_sign & (index < operator_index), _DIVIDEND_SIGN_PLACE)
        field.masked_fill_(parts.is_equals, int(Field.EQUALS))
        # The rows.
        columns_left = (rows.num_steps - rows.step).clamp(min=0)
        is_action, is_colon = rows.column < 0, rows.column == 0
        work_place = 2 * rows.column + 1 - (is_colon & rows.begins_step).int()
        work_step = 2 * (rows.column + columns_left) + is_colon.int()
        work_place.masked_fill_(is_action, EVERYWHERE)
        work_step.masked_fill_(is_action, EVERYWHERE)
        place = torch.where(after_equals, work_place, place)
        row = torch.where(after_equals, 2 * rows.row - is_action.int(), row)
        step = torch.where(after_equals, work_step, step)
        field.masked_fill_(after_equals, int(Field.SCRATCH))
        for tensor in (place, row, step):
            tensor.masked_fill_(is_answer_sign, ANCHOR)
        field.masked_fill_(is_answer_sign, int(Field.ANSWER))
        parts.mark_ends(field, place, row, step)
        return AnnotatedTokens(ids_BT, place.int(), field, parts.target, row.int(), step.int())

    def _find_rows(self, ids_BT: Tensor, parts: Parts) -> _Rows:
        dividend_length, divisor_length = parts.lengths
        num_steps = (dividend_length - divisor_length + 1).clamp(min=1)
        width = divisor_length + _EXTRA
        after = (parts.index - parts.equals_index - parts.num_signs - 1).clamp(min=0)
        rows_before = torch.div(after, width, rounding_mode="floor")
        within = after - rows_before * width
        # A mark on a row's last digit ends a step, for the tokens that follow.
        is_marked = (ids_BT >= self.first_marked) & (ids_BT < self.first_done)
        ends_step = parts.after_equals & is_marked & (within == width - 1)
        steps_before = ends_step.cumsum(dim=1, dtype=torch.int32) - ends_step.int()
        step_ended = torch.nn.functional.pad(ends_step, (2, 0))[:, : ids_BT.shape[1]]
        begins_step = ((rows_before == 0) | step_ended) & (steps_before < num_steps)
        return _Rows(within - 1, rows_before + 1, steps_before + 1, begins_step, num_steps)

    # Writing -------------------------------------------------------------------------------

    def _prompt_pieces(self, problems: Problems) -> list[Piece]:
        if not self.signed:
            return super()._prompt_pieces(problems)
        mirrored = self._by_a_positive_divisor(problems)
        assert mirrored.negative_BN is not None
        is_mirrored_B11 = mirrored.negative_BN[:, :1, None] & (torch.arange(2) == 0).view(1, 2, 1)
        written_BNW = torch.where(is_mirrored_B11, 9 - mirrored.digits_BNW, mirrored.digits_BNW)
        written = Problems(written_BNW, mirrored.shapes, mirrored.negative_BN)
        return super()._prompt_pieces(written)

    def _target_piece(self, problems: Problems, answer: Answer) -> Piece:
        if not self.signed:
            return write_by_divisor_length(problems, self._rows)
        rows = write_by_divisor_length(self._by_a_positive_divisor(problems), self._rows)
        sign_B1 = self.signs(problems.is_negative_BN[:, 1])
        return Piece(torch.cat([sign_B1, rows.ids_BW], dim=1), rows.widths() + 1)

    def _by_a_positive_divisor(self, problems: Problems) -> Problems:
        """Return the same divisions with the divisor's sign moved to the dividend a.

        If a is then below 0, the result has -1 - a instead, and counts as below 0: its rows are mirror
        images. A divisor keeps its sign for the prompt.
        """
        negative_BN = problems.is_negative_BN
        a_BW = problems.operand(0).digits_BW
        is_zero_B = (a_BW == 0).all(dim=1)
        is_mirrored_B = (negative_BN[:, 0] != negative_BN[:, 1]) & ~is_zero_B
        mirrored_BW = digits.less_one_where(is_mirrored_B, a_BW)
        lengths_BN = problems.lengths_BN.clone()
        lengths_BN[:, 0] = digits.significant(mirrored_BW)
        return Problems(
            torch.stack([mirrored_BW, problems.operand(1).digits_BW], dim=1),
            Shapes(lengths_BN, problems.operation_B),
            torch.stack([is_mirrored_B, negative_BN[:, 1]], dim=1),
        )

    def _rows(self, problems: Problems, divisor_length: int) -> Piece:
        """Return the rows of all steps; for divisors of one length."""
        steps = DivisionSteps.of(problems, divisor_length)
        batch, device = len(problems), problems.lengths_BN.device
        # Steps alternate between subtracting and adding. One more step, of one row, adds the divisor
        # if the remainder is below 0.
        step = torch.cat([steps.number_BS, steps.num_steps_B.unsqueeze(1)], dim=1)
        is_mirrored = problems.is_negative_BN[:, :1]
        alternates = step % 2 == 1
        adds = alternates ^ is_mirrored
        quotient = torch.cat([steps.quotient_BS, steps.quotient_BS[:, -1:]], dim=1).int()
        num_rows = torch.where(alternates, 10 - quotient, quotient + 1) * (step >= 0)
        num_rows[:, -1] = adds[:, -1]
        ordinal = torch.arange(_MOST_ROWS, device=device)
        count = torch.where(adds.unsqueeze(2), 9 - ordinal, ordinal)
        # What is left before each row: while adding, the divisor has been subtracted 10 times at first.
        before_subtracting = steps.differences[:, :, :-1]
        before_adding = steps.differences.flip(2)[:, :, :-1]
        before = torch.where(alternates[:, :-1, None, None], before_adding, before_subtracting)
        # The last step leaves a remainder below 0: r - b, or the mirror image of the remainder r.
        number = quotient[:, -1] + (~is_mirrored[:, 0]).int()
        last = steps.differences[:, -1][torch.arange(batch, device=device), number]
        last = last[:, None, None].expand(-1, 1, _MOST_ROWS, -1)
        before = torch.cat([before, last], dim=1).int()
        before = torch.where(is_mirrored[:, :, None, None], 9 - before, before)
        divisor = problems.operand(1).digits_BW[:, :divisor_length]
        divisor = torch.nn.functional.pad(divisor, (0, 1)).int()
        sign = torch.where(adds, 1, -1)[:, :, None]
        digits = self._add(before, divisor[:, None, None], sign)
        action = self.first_done + 10 * adds.unsqueeze(2) + count
        colon = torch.full_like(action, self.colon_id)
        rows = torch.cat([torch.stack([action, colon], dim=3).to(torch.uint8), digits], dim=3)
        is_written = (ordinal < num_rows.unsqueeze(2)).unsqueeze(3).expand(rows.shape)
        done = torch.tensor([[self.first_done, self.colon_id]], dtype=torch.uint8, device=device)
        done = done.expand(batch, 2)
        return select(
            torch.cat([rows.flatten(1), done], dim=1),
            torch.cat([is_written.flatten(1), torch.ones_like(done, dtype=torch.bool)], dim=1),
        )

    def _add(self, before: Tensor, divisor: Tensor, sign: Tensor) -> Tensor:
        """Return the tokens of `before + sign * divisor`, with marks; digits are along the last axis."""
        columns = []
        flow = torch.zeros_like(before[..., 0])
        for column in range(before.shape[-1]):
            total = before[..., column] + sign * (divisor[..., column] + flow)
            flow = ((total < 0) | (total > 9)).int()
            columns.append(total - 10 * sign * flow + self.first_marked * flow)
        return torch.stack(columns, dim=-1).to(torch.uint8)

    # Reading -------------------------------------------------------------------------------

    def _read_work(self, operation: str, lengths: list[int], tokens: list[int]) -> str | None:
        dividend_length, divisor_length = lengths[:2]
        num_steps = max(1, dividend_length - divisor_length + 1)
        width = divisor_length + _EXTRA
        quotient: list[int] = []
        remainder: list[int] = []
        is_below, remainder_is_below = False, False
        if self.signed:
            if len(tokens) < 2 or tokens[0] not in (self.plus_id, self.minus_id):
                return None
            remainder_is_below = tokens[0] == self.minus_id
            # The first row adds if the dividend is below 0, and so is the quotient then.
            is_below, tokens = tokens[1] == self.first_done + 19, tokens[1:]
        adds, count = is_below, 9 * is_below
        while adds or len(quotient) < num_steps:
            row, tokens = tokens[:width], tokens[width:]
            action = self.first_done + 10 * adds + count
            if count not in range(10) or row[:2] != [action, self.colon_id]:
                return None
            if len(row) < width or any(token >= self.first_done for token in row[2:]):
                return None
            remainder = [token % self.first_marked for token in row[2:]]
            if row[-1] >= self.first_marked:
                quotient.append(count)
                adds = not adds
                count = 9 * adds
            elif len(quotient) >= num_steps:
                return None
            else:
                count += -1 if adds else 1
        if tokens != [self.first_done, self.colon_id]:
            return None
        text = number_text(remainder if operation == "%" else quotient[num_steps - 1 :: -1])
        if operation == "%":
            return f"-{text}" if remainder_is_below and text != "0" else text
        return negative_of_complement(text, num_steps) if is_below else text


class _RowsContinuation(RowsByDivisor):
    """Counts the tokens of a row, the rows, and the steps, each of which ends in a marked digit."""

    extra = _EXTRA

    def __init__(self, prompt: AnnotatedTokens, marked: range, num_signs: int) -> None:
        super().__init__(prompt, num_signs)
        self._signs_to_come = num_signs
        self.falls = {"row": 0}
        self._marked = marked
        self._num_steps = np.maximum(self.dividend_length - self.divisor_length + 1, 1)
        self._steps_before = np.zeros_like(self.row)
        self._begins_step = np.ones(len(self.row), dtype=bool)

    def append(self, ids_B: Integers) -> TokenCoordinates:
        """Return the coordinates of the next token of every line."""
        if self._signs_to_come:
            self._signs_to_come -= 1
            anchor = np.full_like(self.row, ANCHOR)
            return TokenCoordinates(anchor, anchor, anchor)
        self.advance()
        is_action, is_colon = self.within == 0, self.within == 1
        begins_step = self._begins_step & (self._steps_before < self._num_steps)
        columns_left = np.maximum(self._num_steps - self._steps_before - 1, 0)
        column = self.within - 1
        coordinates = TokenCoordinates(
            np.where(is_action, EVERYWHERE, 2 * column + 1 - (is_colon & begins_step)),
            2 * self.row - is_action,
            np.where(is_action, EVERYWHERE, 2 * (column + columns_left) + is_colon),
        )
        # A mark on a row's last digit ends a step, for the tokens that follow.
        is_last = self.within == self.width - 1
        is_marked = (ids_B >= self._marked.start) & (ids_B < self._marked.stop)
        self._begins_step = np.where(is_last, is_marked, self._begins_step)
        self._steps_before = self._steps_before + (is_last & is_marked)
        return coordinates
