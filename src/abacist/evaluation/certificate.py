"""A proof that a trained model is right on all problems of every length.

The argument, in full in `docs/certificate.md`:

1. A logit depends on the tokens in its *reach* only: the tokens it sees in the last layer, those
   these see in the layer below, and so on. `_reach` follows the model's own visibility masks.
2. Where attention is windowed by place, a reach holds a few columns, and how it looks depends
   only on which operands have ended nearby, not on where in the number it stands. So short
   operands show every *pattern* of reach there is.
3. What a reach can contain is told by the task's column rule. All of it is listed, and the
   model's next token is compared with the right one in each case.
4. If none is wrong, then every answer token of every problem is predicted rightly after a right
   prefix; by induction from token to token the model writes every answer of every length rightly.
"""

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from abacist import seeds
from abacist.errors import AbacistError
from abacist.evaluation.solving import Solution, solve
from abacist.formats.annotated import AnnotatedTokens, Field
from abacist.formats.format import Format
from abacist.formats.plain import PlainFormat
from abacist.models.block import Block
from abacist.models.coordinates import Coordinates
from abacist.models.encodings import INVISIBLE
from abacist.models.reach import obstacle_to_finite_reach, reach_in_places
from abacist.models.teacher_forcing import coordinates_of
from abacist.models.transformer import Transformer
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.column_rule import ColumnRule
from abacist.tasks.problems import Numbers, Problems, Shapes
from abacist.tasks.task import Task

_ROWS_PER_PASS = 50_000
_LARGEST_LISTING = 20_000_000
_TOO_MANY = (
    f"a reach of this model has more contents than the {_LARGEST_LISTING:,} that are listed. "
    "Try a narrower window of --model.positions, fewer --model.num_layers or fewer operands."
)


@dataclass(frozen=True)
class Certificate:
    """The outcome of checking every neighbourhood."""

    certified: bool
    reason: str
    """What was proved, or why nothing was."""
    patterns: int = 0
    """Different shapes a reach can have."""
    neighbourhoods: int = 0
    """Different contents of a reach, over all patterns."""
    wrong: int = 0
    """Neighbourhoods after which the model's next token is not the right one."""
    smallest_margin: float | None = None
    """Right logit minus the best wrong one, in the worst neighbourhood, in float64."""
    rounding_error: float | None = None
    """Largest difference between float32 and float64 logits, over all neighbourhoods and kernels."""
    locality_error: float | None = None
    """Largest difference between a logit in a long line and the logit of its reach alone, in float64."""
    counterexample: Solution | None = None
    """A full problem that the model gets wrong, made from the worst neighbourhood."""
    seconds: float = 0.0

    def to_json(self) -> dict[str, object]:
        data = asdict(self)
        data["counterexample"] = self.counterexample and self.counterexample.to_json()
        return data


@dataclass(frozen=True)
class _Pattern:
    """The reach of one query in one line: which tokens, not yet what they contain."""

    lengths: tuple[int, ...]
    """Operand lengths of the line it was found in."""
    field: list[int]
    place: list[int]
    """Of every token in the reach, in order; the query is the last."""
    key: bytes
    """Equal for patterns that no model with this visibility can tell apart."""

    @property
    def query_place(self) -> int:
        return self.place[-1]

    @property
    def lowest_column(self) -> int:
        """The lowest column of which the reach holds a digit; the first where it holds none."""
        return min((p for p in self.place if p >= 1), default=1)


@dataclass(frozen=True)
class _Contents:
    """A listing of what a pattern may contain, n cases."""

    pattern: _Pattern
    ids: Tensor
    """int64 (n, R): the tokens of the reach."""
    target: Tensor
    """int64 (n,): the right next token."""
    state: Tensor
    """int64 (n,): the rule's state on entering the pattern's lowest column."""
    digits: dict[tuple[int, int], Tensor]
    """Of every operand digit that matters, by (operand, column): int64 (n,)."""


@torch.no_grad()
def prove(model: Transformer, task: Task, format: Format) -> Certificate:
    """Check every neighbourhood of a trained model: a proof, a counterexample, or why neither."""
    try:
        return _prove(model, task, format)
    except _NotProvable as reason:
        return Certificate(False, str(reason))


class _NotProvable(AbacistError):
    """No proof can be attempted; the message says why, and what to change."""


