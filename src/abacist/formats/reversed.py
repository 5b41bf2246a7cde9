"""Every number least significant digit first and unpadded: `12+34=46` becomes `<start>21+43=64<end>`.

Written so, an answer digit needs only digits of its own column, of the column before, and the
answer digit just written (Lee et al. 2023, arXiv 2307.03381 §3, for the reversal).
"""

from dataclasses import replace

import torch
from torch import Tensor

from abacist.formats.annotated import ANCHOR, EVERYWHERE, NO_PLACE, AnnotatedTokens, Field
from abacist.formats.config import ReversedFormatConfig
from abacist.tasks.problems import Numbers, Problems
from abacist.vocabulary import DIGITS, Vocabulary


class ReversedFormat:
    """Writes, annotates and reads sums, least significant digit first."""

    def __init__(self, config: ReversedFormatConfig, operator: str) -> None:
        self.config = config
        start = ("<start>",) if config.start_token else ()
        self.vocabulary = Vocabulary((*DIGITS, operator, "=", "<end>", *start))
        self.operator_id = self.vocabulary.id(operator)
        self.equals_id = self.vocabulary.id("=")
        self.end_id = self.vocabulary.id("<end>")
        self.start_id = self.vocabulary.id("<start>") if config.start_token else None

    def write(self, problems: Problems, answer: Numbers) -> AnnotatedTokens:
        """Whole lines, prompt, answer and end token, padded on the right with end tokens."""
        ends = torch.full((len(answer), 1), self.end_id, device=answer.digits_BW.device)
        return self.annotate(
            self._join([*self._prompt_pieces(problems), _piece(answer), (ends, None)])
        )

    def prompt(self, problems: Problems) -> AnnotatedTokens:
        """Lines up to and including `=`; whatever follows in the shorter ones is padding."""
        lines = self.annotate(self._join(self._prompt_pieces(problems)))
        return replace(
            lines,
            field=torch.where(lines.target, int(Field.PADDING), lines.field),
            target=torch.zeros_like(lines.target),
        )

    def annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        """Place, field and target of every token, from the ids alone.

        A token's annotation depends on itself and on the tokens before it, never on later ones,
        so annotating a prefix gives the prefix of the annotation. Tokens after the first end
        token are padding.
        """
        ids = ids_BT.int()
        # 32 bits throughout: these lines are written by the million, and 64 would take thrice
        # the time.
        index = torch.arange(ids.shape[1], dtype=torch.int32, device=ids.device)
        is_equals = ids == self.equals_id
        answering = is_equals.cumsum(dim=1, dtype=torch.int32) > is_equals
        field = torch.full_like(ids, Field.OPERAND)
        is_operator = (ids == self.operator_id) & ~answering
        is_equals = is_equals & ~answering
        field = field + is_operator.cumsum(dim=1, dtype=torch.int32)
        separators = torch.where(is_equals | is_operator, index, 0 if self.start_id else -1)
        place = index - separators.cummax(dim=1).values
        place.masked_fill_(is_operator, NO_PLACE).masked_fill_(is_equals, ANCHOR)
        field.masked_fill_(is_operator, Field.OPERATOR).masked_fill_(is_equals, Field.EQUALS)
        if self.start_id is not None:
            is_start = (ids == self.start_id) & ~answering
            field.masked_fill_(is_start, Field.START)
            place.masked_fill_(is_start, EVERYWHERE)
        # Whatever is written behind `=` belongs to the answer, also what should not be there.
        field.masked_fill_(answering, Field.ANSWER)
        is_end = ids == self.end_id
        padding = is_end.cumsum(dim=1, dtype=torch.int32) > is_end
        field.masked_fill_(padding, Field.PADDING)
        return AnnotatedTokens(ids, place, field, target=answering & ~padding)

    def read(self, ids_BT: Tensor) -> list[str | None]:
        """The answers of whole lines in the usual notation; None where an answer is malformed.

        Strict: digits only, no leading zero, an end token, and nothing else.
        """
        lines = self.annotate(ids_BT)
        answers = []
        for ids, is_answer in zip(lines.ids, lines.target, strict=True):
            tokens = ids[is_answer].tolist()
            body = tokens[:-1]
            well_formed = (
                len(tokens) >= 2
                and tokens[-1] == self.end_id
                and all(token < 10 for token in body)
                and (body[-1] != 0 or len(body) == 1)
            )
            answers.append(self.vocabulary.text(reversed(body)) if well_formed else None)
        return answers

    def token_id(self, field: int) -> int | None:
        """The id of the one token a field holds, or None for a field that holds digits."""
        return {
            int(Field.START): self.start_id,
            int(Field.OPERATOR): self.operator_id,
            int(Field.EQUALS): self.equals_id,
        }.get(field)

    def _prompt_pieces(self, problems: Problems) -> list[tuple[Tensor, Tensor | None]]:
        batch, device = len(problems), problems.digits_BNW.device

        def constant(token: int) -> tuple[Tensor, Tensor | None]:
            return torch.full((batch, 1), token, device=device), None

        pieces = [] if self.start_id is None else [constant(self.start_id)]
        for position in range(problems.num_operands):
            pieces.append(_piece(problems.operand(position)))
            last = position == problems.num_operands - 1
            pieces.append(constant(self.equals_id if last else self.operator_id))
        return pieces

    def _join(self, pieces: list[tuple[Tensor, Tensor | None]]) -> Tensor:
        """Pieces of unequal lengths side by side without gaps, padded with end tokens."""
        batch = pieces[0][0].shape[0]
        device = pieces[0][0].device
        starts = torch.zeros(batch, 1, dtype=torch.int64, device=device)
        width = sum(int(lengths.max()) if lengths is not None else 1 for _, lengths in pieces)
        # Digits beyond a number's length are written first and then overwritten by the next
        # piece, or fall into the spare columns that are cut off at the end.
        spare = max(digits.shape[1] for digits, _ in pieces)
        line = torch.full((batch, width + spare), self.end_id, dtype=torch.uint8, device=device)
        for digits, lengths in pieces:
            columns = torch.arange(digits.shape[1], device=device)
            line.scatter_(1, starts + columns, digits.to(torch.uint8))
            starts = starts + (1 if lengths is None else lengths.unsqueeze(1))
        positions = torch.arange(width + spare, device=device)
        line = torch.where(positions < starts, line, self.end_id)
        return line[:, : int(starts.max())]


def _piece(numbers: Numbers) -> tuple[Tensor, Tensor | None]:
    return numbers.digits_BW, numbers.lengths_B
