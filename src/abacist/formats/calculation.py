"""What formats share whose prompt is a calculation, such as `12+34=`, with work behind it."""

from collections.abc import Iterable

from abacist.formats.annotated import Field
from abacist.formats.joined import JoinedFormat
from abacist.formats.lines import Piece, constant, operators
from abacist.tasks.problems import Problems
from abacist.vocabulary import Vocabulary


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
