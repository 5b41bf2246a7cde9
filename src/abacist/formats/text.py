"""Operands, `=` and answer as a person would type them: the notation of tasks that extensions define.

>>> format.text(problem)  # 12,18, whose answer is their greatest common divisor
'<start>12,18=6<end>'

A digit of an operand has the place of its significance. A character of the answer has its position in
the answer as its place, because its significance is not known when it is written.
"""

import torch
from torch import Tensor

from abacist.formats.annotated import ANCHOR, EVERYWHERE, NO_PLACE, AnnotatedTokens, Field
from abacist.formats.config import FormatConfig, Layout
from abacist.formats.continuation import Continuation, PlannedContinuation
from abacist.formats.pieces import (
    Piece,
    constant,
    once_per_pattern,
    places_from_the_right,
    selected_tokens,
)
from abacist.formats.piecewise import PiecewiseFormat
from abacist.tasks.config import OwnTaskConfig, TaskConfig
from abacist.tasks.problems import DIGIT_CHARACTERS, Answer, Problems
from abacist.vocabulary import DIGITS, Vocabulary


class TextFormat(PiecewiseFormat):
    """Writes, annotates and reads problems of tasks whose operands are texts."""

    layout: Layout = "shape"
    usual_order: bool = True
    """Whether operands are written most significant digit first and have places from the right."""

    def __init__(
        self, config: FormatConfig, task: TaskConfig, further_tokens: tuple[str, ...] = ()
    ) -> None:
        """`further_tokens` are those that subclasses write after `=` only; they come last."""
        assert isinstance(task, OwnTaskConfig)
        self.config, self.task = config, task.build()
        self.base = self.task.base
        self.num_digits = max(len(DIGITS), self.base)
        characters = tuple(DIGIT_CHARACTERS[: self.num_digits])
        symbol = (self.task.symbol,) if self.task.num_operands > 1 else ()
        self.vocabulary = Vocabulary(
            (*characters, *symbol, "=", "<end>", "<start>", *further_tokens)
        )
        self.symbol_id = self.vocabulary.id(symbol[0]) if symbol else None
        self.equals_id, self.end_id = self.vocabulary.id("="), self.vocabulary.id("<end>")
        self.start_id = self.vocabulary.id("<start>")

    def annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        """Return place, row, field and target of every token, from the ids alone.

        The annotation of a token after `=` depends on the prompt and on the number of tokens before it.
        """
        return once_per_pattern(ids_BT, self._annotate, self.start_id + 1, self.num_digits)

    def continuation(self, prompt: AnnotatedTokens, max_new_tokens: int) -> Continuation:
        """Return the coordinates of new tokens, which follow from the prompt alone."""
        falls = {"place": 0, "row": 0}
        return PlannedContinuation(self.annotate, prompt, max_new_tokens, falls)

    def read(self, ids_BT: Tensor) -> list[str | None]:
        """Return the answers of whole lines; None for a line without an end token or with other symbols."""
        lines = self.annotate(ids_BT)
        longest_B = torch.where(lines.field >= Field.OPERAND, lines.place, 0).amax(dim=1).tolist()
        answers = []
        targets = selected_tokens(lines.ids, lines.target)
        for tokens, longest in zip(targets, longest_B, strict=True):
            ended = bool(tokens) and tokens.pop() == self.end_id
            answers.append(self._read(tokens, longest) if ended else None)
        return answers

    def target_lengths(self, problems: Problems) -> Tensor:
        """Return the number of tokens after `=`, int64 (B,)."""
        return torch.tensor([len(text) + 1 for text in self.task.answer(problems).texts()])

    def token_id(self, field: int) -> int | None:
        """Return the id of the one token that a field can hold, or None if it can hold several."""
        return {
            int(Field.START): self.start_id,
            int(Field.OPERATOR): self.symbol_id,
            int(Field.EQUALS): self.equals_id,
        }.get(field)

    def _prompt_pieces(self, problems: Problems) -> list[Piece]:
        batch, device = len(problems), problems.digits_BNW.device
        pieces = [constant(self.start_id, batch, device)]
        for position in range(self.task.num_operands):
            if position:
                assert self.symbol_id is not None
                pieces.append(constant(self.symbol_id, batch, device))
            pieces.append(self._operand_piece(problems, position))
        return [*pieces, constant(self.equals_id, batch, device)]

    def _operand_piece(self, problems: Problems, position: int) -> Piece:
        operand = problems.operand(position)
        return Piece(operand.digits_BW, operand.lengths_B, mirrored=True)

    def _target_piece(self, problems: Problems, answer: Answer) -> Piece:
        texts = answer.texts()
        lengths = [len(text) for text in texts]
        width = max(lengths, default=0)
        id_of = {token: id for id, token in enumerate(self.vocabulary.tokens)}
        ids = [id_of[character] for text in texts for character in text.ljust(width, "0")]
        ids_BW = torch.tensor(ids, dtype=torch.uint8).view(len(texts), width)
        return Piece(ids_BW, torch.tensor(lengths, dtype=torch.int64))

    def _annotate(self, ids: Tensor) -> AnnotatedTokens:
        is_equals = ids == self.equals_id
        after_equals = is_equals.cumsum(dim=1, dtype=torch.int32) > is_equals
        is_equals = is_equals & ~after_equals
        is_start = (ids == self.start_id) & ~after_equals
        is_symbol = torch.zeros_like(is_equals)
        if self.symbol_id is not None:
            is_symbol = (ids == self.symbol_id) & ~after_equals
        row = is_symbol.cumsum(dim=1, dtype=torch.int32) + 1
        field = (Field.OPERAND - 1 + row).to(torch.uint8)
        row += after_equals | is_equals
        boundary = is_start | is_symbol | is_equals
        index = torch.arange(ids.shape[1], dtype=torch.int32, device=ids.device).expand_as(ids)
        place = index - torch.where(boundary, index, 0).cummax(dim=1).values
        if self.usual_order:
            counted = (~boundary).cumsum(dim=1, dtype=torch.int32)
            place = places_from_the_right(place, counted, is_symbol | is_equals)
        place.masked_fill_(is_symbol, NO_PLACE).masked_fill_(is_equals, ANCHOR)
        place.masked_fill_(is_start, EVERYWHERE)
        row.masked_fill_(is_symbol, NO_PLACE).masked_fill_(is_start, EVERYWHERE)
        field.masked_fill_(is_symbol, int(Field.OPERATOR)).masked_fill_(is_start, int(Field.START))
        field.masked_fill_(is_equals, int(Field.EQUALS))
        field.masked_fill_(after_equals, int(Field.ANSWER))
        is_end = after_equals & (ids == self.end_id)
        padding = is_end.cumsum(dim=1, dtype=torch.int32) > is_end
        field.masked_fill_(padding, int(Field.PADDING))
        return AnnotatedTokens(ids, place, field, after_equals & ~padding, row=row)

    def _read(self, tokens: list[int], longest: int) -> str | None:
        """Return the answer that tokens between `=` and the end token spell, or None.

        Args:
            tokens: the tokens.
            longest: number of characters of the longest operand of the line.
        """
        spelled = tokens and all(token < self.base for token in tokens)
        return self.vocabulary.decode(tokens) if spelled else None