def _prove(model: Transformer, task: Task, format: Format) -> Certificate:
    begin = time.perf_counter()
    if model.config.norm_order != "pre" or model.config.query_key_norm:
        raise _NotProvable(
            "the size of attention scores is bounded for layers normalised before, without "
            "normalised queries, so far. Train with --model.norm_order pre."
        )
    if model.config.injection == "sublayers":
        raise _NotProvable("what is added within layers is not bounded so far.")
    obstacle = obstacle_to_finite_reach(model.config)
    if obstacle is not None:
        raise _NotProvable(f"this model's reach is not finite: {obstacle}")
    if not all(bool(torch.isfinite(parameter).all()) for parameter in model.parameters()):
        raise _NotProvable("some of the model's weights are not finite numbers.")
    rule = task.column_rule() if isinstance(task, Arithmetic) else None
    if rule is None:
        raise _NotProvable(
            "a certificate is there for sums of a fixed number of operands so far; "
            f"this model {task.deed}."
        )
    if not isinstance(format, PlainFormat) or not format.is_reversed_and_unpadded:
        raise _NotProvable(
            "a certificate is there for the reversed format so far. Train with --format reversed."
        )
    exact = _double_copy(model)
    largest_score = max(
        block.attention.largest_score(block.attention_norm)
        for block in exact.modules()
        if isinstance(block, Block)
    )
    if not largest_score <= -INVISIBLE / 10:
        raise _NotProvable(
            f"attention scores may reach {largest_score:.0e}, so that masked tokens are not "
            "certain to weigh nothing."
        )
    listings = _listings(exact, format, rule)

    cases, wrong, rounding = 0, 0, 0.0
    worst: tuple[float, _Contents, int] | None = None
    for group in listings.values():
        ids, target, origin = _distinct(group)
        pattern = group[0].pattern
        logits = _logits(exact, pattern, ids)
        margin = _margins(logits, target)
        cases, wrong = cases + len(ids), wrong + int((~(margin > 0)).sum())
        rounding = max(rounding, _rounding_error(model, pattern, ids, logits))
        lowest = int(margin.nan_to_num(nan=-torch.inf).argmin())
        if worst is None or float(margin[lowest]) < worst[0]:
            contents, row = _locate(group, int(origin[lowest]))
            worst = (float(margin[lowest]), contents, row)
    assert worst is not None
    smallest, contents, row = worst
    locality = _locality_error(exact, format)

    counterexample = None
    if wrong:
        problem = _full_problem(rule, contents, row)
        (counterexample,) = solve(model, task, format, problem)
    certified = wrong == 0 and smallest > 2 * rounding and locality <= 1e-9
    if certified:
        reason = f"{task.deed} of every length."
    elif wrong:
        reason = f"{wrong:,} of {cases:,} neighbourhoods are followed by a wrong token."
    elif not smallest > 2 * rounding:
        reason = (
            f"no neighbourhood is wrong, but the smallest margin, {smallest:.2g}, is not above "
            f"twice the rounding error of float32, {rounding:.2g}."
        )
    else:
        reason = f"logits differ by {locality:.2g} between a long line and the reach alone."
    return Certificate(
        certified=certified,
        reason=reason,
        patterns=len(listings),
        neighbourhoods=cases,
        wrong=wrong,
        smallest_margin=smallest,
        rounding_error=rounding,
        locality_error=locality,
        counterexample=counterexample,
        seconds=time.perf_counter() - begin,
    )


# Patterns -----------------------------------------------------------------------------------


def _patterns(model: Transformer, format: PlainFormat, rule: ColumnRule) -> Iterator[_Pattern]:
    """Every pattern of reach that a line of any length can show (with repetitions).

    The reach of a query of place p stays within p - below … p + above. What it holds there
    depends on whether each operand reaches these columns and whether the answer has begun, so
    operands of up to below + max(above, 1) + 3 columns show every case: a longer operand looks like one
    that just leaves the reach, and a query further up looks like one just clear of the start.
    """
    below, above = reach_in_places(model.config)
    longest = below + max(above, 1) + 3
    for lengths in torch.cartesian_prod(
        *[torch.arange(1, longest + 1)] * rule.num_operands
    ).tolist():
        line = _skeleton(format, lengths, max(lengths) + below + 2)
        visibility = [v[0] for v in model.visibility(coordinates_of(line, equal_lengths=True))]
        first = int(line.target[0].long().argmax()) - 1
        for query in range(first, line.ids.shape[1] - 1):
            columns = _reach(visibility, query)
            yield _pattern(tuple(lengths), line, visibility, columns)


