"""Formats whose prompt is a calculation, such as `12+34=`, followed by work and an answer."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.formats.annotated import EVERYWHERE, AnnotatedTokens, Field
from abacist.formats.pieces import Piece, constant, once_per_pattern, operators
from abacist.formats.piecewise import PiecewiseFormat
from abacist.formats.shared_notation import SIGNS, SharedNotation
from abacist.tasks.config import ArithmeticConfig, TaskConfig
from abacist.tasks.problems import OPERATIONS, Problems
from abacist.vocabulary import DIGITS, Vocabulary


@dataclass(frozen=True)
class Parts:
    """The parts that the tokens of lines belong to, bool (B, T) each, and where the symbols stand."""

    is_start: Tensor
    is_operator: Tensor
    """Operators of the prompt."""
    is_equals: Tensor
    """The first `=` of each line."""
    after_equals: Tensor
    is_end: Tensor
    is_padding: Tensor
    """Tokens after the first end token."""
    is_sign: Tensor
    """Signs of operands, where operands have signs."""
    num_signs: int
    """Number of signs of each operand, and of the answer: 1 where operands have signs, else 0."""
    index: Tensor
    """int32 (1, T): 0, 1, 2 …"""
    begin: int
    """Index of the first operand: 1 after a start token, else 0."""

    @property
    def operator_index(self) -> Tensor:
        """int32 (B, 1): the index of the prompt's last operator; 0 for a malformed line without one."""
        return torch.where(self.is_operator, self.index, 0).amax(dim=1, keepdim=True)

    @property
    def equals_index(self) -> Tensor:
        """int32 (B, 1): the index of `=`; 0 for a malformed line without one."""
        return torch.where(self.is_equals, self.index, 0).amax(dim=1, keepdim=True)

    @property
    def lengths(self) -> tuple[Tensor, Tensor]:
        """int32 (B, 1) each: digits of the first and of the second operand."""
        first = self.operator_index - self.begin - self.num_signs
        second = self.equals_index - self.operator_index - 1 - self.num_signs
        return first.clamp(min=0), second.clamp(min=0)

    @property
    def target(self) -> Tensor:
        """bool (B, T): the tokens that the model has to predict."""
        return self.after_equals & ~self.is_padding

    def mark_ends(self, field: Tensor, *coordinates: Tensor) -> None:
        """Enter start token, end token and padding, which are the same in every notation, in place."""
        for coordinate in coordinates:
            coordinate.masked_fill_(self.is_start, EVERYWHERE)
        field.masked_fill_(self.is_start, int(Field.START))
        field.masked_fill_(self.is_end & self.after_equals, int(Field.ANSWER))
        field.masked_fill_(self.is_padding, int(Field.PADDING))


