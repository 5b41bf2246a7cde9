"""Division without going back: `97//8` is `97//8=-0:10-1:3'9'+9:5'4…+2:1'0'-0:<end>`.

As in long division one digit of the dividend after the other is brought down, and for each the
divisor is subtracted again and again. But where long division subtracts once too often, notices,
and goes back to the row before, here the remainder is left below 0, the next digit is brought down
to it, and the divisor is *added* until the remainder is no longer below 0 (non-restoring
division, well known from hardware in base 2). So each row needs only the row right above.

A row is what is done and how often it was done before, then the remainder, one digit wider than
the divisor and least significant first. What is below 0 is written as its ten's complement. A mark
behind a digit says that its column borrows from the next, or carries into it:

    -0:10       9 is brought down: 9 - 8 = 1
    -1:3'9'     1 - 8 = -7, written 93: below 0, so the divisor went in once
    +9:5'4      7 is brought down: -70 + 7 = -63, and -63 + 8 = -55, written 45
    +8:3'5      … it is added until nothing is below 0 any more:
    +2:1'0'     -7 + 8 = 1. Eight were too many by as many as the rows count: 2
    -0:         no digit is left, nothing is below 0: done

Counts go up from 0 while subtracting and down from 9 while adding, and that of the row whose last
digit has a mark is a digit of the quotient: 12. The last row is the remainder, 1; where it would
be below 0, the divisor is added once more. Lines are the same for `//` and `%`.

Each token follows from at most five others: a digit from the digit above, the divisor's digit, the
mark before it, and what is done; what is done next from what was, and the mark. Coordinates bring
just these together in one layer of windows (-2, 0) over rows and (0, 2) over places and steps:

* Digit i of row j stands at row 2j and place 2i + 1, and at step 2k for the dividend's column k
  that it stands under. Rows of one step stand under each other in both; the first row of the next
  step has moved by one place against the row above, as the divisor has, but not by a column.
* The divisor's digit i stands at place 2i, between the digits i - 1 and i of every row and step;
  the operator stands where it would have another digit.
* What is done in row j stands at row 2j - 1, in every place and step: its own row alone sees it.
* The colon stands before the row's first digit. Where the row begins a step, it stands at place 0
  and sees the digit that is brought down, which stands there in every row of its step; elsewhere at
  place 1, and sees the digit above. When no digit is left it stands there as well.
* The leading digits of the dividend, one fewer than the divisor has, are row 0.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.formats.annotated import ANCHOR, EVERYWHERE, AnnotatedTokens, Field
from abacist.formats.calculation import CalculationFormat, Parts
from abacist.formats.config import Layout, NonRestoringDivisionFormatConfig
from abacist.formats.lines import Piece
from abacist.formats.roles import Role
from abacist.tasks import digits
from abacist.tasks.config import ArithmeticConfig, TaskConfig
from abacist.tasks.problems import Answer, Problems
from abacist.vocabulary import DIGITS, Vocabulary

DIVIDEND, DIVISOR, OPERATOR = "dividend", "divisor", "operator"
ACTION, COLON, DIGIT = "action", "colon", "digit"
"""The parts of a calculation, as `roles` names them."""

_EXTRA = 3
"""A row is wider than the divisor by what is done, the colon, and one digit."""
_MOST_ROWS = 10
"""Rows of one step, at most."""


@dataclass(frozen=True)
class _Work:
    """The rows of lines, int32 (B, T) each; meaningless before the first token after `=`."""

    column: Tensor
    """Column of a digit, 1 for units; 0 for the colon, -1 for what is done."""
    row: Tensor
    """Starting at 1."""
    step: Tensor
    """Starting at 1; one more than `num_steps` after the last digit brought down is used up."""
    begins_step: Tensor
    """bool: whether the row of this colon begins a step, with a digit brought down."""
    num_steps: Tensor
    """int32 (B, 1): digits of the dividend that are brought down."""


class NonRestoringDivisionFormat(CalculationFormat):
    """Writes, annotates and reads divisions."""

    layout: Layout = "similar"
    enumeration = "non-restoring-division"
    usual_order = True

    def __init__(self, config: NonRestoringDivisionFormatConfig, task: TaskConfig) -> None:
        assert isinstance(task, ArithmeticConfig)
        self.config = config
        start = ("<start>",) if config.start_token else ()
        operations = task.operations
        marked = tuple(f"{digit}'" for digit in DIGITS)
        done = tuple(f"{sign}{digit}" for sign in "-+" for digit in DIGITS)
        vocabulary = Vocabulary((*DIGITS, *marked, *done, *operations, "=", ":", "<end>", *start))
        super().__init__(vocabulary, operations, config.start_token)
        self.first_marked, self.first_done = self.vocabulary.id("0'"), self.vocabulary.id("-0")
        self.colon_id = self.vocabulary.id(":")
        self.remainder_id = self.vocabulary.id("%") if "%" in operations else None

    def annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        """Place, row, step, field and target of every token, from the ids alone.

        What stands behind `=` is annotated from the prompt and the tokens before it, never from
        later ones.
        """
        ids = ids_BT.int()
        parts = self._parts(ids)
        index, answering = parts.index, parts.answering
        operator_at, equals_at = parts.operator_at, parts.equals_at
        work = self._work(ids, parts)
        num_steps = work.num_steps

        # The prompt: the dividend, of which the leading digits are row 0, and the divisor.
        column = operator_at - index
        leads = column > num_steps
        place = torch.where(leads, 2 * (column - num_steps) + 1, 0)
        row = torch.where(leads, 0, EVERYWHERE)
        step = 2 * column
        second = index >= operator_at
        place = torch.where(second, 2 * (equals_at - index), place)
        row = torch.where(second, EVERYWHERE, row)
        step = torch.where(second, EVERYWHERE, step)
        field = torch.where(second, Field.OPERAND + 1, int(Field.OPERAND)).to(torch.uint8)
        field.masked_fill_(parts.is_operator, int(Field.OPERATOR))
        for tensor in (place, row, step):
            tensor.masked_fill_(parts.is_equals, ANCHOR)
        field.masked_fill_(parts.is_equals, int(Field.EQUALS))

        # The rows.
        columns_left = (num_steps - work.step).clamp(min=0)
        is_action, is_colon = work.column < 0, work.column == 0
        work_place = 2 * work.column + 1 - (is_colon & work.begins_step).int()
        work_step = 2 * (work.column + columns_left) + is_colon.int()
        work_place.masked_fill_(is_action, EVERYWHERE)
        work_step.masked_fill_(is_action, EVERYWHERE)
        place = torch.where(answering, work_place, place)
        row = torch.where(answering, 2 * work.row - is_action.int(), row)
        step = torch.where(answering, work_step, step)
        field.masked_fill_(answering, int(Field.SCRATCH))
        parts.mark_ends(field, place, row, step)
        return AnnotatedTokens(ids, place.int(), field, parts.target, row.int(), step.int())

    def roles(self, ids_T: Tensor) -> list[Role]:
        """Return the role of each token of one whole line.

        A digit of the dividend that is brought down has the step that brings it down; the leading
        ones have their column in row 0 instead. A digit of the divisor has a column. ACTION, COLON
        and DIGIT have row and step, DIGIT also a column. In rows after the last digit was brought
        down and the remainder was below 0, the step is one more than there are steps.
        """
        ids = ids_T.int().unsqueeze(0)
        parts = self._parts(ids)
        work = self._work(ids, parts)
        operator_at, equals_at = int(parts.operator_at), int(parts.equals_at)
        num_steps = int(work.num_steps)
        begin = 0 if self.start_id is None else 1
        roles = [Role("<start>")] * begin
        for column in range(operator_at - begin, 0, -1):
            step = num_steps - column + 1
            roles.append(Role(DIVIDEND, step=step) if step > 0 else Role(DIVIDEND, 1 - step))
        roles.append(Role(OPERATOR))
        roles += [Role(DIVISOR, column=c) for c in range(equals_at - operator_at - 1, 0, -1)]
        roles.append(Role("="))
        columns = (tensor[0].tolist() for tensor in (work.column, work.row, work.step))
        for column, row, step in list(zip(*columns, strict=True))[equals_at + 1 :]:
            part = ACTION if column < 0 else COLON if column == 0 else DIGIT
            roles.append(Role(part, max(0, column), row, step))
        is_end = parts.is_end[0].tolist()
        return [Role("<end>") if end else role for role, end in zip(roles, is_end, strict=True)]

    def _work(self, ids: Tensor, parts: Parts) -> "_Work":
        begin = 0 if self.start_id is None else 1
        num_columns = (parts.operator_at - begin).clamp(min=0)
        divisor_length = (parts.equals_at - parts.operator_at - 1).clamp(min=0)
        num_steps = (num_columns - divisor_length + 1).clamp(min=1)
        width = divisor_length + _EXTRA
        after = (parts.index - parts.equals_at - 1).clamp(min=0)
        rows_before = torch.div(after, width, rounding_mode="floor")
        within = after - rows_before * width
        # A mark on a row's last digit ends a step, for the tokens that follow.
        marked = (ids >= self.first_marked) & (ids < self.first_done)
        ends_step = parts.answering & marked & (within == width - 1)
        steps_before = ends_step.cumsum(dim=1, dtype=torch.int32) - ends_step.int()
        ended = torch.nn.functional.pad(ends_step, (2, 0))[:, : ids.shape[1]]
        begins_step = ((rows_before == 0) | ended) & (steps_before < num_steps)
        return _Work(within - 1, rows_before + 1, steps_before + 1, begins_step, num_steps)

    def read(self, ids_BT: Tensor) -> list[str | None]:
        """The answers of whole lines in the usual notation; None where one is malformed.

        Strict: rows of the right width that say what a division does next in that situation, until
        every digit is brought down and nothing is below 0, and an end token. Whether the rows are
        right does not matter.
        """
        return [self._read(row) for row in ids_BT.tolist()]

    def target_lengths(self, problems: Problems) -> Tensor:
        """int64 (B,): tokens behind `=`, at most: every step may have ten rows."""
        dividend, divisor = problems.lengths_BN[:, 0], problems.lengths_BN[:, 1]
        rows = _MOST_ROWS * (dividend - divisor + 1).clamp(min=1) + 1
        return rows * (divisor + _EXTRA) + 3

    # Writing -------------------------------------------------------------------------------

    def _target_piece(self, problems: Problems, answer: Answer) -> Piece:
        """All rows of all problems, and end tokens behind the shorter ones.

        Those of one divisor length have one width and are done together.
        """
        lengths = problems.lengths_BN[:, 1]
        parts = []
        for length in torch.unique(lengths).tolist():
            chosen = (lengths == length).nonzero().squeeze(1)
            parts.append((chosen, self._rows(problems[chosen], length)))
        widest = max((part.shape[1] for _, part in parts), default=0)
        ids = problems.digits_BNW.new_full((len(problems), widest), self.end_id)
        for chosen, part in parts:
            ids[chosen, : part.shape[1]] = part
        written = (ids != self.end_id).sum(dim=1)
        return Piece(ids[:, : int(written.max()) if len(written) else 0], written)

    def _rows(self, problems: Problems, divisor_length: int) -> Tensor:
        """The rows of problems whose divisors have equally many digits.

        uint8 (B, tokens of the longest), with end tokens behind the shorter ones.
        """
        a, b = problems.operand(0).digits_BW, problems.operand(1).digits_BW[:, :divisor_length]
        device, batch, width = a.device, len(problems), divisor_length + 1
        dividend_length = int(problems.lengths_BN[:, 0].max())
        division = digits.divide(a[:, :dividend_length], b)
        # Longer dividends have more steps; those of shorter ones come last. One more step brings
        # back a remainder below 0.
        num_steps = (problems.lengths_BN[:, 0] - divisor_length + 1).clamp(min=1).unsqueeze(1)
        steps = len(division.quotient_SB)
        step = torch.arange(steps + 1, device=device) - (steps - num_steps)
        adds = (step % 2 == 1).int()
        last = division.quotient_SB[-1:]
        quotient = torch.cat([division.quotient_SB, last]).t().int()
        rows_in_step = torch.where(adds == 1, 10 - quotient, quotient + 1) * (step >= 0)
        rows_in_step[:, -1] = adds[:, -1]
        ordinal = torch.arange(_MOST_ROWS, device=device)
        written = ordinal < rows_in_step.unsqueeze(2)
        problem, at, times = written.nonzero().unbind(dim=1)
        adding, goes_in = adds[problem, at], quotient[problem, at]
        count = torch.where(adding == 1, 9 - times, times)
        # Before the row, the divisor has been taken away so many times from what was brought down.
        taken = torch.where(at == steps, goes_in + 1, count + adding)
        brought_down = division.brought_down_SBW[at.clamp(max=steps - 1), problem]
        multiples = division.multiples[taken.long(), problem]
        before, _ = digits.subtract_modulo(brought_down, multiples)
        divisor = torch.nn.functional.pad(b, (0, 1)).int()[problem]
        rows = self._added(before.int(), divisor, 2 * adding - 1)
        says_what = (self.first_done + 10 * adding + count).to(torch.uint8).unsqueeze(1)
        rows = torch.cat([says_what, torch.full_like(says_what, self.colon_id), rows], dim=1)

        per_problem = written.sum(dim=(1, 2))
        first = per_problem.cumsum(0) - per_problem
        most = int(per_problem.max()) if batch else 0
        ids = rows.new_full((batch, most + 1, width + 2), self.end_id)
        number = torch.arange(len(rows), device=device) - first[problem]
        ids[problem, number] = rows
        everyone = torch.arange(batch, device=device)
        ids[everyone, per_problem, 0] = self.first_done
        ids[everyone, per_problem, 1] = self.colon_id
        return ids.flatten(1)

    def _added(self, before_RX: Tensor, divisor_RX: Tensor, sign_R: Tensor) -> Tensor:
        """Digits with marks: the divisor added where the sign is 1 and subtracted where it is -1."""
        before, divisor = before_RX.t().contiguous(), divisor_RX.t().contiguous()
        tokens = torch.empty(before.shape, dtype=torch.uint8, device=before.device)
        flow = torch.zeros_like(sign_R)
        for column in range(len(before)):
            total = before[column] + sign_R * (divisor[column] + flow)
            flow = ((total < 0) | (total > 9)).int()
            tokens[column] = total - 10 * sign_R * flow + self.first_marked * flow
        return tokens.t()

    # Reading -------------------------------------------------------------------------------

    def _read(self, ids: list[int]) -> str | None:
        if self.equals_id not in ids or self.end_id not in ids:
            return None
        equals_at = ids.index(self.equals_id)
        operator_at = next((i for i, t in enumerate(ids[:equals_at]) if t in self.operator_ids), 0)
        divisor_length = equals_at - operator_at - 1
        begin = 0 if self.start_id is None else 1
        num_steps = max(1, operator_at - begin - divisor_length + 1)
        tokens = ids[equals_at + 1 :]
        if divisor_length < 1 or self.end_id not in tokens:
            return None
        tokens = tokens[: tokens.index(self.end_id)]
        width = divisor_length + _EXTRA
        quotient: list[int] = []
        remainder: list[int] = []
        adds, count = False, 0
        while adds or len(quotient) < num_steps:
            row, tokens = tokens[:width], tokens[width:]
            says_what = self.first_done + 10 * adds + count
            if count not in range(10) or row[:2] != [says_what, self.colon_id]:
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
        if ids[operator_at] == self.remainder_id:
            return _number(remainder[::-1])
        return _number(quotient[:num_steps])


def _number(digits_from_top: list[int]) -> str:
    return "".join(map(str, digits_from_top)).lstrip("0") or "0"
