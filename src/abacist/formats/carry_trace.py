"""Lines of one length, with the carry out of every column of a product.

>>> format.text(problem)  # 123*45
'123*  45=+501302501500000000'

    AAA op BBB = S d cc d cc d cc d cc d cc d cc

Operands are right-aligned in three characters and the operator has two. The answer begins with its
sign. Each of its digits, least significant first, is followed by the two digits of the carry out of that
column of a long multiplication, or by 00 for the other operations. There is neither a start nor an end
token. A space before a short operand has a place, as a zero would.
"""

import torch
from torch import Tensor

from abacist.errors import ProblemError
from abacist.formats.annotated import ANCHOR, NO_PLACE, AnnotatedTokens, Field
from abacist.formats.calculation import number_text
from abacist.formats.config import CarryTraceFormatConfig, Layout
from abacist.formats.continuation import Continuation, PlannedContinuation
from abacist.formats.pieces import once_per_pattern, without_targets
from abacist.tasks import digits
from abacist.tasks.config import ArithmeticConfig, TaskConfig
from abacist.tasks.problems import OPERATIONS, Answer, Numbers, Problems
from abacist.vocabulary import DIGITS, Vocabulary

_OPERATORS = ("+ ", "- ", "* ", "//", "% ")


class CarryTraceFormat:
    """Writes, annotates and reads lines of one length."""

    end_id = None
    layout: Layout = "constant"
    enumeration = None

    def __init__(self, config: CarryTraceFormatConfig, task: TaskConfig) -> None:
        assert isinstance(task, ArithmeticConfig)
        self.config = config
        self.vocabulary = Vocabulary((*DIGITS, *" +-*%/="))
        self.space_id = self.vocabulary.id(" ")
        self.equals_id = self.vocabulary.id("=")
        self.plus_id, self.minus_id = self.vocabulary.id("+"), self.vocabulary.id("-")
        self._operators = torch.tensor(
            [[self.vocabulary.id(c) for c in symbol] for symbol in _OPERATORS], dtype=torch.uint8
        )
        width = config.operand_width
        self.prompt_length = 2 * width + 3
        self.answer_digits = 2 * width
        down, up = list(range(width, 0, -1)), range(1, self.answer_digits + 1)
        self._place = [*down, NO_PLACE, NO_PLACE, *down, ANCHOR, NO_PLACE]
        self._place += [column for column in up for _ in range(3)]
        self._field: list[int] = [int(Field.OPERAND)] * width + [Field.OPERATOR] * 2
        self._field += [Field.OPERAND + 1] * width + [Field.EQUALS, Field.ANSWER]
        self._field += [Field.ANSWER, Field.SCRATCH, Field.SCRATCH] * self.answer_digits

    def write(
        self, problems: Problems, answer: Answer, generator: torch.Generator | None = None
    ) -> AnnotatedTokens:
        """Return whole lines."""
        assert isinstance(answer, Numbers)
        columns = self.answer_digits
        batch, device = len(problems), problems.digits_BNW.device
        sign = torch.full((batch, 1), self.plus_id, dtype=torch.uint8, device=device)
        if answer.negative_B is not None:
            sign[answer.negative_B] = self.minus_id
        chunks = torch.zeros(batch, columns, 3, dtype=torch.uint8, device=device)
        width = min(columns, answer.digits_BW.shape[1])
        chunks[:, :width, 0] = answer.digits_BW[:, :width]
        products = (problems.operation_B == OPERATIONS.index("*")).nonzero().squeeze(1)
        if len(products):
            carries = self._carries(problems[products])
            chunks[products, :, 1] = torch.div(carries, 10, rounding_mode="floor").to(torch.uint8)
            chunks[products, :, 2] = (carries % 10).to(torch.uint8)
        return self.annotate(torch.cat([self._prompt(problems), sign, chunks.flatten(1)], dim=1))

    def prompt(
        self, problems: Problems, generator: torch.Generator | None = None
    ) -> AnnotatedTokens:
        """Return the lines up to and including `=`."""
        return without_targets(self.annotate(self._prompt(problems)))

    def annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        """Return place, field and target of every token; only the field of spaces depends on the ids."""
        return once_per_pattern(ids_BT, self._annotate)

    def continuation(self, prompt: AnnotatedTokens, max_new_tokens: int) -> Continuation:
        """Return the coordinates of new tokens, which follow from the prompt alone."""
        return PlannedContinuation(self.annotate, prompt, max_new_tokens, {"place": 0})

    def read(self, ids_BT: Tensor) -> list[str | None]:
        """Return the answers of whole lines in the usual notation; None for a malformed line.

        A line is well formed if it has a sign, digits everywhere after it, and no minus before 0. The
        carries may be wrong.
        """
        return [self._read(row) for row in ids_BT[:, self.prompt_length :].tolist()]

    def target_lengths(self, problems: Problems) -> Tensor:
        """Return the number of tokens after `=`, int64 (B,)."""
        return torch.full((len(problems),), 1 + 3 * self.answer_digits)

    def token_id(self, field: int) -> int | None:
        """Return the id of the one token that a field can hold, or None if it can hold several."""
        return {int(Field.EQUALS): self.equals_id, int(Field.SPACE): self.space_id}.get(field)

    def _prompt(self, problems: Problems) -> Tensor:
        batch, width = len(problems), self.config.operand_width
        device = problems.digits_BNW.device
        longest = int(problems.lengths_BN.max()) if batch else 1
        if longest > width:
            wider = f"--format.operand_width {longest}" if longest <= 9 else "--format reversed"
            raise ProblemError(
                f"an operand has {longest} digits and this format writes at most {width}. "
                f"Train with {wider}."
            )
        wide = torch.nn.functional.pad(problems.digits_BNW, (0, max(0, width - longest)))
        columns = torch.arange(width, device=device)
        inside = columns < problems.lengths_BN.unsqueeze(2)
        operands = torch.where(inside, wide[:, :, :width], self.space_id).flip(2)
        operators = self._operators.to(device)[problems.operation_B.long()]
        equals = torch.full((batch, 1), self.equals_id, dtype=torch.uint8, device=device)
        return torch.cat([operands[:, 0], operators, operands[:, 1], equals], dim=1)

    def _carries(self, problems: Problems) -> Tensor:
        """Return the carry out of each column of long multiplications, int32 (B, 2 × operand width)."""
        a, b = problems.operand(0).digits_BW, problems.operand(1).digits_BW
        _, carries = digits.propagate_carries(digits.column_totals(a, b))
        wide = torch.nn.functional.pad(carries, (0, self.answer_digits))
        return wide[:, : self.answer_digits]

    def _annotate(self, ids: Tensor) -> AnnotatedTokens:
        batch, length = ids.shape
        place, field = (
            torch.tensor(template[:length], dtype=dtype, device=ids.device)
            .expand(batch, length)
            .clone()
            for template, dtype in ((self._place, torch.int32), (self._field, torch.uint8))
        )
        is_space = (ids == self.space_id) & (field >= Field.OPERAND)
        field.masked_fill_(is_space, int(Field.SPACE))
        target = torch.arange(length, device=ids.device) >= self.prompt_length
        return AnnotatedTokens(ids, place, field, target.expand(batch, length).clone())

    def _read(self, tokens: list[int]) -> str | None:
        if len(tokens) != 1 + 3 * self.answer_digits or any(token >= 10 for token in tokens[1:]):
            return None
        if tokens[0] not in (self.plus_id, self.minus_id):
            return None
        text = number_text(tokens[1::3])
        if tokens[0] == self.plus_id:
            return text
        return None if text == "0" else "-" + text
