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
tokens of a single column. Every machine with a finite number of states can be written like that.
"""

import torch
from torch import Tensor

from abacist.errors import ConfigurationError
from abacist.formats.annotated import AnnotatedTokens, Field
from abacist.formats.config import ColumnsFormatConfig
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

    def __init__(self, config: ColumnsFormatConfig, task: TaskConfig) -> None:
        assert isinstance(task, ColumnTaskConfig)
        machine = COLUMN_TASKS[task.machine]
        self.writes_states = config.states
        self.left_over = machine.rule.left_over
        tokens: tuple[str, ...] = ()
        if config.states or self.left_over == "state":
            if machine.num_states > MOST_STATE_TOKENS:
                raise ConfigurationError(
                    f"a notation with states has a token for each, and at most {MOST_STATE_TOKENS}; "
                    f"{task.machine} has {machine.num_states:,} states. Try fewer states."
                )
            tokens = tuple(f"[{state}]" for state in range(machine.num_states))
        elif self.left_over == "sign":
            tokens = ("-",)
        super().__init__(config, task, tokens)
        assert isinstance(self.task, ColumnTask)
        self.machine, self.rule = machine, machine.rule
        self.first_state = self.start_id + 1

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
        return columns * (2 if self.writes_states else 1) + 2

    def _operand_piece(self, problems: Problems, position: int) -> Piece:
        operand = problems.operand(position)
        if not self.rule.most_significant_first:
            return Piece(operand.digits_BW, operand.lengths_B)
        return Piece(operand.digits_BW, problems.lengths_BN.amax(dim=1), mirrored=True)

    def _target_piece(self, problems: Problems, answer: Answer) -> Piece:
        assert isinstance(answer, ColumnAnswer)
        written, lengths = answer.digits_BW.long(), answer.lengths_B
        if self.writes_states:
            pairs = torch.stack([written, answer.states_BW + self.first_state], dim=2)
            return Piece(pairs.flatten(1), 2 * lengths)
        if self.left_over not in ("sign", "state"):
            return Piece(written, lengths)
        final = answer.final_B
        with_room = torch.nn.functional.pad(written, (0, 1))
        token = self.left_over_token(final).unsqueeze(1)
        return Piece(with_room.scatter(1, lengths.unsqueeze(1), token), lengths + (final != 0))

    def _annotate(self, ids: Tensor) -> AnnotatedTokens:
        lines = super()._annotate(ids)
        if not self.writes_states:
            return lines
        # Of the tokens after `=`, every second is a state, and `=` itself stands for state 0.
        is_answer, is_equals = lines.field == Field.ANSWER, lines.field == Field.EQUALS
        is_state = lines.place % 2 == 0
        from_equals = is_answer | is_equals | (lines.field == Field.PADDING)
        column = torch.div(lines.place, 2, rounding_mode="floor") + 1
        lines.place.copy_(torch.where(from_equals, column, lines.place))
        lines.field.masked_fill_(is_state & is_answer, int(Field.SCRATCH))
        return lines

    def _read(self, tokens: list[int], longest: int) -> str | None:
        state = 0
        if self.writes_states:
            written, states = tokens[::2], [token - self.first_state for token in tokens[1::2]]
            if len(states) != len(written) or any(s < 0 for s in states):
                return None
            state = states[-1] if states else 0
        else:
            written = tokens
            if tokens and tokens[-1] >= self.first_state:
                state = tokens[-1] - self.first_state
                state, written = state + (self.left_over == "sign"), tokens[:-1]
        extra = len(written) - longest
        most = self.machine.most_extra_columns
        if not 0 <= extra <= most or any(token >= self.base for token in written):
            return None
        return answer_text(written, state, self.rule)
