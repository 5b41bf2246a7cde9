"""Operands, `=` and answer: the notation of most papers, in every order, padding and spacing.

By default every number is written least significant digit first and without padding.

>>> format.text(problem)  # 12+34
'<start>21+43=64<end>'

In this notation a digit of the answer follows from digits of its own column and of the previous column,
and from the answer's digit just written. The reversal is from Lee et al. 2023 (arXiv 2307.03381 §3).
Zero-padded operands in the usual order with a reversed answer are the notation of position coupling
(arXiv 2405.20671).

The place of an answer's digit must be known when the digit is written. In the usual order it is known
only if the answer is padded to a known width; the digits of an unpadded answer then have no place.
"""

import torch
from torch import Tensor

from abacist.errors import ConfigurationError, ProblemError
from abacist.formats.annotated import ANCHOR, EVERYWHERE, NO_PLACE, AnnotatedTokens, Field
from abacist.formats.config import Layout, PlainFormatConfig
from abacist.formats.continuation import (
    Continuation,
    PlannedContinuation,
    SignFirstContinuation,
)
from abacist.formats.pieces import (
    Piece,
    constant,
    join,
    once_per_pattern,
    operators,
    places_from_the_right,
    selected_tokens,
    without_targets,
)
from abacist.formats.roles import START, Role, decode
from abacist.formats.shared_notation import SharedNotation
from abacist.tasks import digits
from abacist.tasks.config import ArithmeticConfig, ModularAdditionConfig, TaskConfig
from abacist.tasks.problems import Answer, Numbers, Problems
from abacist.vocabulary import DIGITS, Vocabulary

_SYMBOLS = {"+ mod": "+"}


OPERAND, ANSWER = "operand", "answer"
"""Parts of a calculation, as `roles` names them."""

_MOST_OPERANDS = 256 - Field.OPERAND
"""Largest number of operands of a line: the field of a token is a byte."""