def _skeleton(format: PlainFormat, lengths: list[int], answer_length: int) -> AnnotatedTokens:
    """A line of the given lengths; its digits do not matter."""
    width = max(max(lengths), answer_length)
    operands = torch.ones(1, len(lengths), width, dtype=torch.uint8)
    problems = Problems(operands, Shapes.of(torch.tensor([lengths]), "+"))
    answer = Numbers(operands[:, 0], torch.tensor([answer_length]))
    return format.write(problems, answer)


def _reach(visibility: list[Tensor], query: int) -> list[int]:
    """Columns of all tokens that can influence the query's logits, in order."""
    reached = torch.zeros(visibility[0].shape[0], dtype=torch.bool)
    reached[query] = True
    for visible in reversed(visibility):
        reached |= visible[reached].any(dim=0)
    columns: list[int] = reached.nonzero().squeeze(1).tolist()
    return columns


def _pattern(
    lengths: tuple[int, ...], line: AnnotatedTokens, visibility: list[Tensor], columns: list[int]
) -> _Pattern:
    place, field = line.place[0, columns], line.field[0, columns]
    relative = torch.where(place >= 0, place - place[-1], -1_000 + place)
    graph = torch.stack([visible[columns][:, columns] for visible in visibility])
    description = (relative.tolist(), field.tolist(), graph.flatten().tolist())
    return _Pattern(lengths, field.tolist(), place.tolist(), repr(description).encode())


# Contents -----------------------------------------------------------------------------------


def _listings(
    model: Transformer, format: PlainFormat, rule: ColumnRule
) -> dict[bytes, list[_Contents]]:
    """Everything that every pattern may contain, grouped by pattern."""
    listings: dict[bytes, list[_Contents]] = {}
    listed, total = set(), 0
    for pattern in _patterns(model, format, rule):
        choices = _choices(pattern, rule)
        signature = (pattern.key, choices.signature(pattern))
        if signature in listed:
            continue
        listed.add(signature)
        contents = _contents(pattern, choices, format, rule)
        total += len(contents.target)
        if total > _LARGEST_LISTING:
            raise _NotProvable(_TOO_MANY)
        if len(contents.target):
            listings.setdefault(pattern.key, []).append(contents)
    return listings


@dataclass(frozen=True)
class _Choices:
    """What may vary within one pattern."""

    variables: list[tuple[int, int]]
    """The digits that matter, as (operand, column)."""
    smallest: list[int]
    """For each of them the smallest digit it may be: 1 where it leads a number of several."""
    states: list[int]
    """In which the rule may enter the lowest column."""

    def signature(self, pattern: _Pattern) -> tuple[object, ...]:
        """Equal for patterns of equal key that may contain the very same."""
        top, bottom = pattern.query_place, pattern.lowest_column
        relative = tuple((operand, column - top) for operand, column in self.variables)
        return relative, tuple(self.smallest), tuple(self.states), bottom - top


def _choices(pattern: _Pattern, rule: ColumnRule) -> _Choices:
    bottom, target_column = pattern.lowest_column, pattern.query_place + 1
    visible = {
        (field - Field.OPERAND, place)
        for field, place in zip(pattern.field, pattern.place, strict=True)
        if field >= Field.OPERAND
    }
    # Digits the reach does not hold still matter where they decide an answer digit it holds.
    deciding = {
        (operand, column)
        for operand, length in enumerate(pattern.lengths)
        for column in range(bottom, min(target_column, length) + 1)
    }
    variables = sorted(visible | deciding, key=lambda variable: (variable[1], variable[0]))
    smallest = [1 if 1 < column == pattern.lengths[operand] else 0 for operand, column in variables]
    return _Choices(variables, smallest, _entering_states(rule, bottom))


