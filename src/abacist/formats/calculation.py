"""What formats share whose prompt is a calculation, such as `12+34=`, with work behind it."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.formats.annotated import EVERYWHERE, Field
from abacist.formats.lines import Piece, constant, operators
from abacist.formats.piecewise import JoinedFormat
from abacist.tasks.problems import Problems
from abacist.vocabulary import Vocabulary


@dataclass(frozen=True)
class Parts:
    """What the tokens of lines are part of, bool (B, T) each, and where the prompt's symbols stand."""

    is_start: Tensor
    is_operator: Tensor
    """In the prompt."""
    is_equals: Tensor
    """The first one."""
    answering: Tensor
    """Behind `=`."""
    is_end: Tensor
    padding: Tensor
    """Behind the first end token."""
    index: Tensor
    """int32 (1, T): 0, 1, 2 …"""

    @property
    def operator_at(self) -> Tensor:
        """int32 (B, 1): the index of the last operator; 0 for nonsense without one."""
        return torch.where(self.is_operator, self.index, 0).amax(dim=1, keepdim=True)

    @property
    def equals_at(self) -> Tensor:
        """int32 (B, 1): the index of `=`; 0 for nonsense without it."""
        return torch.where(self.is_equals, self.index, 0).amax(dim=1, keepdim=True)

    @property
    def target(self) -> Tensor:
        """bool (B, T): what the model has to write."""
        return self.answering & ~self.padding

    def mark_ends(self, field: Tensor, *coordinates: Tensor) -> None:
        """Enter start token, end token and padding, which are the same in every notation, in place."""
        for coordinate in coordinates:
            coordinate.masked_fill_(self.is_start, EVERYWHERE)
        field.masked_fill_(self.is_start, int(Field.START))
        field.masked_fill_(self.is_end & self.answering, int(Field.ANSWER))
        field.masked_fill_(self.padding, int(Field.PADDING))


class CalculationFormat(JoinedFormat):
    """Writes the prompt, and knows the tokens that it is made of."""

    usual_order: bool = False
    """Write operands most significant digit first; otherwise the least significant is."""

    def __init__(
        self, vocabulary: Vocabulary, operations: Iterable[str], start_token: bool
    ) -> None:
        """The vocabulary must hold every operation, `=`, `<end>`, and `<start>` if there is one."""
        self.vocabulary = vocabulary
        self.token_of: dict[str, int] = {
            operation: vocabulary.id(operation) for operation in operations
        }
        self.operator_ids = list(self.token_of.values())
        self.equals_id, self.end_id = vocabulary.id("="), vocabulary.id("<end>")
        self.start_id = vocabulary.id("<start>") if start_token else None

    def token_id(self, field: int) -> int | None:
        """The id of the one token a field holds, or None for a field that holds several."""
        operator = self.operator_ids[0] if len(self.operator_ids) == 1 else None
        return {
            int(Field.START): self.start_id,
            int(Field.OPERATOR): operator,
            int(Field.EQUALS): self.equals_id,
        }.get(field)

    def _parts(self, ids_BT: Tensor) -> Parts:
        is_equals, is_end = ids_BT == self.equals_id, ids_BT == self.end_id
        answering = is_equals.cumsum(dim=1, dtype=torch.int32) > is_equals
        nothing = torch.zeros_like(is_equals)
        is_operator = nothing.clone()
        for operator in self.operator_ids:
            is_operator |= ids_BT == operator
        is_start = nothing if self.start_id is None else ids_BT == self.start_id
        return Parts(
            is_start=is_start & ~answering,
            is_operator=is_operator & ~answering,
            is_equals=is_equals & ~answering,
            answering=answering,
            is_end=is_end,
            padding=is_end.cumsum(dim=1, dtype=torch.int32) > is_end,
            index=torch.arange(ids_BT.shape[1], dtype=torch.int32, device=ids_BT.device)[None],
        )

    def _prompt_pieces(self, problems: Problems) -> list[Piece]:
        batch, device = len(problems), problems.digits_BNW.device
        pieces = [] if self.start_id is None else [constant(self.start_id, batch, device)]
        operator = operators(problems.operation_B, self.token_of)
        for position in range(problems.num_operands):
            operand = problems.operand(position)
            if position == 1:
                pieces.append(Piece(operator))
            elif position > 1:
                # Problems of fewer operands than others have no digits here, and no operator.
                pieces.append(Piece(operator, (operand.lengths_B > 0).long()))
            pieces.append(Piece(operand.digits_BW, operand.lengths_B, self.usual_order))
        return [*pieces, constant(self.equals_id, batch, device)]
