"""Five operations in one notation, each worked on paper so that every token follows from near ones.

Operands are written in the usual order, all that follows least significant digit first:

    97+8=501              column by column; the carry shows in the digit just written
    45-123=229-           likewise, modulo a power of ten; the sign comes last: 922 is 78 too few
    23*45=⁰[15]5¹[10]1¹1⁰[12]3¹[8]0¹1
    97//8=90¹.10².39-1:71¹.90².10³.39-2
    97%8=90¹.10².39-1:71¹.90².10³.39-2;1

**Products** have a row for each digit of the second operand, and in it a cell for each digit of the
first: the carry that comes in, the product of the two digits, the digit written down. To that is
added the row above without its first digit. A row ends in its last carry, written as a digit. The
first digits of all rows, then the rest of the last row, are the answer: 1035.

**Divisions** subtract as often as possible. `90` are the leading digits of the dividend, as many as
the divisor has and a zero; `¹.10` less the divisor once; `².39` less it twice, which is below 0 as
the 9 on top shows; so `-1`, the quotient's digit. `:71` is what was left, 1, with the next digit
of the dividend brought down. The quotient is read behind the minuses; for `%` the last rest is
written once more, behind `;`.

Coordinates bring together what belongs together: a token at place p sees, in windows of places
(0, 1), rows (-2, 1) and steps (-1, 0), all that the next token follows from.

* Digits, and the cells of a product, stand at the place of their column; `=`, `.`, `:` and `;` at
  place 0 before the first. Counts, minuses and digits of the quotient stand in every place.
* Rows count what is written under each other. The answer of a sum or difference stands under the
  first operand, as the rest of a division stands under what was left before; so all of them see the
  row above, and the number that is added or subtracted, which stands in every row. So does the
  first operand of a product; the digits of its second stand in the row they make, in every place.
* Steps count the digits of the dividend brought down: its leading ones stand in step 1, each
  further one in its own, in every place. All else stands in every step.
"""

import torch
from torch import Tensor

from abacist.formats.annotated import ANCHOR, EVERYWHERE, AnnotatedTokens, Field
from abacist.formats.calculation import CalculationFormat
from abacist.formats.config import Layout, WorkedFormatConfig
from abacist.formats.lines import Piece, once_per_pattern
from abacist.tasks import digits
from abacist.tasks.config import ArithmeticConfig, TaskConfig
from abacist.tasks.problems import OPERATIONS, Answer, Numbers, Problems
from abacist.vocabulary import DIGITS, Vocabulary

SMALL = ("⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹", "¹⁰")
"""Carries, and how often a divisor was subtracted."""
PRODUCTS = tuple(sorted({a * b for a in range(10) for b in range(10)}))
"""What two digits can have as their product: 37 numbers."""

_CELL = 3
"""Tokens of a cell: carry, product, digit."""
_TIMES = 10
"""A divisor is subtracted so often at most before the rest is below 0."""