def _contents(
    pattern: _Pattern, choices: _Choices, format: PlainFormat, rule: ColumnRule
) -> _Contents:
    """All cases of one pattern that occur in a right line, by running the column rule."""
    end_id = format.vocabulary.id("<end>")
    bottom, target_column = pattern.lowest_column, pattern.query_place + 1
    variables = choices.variables
    domains = [torch.arange(low, 10) for low in choices.smallest] + [torch.tensor(choices.states)]
    num_cases = 1
    for domain in domains:
        num_cases *= len(domain)
    if num_cases > _LARGEST_LISTING:
        raise _NotProvable(_TOO_MANY)
    cases = torch.cartesian_prod(*domains).view(num_cases, len(domains))
    digits = {variable: cases[:, i] for i, variable in enumerate(variables)}
    state = entering = cases[:, -1]

    zero, written = torch.zeros_like(state), {}
    possible = torch.ones(num_cases, dtype=torch.bool)
    for column in range(bottom, target_column + 1):
        continues = state != 0
        if any(column <= length for length in pattern.lengths):
            continues = torch.ones_like(continues)
        read = [digits.get((j, column), zero) for j in range(rule.num_operands)]
        digit, state = rule.step(state, torch.stack(read, dim=1))
        written[column] = torch.where(continues, digit, end_id)
        if column < target_column:
            possible &= continues  # the query is an answer digit, so the answer got this far
    ids = torch.stack(
        [
            _token(field, place, format, digits, written, zero)
            for field, place in zip(pattern.field, pattern.place, strict=True)
        ],
        dim=1,
    )
    return _Contents(
        pattern,
        ids[possible],
        written[target_column][possible],
        entering[possible],
        {variable: values[possible] for variable, values in digits.items()},
    )


def _token(
    field: int,
    place: int,
    format: PlainFormat,
    digits: dict[tuple[int, int], Tensor],
    written: dict[int, Tensor],
    zero: Tensor,
) -> Tensor:
    if field >= Field.OPERAND:
        return digits[field - Field.OPERAND, place]
    if field == Field.ANSWER:
        return written[place]
    token = format.token_id(field)
    assert token is not None
    return zero + token


def _entering_states(rule: ColumnRule, column: int) -> list[int]:
    """The states in which a right calculation can enter a column.

    In the first column nothing is carried. A higher one stands for any number of columns below.
    """
    if column == 1:
        return [0]
    return sorted(_columns_below(rule))


def _columns_below(rule: ColumnRule) -> dict[int, list[tuple[int, ...]]]:
    """For every state that can be carried somewhere, a shortest way there from the initial one.

    The way is a list of columns, each the operands' digits. A 0 is used only where nothing else
    leads there, so that an operand may end on any of them.
    """
    digits = torch.tensor([1, 2, 3, 4, 5, 6, 7, 8, 9, 0])
    columns = torch.cartesian_prod(*[digits] * rule.num_operands)
    columns = columns.view(-1, rule.num_operands)
    ways: dict[int, list[tuple[int, ...]]] = {}
    frontier: dict[int, list[tuple[int, ...]]] = {0: []}
    while frontier:
        found: dict[int, list[tuple[int, ...]]] = {}
        for state, way in frontier.items():
            _, following = rule.step(torch.full((len(columns),), state), columns)
            for number, next_state in enumerate(following.tolist()):
                if next_state not in ways and next_state not in found:
                    found[next_state] = [*way, tuple(columns[number].tolist())]
        ways |= found
        frontier = found
    return ways


# Checking -----------------------------------------------------------------------------------


def _distinct(group: list[_Contents]) -> tuple[Tensor, Tensor, Tensor]:
    """Distinct contents of one pattern: ids (n, R), right next tokens (n,), a row each stems from.

    Raises where the same contents are followed by different tokens: then no model of this reach
    can be right.
    """
    ids = torch.cat([contents.ids for contents in group])
    target = torch.cat([contents.target for contents in group])
    first = _first_of_each(torch.cat([ids, target.unsqueeze(1)], dim=1))
    ids, target = ids[first], target[first]
    if len(_first_of_each(ids)) < len(ids):
        raise _NotProvable(
            "this model's reach is too narrow: the same digits in reach can call for different "
            "answers. Try a wider --model.positions.0.window."
        )
    return ids, target, first


