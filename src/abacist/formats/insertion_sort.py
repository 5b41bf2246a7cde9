"""Sorting by insertion: `a:821,b:9,c:35` is `a:821,b:9,c:35=a,8>ba,0<b8>ca<end>`.

Behind `=` stands a list for each number: all numbers up to it in order, as labels. The first list is
`a`. Behind the comma each further number is inserted into the list before: it is compared with the
first of them, the second and so on, until one is larger; there its label is written, and then the
rest of the list.

    a           the list of a alone
    ,8>ba       b is inserted: a has 8 hundreds and b none, so a is larger: b, and then a
    ,0<b8>ca    c is inserted: b has no tens, 0, fewer than c, so b stays; a is larger: c, then a

A comparison begins at the highest place that one of the two has, where it writes the digit of the
number in the list, 0 if there is none, and how it compares: `<` and that number stays, `>` and the
new one comes before it, `~` and the next lower place is compared. Behind `~` in the units both are
equal and the one in the list stays: equal numbers keep their order.

The numbers themselves are written only once, in the prompt; what is written about one is written
where it stands. That is all that coordinates tell: each token of the work *points* to the next thing
to be looked at, a digit, a label, or what stands before a number, by having its row and place.

* Number k stands in row 2k: its digits at the places of their significance, its label at place 0.
  The comma before it stands in row 2k - 1 at place 0, and `=` where another comma would.
* Each token of the work has a step of its own; the prompt stands in every step. So with windows of
  nothing but the own row, place and step, a token sees itself and what it points to: a place of a
  number, or nothing where that has no digit.
* A digit points to the same place of the new number, with which it is compared; `~` to the next lower
  place of the number in the list, which is its label below the units; `<` to the label of that
  number and `>` to that of the new one.
* A label, or the comma, points to what comes next in the list before: the highest place of the
  comparison, or the label if the new number is in already; behind the last of them to the new
  number's own label, and where that is in, to the comma before the number to be inserted next.

So what follows is what is pointed to, copied, but for a digit, which is compared with it, and for `=`,
which ends the line. Which labels are in the lists is the work of the model; coordinates only keep
the place in them, as a finger would. Both are counted on what has been written: labels, commas,
`>` and `~`.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from abacist.formats.annotated import ANCHOR, EVERYWHERE, NO_PLACE, AnnotatedTokens, Field
from abacist.formats.config import InsertionSortFormatConfig, LabelsFormatConfig, Layout
from abacist.formats.labels import LabelsFormat
from abacist.formats.pieces import Piece
from abacist.formats.roles import Role, decode
from abacist.tasks.config import MOST_LABELS, TaskConfig
from abacist.tasks.problems import Answer, Ordering, Problems
from abacist.tasks.sorting import ranks_of
from abacist.vocabulary import DIGITS

DIGIT, LABEL = "digit", "label"
"""The parts of a calculation, as `roles` names them."""


class InsertionSortFormat(LabelsFormat):
    """Writes, annotates and reads sorting problems with their work. Prompts are those of `labels`."""

    layout: Layout = "similar"
    enumeration = "insertion-sort"
    marks: ClassVar[tuple[str, ...]] = ("<", "~", ">")

    def __init__(self, config: InsertionSortFormatConfig, task: TaskConfig) -> None:
        super().__init__(LabelsFormatConfig(start_token=config.start_token), task)
        self.smaller_id, self.same_id, self.larger_id = map(self.vocabulary.id, self.marks)

    def annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        """Place, row, step, field and target of every token, from the ids alone.

        What stands behind `=` is annotated from the prompt and the tokens before it, never from
        later ones.
        """
        ids = ids_BT.int()
        is_equals = ids == self.equals_id
        answering = is_equals.cumsum(dim=1, dtype=torch.int32) > is_equals
        is_equals &= ~answering
        # Work is left out, so that lines of one shape are of one pattern.
        prompt = super().annotate(ids.masked_fill(answering, self.end_id))
        assert prompt.row is not None
        number = torch.where(answering, 0, prompt.row).clamp(min=0)
        is_operand = (prompt.field >= Field.OPERAND) & ~answering
        last = number.amax(dim=1, keepdim=True)
        lengths = torch.zeros(len(ids), MOST_LABELS + 2, dtype=torch.int32, device=ids.device)
        lengths.scatter_reduce_(1, number.long(), torch.where(is_operand, prompt.place, 0), "amax")
        place = torch.where(ids == self.colon_id, NO_PLACE, prompt.place)
        is_comma = ids == self.comma_id
        place.masked_fill_(is_comma, ANCHOR)
        row = torch.where(prompt.row > 0, 2 * number + is_comma.int(), prompt.row)
        row = torch.where(is_equals, 2 * last + 1, row)
        work_place, work_row, new = self._pointers(ids, answering, lengths)
        place, row = (
            torch.where(answering, work, given)
            for work, given in ((work_place, place), (work_row, row))
        )
        step = torch.where(answering, answering.cumsum(dim=1, dtype=torch.int32), EVERYWHERE)
        is_end = ids == self.end_id
        padding = is_end.cumsum(dim=1, dtype=torch.int32) > is_end
        is_answer = (ids >= self.first_label) & (new >= last) | is_end
        work_field = torch.where(is_answer, int(Field.ANSWER), int(Field.SCRATCH))
        field = torch.where(answering, work_field, prompt.field).to(torch.uint8)
        field.masked_fill_(padding, int(Field.PADDING))
        target = answering & ~padding
        return AnnotatedTokens(ids, place.int(), field, target, row.int(), step.int())

    def read(self, ids_BT: Tensor) -> list[str | None]:
        """The answers of whole lines as labels; None where one is malformed.

        Strict: each token is of the kind that the one before it calls for, to the end token, and
        the last list holds every label once. Whether comparisons and other lists are right does
        not matter.
        """
        lines = self.annotate(ids_BT)
        assert lines.row is not None
        ids, place, row = lines.ids, lines.place, lines.row
        is_equals = lines.field == Field.EQUALS
        ends = torch.where(is_equals, row, 0).amax(dim=1, keepdim=True)
        label, digit, mark, comma, end, other = range(6)
        kind = torch.full_like(ids, other)
        kind[ids < 10] = digit
        for token, its_kind in ((self.comma_id, comma), (self.end_id, end)):
            kind[ids == token] = its_kind
        kind[ids >= self.smaller_id] = mark
        kind[ids >= self.first_label] = label
        # What is called for: what is pointed to, but for a digit and for `=`.
        called = torch.where(place > 0, digit, label)
        called[(row % 2 == 1) & (place == ANCHOR)] = comma
        called[(row == ends) & (place == ANCHOR)] = end
        called[is_equals] = label
        called[kind == digit] = mark
        behind = lines.target[:, 1:]
        proper = ((called[:, :-1] == kind[:, 1:]) | ~behind).all(dim=1)
        proper &= ((kind == end) & lines.target).any(dim=1) & is_equals.any(dim=1)
        is_listed = (lines.field == Field.ANSWER) & (kind == label)
        answers: list[str | None] = []
        for tokens, listed, right, behind_last in zip(
            ids, is_listed, proper.tolist(), ends.squeeze(1).tolist(), strict=True
        ):
            found = tokens[listed].tolist()
            expected = range(self.first_label, self.first_label + behind_last // 2)
            complete = right and sorted(found) == list(expected)
            answers.append(self.vocabulary.text(found) if complete else None)
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
        """int64 (B,): tokens behind `=`."""
        return _Insertions.of(problems, ranks_of(problems)).widths_BS.sum(dim=1) + 1

    def _target_piece(self, problems: Problems, answer: Answer) -> Piece:
        """All lists, one after the other, with the comparisons."""
        assert isinstance(answer, Ordering)
        rank = torch.arange(problems.num_operands, device=answer.ranked_BN.device)
        rank = rank.expand_as(answer.ranked_BN)
        # Numbers that are not there come last.
        numbers = torch.where(rank < answer.counts_B.unsqueeze(1), answer.ranked_BN, rank)
        work = _Insertions.of(problems, torch.zeros_like(rank).scatter(1, numbers, rank))
        widths = work.widths_BS.flatten()
        entry = torch.arange(len(widths), device=widths.device).repeat_interleave(widths)
        within = torch.arange(len(entry), device=widths.device)
        within = within - (widths.cumsum(0) - widths)[entry]
        problem, slot = entry // len(work.news_S), entry % len(work.news_S)
        # An entry is a comma if it is the first of a list, the comparison, and a label.
        within = within - work.begins_S[slot]
        places = work.places_BS.flatten()[entry]
        column = work.tops_BS.flatten()[entry] - 1 - within.div(2, rounding_mode="floor")
        column = column.clamp(0, max(0, problems.digits_BNW.shape[2] - 1))
        in_list, new = work.olds_BS.flatten()[entry], work.news_S[slot]
        here = problems.digits_BNW[problem, in_list, column].int()
        there = problems.digits_BNW[problem, new, column].int()
        compared = self.same_id + (here - there).sign()
        tokens = torch.where(within % 2 == 0, here, compared)
        tokens = torch.where(
            within == 2 * places, self.first_label + work.labels_BS.flatten()[entry], tokens
        )
        tokens = torch.where(within < 0, self.comma_id, tokens)
        widths_B = work.widths_BS.sum(dim=1)
        longest = int(widths_B.max()) if len(widths_B) else 0
        ids = torch.zeros(len(problems), longest, dtype=torch.uint8, device=widths.device)
        ids[torch.arange(longest, device=widths.device) < widths_B.unsqueeze(1)] = tokens.to(
            torch.uint8
        )
        return Piece(ids, widths_B)

    def _pointers(
        self, ids: Tensor, answering: Tensor, lengths: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Place and row that every token of the work points to, and which number is inserted there.

        (B, T) each; `lengths` are those of the numbers, (B, MOST_LABELS + 2), the first being 1.
        """
        num_tokens = ids.shape[1]

        def count(which: Tensor) -> Tensor:
            """How many there were, the token itself included."""
            return (which & answering).cumsum(dim=1)

        def when(which: Tensor, values: Tensor) -> Tensor:
            """What never falls, as it was at the last of these tokens."""
            return torch.where(which & answering, values, 0).cummax(dim=1).values

        is_label, is_comma = ids >= self.first_label, ids == self.comma_id
        is_digit, is_same, is_larger = ids < 10, ids == self.same_id, ids == self.larger_id
        labels, insertions, sames = map(count, (is_label, is_larger, is_same))
        new = count(is_comma) + 1
        # The list before goes from one label to another, counted over all lists.
        begin = when(is_comma, labels)
        begin_before = when(is_comma, torch.nn.functional.pad(begin, (1, 0))[:, :num_tokens])
        in_list = labels - begin
        is_in = insertions > when(is_comma, insertions)
        next_old = begin_before + in_list - (is_in & is_label).int()
        is_old = next_old < begin
        # All labels one after the other; those that are none go to a column of their own.
        where = torch.where(is_label & answering, labels - 1, num_tokens)
        listed = torch.zeros(len(ids), num_tokens + 1, dtype=torch.int64, device=ids.device)
        listed.scatter_(1, where, ids.long() - self.first_label + 1)
        old = torch.where(is_old, listed.gather(1, next_old.clamp(0, num_tokens)), 0)
        beyond = lengths.shape[1] - 1
        top = torch.maximum(lengths.gather(1, old), lengths.gather(1, new.clamp(max=beyond)))
        lower = sames - when(is_label | is_comma, sames)

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
    """Which number is compared with which, and what lists come of it.

    S slots: all entries of all lists, N (N + 1) / 2, one list after the other. Numbers count from 0.
    """

    news_S: Tensor
    """int64, the number that is inserted."""
    olds_BS: Tensor
    """int64, the number of the list before that stands there; any where there is none."""
    labels_BS: Tensor
    """int64, the number that stands there now."""
    begins_S: Tensor
    """int64, 1 where a comma stands before."""
    tops_BS: Tensor
    """int64, the highest place of either number."""
    places_BS: Tensor
    """int64, how many places of theirs are compared."""
    widths_BS: Tensor
    """int64, tokens of each entry; 0 where a problem has fewer numbers."""

    @staticmethod
    def of(problems: Problems, ranks_BN: Tensor) -> "_Insertions":
        """`ranks_BN`: where in the order each number comes."""
        batch, num_numbers = ranks_BN.shape
        device = ranks_BN.device
        news_S, within_S = torch.tril_indices(num_numbers, num_numbers, device=device)
        before_BNN = (ranks_BN.unsqueeze(2) < ranks_BN.unsqueeze(1)).cumsum(dim=1)
        number = torch.arange(num_numbers, device=device)
        # Numbers that are not in a list yet go to a column of their own.
        place_BNN = before_BNN.masked_fill(number > number.unsqueeze(1), num_numbers)
        lists = torch.zeros(batch, num_numbers, num_numbers + 1, dtype=torch.int64, device=device)
        lists.scatter_(2, place_BNN, number.expand_as(place_BNN))
        olds_BS = lists[:, (news_S - 1).clamp(min=0), within_S]
        inserted_BN = before_BNN.diagonal(dim1=1, dim2=2)
        present_BS = news_S < problems.counts_B.unsqueeze(1)
        compared_BS = (within_S < news_S) & (within_S <= inserted_BN[:, news_S]) & present_BS
        lengths = problems.lengths_BN
        tops_BS = torch.maximum(lengths.gather(1, olds_BS), lengths[:, news_S])
        problem, slot = compared_BS.nonzero().unbind(dim=1)
        digits = problems.digits_BNW
        differ = digits[problem, olds_BS[problem, slot]] != digits[problem, news_S[slot]]
        # Columns above the higher number are equal in both: 0.
        equal_above = differ.flip(1).byte().argmax(dim=1)
        highest = torch.where(differ.any(dim=1), digits.shape[2] - equal_above, 1)
        places_BS = torch.zeros_like(tops_BS)
        places_BS[problem, slot] = tops_BS[problem, slot] - highest + 1
        begins_S = ((within_S == 0) & (news_S > 0)).long()
        return _Insertions(
            news_S=news_S,
            olds_BS=olds_BS,
            labels_BS=lists[:, news_S, within_S],
            begins_S=begins_S,
            tops_BS=tops_BS,
            places_BS=places_BS,
            widths_BS=(begins_S + 2 * places_BS + 1) * present_BS,
        )
