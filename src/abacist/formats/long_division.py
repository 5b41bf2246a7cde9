"""Long division with every subtraction written out: `7//3` is `7//3=70:040+110+289-2<end>`.

Operands are written in the usual order. Behind `=` come rows of one width, one digit wider than
the divisor and least significant digit first:

    70:0     what is left of the digits brought down so far: 07, subtracted 0 times
    40+1     less the divisor: 04, subtracted once
    10+2     01, twice
    89-2     one too many: 98 is the ten's complement of -2, so the quotient's digit is 2

Then the next digit is brought down: it goes before the last row that was not below 0, two rows
above. Each digit of a row needs its own column and the one before, of the row above and of the
divisor; each sign needs what the row's last column borrows; each count the count above. Nothing
has to be guessed or looked up from afar, which is what lets a small window do it for any length.

The digits of the quotient, from the top, are the counts behind `-`. For `%` the rows are followed
by the remainder, as wide as the divisor.

Coordinates: digits of a row have their column as place; sign and count stand in every column.
`row` counts the rows, `step` the digits brought down. The divisor stands in every row and step; a
digit of the dividend stands where it will be brought down: the leading ones in the columns of step
1, the k-th next in column 1 of step k + 1.
"""

import torch
from torch import Tensor

from abacist.formats.annotated import ANCHOR, EVERYWHERE, AnnotatedTokens, Field
from abacist.formats.config import Layout, LongDivisionFormatConfig
from abacist.formats.lines import Piece, constant, join, without_targets
from abacist.tasks import digits
from abacist.tasks.config import ArithmeticConfig, TaskConfig
from abacist.tasks.problems import OPERATIONS, Answer, Problems
from abacist.vocabulary import DIGITS, Vocabulary

_EXTRA = 3
"""A row is wider than the divisor by one digit, the sign and the count."""