def _first_of_each(rows: Tensor) -> Tensor:
    """Row numbers of the first occurrence of every distinct row."""
    # Rows are packed into one number each where they fit: sorting numbers is far faster.
    base = int(rows.max()) + 1
    varying = rows[:, (rows != rows[0]).any(dim=0)]
    if base ** varying.shape[1] < 1 << 62:
        powers = base ** torch.arange(varying.shape[1])
        ordered, order = (varying * powers).sum(dim=1).sort(stable=True)
        new = torch.ones(len(rows), dtype=torch.bool)
        new[1:] = ordered[1:] != ordered[:-1]
        return order[new]
    _, inverse = torch.unique(varying, dim=0, return_inverse=True)
    first = torch.full((int(inverse.max()) + 1,), len(rows))
    return first.scatter_reduce(0, inverse, torch.arange(len(rows)), "amin")


def _locate(group: list[_Contents], row: int) -> tuple[_Contents, int]:
    for contents in group:
        if row < len(contents.target):
            return contents, row
        row -= len(contents.target)
    raise IndexError(row)


def _logits(model: Transformer, pattern: _Pattern, ids: Tensor, path: str = "dense") -> Tensor:
    """Logits (n, V) after the tokens of a reach, and nothing else, float64."""
    place = torch.tensor([pattern.place])
    coordinates = Coordinates(torch.arange(place.shape[1]).unsqueeze(0), place)
    last = place.shape[1] - 1
    parts = [
        model(part, coordinates, last, path=path)[:, 0].double()
        for part in torch.split(ids, _ROWS_PER_PASS)
    ]
    return torch.cat(parts)


def _margins(logits: Tensor, target: Tensor) -> Tensor:
    right = logits.gather(1, target.unsqueeze(1)).squeeze(1)
    return right - logits.scatter(1, target.unsqueeze(1), -torch.inf).amax(dim=1)


def _rounding_error(
    model: Transformer, pattern: _Pattern, ids: Tensor, exact_logits: Tensor
) -> float:
    """How far the kernels that really run, in the model's own precision, stray from float64."""
    return max(
        _largest(_logits(model, pattern, ids, path) - exact_logits)
        for path in ("dense", "windowed")
    )


def _largest(difference: Tensor) -> float:
    """The largest size of any number; infinite where one is not a number, which max() would hide."""
    return float(difference.abs().nan_to_num(nan=torch.inf).max())


def _locality_error(model: Transformer, format: PlainFormat) -> float:
    """Largest difference between logits in long random lines and those of the reaches alone."""
    generator = seeds.generator(0, "locality")
    error = 0.0
    for lengths in ([60, 60], [60, 35], [12, 57], [9, 4]):
        rows = 16
        line = _skeleton(format, lengths, max(lengths) + 1)
        is_digit = (line.field == Field.ANSWER) | (line.field >= Field.OPERAND)
        is_digit &= line.ids != format.end_id
        random_digits = torch.randint(10, (rows, line.ids.shape[1]), generator=generator)
        ids = torch.where(is_digit, random_digits, line.ids)
        coordinates = coordinates_of(line, equal_lengths=True)
        visibility = [v[0] for v in model.visibility(coordinates)]
        first = int(line.target[0].long().argmax()) - 1
        whole = [model(ids, coordinates, first, path="dense")]
        whole.append(model(ids, coordinates, first, path="windowed"))
        for query in range(first, ids.shape[1] - 1):
            columns = _reach(visibility, query)
            pattern = _pattern(tuple(lengths), line, visibility, columns)
            alone = _logits(model, pattern, ids[:, columns])
            for logits in whole:
                error = max(error, _largest(logits[:, query - first] - alone))
    return error


def _full_problem(rule: ColumnRule, contents: _Contents, row: int) -> Problems:
    """A whole problem in which the given neighbourhood occurs."""
    pattern = contents.pattern
    bottom = pattern.lowest_column
    way = _columns_below(rule)[int(contents.state[row])] if bottom > 1 else []
    operands = []
    for operand, length in enumerate(pattern.lengths):
        digits = [column[operand] for column in way]
        for column in range(bottom, length + 1):
            # Digits the neighbourhood does not tell may be anything; 1 can also lead.
            values = contents.digits.get((operand, column))
            digits.append(1 if values is None else int(values[row]))
        operands.append("".join(map(str, reversed(digits))))
    return Problems.from_texts([operands], ["+"])


def _double_copy(model: Transformer) -> Transformer:
    copy = Transformer(model.config, model.embedding.num_embeddings).double()
    copy.load_state_dict(model.state_dict())
    return copy.eval()
