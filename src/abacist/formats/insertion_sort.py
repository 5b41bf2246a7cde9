"""Sorting by insertion, written so that each token follows from one other token that it points to.

The prompt is that of the format labels. After `=` there is a list for each number: all numbers up to it
in order, as labels.

>>> format.text(problem)  # a:821,b:9,c:35
'<start>a:821,b:9,c:35=a,8>ba,0<b8>ca<end>'

The first list is `a`. After a comma, each further number is inserted into the list before: it is
compared with the first number of that list, the second and so on, until one is larger. There its label
is written, followed by the rest of the list.

    a           the list of a alone
    ,8>ba       b is inserted: a has 8 hundreds and b has none, so a is larger: b, and then a
    ,0<b8>ca    c is inserted: b has no tens, 0, fewer than c, so b stays; a is larger: c, then a

A comparison begins at the highest place that one of the two numbers has. It writes the digit of the
number in the list, 0 if there is none, and a sign: after `<` that number stays, after `>` the new number
comes before it, and after `~` the next lower place is compared. After `~` in the units both are equal and
the number in the list stays, so equal numbers keep their order.

The numbers themselves are written only once, in the prompt. Each token of the work *points* to the token
of the prompt that decides what follows, by having its row and place:

* Number k has row 2k; its digits have the places of their significance, and its label has place 0. The
  comma before it has row 2k - 1 and place 0, and so has `=`, as if it were another comma.
* Each token of the work has a step of its own, and the prompt stands in every step. So in windows that
  hold only a token's own row, place and step, the token sees itself and what it points to: a digit, a
  label, a comma or `=`, or nothing if a number has no digit at that place.
* A digit points to the same place of the new number, with which it is compared. `~` points to the next
  lower place of the number in the list, which is its label after the units. `<` points to the label of
  that number, and `>` to the label of the new number.
* A label or a comma points to what comes next in the list before: to the highest place of the
  comparison, or to the label if the new number has already been inserted. After the last number of that
  list it points to the new number's label; if that has been inserted, to the comma before the next
  number to be inserted, or to `=` after the last.

So the next token is a copy of the token pointed to, with two exceptions: after a digit comes the result of
a comparison, and after a pointer to `=` comes the end token. The model must work out which labels are in
the lists; the coordinates only keep the position in them, as a finger would. They count labels, commas,
`>` and `~` among the tokens written so far.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from abacist.arrays import Integers
from abacist.formats.annotated import ANCHOR, EVERYWHERE, NO_PLACE, AnnotatedTokens, Field
from abacist.formats.config import InsertionSortFormatConfig, LabelsFormatConfig, Layout
from abacist.formats.continuation import Continuation, TokenCoordinates
from abacist.formats.labels import LabelsFormat
from abacist.formats.pieces import Piece, selected_tokens
from abacist.formats.roles import Role, decode
from abacist.tasks.config import MOST_LABELS, TaskConfig
from abacist.tasks.problems import Answer, Ordering, Problems
from abacist.tasks.sorting import ranks_of
from abacist.vocabulary import DIGITS

DIGIT, LABEL = "digit", "label"
"""Parts of a calculation, as `roles` names them."""


class InsertionSortFormat(LabelsFormat):
    """Writes, annotates and reads sorting problems with their work. Prompts are those of LabelsFormat."""

    layout: Layout = "similar"
    enumeration = "insertion-sort"
    marks: ClassVar[tuple[str, ...]] = ("<", "~", ">")

    def __init__(self, config: InsertionSortFormatConfig, task: TaskConfig) -> None:
        super().__init__(LabelsFormatConfig(start_token=config.start_token), task)
        self.smaller_id, self.same_id, self.larger_id = map(self.vocabulary.id, self.marks)

    def annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        """Return place, row, step, field and target of every token, from the ids alone.

        The annotation of a token after `=` depends on the prompt and on the tokens before it.
        """
        ids = ids_BT.int()
        is_equals = ids == self.equals_id
        after_equals = is_equals.cumsum(dim=1, dtype=torch.int32) > is_equals
        is_equals &= ~after_equals
        # Without the work, all lines of one shape have the same pattern.
        prompt = super().annotate(ids.masked_fill(after_equals, self.end_id))
        assert prompt.row is not None
        number = torch.where(after_equals, 0, prompt.row).clamp(min=0)
        is_operand = (prompt.field >= Field.OPERAND) & ~after_equals
        last = number.amax(dim=1, keepdim=True)
        lengths = torch.zeros(len(ids), MOST_LABELS + 2, dtype=torch.int32, device=ids.device)
        lengths.scatter_reduce_(1, number.long(), torch.where(is_operand, prompt.place, 0), "amax")
        place = torch.where(ids == self.colon_id, NO_PLACE, prompt.place)
        is_comma = ids == self.comma_id
        place.masked_fill_(is_comma, ANCHOR)
        row = torch.where(prompt.row > 0, 2 * number + is_comma.int(), prompt.row)
        row = torch.where(is_equals, 2 * last + 1, row)
        work_place, work_row, new = self._pointers(ids, after_equals, lengths)
        place = torch.where(after_equals, work_place, place)
        row = torch.where(after_equals, work_row, row)
        step = torch.where(after_equals, after_equals.cumsum(dim=1, dtype=torch.int32), EVERYWHERE)
        is_end = ids == self.end_id
        padding = is_end.cumsum(dim=1, dtype=torch.int32) > is_end
        is_answer = (ids >= self.first_label) & (new >= last) | is_end
        work_field = torch.where(is_answer, int(Field.ANSWER), int(Field.SCRATCH))
        field = torch.where(after_equals, work_field, prompt.field).to(torch.uint8)
        field.masked_fill_(padding, int(Field.PADDING))
        target = after_equals & ~padding
        return AnnotatedTokens(ids, place.int(), field, target, row.int(), step.int())

    def continuation(self, prompt: AnnotatedTokens, max_new_tokens: int) -> Continuation:
        """Return the coordinates of new tokens."""
        return _PointersContinuation(self, prompt, max_new_tokens)

    def read(self, ids_BT: Tensor) -> list[str | None]:
        """Return the answers of whole lines as labels; None for a malformed line.

        A line is well formed if each token up to the end token is of the kind that the token before
        it calls for, and if the last list holds every label once. Comparisons and other lists may be
        wrong.
        """
        lines = self.annotate(ids_BT)
        assert lines.row is not None
        ids, place, row = lines.ids, lines.place, lines.row
        is_equals = lines.field == Field.EQUALS
        equals_row = torch.where(is_equals, row, 0).amax(dim=1, keepdim=True)
        label, digit, mark, comma, end, other = range(6)
        kind = torch.full_like(ids, other)
        kind[ids < 10] = digit
        kind[ids == self.comma_id] = comma
        kind[ids == self.end_id] = end
        kind[ids >= self.smaller_id] = mark
        kind[ids >= self.first_label] = label
        # The kind of the next token: that of the token pointed to, except after a digit and after `=`.
        next_kind = torch.where(place > 0, digit, label)
        next_kind[(row % 2 == 1) & (place == ANCHOR)] = comma
        next_kind[(row == equals_row) & (place == ANCHOR)] = end
        next_kind[is_equals] = label
        next_kind[kind == digit] = mark
        follows = (next_kind[:, :-1] == kind[:, 1:]) | ~lines.target[:, 1:]
        has_end = ((kind == end) & lines.target).any(dim=1)
        is_well_formed = follows.all(dim=1) & has_end & is_equals.any(dim=1)
        is_listed = (lines.field == Field.ANSWER) & (kind == label)
        counts = (equals_row.squeeze(1) // 2).tolist()
        answers: list[str | None] = []
        for labels, well_formed, count in zip(
            selected_tokens(ids, is_listed), is_well_formed.tolist(), counts, strict=True
        ):
            expected = range(self.first_label, self.first_label + count)
            is_complete = well_formed and sorted(labels) == list(expected)
            answers.append(self.vocabulary.decode(labels) if is_complete else None)
        return answers

    def roles(self, ids_T: Tensor) -> list[Role]:
        """Return the role of each token of one whole line.

        A digit or label of number k has row k, starting at 1, and so has the `,` before that number;
        the row of `=` is one more than the last. A digit has its place as column. A token of the
        work has column and row of the token that it points to, and 0 where it points to nothing.
        """

        def role(token: int, field: int, place: int, row: int) -> Role:
            part = self.vocabulary.tokens[token]
            if token < len(DIGITS) or token >= self.first_label:
                part = DIGIT if token < len(DIGITS) else LABEL
            return Role(part, max(0, place), (max(0, row) + 1) // 2)

        return decode(self.annotate(ids_T.unsqueeze(0)), role)

    def pointers(self, ids_T: Tensor) -> list[int | None]:
        """Return the index of the prompt's token that each token of one whole line points to.

        None for tokens of the prompt, for the end token, and for work that points to no token.
        """
        line = self.annotate(ids_T.unsqueeze(0))
        assert line.row is not None
        points = line.target[0].tolist()
        coordinates = list(zip(line.place[0].tolist(), line.row[0].tolist(), strict=True))
        index_of = {
            coordinate: index
            for index, coordinate in enumerate(coordinates)
            if not points[index] and min(coordinate) >= 0
        }
        return [
            index_of.get(coordinate) if work else None
            for coordinate, work in zip(coordinates, points, strict=True)
        ]

    def target_lengths(self, problems: Problems) -> Tensor:
        """Return the number of tokens after `=`, int64 (B,)."""
        return _Insertions.of(problems, ranks_of(problems)).widths_BE.sum(dim=1) + 1

    def _target_piece(self, problems: Problems, answer: Answer) -> Piece:
        assert isinstance(answer, Ordering)
        rank = torch.arange(problems.num_operands, device=answer.ranked_BN.device)
        rank = rank.expand_as(answer.ranked_BN)
        # Numbers that a problem lacks come last.
        numbers = torch.where(rank < answer.counts_B.unsqueeze(1), answer.ranked_BN, rank)
        work = _Insertions.of(problems, torch.zeros_like(rank).scatter(1, numbers, rank))
        widths = work.widths_BE.flatten()
        flat_entry = torch.arange(len(widths), device=widths.device).repeat_interleave(widths)
        within = torch.arange(len(flat_entry), device=widths.device)
        within = within - (widths.cumsum(0) - widths)[flat_entry]
        problem, entry = flat_entry // len(work.news_E), flat_entry % len(work.news_E)
        # An entry is a comma if it is the first of a list, the comparison, and a label.
        within = within - work.begins_E[entry]
        places = work.places_BE.flatten()[flat_entry]
        column = work.tops_BE.flatten()[flat_entry] - 1 - within.div(2, rounding_mode="floor")
        column = column.clamp(0, max(0, problems.digits_BNW.shape[2] - 1))
        in_list, new = work.olds_BE.flatten()[flat_entry], work.news_E[entry]
        digit = problems.digits_BNW[problem, in_list, column].int()
        new_digit = problems.digits_BNW[problem, new, column].int()
        comparison = self.same_id + (digit - new_digit).sign()
        tokens = torch.where(within % 2 == 0, digit, comparison)
        tokens = torch.where(
            within == 2 * places, self.first_label + work.labels_BE.flatten()[flat_entry], tokens
        )
        tokens = torch.where(within < 0, self.comma_id, tokens)
        widths_B = work.widths_BE.sum(dim=1)
        longest = int(widths_B.max()) if len(widths_B) else 0
        ids = torch.zeros(len(problems), longest, dtype=torch.uint8, device=widths.device)
        ids[torch.arange(longest, device=widths.device) < widths_B.unsqueeze(1)] = tokens.to(
            torch.uint8
        )
        return Piece(ids, widths_B)

    def _pointers(
        self, ids: Tensor, after_equals: Tensor, lengths: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the place and row that each token of the work points to, and the number inserted there.

        All are (B, T). `lengths` (B, MOST_LABELS + 2) holds the digits of each number, from index 1 on.
        """
        num_tokens = ids.shape[1]

        def count(selected: Tensor) -> Tensor:
            """Return the number of selected tokens of the work up to each token, itself included."""
            return (selected & after_equals).cumsum(dim=1)

        def at_last(selected: Tensor, values: Tensor) -> Tensor:
            """Return values, which never fall, as they were at the last selected token."""
            return torch.where(selected & after_equals, values, 0).cummax(dim=1).values

        is_label, is_comma = ids >= self.first_label, ids == self.comma_id
        is_digit, is_same, is_larger = ids < 10, ids == self.same_id, ids == self.larger_id
        labels, insertions, sames = map(count, (is_label, is_larger, is_same))
        new = count(is_comma) + 1
        # Labels are counted over all lists: the previous list has those from `begin_before` to `begin`.
        begin = at_last(is_comma, labels)
        begin_before = at_last(is_comma, torch.nn.functional.pad(begin, (1, 0))[:, :num_tokens])
        in_list = labels - begin
        is_in = insertions > at_last(is_comma, insertions)
        next_old = begin_before + in_list - (is_in & is_label).int()
        is_old = next_old < begin
        # All labels one after the other. Other tokens go to the last column, which is not used.
        column = torch.where(is_label & after_equals, labels - 1, num_tokens)
        listed = torch.zeros(len(ids), num_tokens + 1, dtype=torch.int64, device=ids.device)
        listed.scatter_(1, column, ids.long() - self.first_label + 1)
        old = torch.where(is_old, listed.gather(1, next_old.clamp(0, num_tokens)), 0)
        beyond = lengths.shape[1] - 1
        top = torch.maximum(lengths.gather(1, old), lengths.gather(1, new.clamp(max=beyond)))
        lower = sames - at_last(is_label | is_comma, sames)

        points_to_new = is_digit | is_larger | (is_label & ~is_old)
        number = torch.where(points_to_new, new, old)
        place = (top - lower).clamp(min=ANCHOR)
        to_label = (ids == self.smaller_id) | is_larger | (is_label & (is_in | ~is_old))
        place = place.masked_fill(to_label, ANCHOR)
        is_complete = is_label & (in_list >= new)
        row = 2 * number + is_complete.int()
        points = is_label | is_comma | is_digit | is_same | (ids == self.smaller_id) | is_larger
        nowhere = ~points | (number == 0)
        return place.masked_fill(nowhere, NO_PLACE), row.masked_fill(nowhere, NO_PLACE), new


