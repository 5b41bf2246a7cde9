"""Lines for encoders, which see the whole line and write all answer tokens at once.

By default the line ends in slots, one for each digit that the answer can have and one for the end.

>>> format.text(problem)  # 123+45
'321+54=<slot><slot><slot><slot><slot>'

    line      3  2  1  +  5  4  = slot slot slot slot slot
    labels                          8    6    1  <end>        what an encoder must write there

With the setting `operand_padding longest`, zeros lead the shorter operand: `321+540=`. Then all columns
hold two digits, and a model need not learn columns of one.

With the setting `mirrored`, the prompt is reversed as a whole, so that `=` comes first. The answer is
written over it from the left, without regard to where its digits then stand. A published notebook does
this; it is kept for comparison.
"""

from dataclasses import replace

import torch
from torch import Tensor

from abacist.errors import ProblemError
from abacist.formats.annotated import ANCHOR, NO_PLACE, AnnotatedTokens, Field
from abacist.formats.config import Layout, ParallelFormatConfig
from abacist.formats.pieces import Piece, constant, join, once_per_pattern, operators
from abacist.tasks.config import ArithmeticConfig, TaskConfig
from abacist.tasks.problems import Answer, Numbers, Problems
from abacist.vocabulary import DIGITS, Vocabulary


