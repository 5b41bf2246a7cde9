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

from dataclasses import fields

import torch
from torch import Tensor

from abacist.formats.annotated import ANCHOR, EVERYWHERE, AnnotatedTokens, Field
from abacist.formats.calculation import CalculationFormat
from abacist.formats.config import Layout, LongDivisionFormatConfig
from abacist.formats.lines import Piece, equals
from abacist.tasks import digits
from abacist.tasks.config import ArithmeticConfig, TaskConfig
from abacist.tasks.problems import OPERATIONS, Answer, Problems
from abacist.vocabulary import DIGITS, Vocabulary

_EXTRA = 3
"""A row is wider than the divisor by one digit, the sign and the count."""


class LongDivisionFormat(CalculationFormat):
    """Writes, annotates and reads divisions."""

    layout: Layout = "free"
    usual_order = True

    def __init__(self, config: LongDivisionFormatConfig, task: TaskConfig) -> None:
        assert isinstance(task, ArithmeticConfig)
        self.config = config
        start = ("<start>",) if config.start_token else ()
        operations = task.operations
        vocabulary = Vocabulary((*DIGITS, *operations, "=", ":", "+", "-", "<end>", *start))
        super().__init__(vocabulary, operations, config.start_token)
        self.remainder_id = self.vocabulary.id("%") if "%" in operations else None
        self.brought_down_id = self.vocabulary.id(":")
        self.fits_id, self.below_id = self.brought_down_id + 1, self.brought_down_id + 2

    def annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        """Place, row, step, field and target of every token, from the ids alone.

        What stands behind `=` is annotated from the prompt and the tokens before it, never from
        later ones. Lines of one shape have their rows in the same places and are done together.
        """
        shapes, which = self._shapes(ids_BT)
        if len(shapes) == 1:
            return self._annotate(ids_BT, *shapes[0])
        batch, length = ids_BT.shape
        new: dict[str, Tensor] = {}
        for number, (dividend_length, divisor_length) in enumerate(shapes):
            rows = (which == number).nonzero().squeeze(1)
            part = self._annotate(ids_BT[rows], dividend_length, divisor_length)
            for field in fields(part):
                tensor = getattr(part, field.name)
                if tensor is not None:
                    empty = tensor.new_empty(batch, length)
                    new.setdefault(field.name, empty)[rows] = tensor
        return AnnotatedTokens(**new)

    def _shapes(self, ids_BT: Tensor) -> tuple[list[tuple[int, int]], Tensor]:
        """The different lengths of dividend and divisor, and which of them each line has."""
        begin = 0 if self.start_id is None else 1

        def find(line: list[int]) -> tuple[int, int]:
            operator_at = next((i for i, token in enumerate(line) if token in self.operator_ids), 0)
            equals_at = line.index(self.equals_id) if self.equals_id in line else len(line)
            return operator_at, equals_at

        operator_at, equals_at = find(ids_BT[0].tolist()) if len(ids_BT) else (begin, begin + 1)
        if equals_at < ids_BT.shape[1]:
            # Mostly all lines have one shape, which is seen without looking through them.
            marks = ids_BT[:, [operator_at, equals_at]]
            divides = marks[:, 0] == self.operator_ids[0]
            for operator in self.operator_ids[1:]:
                divides = divides | (marks[:, 0] == operator)
            if bool((divides & (marks[:, 1] == self.equals_id)).all()):
                return [(operator_at - begin, equals_at - operator_at - 1)], marks[:, 0]
        is_operator = torch.zeros_like(ids_BT, dtype=torch.bool)
        for operator in self.operator_ids:
            is_operator |= ids_BT == operator
        operators = is_operator.to(torch.uint8).argmax(dim=1)
        equals = (ids_BT == self.equals_id).to(torch.uint8).argmax(dim=1)
        code = operators * ids_BT.shape[1] + equals
        found, which = torch.unique(code, return_inverse=True)
        pairs = [divmod(value, ids_BT.shape[1]) for value in found.tolist()]
        return [(at - begin, equal - at - 1) for at, equal in pairs], which

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

    # Writing -------------------------------------------------------------------------------

    def _target_piece(self, problems: Problems, answer: Answer) -> Piece:
        """All rows of all problems, and end tokens behind the shorter ones.

        Those of one divisor length have one width and are done together.
        """
        lengths = problems.lengths_BN[:, 1]
        divisor_lengths = torch.unique(lengths).tolist()
        if len(divisor_lengths) == 1:
            return Piece(self._rows(problems, divisor_lengths[0]))
        parts = []
        for length in divisor_lengths:
            chosen = (lengths == length).nonzero().squeeze(1)
            parts.append((chosen, self._rows(problems[chosen], length)))
        widest = max((part.shape[1] for _, part in parts), default=0)
        ids = problems.digits_BNW.new_full((len(problems), widest), self.end_id)
        for chosen, part in parts:
            ids[chosen, : part.shape[1]] = part
        return Piece(ids)

    def _rows(self, problems: Problems, divisor_length: int) -> Tensor:
        """The rows of problems whose divisors have equally many digits, and remainders where asked.

        uint8 (B, tokens of the longest), with end tokens behind the shorter ones.
        """
        a, b = problems.operand(0).digits_BW, problems.operand(1).digits_BW[:, :divisor_length]
        width, dividend_length = divisor_length + 1, int(problems.lengths_BN[:, 0].max())
        division = digits.divide(a[:, :dividend_length], b)
        batch, steps = len(problems), len(division.quotient_SB)
        # Longer dividends have more steps; those of shorter ones come last.
        num_steps = (problems.lengths_BN[:, 0] - divisor_length + 1).clamp(min=1)
        begins = steps - num_steps
        quotient = division.quotient_SB.t()
        counts = torch.arange(11, dtype=torch.uint8, device=a.device)
        written = counts <= (quotient + 1).unsqueeze(2)
        written &= (torch.arange(steps, device=a.device) >= begins.unsqueeze(1)).unsqueeze(2)
        # Row r of the batch: subtract its divisor `count` times from what step `step` brought down.
        problem_step, count = written.reshape(batch * steps, 11).nonzero().unbind(dim=1)
        problem = torch.div(problem_step, steps, rounding_mode="floor")
        brought_down = division.brought_down_SBW.transpose(0, 1).reshape(-1, width)
        multiples = division.multiples.transpose(0, 1).reshape(-1, width)
        rows, _ = digits.subtract_modulo(
            brought_down.index_select(0, problem_step),
            multiples.index_select(0, problem * 11 + count),
        )
        goes_in = quotient.reshape(-1).index_select(0, problem_step)
        times = count.to(torch.uint8)
        below = torch.gt(times, goes_in, out=torch.empty_like(times))
        # The three signs follow each other in the vocabulary.
        sign = self.brought_down_id + times.clamp(max=1) + below
        rows = torch.cat([rows, sign.unsqueeze(1), (times - below).unsqueeze(1)], dim=1)

        per_problem = written.sum(dim=(1, 2))
        first = per_problem.cumsum(0) - per_problem
        most = int(per_problem.max()) if batch else 0
        is_remainder = problems.operation_B == OPERATIONS.index("%")
        extra = int(bool(is_remainder.any()))
        ids = rows.new_full((batch, most + extra, width + 2), self.end_id)
        ordinal = torch.arange(len(rows), device=a.device) - first.index_select(0, problem)
        ids.view(-1, width + 2).index_copy_(0, problem * (most + extra) + ordinal, rows)
        if extra:
            chosen = is_remainder.nonzero().squeeze(1)
            ids[chosen, per_problem[chosen], :divisor_length] = division.remainder_BW[chosen]
        return ids.flatten(1)

    # Annotating ----------------------------------------------------------------------------

    def _annotate(
        self, ids_BT: Tensor, dividend_length: int, divisor_length: int
    ) -> AnnotatedTokens:
        """Lines of one shape; nonsense for lines without an operator and `=`, but no error."""
        dividend_length, divisor_length = max(0, dividend_length), max(0, divisor_length)
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
        whole = head + num_rows * width
        padded = torch.nn.functional.pad(ids_BT, (0, whole - length), value=self.end_id)
        work = padded[:, head:].view(batch, num_rows, width)
        ends_step = work[:, :, divisor_length + 1] == self.below_id
        done_before = ends_step.cumsum(dim=1, dtype=torch.int32) - ends_step.int()
        steps = self._copied(
            torch.arange(1, num_rows + 2, dtype=torch.int32, device=device).unsqueeze(1),
            done_before,
            torch.tensor(step[:head], dtype=torch.int32, device=device),
            width,
        )
        # The counts behind `-` are the quotient's digits, where that is asked; what stands behind
        # all steps is the remainder, where that is, and the end token.
        operator_at = min(max(0, len(field) - divisor_length - 2), length - 1)
        operator = ids_BT[:, operator_at].unsqueeze(1)
        divides = torch.ones_like(operator, dtype=torch.bool)
        if self.remainder_id is not None:
            divides = operator != self.remainder_id
        kind = (ends_step & divides).to(torch.uint8)
        kind.masked_fill_(done_before >= num_steps, 2)
        kinds = torch.full((3, width), int(Field.SCRATCH), dtype=torch.uint8, device=device)
        kinds[1, -1] = int(Field.ANSWER)
        kinds[2] = int(Field.ANSWER)
        fields = self._copied(
            kinds, kind, torch.tensor(field[:head], dtype=torch.uint8, device=device), width
        )[:, :length]
        is_end = equals(ids_BT, self.end_id).view(torch.uint8)
        # 0 before the first end token, 1 on it, more behind it, where a byte must not overflow.
        ends = is_end.cumsum(dim=1, dtype=torch.int32)
        is_padding = torch.gt(ends, is_end, out=torch.empty_like(is_end))
        target = 1 - is_padding
        fields = fields * target
        target[:, :head] = 0
        return AnnotatedTokens(
            ids=ids_BT.int(),
            place=torch.tensor(place, dtype=torch.int32, device=device).expand(batch, length),
            field=fields,
            target=target.view(torch.bool),
            row=torch.tensor(row, dtype=torch.int32, device=device).expand(batch, length),
            step=steps[:, :length],
        )

    @staticmethod
    def _copied(table_KR: Tensor, choice_BN: Tensor, head: Tensor, width: int) -> Tensor:
        """Lines of a head and N rows of a table each: (B, head + N × width)."""
        batch, num_rows = choice_BN.shape
        table = table_KR.expand(-1, width).contiguous()
        rows = table.index_select(0, choice_BN.flatten().int()).view(batch, num_rows * width)
        return torch.cat([head.expand(batch, -1), rows], dim=1)

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
            sign = row[-2]
            signs = (self.brought_down_id,) if begins_step else (self.fits_id, self.below_id)
            count = 0 if begins_step else count + (sign == self.fits_id)
            if sign not in signs or row[-1] != count:
                return None
            begins_step = sign == self.below_id
            if begins_step:
                quotient.append(count)
        if ids[operator_at] != self.remainder_id:
            return None if tokens else _number(quotient)
        if len(tokens) != divisor_length or any(token >= 10 for token in tokens):
            return None
        return _number(tokens[::-1])


def _number(digits_from_top: list[int]) -> str:
    return "".join(map(str, digits_from_top)).lstrip("0") or "0"
