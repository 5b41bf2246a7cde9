"""Column tasks with the state as digits, for machines of more states than there can be tokens.

>>> format.text(problem)  # 12,34 in base 7, from the least significant column up
'<start>21,43=6[0₁]4[0₁]<end>'

Each bracket and each digit of a state is a token; the subscript is the place of the digit, 1 for units.
A machine of 487 states writes `2[3₃2₂8₁]`: the digit of the answer, and 328 as the next state. States
have as many digits as the largest one, in the order of the other numbers of the line, so a machine that
begins with the least significant column writes `2[8₁2₂3₃]`.

Every token must follow from its column's digits and from the state in which that column is entered. No
window of places shows a query just these: if it reaches back to the state, which the column before has
left, it also holds the digits of that column. A window of *steps* does, because steps count thirds of a
column: first its operands, then the digit written, then the state. Where 328 is the state before column 7,

    token         3₃   2₂   8₁   ]    4    [    1₃   5₂   6₁
    place         6    6    6    7    7    7    7    7    7
    step          20   20   20   23   22   23   23   23   23

the operands have step 21 in column 7 and step 18 in column 6. Of the steps 20 to 23, a query at step 23
sees the digits of column 7 and both states. What a digit of the answer sees is cut by a window of rows,
which holds its own row and those above; the row of states is below it.
"""

from dataclasses import replace
from functools import cached_property

import torch
from torch import Tensor

from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.columns import STATE, ColumnsFormat
from abacist.formats.config import ColumnTraceDigitsFormatConfig
from abacist.formats.continuation import Continuation, PlannedContinuation
from abacist.formats.roles import Role
from abacist.formats.text import TextFormat
from abacist.tasks.config import TaskConfig
from abacist.vocabulary import DIGITS

OPENING, CLOSING = "[", "]"
"""Parts of a line, as `roles` names them: the brackets around a state."""
STATE_DIGIT = "state digit"
_SUBSCRIPTS = "₀₁₂₃₄"


class ColumnTraceDigitsFormat(ColumnsFormat):
    """Writes, annotates and reads the problems of a column task, with states as digits in brackets."""

    def __init__(self, config: ColumnTraceDigitsFormatConfig, task: TaskConfig) -> None:
        super().__init__(config, task)
        self.opening_id, self.closing_id = map(self.vocabulary.id, (OPENING, CLOSING))
        self.column_tokens = len(self.places_of_state) + 3

    @cached_property
    def places_of_state(self) -> tuple[int, ...]:
        """The places of the digits of a state, 1 for units, in the order in which they are written."""
        places = tuple(range(1, len(str(self.machine.num_states - 1)) + 1))
        return places[::-1] if self.rule.most_significant_first else places

    def roles(self, ids_T: Tensor) -> list[Role]:
        """Return the role of each token of one whole line.

        A digit of operand k has row k, and so has the digit of a state that is written k-th, starting at
        1. The column of a state and of the bracket after it is the one entered in that state.
        """

        def role(token: int, role: Role) -> Role:
            if role.part != STATE:
                return role
            if token in (self.opening_id, self.closing_id):
                return role._replace(part=self.vocabulary.tokens[token])
            number = (token - self.first_state) // 10
            return Role(STATE_DIGIT, role.column + 1, number + 1)

        return [role(*pair) for pair in zip(ids_T.tolist(), super().roles(ids_T), strict=True)]

    def continuation(self, prompt: AnnotatedTokens, max_new_tokens: int) -> Continuation:
        """Return the coordinates of new tokens, which follow from the prompt alone."""
        falls = {"place": 0, "row": 1, "step": 1}
        return PlannedContinuation(self.annotate, prompt, max_new_tokens, falls)

    def state_tokens(self, states: Tensor) -> list[Tensor]:
        """Return the brackets of states and the digits between them, int64."""
        opening, closing = (
            torch.full_like(states, token) for token in (self.opening_id, self.closing_id)
        )
        digits = [
            states // 10 ** (place - 1) % 10 + self.first_state + 10 * number
            for number, place in enumerate(self.places_of_state)
        ]
        return [opening, *digits, closing]

    def _further_tokens(self) -> tuple[str, ...]:
        digits = [
            f"{digit}{_SUBSCRIPTS[place]}" for place in self.places_of_state for digit in DIGITS
        ]
        return (*digits, OPENING, CLOSING)

    def _read_state(self, tokens: list[int]) -> int | None:
        opening, *digits, closing = tokens
        if (opening, closing) != (self.opening_id, self.closing_id):
            return None
        state = 0
        for number, (token, place) in enumerate(zip(digits, self.places_of_state, strict=True)):
            digit = token - self.first_state - 10 * number
            if not 0 <= digit < 10:
                return None
            state += digit * 10 ** (place - 1)
        return state

    def _annotate(self, ids: Tensor) -> AnnotatedTokens:
        lines = TextFormat._annotate(self, ids)
        within = self._place_in_columns(lines)
        assert lines.row is not None
        lines.row.add_(within > 0)
        step = 3 * lines.place + (within + 1).clamp(0, 2)
        return replace(lines, step=torch.where(lines.place > 0, step, lines.place))