class ParallelFormat:
    """Writes, annotates and reads lines with parallel targets."""

    layout: Layout = "shape"
    enumeration = None

    def __init__(self, config: ParallelFormatConfig, task: TaskConfig) -> None:
        assert isinstance(task, ArithmeticConfig)
        self.config = config
        self._task = task
        slot = () if config.mirrored else ("<slot>",)
        self.vocabulary = Vocabulary((*DIGITS, *task.operations, "=", "<pad>", "<end>", *slot))
        self.operator_ids = [self.vocabulary.id(symbol) for symbol in task.operations]
        self.equals_id = self.vocabulary.id("=")
        self.pad_id, self.end_id = self.vocabulary.id("<pad>"), self.vocabulary.id("<end>")
        self.slot_id = None if config.mirrored else self.vocabulary.id("<slot>")
        self._token_of: dict[str, int] = dict(zip(task.operations, self.operator_ids, strict=True))

    def write(
        self, problems: Problems, answer: Answer, generator: torch.Generator | None = None
    ) -> AnnotatedTokens:
        """Return whole prompts, with the right labels at the targets.

        Raises `ProblemError` if a line has no room for its answer.
        """
        assert isinstance(answer, Numbers)
        prompt = self.prompt(problems)
        batch, device = len(problems), problems.digits_BNW.device
        pieces = [
            Piece(answer.digits_BW, answer.lengths_B),
            constant(self.end_id, batch, device),
        ]
        written = join(pieces, self.pad_id).int()
        labels = torch.full_like(prompt.ids, self.pad_id)
        # Targets follow each other, so the answer is shifted to the first of them.
        begin = prompt.target.long().argmax(dim=1, keepdim=True)
        columns = begin + torch.arange(written.shape[1], device=device)
        width = labels.shape[1]
        if bool(((written != self.pad_id) & (columns >= width)).any()):
            raise ProblemError("the answer has more digits than this line has room for")
        # Columns beyond the line hold padding of shorter answers; an extra column collects and drops it.
        labels = torch.nn.functional.pad(labels, (0, 1), value=self.pad_id)
        labels = labels.scatter_(1, columns.clamp(max=width), written)[:, :width]
        return replace(prompt, labels=labels, target=labels != self.pad_id)

    def prompt(
        self, problems: Problems, generator: torch.Generator | None = None
    ) -> AnnotatedTokens:
        """Return whole lines as an encoder sees them; each token that may hold the answer is a target."""
        return self.annotate(self._line(problems))

    def annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        """Return place, field and target of every token, from the ids alone."""
        return once_per_pattern(ids_BT, self._annotate)

    def read(self, ids_BT: Tensor) -> list[str | None]:
        """Return the answers that an encoder wrote at its targets, (B, targets); None if malformed.

        An answer is malformed if anything but digits stands before the first end token, or if it has
        a leading zero. Tokens after the end token are ignored.
        """
        return [self._read(row) for row in ids_BT.tolist()]

    def target_lengths(self, problems: Problems) -> Tensor:
        """Return the largest possible number of targets of each line, int64 (B,)."""
        return self._answer_widths(problems.lengths_BN) + 1

    def token_id(self, field: int) -> int | None:
        """Return the id of the one token that a field can hold, or None if it can hold several."""
        operator = self.operator_ids[0] if len(self.operator_ids) == 1 else None
        return {int(Field.OPERATOR): operator, int(Field.EQUALS): self.equals_id}.get(field)

    def _line(self, problems: Problems) -> Tensor:
        batch, device = len(problems), problems.digits_BNW.device
        lengths_BN = problems.lengths_BN
        if self.config.operand_padding == "longest":
            lengths_BN = lengths_BN.amax(dim=1, keepdim=True).expand_as(lengths_BN)
        a, b = (Piece(problems.digits_BNW[:, n], lengths_BN[:, n]) for n in range(2))
        operator = Piece(operators(problems.operation_B, self._token_of))
        equals = constant(self.equals_id, batch, device)
        if self.slot_id is not None:
            widths = self._answer_widths(problems.lengths_BN) + 1
            widest = int(widths.max()) if batch else 0
            slots = torch.full((batch, widest), self.slot_id, dtype=torch.uint8, device=device)
            return join([a, operator, b, equals, Piece(slots, widths)], self.pad_id)
        line = join([equals, b, operator, a], self.pad_id)
        missing = max(0, self._mirrored_length - line.shape[1])
        return torch.nn.functional.pad(line, (0, missing), value=self.pad_id)

    @property
    def _mirrored_length(self) -> int:
        """Number of tokens of every mirrored line of the task; only longer operands need more."""
        return 2 * self._task.longest_operand + 2

    def _answer_widths(self, lengths_BN: Tensor) -> Tensor:
        """Return the largest number of digits of an answer to operands of these lengths, int64 (B,)."""
        longest = lengths_BN.amax(dim=1)
        return 2 * longest if "*" in self._task.operations else longest + 1

    def _annotate(self, ids: Tensor) -> AnnotatedTokens:
        is_equals = ids == self.equals_id
        is_operator = torch.zeros_like(is_equals)
        for operator in self.operator_ids:
            is_operator |= ids == operator
        is_padding = ids == self.pad_id
        number = is_operator.cumsum(dim=1, dtype=torch.int32)
        if self.slot_id is None:
            number = 1 - number
        field = (Field.OPERAND + number).to(torch.uint8)
        boundary = is_equals | is_operator
        index = torch.arange(ids.shape[1], dtype=torch.int32, device=ids.device).expand(ids.shape)
        place = index - torch.where(boundary, index, -1).cummax(dim=1).values
        if self.slot_id is None:
            # An answer may be written over any token, so padding is a target and is visible.
            target = torch.ones_like(is_equals)
        else:
            target = ids == self.slot_id
            field.masked_fill_(target, int(Field.ANSWER))
        place.masked_fill_(is_operator | is_padding, NO_PLACE).masked_fill_(is_equals, ANCHOR)
        field.masked_fill_(is_operator, int(Field.OPERATOR))
        field.masked_fill_(is_equals, int(Field.EQUALS))
        filler = Field.PADDING if self.slot_id is not None else Field.SPACE
        field.masked_fill_(is_padding, int(filler))
        if self.slot_id is None and ids.shape[1] > self._mirrored_length:
            # A line of longer operands ends with them. What follows belongs to the batch.
            is_after = is_padding & (index >= self._mirrored_length)
            field.masked_fill_(is_after, int(Field.PADDING))
            target &= ~is_after
        return AnnotatedTokens(ids, place, field, target)

    def _read(self, tokens: list[int]) -> str | None:
        if self.end_id not in tokens:
            return None
        body = tokens[: tokens.index(self.end_id)]
        if not body or any(token >= 10 for token in body) or (len(body) > 1 and body[-1] == 0):
            return None
        return self.vocabulary.decode(reversed(body))
