"""The notations of column tasks: one digit after the other in the order in which the columns are read.

>>> format.text(problem)  # 12,34 in base 7, from the least significant column up
'<start>21,43=64<end>'
>>> with_states.text(problem)  # the same with the state after every digit
'<start>21,43=6[0]4[0]<end>'

A machine that begins with the most significant column has its numbers in the usual order, with zeros
before shorter operands. The place of a digit is the number of its column in the order of reading.

In the plain notation, a digit of the answer follows from its own column, from the column before it and
from the digit written there, provided that these determine the state. In the other notation, a state
belongs to the column that is entered in it, so that both a digit and the next state follow from the
tokens of a single column. Machines of more than 200 states write the digits of a state instead, in the
format `column-trace-digits`.
"""

import torch
from torch import Tensor

from abacist.errors import ConfigurationError
from abacist.formats.annotated import AnnotatedTokens, Field
from abacist.formats.config import ColumnsFormatConfig, ColumnTraceDigitsFormatConfig
from abacist.formats.continuation import Continuation
from abacist.formats.pieces import Piece
from abacist.formats.roles import Role, decode
from abacist.formats.text import TextFormat
from abacist.tasks.column_task import ColumnAnswer, ColumnTask, answer_text
from abacist.tasks.config import COLUMN_TASKS, ColumnTaskConfig, TaskConfig
from abacist.tasks.problems import Answer, Problems

MOST_STATE_TOKENS = 200
"""Largest number of states that have a token."""
OPERAND, DIGIT, STATE = "operand", "digit", "state"
"""Parts of a line, as `roles` names them."""


class ColumnsFormat(TextFormat):
    """Writes, annotates and reads the problems of a column task."""

    enumeration = "column-addition"
    usual_order = False

    def __init__(
        self, config: ColumnsFormatConfig | ColumnTraceDigitsFormatConfig, task: TaskConfig
    ) -> None:
        assert isinstance(task, ColumnTaskConfig)
        self.machine = COLUMN_TASKS[task.machine]
        self.rule, self.left_over = self.machine.rule, self.machine.rule.left_over
        self.writes_states = config.states
        super().__init__(config, task, self._further_tokens())
        assert isinstance(self.task, ColumnTask)
        self.first_state = self.start_id + 1
        self.column_tokens = 2 if self.writes_states else 1
        """Number of tokens written for each column."""

    def roles(self, ids_T: Tensor) -> list[Role]:
        """Return the role of each token of one whole line.

        A digit of operand k has row k, starting at 1. The column of a state is the one entered in it.
        """

        def role(token: int, field: int, place: int, row: int) -> Role:
            if field >= Field.OPERAND:
                return Role(OPERAND, place, field - Field.OPERAND + 1)
            if field == Field.SCRATCH:
                return Role(STATE, place)
            if field == Field.ANSWER and token != self.end_id:
                return Role(DIGIT, place)
            return Role(self.vocabulary.tokens[token])

        return decode(self.annotate(ids_T.unsqueeze(0)), role)

    def continuation(self, prompt: AnnotatedTokens, max_new_tokens: int) -> Continuation:
        """Return the coordinates of new tokens, which follow from the prompt in both notations."""
        return super().continuation(prompt, max_new_tokens)

    def left_over_token(self, state_n: Tensor) -> Tensor:
        """Return the token that the plain notation writes for a final state other than 0, int64 (n,)."""
        if self.left_over == "state":
            return self.first_state + state_n
        return torch.full_like(
            state_n, self.first_state if self.left_over == "sign" else self.end_id
        )

    def target_lengths(self, problems: Problems) -> Tensor:
        """Return the largest possible number of tokens after `=`, int64 (B,)."""
        columns = problems.lengths_BN.amax(dim=1) + self.machine.most_extra_columns
        return columns * self.column_tokens + 2

    def _further_tokens(self) -> tuple[str, ...]:
        """Return the tokens that stand after `=` only."""
        machine = self.machine
        if not self.writes_states and self.left_over != "state":
            return ("-",) if self.left_over == "sign" else ()
        if machine.num_states > MOST_STATE_TOKENS:
            raise ConfigurationError(
                f"this format has a token for each state, and at most {MOST_STATE_TOKENS}; "
                f"{machine.name} has {machine.num_states:,} states. Try --format column-trace-digits."
            )
        return tuple(f"[{state}]" for state in range(machine.num_states))

    def _operand_piece(self, problems: Problems, position: int) -> Piece:
        operand = problems.operand(position)
        if not self.rule.most_significant_first:
            return Piece(operand.digits_BW, operand.lengths_B)
        return Piece(operand.digits_BW, problems.lengths_BN.amax(dim=1), mirrored=True)

    def _target_piece(self, problems: Problems, answer: Answer) -> Piece:
        assert isinstance(answer, ColumnAnswer)
        written, lengths = answer.digits_BW.long(), answer.lengths_B
        if self.writes_states:
            columns = torch.stack([written, *self.state_tokens(answer.states_BW)], dim=2)
            return Piece(columns.flatten(1), self.column_tokens * lengths)
        if self.left_over not in ("sign", "state"):
            return Piece(written, lengths)
        final = answer.final_B
        with_room = torch.nn.functional.pad(written, (0, 1))
        token = self.left_over_token(final).unsqueeze(1)
        return Piece(with_room.scatter(1, lengths.unsqueeze(1), token), lengths + (final != 0))

    def _annotate(self, ids: Tensor) -> AnnotatedTokens:
        lines = super()._annotate(ids)
        if self.writes_states:
            self._place_in_columns(lines)
        return lines

    def _place_in_columns(self, lines: AnnotatedTokens) -> Tensor:
        """Set the places and fields of written tokens; return each one's number in its column, int (B, T).

        The last token written for a column belongs to the next one, and `=` to the first.
        """
        is_written = lines.target | (lines.field == Field.EQUALS) | (lines.field == Field.PADDING)
        within = (lines.place - 1) % self.column_tokens
        column = torch.div(lines.place - 1, self.column_tokens, rounding_mode="floor") + 1
        column += within == self.column_tokens - 1
        lines.place.copy_(torch.where(is_written, column, lines.place))
        lines.field.masked_fill_(lines.target & (within > 0), int(Field.SCRATCH))
        return torch.where(is_written, within, -1)

    def state_tokens(self, states: Tensor) -> list[Tensor]:
        """Return the tokens that are written for states, int64 with one element for each state."""
        return [states + self.first_state]

    def _read_state(self, tokens: list[int]) -> int | None:
        """Return the state that the tokens after a digit spell, or None."""
        state = tokens[0] - self.first_state
        return state if state >= 0 else None

    def _read(self, tokens: list[int], longest: int) -> str | None:
        written, state = tokens, 0
        if self.writes_states:
            written = tokens[:: self.column_tokens]
            if len(tokens) != len(written) * self.column_tokens:
                return None
            states = [
                self._read_state(tokens[first + 1 : first + self.column_tokens])
                for first in range(0, len(tokens), self.column_tokens)
            ]
            if None in states:
                return None
            state = (states and states[-1]) or 0
        elif tokens and tokens[-1] >= self.first_state:
            state = tokens[-1] - self.first_state
            state, written = state + (self.left_over == "sign"), tokens[:-1]
        extra = len(written) - longest
        most = self.machine.most_extra_columns
        if not 0 <= extra <= most or any(token >= self.base for token in written):
            return None
        return answer_text(written, state, self.rule)