@dataclass(frozen=True)
class _Insertions:
    """The lists that insertions make, and which numbers they compare.

    E = N (N + 1) / 2 entries: those of all lists, one list after the other. Numbers count from 0.
    """

    news_E: Tensor
    """int64, the number that is inserted into this entry's list."""
    olds_BE: Tensor
    """int64, the number of the previous list in this entry; arbitrary if it has none."""
    labels_BE: Tensor
    """int64, the number in this entry."""
    begins_E: Tensor
    """int64, 1 if a comma comes before this entry, else 0."""
    tops_BE: Tensor
    """int64, the highest place that one of the two compared numbers has."""
    places_BE: Tensor
    """int64, the number of places that are compared."""
    widths_BE: Tensor
    """int64, tokens of each entry; 0 if a problem has fewer numbers."""

    @staticmethod
    def of(problems: Problems, ranks_BN: Tensor) -> "_Insertions":
        """Plan the insertions from the rank of each number in ascending order."""
        batch, num_numbers = ranks_BN.shape
        device = ranks_BN.device
        news_E, within_E = torch.tril_indices(num_numbers, num_numbers, device=device)
        before_BNN = (ranks_BN.unsqueeze(2) < ranks_BN.unsqueeze(1)).cumsum(dim=1)
        number = torch.arange(num_numbers, device=device)
        # Numbers that are not in a list yet go to the last column, which is not used.
        place_BNN = before_BNN.masked_fill(number > number.unsqueeze(1), num_numbers)
        lists = torch.zeros(batch, num_numbers, num_numbers + 1, dtype=torch.int64, device=device)
        lists.scatter_(2, place_BNN, number.expand_as(place_BNN))
        olds_BE = lists[:, (news_E - 1).clamp(min=0), within_E]
        inserted_BN = before_BNN.diagonal(dim1=1, dim2=2)
        present_BE = news_E < problems.counts_B.unsqueeze(1)
        compared_BE = (within_E < news_E) & (within_E <= inserted_BN[:, news_E]) & present_BE
        lengths = problems.lengths_BN
        tops_BE = torch.maximum(lengths.gather(1, olds_BE), lengths[:, news_E])
        problem, entry = compared_BE.nonzero().unbind(dim=1)
        digits = problems.digits_BNW
        differ = digits[problem, olds_BE[problem, entry]] != digits[problem, news_E[entry]]
        # Above the longer number, the columns of both hold 0.
        equal_above = differ.flip(1).byte().argmax(dim=1)
        highest = torch.where(differ.any(dim=1), digits.shape[2] - equal_above, 1)
        places_BE = torch.zeros_like(tops_BE)
        places_BE[problem, entry] = tops_BE[problem, entry] - highest + 1
        begins_E = ((within_E == 0) & (news_E > 0)).long()
        return _Insertions(
            news_E=news_E,
            olds_BE=olds_BE,
            labels_BE=lists[:, news_E, within_E],
            begins_E=begins_E,
            tops_BE=tops_BE,
            places_BE=places_BE,
            widths_BE=(begins_E + 2 * places_BE + 1) * present_BE,
        )