class PlainFormat:
    """Writes, annotates and reads calculations."""

    enumeration = "column-addition"

    def __init__(
        self, config: PlainFormatConfig, task: TaskConfig, shared: SharedNotation | None = None
    ) -> None:
        """Build the vocabulary, unless one is shared with other formats of the same model."""
        assert isinstance(task, ArithmeticConfig | ModularAdditionConfig)
        self.shared = shared
        self._spacing = 1 if shared is None else shared.spacing
        self.config = config
        operations: tuple[str, ...] = ("+ mod",)
        self._longest, self._most_operands = 0, 2
        self._widest: int | None = None
        if isinstance(task, ArithmeticConfig):
            operations = task.operations
            self._longest, self._most_operands = task.longest_operand, task.max_operands
        else:
            self._longest = self._widest = len(str(task.modulus - 1))
        self._operations = operations
        self.signed = "-" in operations
        symbols = tuple(_SYMBOLS.get(operation, operation) for operation in operations)
        end = ("<end>",) if config.end == "token" else ()
        start = ("<start>",) if config.start_token else ()
        spaced = config.spaces != "none" or config.end == "space"
        space = (" ",) if spaced else ()
        padding = ("<pad>",) if config.padding_token else ()
        used = (*DIGITS, *symbols, "=", *end, *start, *space, *padding)
        if set(used) & set(config.unused_tokens):
            raise ConfigurationError(
                "format.unused_tokens must not name symbols of the lines, "
                f"{' '.join(used)}, got {','.join(config.unused_tokens)}. "
                'Try --format.unused_tokens "".'
            )
        self.vocabulary = Vocabulary((*used, *config.unused_tokens))
        if shared is not None:
            self.vocabulary = shared.vocabulary
        self.operator_ids = [self.vocabulary.id(symbol) for symbol in symbols]
        self.equals_id = self.vocabulary.id("=")
        last = {"token": "<end>", "space": " "}.get(config.end)
        self.end_id = None if last is None else self.vocabulary.id(last)
        self.padding_id = self.vocabulary.id("<pad>") if config.padding_token else None
        self.start_id = None
        if config.start_token:
            self.start_id = self.vocabulary.id("<start>") if shared is None else shared.start_id
        self.space_id = self.vocabulary.id(" ") if spaced else None
        self.sign_id = self.vocabulary.id("-") if self.signed else None
        self._token_of = dict(zip(operations, self.operator_ids, strict=True))

    @property
    def layout(self) -> Layout:
        """Which lines can share one row of coordinates: all if every number is padded to one width."""
        config = self.config
        # A sign before the answer moves all of its digits.
        has_leading_sign = self.signed and config.negative == "sign-first"
        if config.spaces == "random" or has_leading_sign:
            return "free"
        padded = (config.operand_padding, config.answer_padding) == ("fixed", "fixed")
        return "constant" if padded and self._most_operands == 2 else "shape"

    def write(
        self, problems: Problems, answer: Answer, generator: torch.Generator | None = None
    ) -> AnnotatedTokens:
        """Return whole lines: prompt, answer and end token, padded on the right.

        Raises `ProblemError` if an operand is longer than a fixed padding allows.
        """
        return self.annotate(self.line_ids(problems, answer, generator))

    def line_ids(
        self,
        problems: Problems,
        answer: Answer | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Return the tokens of whole lines, uint8 (B, T), or without an answer those of prompts."""
        pieces = self._prompt_pieces(problems, generator)
        if answer is None:
            return join(pieces, self._padding)
        assert isinstance(answer, Numbers)
        pieces += self._answer_pieces(problems, answer)
        lines = join(pieces, self._padding, end=self.end_id is not None)
        if self.padding_id is not None and self.end_id is not None:
            is_padding = lines == self.padding_id
            first = is_padding & (is_padding.cumsum(dim=1) == 1)
            lines = lines.masked_fill(first, self.end_id)
        return lines

    def prompt(
        self, problems: Problems, generator: torch.Generator | None = None
    ) -> AnnotatedTokens:
        """Return the lines up to and including `=`, padded on the right."""
        return without_targets(self.annotate(self.line_ids(problems, None, generator)))

    def annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        """Return place, row, field and target of every token, from the ids alone.

        The annotation of a token after `=` depends on the prompt and on the tokens before it, so
        annotating the first tokens of a line gives the first annotations of that line. Tokens after
        the first end token are padding.
        """
        return once_per_pattern(ids_BT, self._annotate)

    def continuation(self, prompt: AnnotatedTokens, max_new_tokens: int) -> Continuation:
        """Return the coordinates of new tokens, which only a leading sign can change."""
        config = self.config
        falls = {"row": 0, "place": 0} if config.answer_order == "reversed" else {"row": 0}
        if self.sign_id is not None and config.negative == "sign-first":
            return SignFirstContinuation(self.annotate, prompt, max_new_tokens, falls, self.sign_id)
        return PlannedContinuation(self.annotate, prompt, max_new_tokens, falls)

    def read(self, ids_BT: Tensor) -> list[str | None]:
        """Return the answers of whole lines in the usual notation; None for a malformed line.

        An answer is well formed if it consists of digits, an end token, and a sign where it belongs,
        if it has the width that padding requires or no leading zero, and if it is not minus 0.
        """
        lines = self.annotate(ids_BT)
        widths = self._answer_widths(lines).tolist()
        targets = selected_tokens(lines.ids, lines.target)
        return [self._read(tokens, width) for tokens, width in zip(targets, widths, strict=True)]

    def roles(self, ids_T: Tensor) -> list[Role]:
        """Return the role of each token of one whole line.

        A digit of operand k has row k, starting at 1, and its place as column; so has a token of the
        answer, a sign included, with row 0. A digit without a place has column 0. Symbols have
        neither column nor row.
        """

        def role(token: int, field: int, place: int, row: int) -> Role:
            column = max(0, place) // self._spacing
            if field == Field.START:
                return Role(START)
            if field >= Field.OPERAND:
                return Role(OPERAND, column, field - Field.OPERAND + 1)
            if field == Field.ANSWER and token != self.end_id:
                return Role(ANSWER, column)
            return Role(self.vocabulary.tokens[token])

        return decode(self.annotate(ids_T.unsqueeze(0)), role)

    def columns(self, lines: AnnotatedTokens) -> Tensor:
        """Return the column of each digit, 1 for units, int32 (B, T); other tokens have their place."""
        return lines.columns(self._spacing)

    def target_lengths(self, problems: Problems) -> Tensor:
        """Return the largest possible number of tokens after `=`, int64 (B,)."""
        return self._possible_widths(problems.lengths_BN) + 2

    def token_id(self, field: int) -> int | None:
        """Return the id of the one token that a field can hold, or None if it can hold several."""
        return {
            int(Field.START): self.start_id,
            int(Field.OPERATOR): self.operator_ids[0] if len(self.operator_ids) == 1 else None,
            int(Field.EQUALS): self.equals_id,
            int(Field.SPACE): self.space_id,
        }.get(field)

    @property
    def _padding(self) -> int:
        if self.padding_id is not None:
            return self.padding_id
        return self.equals_id if self.end_id is None else self.end_id

    # Writing -------------------------------------------------------------------------------

    def _prompt_pieces(self, problems: Problems, generator: torch.Generator | None) -> list[Piece]:
        batch, device = len(problems), problems.digits_BNW.device
        config = self.config
        if problems.num_operands > self._writable_operands:
            raise ProblemError(
                f"a problem has {problems.num_operands:,} numbers and this format writes at most "
                f"{self._writable_operands}. Type fewer, or train with --format running-sums."
            )
        lengths = problems.lengths_BN
        around = config.spaces in ("around", "thousands")
        space = constant(self.space_id, batch, device) if self.space_id is not None else None
        pieces = [] if self.start_id is None else [constant(self.start_id, batch, device)]
        symbols = operators(problems.operation_B, self._token_of)
        for position in range(problems.num_operands):
            present = (lengths[:, position] > 0).long()
            if position:
                piece = Piece(symbols, present)
                between = Piece(space.ids_BW, present) if space and around else None
                pieces += [between, piece, between] if between else [piece]
            pieces.append(self._operand(problems, position))
        if space and config.spaces == "around":
            pieces.append(space)
        pieces.append(constant(self.equals_id, batch, device))
        if config.spaces == "random":
            assert self.space_id is not None
            generator = generator or torch.Generator().manual_seed(0)
            return [_spaced(pieces, self.space_id, self._padding, self.start_id, generator)]
        return pieces

    def _operand(self, problems: Problems, position: int) -> Piece:
        numbers = problems.operand(position)
        width = numbers.lengths_B
        if self.config.operand_padding != "none":
            padded = self._operand_widths(problems.lengths_BN)
            width = torch.where(width > 0, padded, 0)
        ids = _pad_to(numbers.digits_BW, int(width.max()) if len(width) else 0)
        usual = self.config.operand_order == "usual"
        if self.config.spaces != "thousands":
            return Piece(ids, width, mirrored=usual)
        assert self.space_id is not None
        return _grouped(ids, width, self.space_id, usual)

    def _answer_pieces(self, problems: Problems, answer: Numbers) -> list[Piece]:
        config = self.config
        magnitude, width, sign = answer.digits_BW, answer.lengths_B, answer.negative_B
        if config.answer_padding != "none":
            width = self._possible_widths(problems.lengths_BN)
            magnitude = _pad_to(magnitude, int(width.max()) if len(width) else 0)
        if sign is not None and config.negative == "complement":
            complement, _ = digits.subtract_modulo(torch.zeros_like(magnitude), magnitude)
            magnitude = torch.where(sign.unsqueeze(1), complement, magnitude)
        pieces = [Piece(magnitude, width, mirrored=config.answer_order == "usual")]
        if sign is not None and bool(sign.any()):
            assert self.sign_id is not None
            minus = constant(self.sign_id, len(answer), magnitude.device)
            minus = Piece(minus.ids_BW, sign.long())
            pieces = [minus, *pieces] if config.negative == "sign-first" else [*pieces, minus]
        return pieces

    @property
    def _writable_operands(self) -> int:
        """Largest number of operands of a line. Padded answers have one width, whatever the number."""
        if self.config.answer_padding == "none":
            return _MOST_OPERANDS
        return 10 if self._most_operands <= 10 else 100

    def _operand_widths(self, lengths_BN: Tensor) -> Tensor:
        """Return the number of digits of each problem's padded operands, int64 (B,)."""
        return self._longest_of(lengths_BN, self.config.operand_padding)

    def _possible_widths(self, lengths_BN: Tensor) -> Tensor:
        """Return the largest number of digits of an answer, int64 (B,).

        It is the same for all operations of the task, given the lengths of the operands.
        """
        padding = self.config.answer_padding
        if padding == "longest" and self.config.operand_padding == "fixed":
            # Written operands have the fixed width, so an answer can be as long as theirs.
            padding = "fixed"
        factor, more = self._digits_of_answers(max(self._most_operands, lengths_BN.shape[1]))
        return factor * self._longest_of(lengths_BN, padding) + more

    @property
    def answer_digits(self) -> tuple[int, int]:
        """Two numbers (a, b): an answer has at most a × (digits of the longest written operand) + b digits."""
        factor, more = self._digits_of_answers(self._most_operands)
        if self.config.answer_padding == "fixed":
            return 0, factor * self._longest + more
        return factor, more

    def _digits_of_answers(self, num_operands: int) -> tuple[int, int]:
        """Return a factor and a number that turn the digits of the longest operand into those of an answer."""
        if self._widest is not None:
            return 0, self._widest
        if "*" in self._operations:
            return 2, 0
        # A sum of at most 10 operands has at most one digit more than the longest, of 100 two, and so on.
        more = 1 + (num_operands > 10) + (num_operands > 100)
        return 1, more * ("+" in self._operations)

    def _longest_of(self, lengths_BN: Tensor, padding: str) -> Tensor:
        """Return the digits of the longest operand, of each problem or of the whole task, int64 (B,)."""
        longest = lengths_BN.amax(dim=1)
        if padding != "fixed":
            return longest
        if len(longest) and int(longest.max()) > self._longest:
            raise ProblemError(
                f"an operand has {int(longest.max())} digits and this format pads to "
                f"{self._longest}. Train with --format.operand_padding and --format.answer_padding "
                "longest or none."
            )
        return torch.full_like(longest, self._longest)

    # Annotating ----------------------------------------------------------------------------

    def _annotate(self, ids: Tensor) -> AnnotatedTokens:
        config = self.config
        is_equals = ids == self.equals_id
        after_equals = is_equals.cumsum(dim=1, dtype=torch.int32) > is_equals
        in_prompt = ~after_equals
        is_equals = is_equals & in_prompt
        is_operator = torch.zeros_like(in_prompt)
        for operator in self.operator_ids:
            is_operator |= ids == operator
        is_operator &= in_prompt
        is_start = in_prompt & (ids == self.start_id) if self.start_id is not None else None
        is_space = in_prompt & (ids == self.space_id) if self.space_id is not None else None

        field = Field.OPERAND + is_operator.cumsum(dim=1, dtype=torch.uint8)
        field = field.to(torch.uint8).masked_fill_(is_operator, int(Field.OPERATOR))
        field.masked_fill_(is_equals, int(Field.EQUALS))
        # Every token after `=` belongs to the answer, including tokens that should not be there.
        field.masked_fill_(after_equals, int(Field.ANSWER))

        # Columns are counted from the last operator, or `=`; these tokens do not count.
        is_boundary = is_operator | is_equals
        is_counted = ~is_boundary
        if is_start is not None:
            field.masked_fill_(is_start, int(Field.START))
            is_counted &= ~is_start
        if is_space is not None:
            field.masked_fill_(is_space, int(Field.SPACE))
            is_counted &= ~is_space
        sign_first = self.signed and config.negative == "sign-first"
        if sign_first:
            is_first = torch.nn.functional.pad(is_equals[:, :-1], (1, 0))
            is_sign = is_first & (ids == self.sign_id)
            is_counted &= ~is_sign
        num_counted = is_counted.cumsum(dim=1, dtype=torch.int32)
        place = num_counted - torch.where(is_boundary, num_counted, 0).cummax(dim=1).values
        if config.operand_order == "usual":
            from_right = places_from_the_right(place, num_counted, is_boundary)
            place = torch.where(in_prompt, from_right, place)
        if config.answer_order == "usual":
            if config.answer_padding == "none":
                place.masked_fill_(after_equals, NO_PLACE)
            else:
                width = self._answer_widths_of(field, place).unsqueeze(1).int()
                place = torch.where(after_equals, (width + 1 - place).clamp(min=0), place)
        place.masked_fill_(is_operator, NO_PLACE).masked_fill_(is_equals, ANCHOR)
        # Rows: the operands stand under each other, and below them the answer with its `=`.
        row = is_operator.cumsum(dim=1, dtype=torch.int32) + 1
        row += after_equals | is_equals
        row.masked_fill_(is_operator, NO_PLACE)
        if is_start is not None:
            place.masked_fill_(is_start, EVERYWHERE)
            row.masked_fill_(is_start, EVERYWHERE)
        if is_space is not None:
            place.masked_fill_(is_space, NO_PLACE)
            row.masked_fill_(is_space, NO_PLACE)
        if sign_first:
            place.masked_fill_(is_sign, NO_PLACE)
        target = after_equals
        if self.end_id is not None:
            is_end = after_equals & (ids == self.end_id)
            padding = is_end.cumsum(dim=1, dtype=torch.int32) > is_end
            if self.padding_id is not None:
                is_padding = after_equals & (ids == self.padding_id)
                padding |= is_padding.cumsum(dim=1, dtype=torch.int32) > 0
            field.masked_fill_(padding, int(Field.PADDING))
            target = after_equals & ~padding
        if self.shared is None:
            return AnnotatedTokens(ids, place, field, target, row=row)
        place = torch.where(place > 0, self._spacing * place, place)
        step = torch.ones_like(row)
        if is_start is not None:
            step.masked_fill_(is_start, EVERYWHERE)
        return AnnotatedTokens(ids, place, field, target, row=row, step=step)

    def _answer_widths(self, lines: AnnotatedTokens) -> Tensor:
        return self._answer_widths_of(lines.field, self.columns(lines))

    def _answer_widths_of(self, field: Tensor, place: Tensor) -> Tensor:
        """Return the number of digits of each padded answer, from the operands in the line, int64 (B,)."""
        longest = torch.where(field >= Field.OPERAND, place, 0).amax(dim=1, keepdim=True)
        return self._possible_widths(longest.long())

    # Reading -------------------------------------------------------------------------------

    def _read(self, tokens: list[int], width: int) -> str | None:
        if self.end_id is not None and (not tokens or tokens.pop() != self.end_id):
            return None
        config = self.config
        negative = False
        if self.sign_id is not None and tokens:
            sign_index = 0 if config.negative == "sign-first" else -1
            negative = tokens[sign_index] == self.sign_id
            if negative:
                tokens.pop(sign_index)
        if not tokens or max(tokens) >= len(DIGITS):
            return None
        if config.answer_order == "reversed":
            tokens.reverse()
        padded = config.answer_padding != "none"
        if len(tokens) != width if padded else len(tokens) > 1 and tokens[0] == 0:
            return None
        text = self.vocabulary.decode(tokens).lstrip("0") or "0"
        if not negative:
            return text
        if text == "0":
            return None
        return (
            negative_of_complement(text, width) if config.negative == "complement" else "-" + text
        )


def negative_of_complement(text: str, width: int) -> str:
    """Return the negative number whose ten's complement, of `width` digits, is `text`."""
    nines = "".join(str(9 - int(digit)) for digit in text.zfill(width))
    # 10^width - x is 1 more than the nines' complement. Strings have no limit, unlike int() in Python.
    head = nines.rstrip("9")
    zeros = "0" * (width - len(head))
    magnitude = (head[:-1] + str(int(head[-1]) + 1) if head else "1") + zeros
    return "-" + (magnitude.lstrip("0") or "0")


def _pad_to(digits_BW: Tensor, width: int) -> Tensor:
    return torch.nn.functional.pad(digits_BW, (0, max(0, width - digits_BW.shape[1])))


def _grouped(digits_BW: Tensor, width_B: Tensor, space: int, usual: bool) -> Piece:
    """Return a number with a space between groups of three digits."""
    columns = digits_BW.shape[1]
    groups = [digits_BW[:, i : i + 3] for i in range(0, columns, 3)]
    gap = torch.full_like(digits_BW[:, :1], space)
    pieces = [groups[0]] if groups else []
    for group in groups[1:]:
        pieces += [gap, group]
    widths = width_B + torch.div(width_B - 1, 3, rounding_mode="floor").clamp(min=0)
    return Piece(torch.cat(pieces, dim=1), widths, mirrored=usual)


def _spaced(
    pieces: list[Piece], space: int, padding: int, start: int | None, generator: torch.Generator
) -> Piece:
    """Return the line of a prompt with a space in each gap at random, with probability 1/2."""
    line = join(pieces, padding)
    batch, width = line.shape
    if not batch:
        return Piece(line)
    lengths = torch.stack([piece.widths() for piece in pieces]).sum(dim=0)
    # There is a gap after every token but the start token and the last.
    gap = torch.rand(batch, width, generator=generator).to(line.device) < 0.5
    gap &= torch.arange(width, device=line.device) < (lengths - 1).unsqueeze(1)
    if start is not None:
        gap[:, 0] = False
    position = torch.arange(width, device=line.device) + gap.cumsum(dim=1) - gap.long()
    total = lengths + gap.sum(dim=1)
    widest = int(total.max()) if batch else 0
    spaced = torch.full((batch, max(widest, int(position.max()) + 1)), space, dtype=torch.uint8)
    spaced = spaced.to(line.device).scatter_(1, position, line)
    return Piece(spaced[:, :widest], total)
