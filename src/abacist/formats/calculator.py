"""Five operations in the notations that are proved one by one, for one model.

Each operation is written as in the format that a certificate exists for. The first token of a line
says which notation it is in.

>>> format.text(problem)  # 97+8
'<sum>79+8=501<end>'
>>> format.text(problem)  # 45-123
'<difference>54-321=229-<end>'
>>> format.text(problem)  # 23*45
'<product>32*54=⁰[15]5¹[10]1¹1⁰[12]3¹[8]0¹1<end>'
>>> format.text(problem)  # 97%8
"<division>97%8=[-0]:10[-1]:3'9'[+9]:5'4[+8]:3'5[+7]:1'6[+6]:96[+5]:7'7[+4]:5'8[+3]:3'9[+2]:1'0'[-0]:<end>"

* Sums are written as in `reversed`, differences as in `complement`, products as in
  `long-multiplication`, and `//` and `%` as in `non-restoring-division`.
* The start token stands in every place, row and step, so each token sees which notation it belongs to.
  The work of `//` and `%` is the same, so they share a start token, and what holds for one holds for
  the other.
* All lines fit the windows of divisions, (-2, 0) over rows and (0, 2) over places and steps. To see no
  more there than in their own formats, the digits of sums and differences stand two places apart, and
  the cells of products three places and three rows apart. Their lines are one single step.

So each token sees what it sees in the format of its own operation, and the neighbourhoods of the
calculator are those of the four formats together.

If operands are signed, sums and differences are written in ten's complement (`signed_addition`), and
products and divisions have signs beside their numbers, as their formats say.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from abacist.arrays import Integers
from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.config import (
    CalculatorFormatConfig,
    Layout,
    LongMultiplicationFormatConfig,
    NonRestoringDivisionFormatConfig,
    PlainFormatConfig,
)
from abacist.formats.continuation import Continuation, TokenCoordinates
from abacist.formats.long_multiplication import CARRIES, LongMultiplicationFormat
from abacist.formats.multiplication_cells import PRODUCT_TOKENS
from abacist.formats.non_restoring_division import ACTIONS, MARKED, NonRestoringDivisionFormat
from abacist.formats.pieces import Piece, join, merge, without_targets
from abacist.formats.plain import PlainFormat
from abacist.formats.roles import Role
from abacist.formats.shared_notation import SIGNS, SharedNotation
from abacist.formats.signed_addition import SignedAdditionFormat
from abacist.tasks.config import ArithmeticConfig, Operation, TaskConfig
from abacist.tasks.problems import OPERATIONS, Answer, Numbers, Problems
from abacist.vocabulary import DIGITS, Vocabulary

MemberFormat = (
    PlainFormat | SignedAdditionFormat | LongMultiplicationFormat | NonRestoringDivisionFormat
)


@dataclass(frozen=True)
class _Notation:
    """How some of the operations are written."""

    start: str
    """The token that begins a line in this notation."""
    operations: tuple[Operation, ...]
    spacing: int
    """Distance between neighbouring columns."""
    build: Callable[[ArithmeticConfig, SharedNotation], MemberFormat]
    """Returns the format for a task of these operations."""


_NOTATIONS = (
    _Notation("<sum>", ("+",), 2, partial(PlainFormat, PlainFormatConfig())),
    _Notation(
        "<difference>",
        ("-",),
        2,
        partial(PlainFormat, PlainFormatConfig(negative="complement", answer_padding="longest")),
    ),
    _Notation(
        "<product>",
        ("*",),
        3,
        partial(LongMultiplicationFormat, LongMultiplicationFormatConfig()),
    ),
    _Notation(
        "<division>",
        ("//", "%"),
        2,
        partial(NonRestoringDivisionFormat, NonRestoringDivisionFormatConfig()),
    ),
)
_SIGNED_NOTATIONS = (
    replace(_NOTATIONS[0], build=SignedAdditionFormat),
    replace(_NOTATIONS[1], build=SignedAdditionFormat),
    *_NOTATIONS[2:],
)


@dataclass(frozen=True)
class Member:
    """One notation of a calculator, with the operations of its task that are written in it."""

    task: ArithmeticConfig
    format: MemberFormat


def _member(notation: _Notation, task: ArithmeticConfig, vocabulary: Vocabulary) -> Member:
    operations = tuple(o for o in task.operations if o in notation.operations)
    own_task = replace(task, operations=operations, weights=())
    shared = SharedNotation(vocabulary, notation.start, notation.spacing)
    return Member(own_task, notation.build(own_task, shared))


class CalculatorFormat:
    """Writes, annotates and reads five operations, each by the format of its own notation."""

    layout: Layout = "similar"
    enumeration = "calculator"

    def __init__(self, config: CalculatorFormatConfig, task: TaskConfig) -> None:
        assert isinstance(task, ArithmeticConfig)
        self.config = config
        notations = _SIGNED_NOTATIONS if task.signed else _NOTATIONS
        operations = tuple(o for notation in notations for o in notation.operations)
        symbols = (*operations, "=", ":", "<end>", *(notation.start for notation in notations))
        if task.signed:
            symbols += SIGNS
        # In brackets, so that the count -3 of a division is not read where `54-321` is meant.
        counts = tuple(f"[{action}]" for action in ACTIONS)
        self.vocabulary = Vocabulary(
            (*DIGITS, *MARKED, *counts, *symbols, *CARRIES, *PRODUCT_TOKENS)
        )
        self.end_id = self.vocabulary.id("<end>")
        self.members = tuple(
            _member(notation, task, self.vocabulary)
            for notation in notations
            if set(notation.operations) & set(task.operations)
        )

    def write(
        self, problems: Problems, answer: Answer, generator: torch.Generator | None = None
    ) -> AnnotatedTokens:
        """Return whole lines, padded on the right with end tokens."""
        return self.annotate(self._line_ids(problems, answer))

    def prompt(
        self, problems: Problems, generator: torch.Generator | None = None
    ) -> AnnotatedTokens:
        """Return the lines up to and including `=`, padded on the right."""
        return without_targets(self.annotate(self._line_ids(problems)))

    def annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        """Return place, row, step, field and target of every token, from the ids alone.

        The annotation of a token after `=` depends on the prompt and on the tokens before it.
        """
        groups = self._groups(ids_BT)
        if len(groups) == 1:
            return groups[0][0].annotate(ids_BT)
        parts = [(lines, format.annotate(ids_BT[lines])) for format, lines in groups]
        whole = {
            name: torch.empty_like(ids_BT, dtype=getattr(parts[0][1], name).dtype)
            for name in ("ids", "place", "field", "target", "row", "step")
        }
        for lines, part in parts:
            for name, tensor in whole.items():
                tensor[lines] = getattr(part, name)
        return AnnotatedTokens(**whole)

    def continuation(self, prompt: AnnotatedTokens, max_new_tokens: int) -> Continuation:
        """Return the coordinates of new tokens."""
        return _MixedContinuation(
            len(prompt.ids),
            [
                (lines.numpy(), format.continuation(prompt[lines], max_new_tokens))
                for format, lines in self._groups(prompt.ids)
            ],
        )

    def read(self, ids_BT: Tensor) -> list[str | None]:
        """Return the answers of whole lines in the usual notation; None for a malformed line."""
        answers: list[str | None] = [None] * len(ids_BT)
        for format, lines in self._groups(ids_BT):
            for line, text in zip(lines.tolist(), format.read(ids_BT[lines]), strict=True):
                answers[line] = text
        return answers

    def roles(self, ids_T: Tensor) -> list[Role]:
        """Return the role of each token of one whole line, as its own format names them."""
        format, _ = self._groups(ids_T.unsqueeze(0))[0]
        return format.roles(ids_T)

    def member_for(self, problem: Problems) -> Member:
        """Return the notation that one problem is written in."""
        return self._parts(problem)[0][0]

    def target_lengths(self, problems: Problems) -> Tensor:
        """Return the largest possible number of tokens after `=`, int64 (B,)."""
        lengths_B = torch.zeros_like(problems.lengths_BN[:, 0])
        for member, lines in self._parts(problems):
            lengths_B[lines] = member.format.target_lengths(problems[lines])
        return lengths_B

    def token_id(self, field: int) -> int | None:
        """Return the id of the one token that a field can hold, or None if it can hold several."""
        alike = {member.format.token_id(field) for member in self.members}
        return alike.pop() if len(alike) == 1 else None

    def _line_ids(self, problems: Problems, answer: Answer | None = None) -> Tensor:
        """Return the tokens of whole lines, uint8 (B, T), or without an answer those of prompts."""
        parts = []
        for member, lines in self._parts(problems):
            part = None
            if answer is not None:
                assert isinstance(answer, Numbers)
                part = answer[lines]
            parts.append((lines, Piece(member.format.line_ids(problems[lines], part))))
        if len(parts) == 1:
            return parts[0][1].ids_BW
        return join([merge(parts, len(problems), problems.digits_BNW.device)], self.end_id)

    def _parts(self, problems: Problems) -> list[tuple[Member, Tensor]]:
        """Return each notation that problems need, with the indices of its problems."""
        parts = []
        for member in self.members:
            codes = [OPERATIONS.index(operation) for operation in member.task.operations]
            needs_B = torch.isin(problems.operation_B, problems.operation_B.new_tensor(codes))
            parts.append((member, needs_B.nonzero().squeeze(1)))
        return [part for part in parts if len(part[1])] or parts[:1]

    def _groups(self, ids_BT: Tensor) -> list[tuple[MemberFormat, Tensor]]:
        """Return the format of each notation in which lines begin, with the indices of these lines.

        Lines without such a token, which this format never writes, count as the first notation's.
        """
        begins_B = ids_BT[:, 0] if ids_BT.shape[1] else ids_BT.new_zeros(len(ids_BT))
        number_B = torch.zeros_like(begins_B)
        for number, member in enumerate(self.members):
            number_B[begins_B == member.format.start_id] = number
        groups = [
            (member.format, (number_B == number).nonzero().squeeze(1))
            for number, member in enumerate(self.members)
        ]
        return [group for group in groups if len(group[1])] or groups[:1]


class _MixedContinuation(Continuation):
    """Continues the lines of each notation with the continuation of its format."""

    def __init__(self, batch: int, parts: list[tuple[Integers, Continuation]]) -> None:
        self._batch, self._parts = batch, parts
        common = set.intersection(*(set(part.falls) for _, part in parts))
        self.falls = {name: max(part.falls[name] for _, part in parts) for name in common}

    def append(self, ids_B: Integers) -> TokenCoordinates:
        """Return the coordinates of the next token of every line."""
        place, row, step = (np.empty(self._batch, dtype=np.int64) for _ in range(3))
        for lines, continuation in self._parts:
            part = continuation.append(ids_B[lines])
            assert part.row is not None
            assert part.step is not None
            place[lines], row[lines], step[lines] = part.place, part.row, part.step
        return TokenCoordinates(place, row, step)

    @property
    def known_beforehand(self) -> TokenCoordinates | None:
        """The coordinates of all new tokens, where every notation knows its own."""
        known = [(lines, part.known_beforehand) for lines, part in self._parts]
        if any(part is None for _, part in known):
            return None
        values = {}
        for name in ("place", "row", "step"):
            columns = [getattr(part, name) for _, part in known]
            values[name] = np.empty((len(columns[0]), self._batch), dtype=np.int64)
            for (lines, _), column in zip(known, columns, strict=True):
                values[name][:, lines] = column
        return TokenCoordinates(**values)