class _PointersContinuation(Continuation):
    """Keeps the place in the lists, as `InsertionSortFormat._pointers` finds it from whole lines."""

    def __init__(
        self, format: InsertionSortFormat, prompt: AnnotatedTokens, max_new_tokens: int
    ) -> None:
        assert prompt.row is not None
        self.falls = {"step": 0}
        self._format, batch = format, len(prompt.ids)
        self._lines = np.arange(batch)
        lengths = torch.zeros(batch, MOST_LABELS + 2, dtype=torch.int32)
        is_operand = prompt.field >= Field.OPERAND
        number = torch.where(is_operand, prompt.row // 2, 0).long()
        lengths.scatter_reduce_(1, number, torch.where(is_operand, prompt.place, 0), "amax")
        self._lengths: Integers = lengths.long().numpy()
        # The labels of all lists, one after the other.
        self._listed = np.zeros((batch, max_new_tokens + 1), np.int64)
        (
            self._steps,
            self._labels,
            self._insertions,
            self._sames,
            self._begin,
            self._begin_before,
            self._insertions_before,
            self._sames_before,
        ) = np.zeros((8, batch), np.int64)
        self._new = np.ones(batch, np.int64)

    def append(self, ids_B: Integers) -> TokenCoordinates:
        """Return the coordinates of the next token of every line."""
        format = self._format
        is_label, is_comma = ids_B >= format.first_label, ids_B == format.comma_id
        is_digit, is_smaller = ids_B < len(DIGITS), ids_B == format.smaller_id
        is_same, is_larger = ids_B == format.same_id, ids_B == format.larger_id
        self._listed[self._lines, self._labels] = ids_B - format.first_label + 1
        self._steps = self._steps + 1
        self._labels = self._labels + is_label
        self._insertions = self._insertions + is_larger
        self._sames = self._sames + is_same
        self._new = self._new + is_comma
        self._begin_before = np.where(is_comma, self._begin, self._begin_before)
        self._begin = np.where(is_comma, self._labels, self._begin)
        self._insertions_before = np.where(is_comma, self._insertions, self._insertions_before)
        self._sames_before = np.where(is_label | is_comma, self._sames, self._sames_before)

        in_list, is_in = self._labels - self._begin, self._insertions > self._insertions_before
        next_old = self._begin_before + in_list - (is_in & is_label)
        is_old = next_old < self._begin
        old = np.where(is_old, self._listed[self._lines, np.where(is_old, next_old, 0)], 0)
        new_length = self._lengths[self._lines, np.minimum(self._new, self._lengths.shape[1] - 1)]
        top = np.maximum(self._lengths[self._lines, old], new_length)
        points_to_new = is_digit | is_larger | (is_label & ~is_old)
        number = np.where(points_to_new, self._new, old)
        to_label = is_smaller | is_larger | (is_label & (is_in | ~is_old))
        lower = self._sames - self._sames_before
        place = np.where(to_label, ANCHOR, np.maximum(top - lower, ANCHOR))
        row = 2 * number + (is_label & (in_list >= self._new))
        points = is_label | is_comma | is_digit | is_smaller | is_same | is_larger
        nowhere = ~points | (number == 0)
        return TokenCoordinates(
            np.where(nowhere, NO_PLACE, place), np.where(nowhere, NO_PLACE, row), self._steps
        )