class WorkedFormat(CalculationFormat):
    """Writes, annotates and reads calculations of two numbers, with the work of each operation."""

    layout: Layout = "free"
    usual_order = True

    def __init__(self, config: WorkedFormatConfig, task: TaskConfig) -> None:
        assert isinstance(task, ArithmeticConfig)
        self.config = config
        start = ("<start>",) if config.start_token else ()
        symbols = dict.fromkeys((*task.operations, "-", "=", ".", ":", ";", "<end>", *start))
        # What is only written as work comes last, so that one comparison makes it all alike.
        products = tuple(f"[{product}]" for product in PRODUCTS)
        vocabulary = Vocabulary((*DIGITS, *symbols, *SMALL, *products))
        super().__init__(vocabulary, task.operations, config.start_token)
        self._minus, self._point = self.vocabulary.id("-"), self.vocabulary.id(".")
        self._colon, self._rest = self.vocabulary.id(":"), self.vocabulary.id(";")
        self._first_small = self.vocabulary.id(SMALL[0])
        first_product = self.vocabulary.id(products[0])
        self._product_ids = torch.zeros(PRODUCTS[-1] + 1, dtype=torch.uint8)
        for rank, product in enumerate(PRODUCTS):
            self._product_ids[product] = first_product + rank

    def annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        """Place, row, step, field and target of every token, from the ids alone.

        What stands behind `=` is annotated from the prompt and the tokens before it.
        """
        lines = once_per_pattern(ids_BT.clamp(max=self._first_small), self._annotate)
        return AnnotatedTokens(
            ids_BT.int(), lines.place, lines.field, lines.target, lines.row, lines.step
        )

    def read(self, ids_BT: Tensor) -> list[str | None]:
        """The answers of whole lines in the usual notation; None where one is malformed.

        Strict: every token is of a kind that can stand there, up to an end token. Whether the
        work is right does not matter.
        """
        return [self._read(row) for row in ids_BT.tolist()]

    def target_lengths(self, problems: Problems) -> Tensor:
        """int64 (B,): tokens behind `=`, at most: every digit of a quotient may be 9."""
        first, second = problems.lengths_BN[:, 0], problems.lengths_BN[:, 1]
        lengths = torch.maximum(first, second) + 2
        multiplies = _asks(problems, "*")
        lengths = torch.where(multiplies, (_CELL * first + 2) * second + 1, lengths)
        steps = (first - second + 1).clamp(min=1)
        of_step = second + 4 + _TIMES * (second + 3)
        divides = _asks(problems, "//") | _asks(problems, "%")
        return torch.where(divides, steps * of_step + second + 2, lengths)

    # Writing -------------------------------------------------------------------------------

    def _target_piece(self, problems: Problems, answer: Answer) -> Piece:
        assert isinstance(answer, Numbers)
        parts = []
        for operation in self.token_of:
            rows = _asks(problems, operation).nonzero().squeeze(1)
            if not len(rows):
                continue
            part = problems[rows]
            if operation == "+":
                written, widths = answer.digits_BW[rows], answer.lengths_B[rows]
                parts.append((rows, written, widths))
            elif operation == "-":
                parts.append((rows, *self._difference(part)))
            elif operation == "*":
                parts.append((rows, *self._product(part)))
            else:
                lengths = part.lengths_BN[:, 1]
                for length in torch.unique(lengths).tolist():
                    chosen = (lengths == length).nonzero().squeeze(1)
                    parts.append((rows[chosen], *self._division(part[chosen], length)))
        widest = max((written.shape[1] for _, written, _ in parts), default=0)
        ids = problems.digits_BNW.new_full((len(problems), widest), self.end_id)
        widths_B = torch.zeros(len(problems), dtype=torch.int64, device=ids.device)
        for rows, written, widths in parts:
            ids[rows, : written.shape[1]] = written
            widths_B[rows] = widths
        return Piece(ids, widths_B)

    def _difference(self, problems: Problems) -> tuple[Tensor, Tensor]:
        """Digits modulo a power of ten, and a minus behind those that are below 0."""
        a, b = (problems.operand(position).digits_BW for position in range(2))
        written, below = digits.subtract_modulo(a, b)
        longest = problems.lengths_BN.amax(dim=1)
        written = torch.nn.functional.pad(written, (0, 1))
        # Where there is no minus, this column is beyond the width.
        written.scatter_(1, longest.unsqueeze(1), self._minus)
        return written, longest + below

    def _product(self, problems: Problems) -> tuple[Tensor, Tensor]:
        """The cells of all rows."""
        a, b = (problems.operand(position).digits_BW for position in range(2))
        first, second = problems.lengths_BN[:, 0], problems.lengths_BN[:, 1]
        width, num_rows = int(first.max()), int(second.max())
        cells = a.new_zeros(len(a), num_rows, width + 1, _CELL)
        multiplicand = torch.nn.functional.pad(a[:, :width], (0, 1)).int()
        product_ids = self._product_ids.to(a.device)
        above = torch.zeros_like(multiplicand)
        for row in range(num_rows):
            products = multiplicand * b[:, row : row + 1]
            sums, carries = digits.propagate_carries(above + products)
            cells[:, row, 1:, 0] = carries[:, :-1].to(torch.uint8)
            cells[:, row, :, 1] = product_ids[products.long()]
            cells[:, row, :, 2] = sums
            above = torch.nn.functional.pad(sums[:, 1:], (0, 1)).int()
        cells[..., 0] += self._first_small
        # The last cell of a row has no product.
        inside = torch.arange(width + 1, device=a.device) <= first.unsqueeze(1)
        inside = inside.unsqueeze(1) & (
            torch.arange(num_rows, device=a.device) < second.unsqueeze(1)
        ).unsqueeze(2)
        keep = inside.unsqueeze(3).expand(cells.shape).clone()
        keep[:, :, :, 1] &= torch.arange(width + 1, device=a.device) < first.view(-1, 1, 1)
        return self._compact(cells, keep)

    def _division(self, problems: Problems, length: int) -> tuple[Tensor, Tensor]:
        """All steps, for divisors of one length, and the rest where it is asked."""
        a = problems.operand(0).digits_BW[:, : int(problems.lengths_BN[:, 0].max())]
        division = digits.divide(a, problems.operand(1).digits_BW[:, :length])
        steps, batch, width = division.brought_down_SBW.shape
        brought_down = division.brought_down_SBW.transpose(0, 1)
        multiples = division.multiples[1:].transpose(0, 1)
        shape = (batch, steps, _TIMES, width)
        rows, _ = digits.subtract_modulo(
            brought_down.unsqueeze(2).expand(shape).reshape(-1, width),
            multiples.unsqueeze(1).expand(shape).reshape(-1, width),
        )
        # One step: `:`, what is brought down, rows of count, `.` and digits, `-` and the quotient.
        times = torch.arange(1, _TIMES + 1, dtype=torch.uint8, device=a.device)
        work = a.new_full((batch, steps, _TIMES, width + 2), self._point)
        work[..., 0] = times + self._first_small
        work[..., 2:] = rows.view(shape)
        step = a.new_full((batch, steps, 1 + width + _TIMES * (width + 2) + 2), self._colon)
        step[:, :, 1 : 1 + width] = brought_down
        step[:, :, 1 + width : -2] = work.flatten(2)
        step[:, :, -2] = self._minus
        quotient = division.quotient_SB.t()
        step[:, :, -1] = quotient
        # Longer dividends have more steps; those of shorter ones come last.
        begins = steps - (problems.lengths_BN[:, 0] - length + 1).clamp(min=1)
        number = torch.arange(steps, device=a.device)
        keep = (number >= begins.unsqueeze(1)).unsqueeze(2).expand(step.shape).clone()
        keep[:, :, 0] &= number > begins.unsqueeze(1)
        written = (times <= (quotient + 1).unsqueeze(2)).repeat_interleave(width + 2, dim=2)
        keep[:, :, 1 + width : -2] &= written
        rest = a.new_full((batch, 1 + length), self._rest)
        rest[:, 1:] = division.remainder_BW[:, :length]
        asked = _asks(problems, "%").unsqueeze(1).expand(rest.shape)
        return self._compact(
            torch.cat([step.flatten(1), rest], dim=1), torch.cat([keep.flatten(1), asked], dim=1)
        )

    def _compact(self, ids: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
        """What is kept of every line, moved together, and how much that is."""
        ids, keep = ids.flatten(1), keep.flatten(1)
        widths = keep.sum(dim=1)
        widest = int(widths.max()) if len(widths) else 0
        # Column `widest` collects what is left out, and is cut off.
        column = torch.where(keep, keep.cumsum(dim=1) - 1, widest)
        written = ids.new_full((len(ids), widest + 1), self.end_id)
        return written.scatter_(1, column, ids)[:, :widest], widths

    # Annotating ----------------------------------------------------------------------------

    def _annotate(self, ids: Tensor) -> AnnotatedTokens:
        parts = self._parts(ids)
        index, answering = parts.index, parts.answering
        is_operator, is_equals = parts.is_operator, parts.is_equals
        operator_at, equals_at = parts.operator_at, parts.equals_at
        begin = 0 if self.start_id is None else 1
        operator = ids.gather(1, operator_at.long())
        multiplies = operator == self.token_of.get("*", -1)
        takes_rest = operator == self.token_of.get("%", -1)
        divides = takes_rest | (operator == self.token_of.get("//", -1))
        first = (operator_at - begin).clamp(min=0)
        second = (equals_at - operator_at - 1).clamp(min=0)
        is_second = index > operator_at
        everywhere = torch.full_like(ids, EVERYWHERE)

        # The prompt.
        place = torch.where(is_second, equals_at, operator_at) - index
        place.masked_fill_(multiplies & is_second, EVERYWHERE)
        # A sum stands under its first operand; what is added to a row is found in every row.
        row = torch.where(multiplies | divides | is_second, everywhere, 1)
        row = torch.where(multiplies & is_second, equals_at - index, row)
        leading = torch.minimum(first, second)
        from_top = index - begin
        brought_down = divides & ~is_second & (from_top >= leading)
        place = torch.where(divides & ~is_second, place - first + leading, place)
        place.masked_fill_(brought_down, EVERYWHERE)
        step = torch.where(divides & ~is_second, 1, everywhere)
        step = torch.where(brought_down, from_top - leading + 2, step)
        field = torch.where(is_second, Field.OPERAND + 1, int(Field.OPERAND)).to(torch.uint8)
        for tensor, value in ((place, EVERYWHERE), (row, EVERYWHERE), (step, EVERYWHERE)):
            tensor.masked_fill_(is_operator, value)
        place.masked_fill_(is_equals, ANCHOR)
        row = torch.where(is_equals, torch.where(multiplies | divides, 1, 2), row)
        step = torch.where(is_equals & divides, 1, step)
        field.masked_fill_(is_operator, int(Field.OPERATOR))
        field.masked_fill_(is_equals, int(Field.EQUALS))

        # The answer of a sum or difference.
        behind = (index - equals_at).clamp(min=1)
        place = torch.where(answering, behind, place)
        row = torch.where(answering, 2, row)
        field.masked_fill_(answering, int(Field.ANSWER))
        # Cells.
        is_cell = answering & multiplies
        row_width = _CELL * first + 2
        above = torch.div(behind - 1, row_width, rounding_mode="floor")
        within = behind - 1 - above * row_width
        cell = torch.div(within, _CELL, rounding_mode="floor") + 1
        place = torch.where(is_cell, cell, place)
        row = torch.where(is_cell, above + 1, row)
        is_digit = (within % _CELL == _CELL - 1) | (within == row_width - 1)
        is_final = (is_digit & ((cell == 1) | (above + 1 >= second))) | (above >= second)
        field.masked_fill_(is_cell & ~is_final, int(Field.SCRATCH))
        # Divisions.
        is_work = answering & divides
        is_minus = is_work & (ids == self._minus)
        is_count = is_work & (ids >= self._first_small)
        is_rest = is_work & (ids == self._rest)
        is_mark = is_rest | (is_work & ((ids == self._point) | (ids == self._colon)))
        is_quotient = is_work & torch.nn.functional.pad(is_minus[:, :-1], (1, 0))
        marked = torch.where(is_mark | is_equals, index, -1).cummax(dim=1).values
        place = torch.where(is_work, index - marked, place)
        place.masked_fill_(is_minus | is_count | is_quotient, EVERYWHERE)
        rows = (is_minus | is_count).cumsum(dim=1, dtype=torch.int32) + 1
        row = torch.where(is_work, rows, row)
        step = torch.where(is_work, is_minus.cumsum(dim=1, dtype=torch.int32) + 1, step)
        behind_rest = is_rest.cumsum(dim=1, dtype=torch.int32) > is_rest
        is_answer = torch.where(takes_rest, behind_rest, is_quotient)
        field.masked_fill_(is_work & ~is_answer, int(Field.SCRATCH))

        parts.mark_ends(field, place, row, step)
        return AnnotatedTokens(ids.int(), place.int(), field, parts.target, row.int(), step.int())

    # Reading -------------------------------------------------------------------------------

    def _read(self, ids: list[int]) -> str | None:
        if self.equals_id not in ids:
            return None
        begin = 0 if self.start_id is None else 1
        equals_at = ids.index(self.equals_id)
        found = [i for i in range(equals_at) if ids[i] in self.operator_ids]
        tokens = ids[equals_at + 1 :]
        if not found or self.end_id not in tokens:
            return None
        tokens = tokens[: tokens.index(self.end_id)]
        first, second = found[0] - begin, equals_at - found[0] - 1
        operation = self.vocabulary.tokens[ids[found[0]]]
        if operation == "+":
            proper = bool(tokens) and all(map(_is_digit, tokens))
            return self._number(tokens) if proper and _is_unpadded(tokens) else None
        if operation == "-":
            return self._read_difference(tokens, max(first, second))
        if operation == "*":
            return self._read_product(tokens, first, second)
        return self._read_division(tokens, max(1, first - second + 1), second, operation == "%")

    def _read_difference(self, tokens: list[int], width: int) -> str | None:
        below = tokens[width:] == [self._minus]
        tokens = tokens[:-1] if below else tokens
        if len(tokens) != width or not all(map(_is_digit, tokens)):
            return None
        if not below:
            return self._number(tokens)
        magnitude = self._number(_complement(tokens))
        return None if magnitude == "0" else "-" + magnitude

    def _read_product(self, tokens: list[int], first: int, second: int) -> str | None:
        width = _CELL * first + 2
        if second < 1 or len(tokens) != width * second:
            return None
        rows = [tokens[i : i + width] for i in range(0, len(tokens), width)]
        if any("".join(map(self._kind, row)) != "cpd" * first + "cd" for row in rows):
            return None
        written = [[token for token in row if _is_digit(token)] for row in rows]
        return self._number([row[0] for row in written[:-1]] + written[-1])

    def _read_division(
        self, tokens: list[int], num_steps: int, length: int, takes_rest: bool
    ) -> str | None:
        quotient = []
        for step in range(num_steps):
            if step:
                if tokens[:1] != [self._colon]:
                    return None
                tokens = tokens[1:]
            row, tokens = tokens[: length + 1], tokens[length + 1 :]
            times = 0
            while row and len(row) == length + 1 and all(map(_is_digit, row)):
                times += 1
                if times > _TIMES or tokens[:2] != [self._first_small + times, self._point]:
                    break
                row, tokens = tokens[2 : length + 3], tokens[length + 3 :]
            if tokens[:1] != [self._minus] or not 2 <= times <= _TIMES + 1:
                return None
            if len(row) != length + 1 or tokens[1:2] != [times - 2]:
                return None
            quotient.append(times - 2)
            tokens = tokens[2:]
        if not takes_rest:
            return None if tokens else self._number(quotient[::-1])
        rest = tokens[1:]
        if tokens[:1] != [self._rest] or len(rest) != length or not all(map(_is_digit, rest)):
            return None
        return self._number(rest)

    def _number(self, tokens: list[int]) -> str:
        """The usual notation of digits, least significant first."""
        return self.vocabulary.text(reversed(tokens)).lstrip("0") or "0"

    def _kind(self, token: int) -> str:
        """`d` a digit, `c` a carry, `p` a product, `?` anything else."""
        if token < self._first_small:
            return "d" if _is_digit(token) else "?"
        return "c" if token < self._first_small + len(SMALL) else "p"


def _asks(problems: Problems, operation: str) -> Tensor:
    """bool (B,): which problems ask an operation."""
    return problems.operation_B == OPERATIONS.index(operation)


def _is_digit(token: int) -> bool:
    return token < len(DIGITS)


def _is_unpadded(tokens: list[int]) -> bool:
    return len(tokens) == 1 or tokens[-1] != 0


def _complement(tokens: list[int]) -> list[int]:
    """The ten's complement of digits, least significant first."""
    lowest = next((i for i, token in enumerate(tokens) if token), len(tokens))
    nines = [9 - token for token in tokens[lowest + 1 :]]
    return tokens[:lowest] + [10 - token for token in tokens[lowest : lowest + 1]] + nines
