"""Sorting: labelled numbers, and their labels in ascending order of the numbers.

>>> format.text(problem)  # a:821,b:9,c:35
'a:821,b:9,c:35=bca<end>'

All tokens of number k, its label included, stand in row k, and so does label k of the answer. A digit of
a number has the place of its significance.
"""

from typing import ClassVar

import torch
from torch import Tensor

from abacist.errors import ProblemError
from abacist.formats.annotated import ANCHOR, EVERYWHERE, NO_PLACE, AnnotatedTokens, Field
from abacist.formats.config import LabelsFormatConfig, Layout
from abacist.formats.continuation import Continuation, PlannedContinuation
from abacist.formats.pieces import (
    Piece,
    constant,
    once_per_pattern,
    places_from_the_right,
    selected_tokens,
)
from abacist.formats.piecewise import PiecewiseFormat
from abacist.tasks.config import LABELS, SortingConfig, TaskConfig
from abacist.tasks.problems import Answer, Ordering, Problems
from abacist.vocabulary import DIGITS, Vocabulary


class LabelsFormat(PiecewiseFormat):
    """Writes, annotates and reads sorting problems."""

    layout: Layout = "shape"
    marks: ClassVar[tuple[str, ...]] = ()
    """Further tokens, with which subclasses write work."""

    def __init__(self, config: LabelsFormatConfig, task: TaskConfig) -> None:
        assert isinstance(task, SortingConfig)
        self.config = config
        self._longest = task.max_digits
        start = ("<start>",) if config.start_token else ()
        # Labels come last in the vocabulary, so that all of them can be annotated alike.
        self.vocabulary = Vocabulary(
            (*DIGITS, ":", ",", "=", "<end>", *start, *self.marks, *LABELS)
        )
        self.colon_id, self.comma_id = self.vocabulary.id(":"), self.vocabulary.id(",")
        self.equals_id, self.end_id = self.vocabulary.id("="), self.vocabulary.id("<end>")
        self.start_id = self.vocabulary.id("<start>") if config.start_token else None
        self.first_label = self.vocabulary.id("a")

    def annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        """Return place, row, field and target of every token, from the ids alone.

        The annotation of a token after `=` depends on the prompt and on the tokens before it.
        """
        return once_per_pattern(ids_BT, self._annotate, alike_from=self.first_label)

    def continuation(self, prompt: AnnotatedTokens, max_new_tokens: int) -> Continuation:
        """Return the coordinates of new tokens, which follow from the prompt alone."""
        return PlannedContinuation(self.annotate, prompt, max_new_tokens, {"row": 0, "place": 0})

    def read(self, ids_BT: Tensor) -> list[str | None]:
        """Return the answers of whole lines as labels; None for a malformed line.

        An answer is well formed if it has every label of the problem once, an end token, and nothing
        else.
        """
        lines = self.annotate(ids_BT)
        counts = lines.row.where(lines.field == Field.LABEL, 0).amax(dim=1).tolist()  # type: ignore[union-attr]
        answers = []
        for tokens, count in zip(selected_tokens(lines.ids, lines.target), counts, strict=True):
            ended = bool(tokens) and tokens.pop() == self.end_id
            expected = range(self.first_label, self.first_label + count)
            complete = ended and sorted(tokens) == list(expected)
            answers.append(self.vocabulary.decode(tokens) if complete else None)
        return answers

    def target_lengths(self, problems: Problems) -> Tensor:
        """Return the number of tokens after `=`, int64 (B,)."""
        return problems.counts_B + 1

    def token_id(self, field: int) -> int | None:
        """Return the id of the one token that a field can hold, or None if it can hold several."""
        return {int(Field.START): self.start_id, int(Field.EQUALS): self.equals_id}.get(field)

    def _prompt_pieces(self, problems: Problems) -> list[Piece]:
        batch, device = len(problems), problems.digits_BNW.device
        lengths = problems.lengths_BN
        widths = self._widths(lengths)
        ids = problems.digits_BNW
        widest = int(widths.max()) if batch else 0
        ids = torch.nn.functional.pad(ids, (0, max(0, widest - ids.shape[2])))
        pieces = [] if self.start_id is None else [constant(self.start_id, batch, device)]
        for position in range(problems.num_operands):
            # One piece for the tokens before a number: `,b:`, or `a:` before the first.
            before = [self.comma_id, self.first_label + position, self.colon_id]
            before = before[1:] if position == 0 else before
            tokens = torch.tensor([before], dtype=torch.uint8, device=device).expand(batch, -1)
            pieces.append(Piece(tokens, (lengths[:, position] > 0).long() * len(before)))
            mirrored = self.config.order == "usual"
            pieces.append(Piece(ids[:, position], widths[:, position], mirrored))
        return [*pieces, constant(self.equals_id, batch, device)]

    def _target_piece(self, problems: Problems, answer: Answer) -> Piece:
        assert isinstance(answer, Ordering)
        labels = (answer.ranked_BN + self.first_label).to(torch.uint8)
        return Piece(labels, answer.counts_B)

    def _widths(self, lengths_BN: Tensor) -> Tensor:
        """Return the number of digits that each number is written with, int64 (B, N)."""
        if self.config.padding == "none":
            return lengths_BN
        longest = lengths_BN.amax(dim=1, keepdim=True)
        if self.config.padding == "fixed":
            if len(longest) and int(longest.max()) > self._longest:
                raise ProblemError(
                    f"a number has {int(longest.max())} digits and this format pads to "
                    f"{self._longest}. Train with --format.padding longest or none."
                )
            longest = torch.full_like(longest, self._longest)
        return torch.where(lengths_BN > 0, longest, 0)

    def _annotate(self, ids: Tensor) -> AnnotatedTokens:
        is_equals = ids == self.equals_id
        after_equals = is_equals.cumsum(dim=1, dtype=torch.int32) > is_equals
        is_equals, in_prompt = is_equals & ~after_equals, ~after_equals
        is_digit = (ids < len(DIGITS)) & in_prompt
        is_label = (ids >= self.first_label) & in_prompt
        number = is_label.cumsum(dim=1, dtype=torch.int32)
        counted = is_digit.cumsum(dim=1, dtype=torch.int32)
        base = torch.where(is_label, counted, 0).cummax(dim=1).values
        place = counted - base
        if self.config.order == "usual":
            ends_number = (ids == self.comma_id) & in_prompt | is_equals
            place = places_from_the_right(place, counted, ends_number)
        field = torch.where(is_digit, Field.OPERAND - 1 + number, int(Field.LABEL)).to(torch.uint8)
        place = place.masked_fill(~is_digit, NO_PLACE).masked_fill(is_label | is_equals, ANCHOR)
        place.masked_fill_((ids == self.colon_id) & in_prompt, ANCHOR)
        position = after_equals.cumsum(dim=1, dtype=torch.int32)
        row = torch.where(after_equals, position, number)
        row.masked_fill_(is_equals, ANCHOR)
        field.masked_fill_(is_equals, int(Field.EQUALS))
        field.masked_fill_(after_equals, int(Field.ANSWER))
        if self.start_id is not None:
            is_start = (ids == self.start_id) & in_prompt
            field.masked_fill_(is_start, int(Field.START))
            place.masked_fill_(is_start, EVERYWHERE)
            row.masked_fill_(is_start, EVERYWHERE)
        is_end = ids == self.end_id
        padding = is_end.cumsum(dim=1, dtype=torch.int32) > is_end
        field.masked_fill_(padding, int(Field.PADDING))
        return AnnotatedTokens(ids, place, field, after_equals & ~padding, row=row)