class CalculationFormat(PiecewiseFormat):
    """Writes the prompt of a calculation, and finds its parts in tokens."""

    usual_order: bool = False
    """Write operands most significant digit first; otherwise least significant digit first."""
    alike_from: int = 255
    """Tokens with this id or a higher one are all annotated alike."""

    def __init__(
        self,
        task: TaskConfig,
        start_token: bool,
        symbols: Iterable[str],
        work: Iterable[str] = (),
        shared: SharedNotation | None = None,
    ) -> None:
        """Build the vocabulary: digits, symbols, `<end>`, `<start>` if there is one, and work.

        Args:
            task: an arithmetic task.
            start_token: whether lines begin with `<start>`.
            symbols: tokens among which are every operation of the task and `=`.
            work: further tokens that occur after `=` only.
            shared: replaces this vocabulary and the start token, where the model has other formats too.
        """
        assert isinstance(task, ArithmeticConfig)
        self.shared = shared
        start = ("<start>",) if start_token else ()
        self.vocabulary = Vocabulary((*DIGITS, *symbols, "<end>", *start, *work))
        self.start_id = self.vocabulary.id("<start>") if start_token else None
        if shared is not None:
            self.vocabulary, self.start_id = shared.vocabulary, shared.start_id
        self.token_of: dict[str, int] = {
            operation: self.vocabulary.id(operation) for operation in task.operations
        }
        self.operator_ids = list(self.token_of.values())
        self.equals_id, self.end_id = self.vocabulary.id("="), self.vocabulary.id("<end>")
        self.signed = task.signed
        self.plus_id: int | None = None
        self.minus_id: int | None = None
        if self.signed:
            self.plus_id, self.minus_id = (self.vocabulary.id(sign) for sign in SIGNS)

    def annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        """Return coordinates, field and target of every token, from the ids alone.

        The annotation of a token after `=` depends on the prompt and on the tokens before it.
        """
        return once_per_pattern(ids_BT, self._annotate, self.alike_from)

    def read(self, ids_BT: Tensor) -> list[str | None]:
        """Return the answers of whole lines in the usual notation; None for a malformed line.

        A line is malformed if a token after `=` is not of a kind that can stand there, or if it has
        no end token. Digits of the work may be wrong.
        """
        return [self._read(ids) for ids in ids_BT.tolist()]

    def token_id(self, field: int) -> int | None:
        """Return the id of the one token that a field can hold, or None if it can hold several."""
        operator = self.operator_ids[0] if len(self.operator_ids) == 1 else None
        return {
            int(Field.START): self.start_id,
            int(Field.OPERATOR): operator,
            int(Field.EQUALS): self.equals_id,
        }.get(field)

    @abstractmethod
    def _annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        """Annotate lines that need not share a pattern; ids are int32."""

    @abstractmethod
    def _read_work(self, operation: str, lengths: list[int], tokens: list[int]) -> str | None:
        """Return the answer of one line, or None if it is malformed.

        Args:
            operation: the prompt's first operation.
            lengths: digits of each operand, signs not counted; two or more, each at least 1.
            tokens: the tokens between `=` and the end token.
        """

    def _read(self, ids: list[int]) -> str | None:
        if self.equals_id not in ids:
            return None
        equals_index = ids.index(self.equals_id)
        boundaries = [i for i in range(equals_index) if ids[i] in self.operator_ids]
        tokens = ids[equals_index + 1 :]
        if not boundaries or self.end_id not in tokens:
            return None
        begins = [0 if self.start_id is None else 1, *(index + 1 for index in boundaries)]
        lengths = [
            end - begin - self.signed
            for begin, end in zip(begins, [*boundaries, equals_index], strict=True)
        ]
        if min(lengths) < 1:
            return None
        operation = self.vocabulary.tokens[ids[boundaries[0]]]
        return self._read_work(operation, lengths, tokens[: tokens.index(self.end_id)])

    def _parts(self, ids_BT: Tensor) -> Parts:
        is_equals, is_end = ids_BT == self.equals_id, ids_BT == self.end_id
        after_equals = is_equals.cumsum(dim=1, dtype=torch.int32) > is_equals
        nothing = torch.zeros_like(is_equals)
        is_operator = nothing.clone()
        for operator in self.operator_ids:
            is_operator |= ids_BT == operator
        is_start = nothing if self.start_id is None else ids_BT == self.start_id
        is_sign = (ids_BT == self.plus_id) | (ids_BT == self.minus_id) if self.signed else nothing
        return Parts(
            is_start=is_start & ~after_equals,
            is_operator=is_operator & ~after_equals,
            is_equals=is_equals & ~after_equals,
            after_equals=after_equals,
            is_end=is_end,
            is_padding=is_end.cumsum(dim=1, dtype=torch.int32) > is_end,
            is_sign=is_sign & ~after_equals,
            num_signs=int(self.signed),
            index=torch.arange(ids_BT.shape[1], dtype=torch.int32, device=ids_BT.device)[None],
            begin=0 if self.start_id is None else 1,
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
                # Problems with fewer operands than others have neither digits nor an operator here.
                pieces.append(Piece(operator, (operand.lengths_B > 0).long()))
            number = [Piece(operand.digits_BW, operand.lengths_B, self.usual_order)]
            if self.signed:
                number.append(Piece(self.signs(operand.is_negative_B)))
            # The sign stands beyond the most significant digit.
            pieces += reversed(number) if self.usual_order else number
        return [*pieces, constant(self.equals_id, batch, device)]

    def signs(self, negative_B: Tensor) -> Tensor:
        """Return the token of each sign, uint8 (B, 1)."""
        assert self.plus_id is not None
        assert self.minus_id is not None
        return torch.where(negative_B, self.minus_id, self.plus_id).to(torch.uint8).unsqueeze(1)


def asks(problems: Problems, operation: str) -> Tensor:
    """Return which problems have an operation, bool (B,)."""
    return problems.operation_B == OPERATIONS.index(operation)


def is_digit(token: int) -> bool:
    """Whether a token id is that of a digit, which equals the digit's value."""
    return token < len(DIGITS)


def number_text(digits: Sequence[int]) -> str:
    """Return the usual notation of a number from its digits, least significant first."""
    return "".join(map(str, reversed(digits))).lstrip("0") or "0"