class LongDivisionFormat:
    """Writes, annotates and reads divisions."""

    layout: Layout = "free"

    def __init__(self, config: LongDivisionFormatConfig, task: TaskConfig) -> None:
        assert isinstance(task, ArithmeticConfig)
        self.config = config
        start = ("<start>",) if config.start_token else ()
        operations = task.operations
        self.vocabulary = Vocabulary((*DIGITS, *operations, "=", ":", "+", "-", "<end>", *start))
        self.equals_id, self.end_id = self.vocabulary.id("="), self.vocabulary.id("<end>")
        self.start_id = self.vocabulary.id("<start>") if config.start_token else None
        self.operator_ids = [self.vocabulary.id(symbol) for symbol in operations]
        self.remainder_id = self.vocabulary.id("%") if "%" in operations else None
        self.brought_down_id, self.fits_id = self.vocabulary.id(":"), self.vocabulary.id("+")
        self.below_id = self.vocabulary.id("-")
        self._operator_of = torch.zeros(len(OPERATIONS), dtype=torch.uint8)
        for operation, token in zip(operations, self.operator_ids, strict=True):
            self._operator_of[OPERATIONS.index(operation)] = token

    def write(
        self, problems: Problems, answer: Answer, generator: torch.Generator | None = None
    ) -> AnnotatedTokens:
        """Whole lines, padded on the right with end tokens."""
        pieces = [*self._prompt_pieces(problems), self._work(problems)]
        lines = torch.nn.functional.pad(join(pieces, self.end_id), (0, 1), value=self.end_id)
        return self.annotate(lines)

    def prompt(
        self, problems: Problems, generator: torch.Generator | None = None
    ) -> AnnotatedTokens:
        """Lines up to and including `=`; whatever follows in the shorter ones is padding."""
        return without_targets(self.annotate(join(self._prompt_pieces(problems), self.end_id)))

    def annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        """Place, row, step, field and target of every token, from the ids alone.

        What stands behind `=` is annotated from the prompt and the tokens before it, never from
        later ones. Lines of one shape have their rows in the same places and are done together.
        """
        batch, length = ids_BT.shape
        begin = 0 if self.start_id is None else 1
        is_operator = torch.zeros_like(ids_BT, dtype=torch.bool)
        for operator in self.operator_ids:
            is_operator |= ids_BT == operator
        operator_at = is_operator.to(torch.uint8).argmax(dim=1)
        equals_at = (ids_BT == self.equals_id).to(torch.uint8).argmax(dim=1)
        shapes = torch.unique(torch.stack([operator_at, equals_at], dim=1), dim=0).tolist()
        if len(shapes) == 1:
            return self._annotate(ids_BT, shapes[0][0] - begin, shapes[0][1] - shapes[0][0] - 1)
        new = {
            name: torch.empty(batch, length, dtype=torch.int32, device=ids_BT.device)
            for name in ("ids", "place", "field", "row", "step")
        }
        target = torch.empty(batch, length, dtype=torch.bool, device=ids_BT.device)
        for operator_column, equals_column in shapes:
            rows = ((operator_at == operator_column) & (equals_at == equals_column)).nonzero()
            rows = rows.squeeze(1)
            part = self._annotate(
                ids_BT[rows], operator_column - begin, equals_column - operator_column - 1
            )
            for name, tensor in new.items():
                tensor[rows] = getattr(part, name)
            target[rows] = part.target
        return AnnotatedTokens(target=target, **new)

    def read(self, ids_BT: Tensor) -> list[str | None]:
        """The answers of whole lines in the usual notation; None where one is malformed.

        Strict: rows of the right width, each with a sign and a count, in an order that a division
        can have, for each digit brought down; for `%` as many digits as the divisor; an end token.
        Whether the rows are right does not matter.
        """
        return [self._read(row) for row in ids_BT.tolist()]

    def target_lengths(self, problems: Problems) -> Tensor:
        """int64 (B,): tokens behind `=`, at most: every digit of the quotient may be 9."""
        dividend, divisor = problems.lengths_BN[:, 0], problems.lengths_BN[:, 1]
        rows = 11 * (dividend - divisor + 1).clamp(min=1)
        return rows * (divisor + _EXTRA) + divisor + 1

    def token_id(self, field: int) -> int | None:
        """The id of the one token a field holds, or None for a field that holds several."""
        operator = self.operator_ids[0] if len(self.operator_ids) == 1 else None
        return {
            int(Field.START): self.start_id,
            int(Field.OPERATOR): operator,
            int(Field.EQUALS): self.equals_id,
        }.get(field)

    # Writing -------------------------------------------------------------------------------

    def _prompt_pieces(self, problems: Problems) -> list[Piece]:
        batch, device = len(problems), problems.digits_BNW.device
        pieces = [] if self.start_id is None else [constant(self.start_id, batch, device)]
        a, b = (Piece(n.digits_BW, n.lengths_B, True) for n in map(problems.operand, range(2)))
        operator = Piece(self._operator_of.to(device)[problems.operation_B.long()].unsqueeze(1))
        return [*pieces, a, operator, b, constant(self.equals_id, batch, device)]

    def _work(self, problems: Problems) -> Piece:
        """All rows of all problems. Those of one divisor length have one width and are done together."""
        lengths = problems.lengths_BN[:, 1]
        divisor_lengths = torch.unique(lengths).tolist()
        if len(divisor_lengths) == 1:
            return self._rows(problems, divisor_lengths[0])
        parts = []
        for length in divisor_lengths:
            chosen = (lengths == length).nonzero().squeeze(1)
            parts.append((chosen, self._rows(problems[chosen], length)))
        widest = max(part.ids_BW.shape[1] for _, part in parts)
        ids = problems.digits_BNW.new_zeros(len(problems), widest)
        widths = torch.zeros_like(lengths)
        for chosen, part in parts:
            ids[chosen, : part.ids_BW.shape[1]] = part.ids_BW
            assert part.widths_B is not None
            widths[chosen] = part.widths_B
        return Piece(ids, widths)

    def _rows(self, problems: Problems, divisor_length: int) -> Piece:
        """The rows of problems whose divisors have equally many digits, and remainders where asked."""
        a, b = problems.operand(0).digits_BW, problems.operand(1).digits_BW[:, :divisor_length]
        width, dividend_length = divisor_length + 1, int(problems.lengths_BN[:, 0].max())
        division = digits.divide(a[:, :dividend_length], b)
        batch, steps = len(problems), dividend_length
        # The columns above the divisor's top one bring down the leading digits only.
        num_steps = (problems.lengths_BN[:, 0] - divisor_length + 1).clamp(min=1)
        begins = steps - num_steps
        quotient = division.quotient_SB.t()
        counts = torch.arange(11, dtype=torch.uint8, device=a.device)
        written = counts <= (quotient + 1).unsqueeze(2)
        written &= (torch.arange(steps, device=a.device) >= begins.unsqueeze(1)).unsqueeze(2)
        # Row r of the batch: subtract its divisor `count` times from what step `step` brought down.
        problem_step, count = written.reshape(batch * steps, 11).nonzero().unbind(dim=1)
        problem = torch.div(problem_step, steps, rounding_mode="floor")
        brought_down = division.brought_down_SBX.transpose(0, 1).reshape(-1, width)
        multiples = digits.multiples(b, 11).transpose(0, 1).reshape(-1, width)
        rows, _ = digits.subtract_modulo(
            brought_down.index_select(0, problem_step),
            multiples.index_select(0, problem * 11 + count),
        )
        goes_in = quotient.reshape(-1).index_select(0, problem_step)
        below = count > goes_in
        sign = torch.where(below, self.below_id, self.fits_id)
        sign = torch.where(count == 0, self.brought_down_id, sign)
        marks = torch.stack([sign, count - below.long()], dim=1).to(torch.uint8)
        rows = torch.cat([rows, marks], dim=1)

        per_problem = written.sum(dim=(1, 2))
        first = per_problem.cumsum(0) - per_problem
        most = int(per_problem.max()) if batch else 0
        is_remainder = problems.operation_B == OPERATIONS.index("%")
        extra = int(bool(is_remainder.any()))
        ids = rows.new_zeros(batch, most + extra, width + 2)
        ordinal = torch.arange(len(rows), device=a.device) - first.index_select(0, problem)
        ids.view(-1, width + 2)[problem * (most + extra) + ordinal] = rows
        widths = per_problem * (width + 2)
        if extra:
            chosen = is_remainder.nonzero().squeeze(1)
            ids[chosen, per_problem[chosen], :divisor_length] = division.remainder_BW[chosen]
            widths = widths + is_remainder * divisor_length
        return Piece(ids.flatten(1), widths)

    # Annotating ----------------------------------------------------------------------------

    def _annotate(
        self, ids_BT: Tensor, dividend_length: int, divisor_length: int
    ) -> AnnotatedTokens:
        """Lines of one shape; nonsense for lines without an operator and `=`, but no error."""
        batch, length = ids_BT.shape
        device = ids_BT.device
        place, row, step, field = self._prompt_template(dividend_length, divisor_length)
        head = min(len(place), length)
        width = divisor_length + _EXTRA
        num_rows = max(0, -(-(length - head) // width))
        num_steps = max(1, dividend_length - divisor_length + 1)
        columns = [*range(1, divisor_length + 2), EVERYWHERE, EVERYWHERE]
        place = [*place[:head], *columns * num_rows][:length]
        rows = [r for r in range(1, num_rows + 1) for _ in range(width)]
        row = [*row[:head], *rows][:length]

        # The rows, a matrix each: what their signs are says how many steps were done before.
        missing = head + num_rows * width - length
        work = torch.nn.functional.pad(ids_BT[:, head:], (0, missing), value=self.end_id)
        work = work.reshape(batch, num_rows, width)
        ends_step = work[:, :, divisor_length + 1] == self.below_id
        done = ends_step.cumsum(dim=1, dtype=torch.int32)
        done_before = done - ends_step.int()
        step_of_row = 1 + done_before
        field_of_row = torch.full_like(step_of_row, int(Field.SCRATCH))
        field_of_row.masked_fill_(done_before >= num_steps, int(Field.ANSWER))
        work_field = field_of_row.unsqueeze(2).expand(-1, -1, width).contiguous()
        if len(self.operator_ids) == 2 or self.remainder_id is None:
            operator_column = head - divisor_length - 2
            divides = ids_BT[:, operator_column : operator_column + 1] != (self.remainder_id or -1)
            work_field[:, :, -1].masked_fill_(ends_step & divides, int(Field.ANSWER))

        def line(prompt: list[int], work_BRW: Tensor) -> Tensor:
            prompts = torch.tensor(prompt[:head], dtype=torch.int32, device=device)
            whole = torch.cat([prompts.expand(batch, head), work_BRW.flatten(1)], dim=1)
            return whole[:, :length]

        fields = line(field, work_field)
        is_end = ids_BT == self.end_id
        ended = is_end.any(dim=1)
        end_at = torch.where(ended, is_end.to(torch.uint8).argmax(dim=1), length)
        index = torch.arange(length, device=device)
        padding = index > end_at.unsqueeze(1)
        return AnnotatedTokens(
            ids=ids_BT.int(),
            place=torch.tensor(place, dtype=torch.int32, device=device).expand(batch, length),
            field=fields.masked_fill_(padding, int(Field.PADDING)),
            target=(index >= head) & ~padding,
            row=torch.tensor(row, dtype=torch.int32, device=device).expand(batch, length),
            step=line(step, step_of_row.unsqueeze(2).expand(-1, -1, width)),
        )

    def _prompt_template(self, dividend_length: int, divisor_length: int) -> list[list[int]]:
        """Place, row, step and field of the tokens up to and including `=`."""
        leading = min(dividend_length, divisor_length)
        rest = dividend_length - leading
        tokens: list[tuple[int, int, int, int]] = []
        if self.start_id is not None:
            tokens += [(EVERYWHERE, EVERYWHERE, EVERYWHERE, int(Field.START))]
        first, second = int(Field.OPERAND), int(Field.OPERAND) + 1
        tokens += [(column, EVERYWHERE, 1, first) for column in range(leading, 0, -1)]
        tokens += [(1, EVERYWHERE, step, first) for step in range(2, rest + 2)]
        tokens += [(EVERYWHERE, EVERYWHERE, EVERYWHERE, int(Field.OPERATOR))]
        columns = range(divisor_length, 0, -1)
        tokens += [(column, EVERYWHERE, EVERYWHERE, second) for column in columns]
        tokens += [(ANCHOR, ANCHOR, ANCHOR, int(Field.EQUALS))]
        return [[token[i] for token in tokens] for i in range(4)]

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
        tokens = tokens[: tokens.index(self.end_id)] if self.end_id in tokens else [-1]
        width = divisor_length + _EXTRA
        quotient: list[int] = []
        begins_step, count = True, 0
        while len(quotient) < num_steps:
            row, tokens = tokens[:width], tokens[width:]
            if len(row) < width or any(t >= 10 for t in (*row[:-2], row[-1])):
                return None
            sign, wanted = row[-2], count
            if begins_step:
                expected, wanted = (self.brought_down_id,), 0
            else:
                expected = (self.fits_id, self.below_id)
                wanted = count + (sign == self.fits_id)
            if sign not in expected or row[-1] != wanted:
                return None
            begins_step, count = sign == self.below_id, wanted
            if begins_step:
                quotient.append(count)
        if ids[operator_at] != self.remainder_id:
            return None if tokens else _number(quotient)
        if len(tokens) != divisor_length or any(token >= 10 for token in tokens):
            return None
        return _number(tokens[::-1])


def _number(digits_from_top: list[int]) -> str:
    return "".join(map(str, digits_from_top)).lstrip("0") or "0"
