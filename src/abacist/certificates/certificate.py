"""A proof that a trained model is right on all problems of every length.

The argument, in full in `docs/certificate.md`:

1. A logit depends only on the tokens in its *receptive field*: the tokens it sees in the last layer,
   the tokens these see in the layer below, and so on. `receptive_fields.receptive_field` follows the
   model's own visibility masks.
2. With windowed attention a receptive field holds a few columns (and rows). Its *pattern* depends
   on which numbers have ended nearby, but not on where in the number it stands. So short numbers
   show every pattern there is.
3. Which *contexts* a pattern can hold follows from the algorithm that the format writes down:
   `column_addition`, `signed_addition`, `long_multiplication`, `non_restoring_division` or
   `insertion_sort`. All of them are enumerated, and in each the model's next token is compared with the right one.
4. If none is wrong, the model writes every token of every answer correctly after a right prefix; by
   induction from token to token it writes every answer correctly.
"""

import math
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from abacist.certificates.calculation_layout import find_layout
from abacist.certificates.column_addition import ColumnAdditionEnumeration
from abacist.certificates.enclosures import FLOAT32, Precision
from abacist.certificates.insertion_sort import InsertionSortEnumeration
from abacist.certificates.joint_enumeration import JointEnumeration
from abacist.certificates.long_multiplication import LongMultiplicationEnumeration
from abacist.certificates.non_restoring_division import NonRestoringDivisionEnumeration
from abacist.certificates.receptive_fields import (
    Context,
    Enumeration,
    NotProvable,
    Pattern,
    pattern_of,
    too_many,
    visibility_in,
)
from abacist.certificates.record import Certificate
from abacist.certificates.rounding import BoundedModel
from abacist.certificates.signed_addition import SignedAdditionEnumeration
from abacist.formats.calculator import CalculatorFormat
from abacist.formats.format import Format
from abacist.models.block import Block
from abacist.models.encodings import INVISIBLE
from abacist.models.receptive_field import obstacle_to_finite_receptive_field
from abacist.models.teacher_forcing import coordinates_of
from abacist.models.transformer import Transformer
from abacist.scoring.records import Solution
from abacist.scoring.solving import solve
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.column_task import ColumnTask
from abacist.tasks.own_task import OwnTask
from abacist.tasks.problems import Problems
from abacist.tasks.task import Task

_ROWS_PER_PASS = 50_000
MAX_MINUTES = 60.0
"""Default limit: a check that would take longer is given up."""
_MOST_PER_SECOND = 1_000_000
"""No model is checked faster than this; an enumeration that would need it is refused at once."""
_SECONDS_TO_JUDGE_BY = 5.0
_MOST_COMPLETED = 10
"""Number of wrong neighbourhoods from which problems are made; an answer can be right in spite of wrong work."""

OnProgress = Callable[[int, int], None]
"""Called with the number of cases checked so far and the number of all cases."""
OnMistake = Callable[[str], None]
"""Called with a problem in which a wrong neighbourhood occurs, as a person types it."""


@torch.no_grad()
def prove(
    trained_model: TrainedModel,
    max_minutes: float = MAX_MINUTES,
    on_progress: OnProgress = lambda done, total: None,
    precision: Precision = FLOAT32,
    on_mistake: OnMistake | None = None,
) -> Certificate:
    """Check every neighbourhood of a trained model.

    Returns a certificate, which holds the claim that is proved, or a counterexample, or the reason
    why there is neither. A check that would take more than `max_minutes` is given up as soon as
    that is known. The claim holds for the function of real numbers that the weights define, and for
    every implementation of it in `precision` (see `rounding`). `on_mistake` receives a problem for
    every wrong neighbourhood, and for every operation that it can belong to.
    """
    try:
        return _prove(trained_model, 60 * max_minutes, on_progress, precision, on_mistake)
    except NotProvable as reason:
        return Certificate(False, str(reason))


def _prove(
    trained_model: TrainedModel,
    max_seconds: float,
    on_progress: OnProgress,
    precision: Precision,
    on_mistake: OnMistake | None,
) -> Certificate:
    begin = time.perf_counter()
    exact, enumeration = _checkable(trained_model, max_seconds)
    tally = _Tally(trained_model, exact, BoundedModel(exact, precision), on_mistake)
    tally.check_all(enumeration, max_seconds, on_progress)
    locality = _locality_error(exact, enumeration)
    counterexample = _counterexample(trained_model, tally.lowest) if tally.wrong else None
    is_bounded = tally.implemented_margin > 0
    is_measured = precision is FLOAT32 and tally.proved_margin > 2 * tally.measured_rounding
    certified = (
        tally.wrong == 0
        and tally.proved_margin > 0
        and (is_bounded or is_measured)
        and locality <= 1e-9
    )
    if certified:
        reason = enumeration.claim
    elif tally.wrong:
        reason = f"{tally.wrong:,} of {tally.cases:,} neighbourhoods are followed by a wrong token."
        if counterexample is None:
            reason += " The answers of problems made from the worst of them are right nevertheless."
    elif not tally.proved_margin > 0:
        reason = (
            f"no neighbourhood is wrong, but the smallest margin is {tally.smallest_margin:.2g}, and "
            "float64 is not exact enough to prove that it is above 0."
        )
    elif not (is_bounded or is_measured) and not math.isfinite(tally.rounding_bound):
        reason = (
            "no neighbourhood is wrong, but no finite bound is known on what an implementation in "
            f"{precision.name} can lose by rounding."
        )
    elif not (is_bounded or is_measured):
        reason = (
            f"no neighbourhood is wrong, but an implementation in {precision.name} can lose up to "
            f"{tally.rounding_bound:.2g} of a margin by rounding, and the smallest margin is "
            f"{tally.smallest_margin:.2g}."
        )
    else:
        reason = (
            f"logits differ by {locality:.2g} between a long line and the receptive field alone."
        )
    return Certificate(
        certified=certified,
        reason=reason,
        patterns=len(enumeration.patterns),
        neighbourhoods=tally.cases,
        wrong=tally.wrong,
        smallest_margin=tally.smallest_margin,
        proved_margin=None if tally.wrong else _finite(tally.proved_margin),
        rounding_bound=None if tally.wrong else _finite(tally.rounding_bound),
        precision=precision.name,
        rounding_is_proved=is_bounded,
        remaining_margin=None if tally.wrong else _finite(tally.implemented_margin),
        locality_error=locality,
        counterexample=counterexample,
        seconds=time.perf_counter() - begin,
    )


@torch.no_grad()
def count_wrong(
    trained_model: TrainedModel,
    on_mistake: OnMistake | None = None,
    max_minutes: float = MAX_MINUTES,
) -> int | None:
    """Return how many neighbourhoods a model gets wrong in float64; None if nothing can be proved about it.

    This is a proof without its bounds on rounding, which take most of its time. `on_mistake` and
    `max_minutes` are those of `prove`; a model whose check would take longer counts as one about which
    nothing can be proved.
    """
    max_seconds = 60 * max_minutes
    try:
        exact, enumeration = _checkable(trained_model, max_seconds)
        tally = _Tally(trained_model, exact, None, on_mistake)
        tally.check_all(enumeration, max_seconds)
    except NotProvable:
        return None
    return tally.wrong


def _checkable(trained_model: TrainedModel, max_seconds: float) -> tuple[Transformer, Enumeration]:
    """Return a float64 copy of the model, and all contexts; raise `NotProvable` if there is an obstacle."""
    model, task = trained_model.model, trained_model.task
    _check_task(task)
    _check_model(model)
    exact = _double_copy(model)
    _check_scores(exact)
    most_cases = max_seconds * _MOST_PER_SECOND
    enumeration = _enumeration(exact, task, trained_model.format, most_cases)
    if enumeration.num_cases > most_cases:
        raise too_many(math.log10(enumeration.num_cases))
    return exact, enumeration


_ENUMERATIONS: dict[str, Callable[[Transformer, Any, Any], Enumeration]] = {
    "long-multiplication": LongMultiplicationEnumeration,
    "non-restoring-division": NonRestoringDivisionEnumeration,
    "insertion-sort": InsertionSortEnumeration,
    "signed-addition": SignedAdditionEnumeration,
}


def _enumeration(exact: Transformer, task: Task, format: Format, most_cases: float) -> Enumeration:
    """Return the enumeration of all contexts. Raises `NotProvable` if there is none for the task."""
    if isinstance(format, CalculatorFormat):
        members = [
            (
                member.task.operations,
                _enumeration(exact, member.task.build(), member.format, most_cases),
            )
            for member in format.members
        ]
        divides = any("//" in operations or "%" in operations for operations, _ in members)
        exception = ", except divisions by 0" if divides else ""
        return JointEnumeration(f"{task.claim} of every length{exception}.", members)
    if format.enumeration in _ENUMERATIONS:
        return _ENUMERATIONS[format.enumeration](exact, task, format)
    return ColumnAdditionEnumeration(exact, find_layout(task, format, exact.config), most_cases)


def _check_task(task: Task) -> None:
    """Raise `NotProvable` for a task of an extension that no model can be proved right about."""
    if isinstance(task, OwnTask) and not isinstance(task, ColumnTask):
        raise NotProvable(
            f"{task.config.kind} is a task of its own and is only measured. A certificate needs a task "
            "that is stated as a machine of columns, as docs/extending.md shows."
        )


def _check_model(model: Transformer) -> None:
    """Raise `NotProvable` if nothing can be proved about such a model, whatever its task."""
    if model.config.norm_order != "pre" or model.config.query_key_norm:
        raise NotProvable(
            "so far, attention scores are bounded only for layers with pre-normalisation and "
            "without query-key normalisation. Train with --model.norm_order pre "
            "--model.query_key_norm false."
        )
    if model.config.injection == "sublayers":
        raise NotProvable(
            "so far, there is no bound on what is injected within layers. Train with --model.injection add."
        )
    obstacle = obstacle_to_finite_receptive_field(model.config)
    if obstacle is not None:
        raise NotProvable(f"the receptive field of this model is not finite: {obstacle}")
    if not all(bool(torch.isfinite(parameter).all()) for parameter in model.parameters()):
        raise NotProvable("some of the model's weights are not finite numbers.")


def _check_scores(exact: Transformer) -> None:
    """Raise `NotProvable` if a masked token could have a positive weight."""
    largest_score = max(
        block.attention.largest_score(block.attention_norm)
        for block in exact.modules()
        if isinstance(block, Block)
    )
    if not largest_score <= -INVISIBLE / 10:
        raise NotProvable(
            f"attention scores can be as large as {largest_score:.0e}, so masked tokens are not certain "
            "to have weight 0."
        )


class _Tally:
    """The results of the check so far."""

    def __init__(
        self,
        trained_model: TrainedModel,
        exact: Transformer,
        bounded: BoundedModel | None,
        on_mistake: OnMistake | None,
    ) -> None:
        """Prepare to check the float64 copy `exact` of a model; without `bounded`, no margin is bounded."""
        self.trained_model, self.exact, self.on_mistake = trained_model, exact, on_mistake
        self.bounded = bounded
        self.cases, self.wrong, self.rounding_bound = 0, 0, 0.0
        self.proved_margin, self.implemented_margin = torch.inf, torch.inf
        self.measured_rounding = 0.0
        """Largest rounding error seen in cases for which the bound is not enough."""
        self.lowest: list[tuple[float, Context, int]] = []
        """The smallest margins in ascending order, each with its context and case."""

    @property
    def smallest_margin(self) -> float:
        return self.lowest[0][0]

    def check_all(
        self,
        enumeration: Enumeration,
        max_seconds: float,
        on_progress: OnProgress = lambda done, total: None,
    ) -> None:
        """Check all contexts; raise `NotProvable` as soon as it is known that this takes longer than allowed."""
        done, total, begin = 0, enumeration.num_cases, time.perf_counter()
        for part, num_cases in enumeration.parts():
            self.check(part)
            done += num_cases
            on_progress(done, total)
            spent = time.perf_counter() - begin
            if spent > _SECONDS_TO_JUDGE_BY and spent * total > max_seconds * done:
                raise too_many(math.log10(total), hours=spent * total / done / 3600)

    def check(self, part: list[Context]) -> None:
        """Run a part of the contexts of one pattern through the model, each case once."""
        ids, target, origin = _distinct(part)
        if not len(ids):
            return
        self.cases += len(ids)
        margins: list[Tensor] = []
        while (first := sum(map(len, margins))) < len(ids):
            some = slice(first, first + self._cases_at_once(len(ids)))
            margins.append(self._margins(part[0].pattern, ids[some], target[some]))
            self.wrong += int((~(margins[-1] > 0)).sum())
        margin = torch.cat(margins).nan_to_num(nan=-torch.inf)
        for case in margin.topk(min(_MOST_COMPLETED, len(margin)), largest=False).indices.tolist():
            self.lowest.append((float(margin[case]), *_locate(part, int(origin[case]))))
        self.lowest = sorted(self.lowest, key=lambda entry: entry[0])[:_MOST_COMPLETED]
        if self.on_mistake is not None:
            rows = origin[~(margin > 0)].tolist()
            # Without a problem, the number of its operands would be unknown.
            wrong = _problems_with(self.trained_model, [_locate(part, row) for row in rows])
            for problem in self.trained_model.task.expressions(wrong) if rows else ():
                self.on_mistake(problem)

    def _cases_at_once(self, count: int) -> int:
        """Return how many of `count` cases to check at once: fewer if their margins are bounded."""
        return count if self.wrong or self.bounded is None else self.bounded.cases_at_once

    def _margins(self, pattern: Pattern, ids: Tensor, target: Tensor) -> Tensor:
        """Return the margins of some cases of one pattern, and bound them while none is wrong."""
        if self.wrong or self.bounded is None:
            # Bounds take far longer, and once a case is wrong nothing can be certified any more.
            logits = _logits(self.exact, pattern, ids)
            right = target.unsqueeze(1)
            others = logits.scatter(1, right, -torch.inf).amax(dim=1)
            return logits.gather(1, right).squeeze(1) - others
        # Only the smallest margin matters, so no margin is bounded more closely than that takes.
        bound = self.bounded.margins(pattern, ids, target, enough=self.implemented_margin)
        self.proved_margin = min(self.proved_margin, _smallest(bound.real))
        implemented = bound.implemented.nan_to_num(nan=-torch.inf, neginf=-torch.inf)
        worst = int(implemented.argmin())
        if float(implemented[worst]) < self.implemented_margin:
            self.implemented_margin = float(implemented[worst])
            self.rounding_bound = float(bound.rounding[worst])
        self._measure(pattern, ids[~(bound.implemented > 0)])
        return bound.computed

    def _measure(self, pattern: Pattern, ids: Tensor) -> None:
        """Compare both kernels of this machine with float64, where the bound is not enough."""
        if not len(ids):
            return
        exact = _logits(self.exact, pattern, ids)
        for path in ("dense", "windowed"):
            difference = _logits(self.trained_model.model, pattern, ids, path) - exact
            self.measured_rounding = max(self.measured_rounding, _largest(difference))


def _finite(bound: float) -> float | None:
    """Return a bound for the record; None if there is no finite one."""
    return bound if abs(bound) < 1e300 else None


def _smallest(bounds: Tensor) -> float:
    """Return the smallest bound; minus infinity if one is NaN, which min() could hide."""
    return float(bounds.nan_to_num(nan=-torch.inf).min())


def _distinct(part: list[Context]) -> tuple[Tensor, Tensor, Tensor]:
    """Return the distinct cases of one pattern: ids (n, M), right next tokens (n,), rows of origin (n,).

    Raises `NotProvable` if contexts that the query cannot distinguish call for different next tokens:
    then no model with this receptive field can be right.
    """
    if not any(len(context.target) for context in part):
        empty = torch.empty(0, dtype=torch.int64)
        return empty, empty, empty
    ids = torch.cat([context.ids for context in part])
    target = torch.cat([context.target for context in part])
    first = _first_of_each(torch.cat([ids, target.unsqueeze(1)], dim=1))
    ids, target = ids[first], target[first]
    if len(_first_of_each(ids)) < len(ids):
        raise NotProvable(
            "the receptive field of this model is too narrow: the same digits can call for different "
            "answers. Try a wider --model.positions.0.window."
        )
    _check_exchanges(part[0].pattern, ids, target)
    return ids, target, first


def _check_exchanges(pattern: Pattern, ids: Tensor, target: Tensor) -> None:
    """Raise `NotProvable` if exchanging tokens of equal coordinates changes what has to follow."""
    if not pattern.alike:
        return
    ids = ids.clone()
    for group in pattern.alike:
        ids[:, group] = ids[:, group].sort(dim=1).values
    if len(_first_of_each(ids)) < len(_first_of_each(torch.cat([ids, target.unsqueeze(1)], dim=1))):
        raise NotProvable(
            "the format gives several tokens the same coordinates, so that no model can distinguish them, "
            "and exchanging them can call for another answer. Give them different coordinates in the format."
        )


def _first_of_each(rows: Tensor) -> Tensor:
    """Return the numbers of the rows that equal no earlier row."""
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


def _locate(part: list[Context], row: int) -> tuple[Context, int]:
    for context in part:
        if row < len(context.target):
            return context, row
        row -= len(context.target)
    raise IndexError(row)


def _logits(model: Transformer, pattern: Pattern, ids: Tensor, path: str = "dense") -> Tensor:
    """Return the logits (n, V), float64, of a line that holds nothing but the receptive field."""
    last = pattern.coordinates.num_tokens - 1
    parts = [
        model(part, pattern.coordinates, last, path=path)[:, 0].double()
        for part in torch.split(ids, _ROWS_PER_PASS)
    ]
    return torch.cat(parts)


def _largest(difference: Tensor) -> float:
    """Return the largest absolute value; infinite if one is NaN, which max() would hide."""
    return float(difference.abs().nan_to_num(nan=torch.inf).max())


def _locality_error(model: Transformer, enumeration: Enumeration) -> float:
    """Return the largest difference between logits in long random lines and in receptive fields alone.

    Raises `NotProvable` if a long line shows a pattern that was not enumerated, which would be an
    error in this package.
    """
    by_key = {pattern.key: pattern for pattern in enumeration.patterns}
    error = 0.0
    for ids, skeletons in enumeration.long_lines():
        line = skeletons[0].line
        coordinates = coordinates_of(line, equal_lengths=True)
        visibility = visibility_in(model, line)
        first = min(skeleton.queries[0] for skeleton in skeletons)
        whole = [model(ids, coordinates, first, path="dense")]
        whole.append(model(ids, coordinates, first, path="windowed"))
        # Queries that see the same pattern share a pass.
        fields_by_key: dict[bytes, list[tuple[list[int], int]]] = {}
        for skeleton in skeletons:
            for query in skeleton.queries:
                pattern = pattern_of(skeleton, visibility, query)
                fields_by_key.setdefault(pattern.key, []).append((pattern.tokens, query))
        for key, fields in fields_by_key.items():
            enumerated = by_key.get(key)
            if enumerated is None:
                raise NotProvable("a long line shows a receptive field that was not enumerated.")
            alone = _logits(model, enumerated, torch.cat([ids[:, tokens] for tokens, _ in fields]))
            for logits in whole:
                in_line = torch.cat([logits[:, query - first] for _, query in fields])
                error = max(error, _largest(in_line - alone))
    return error


def _counterexample(
    trained_model: TrainedModel, lowest: list[tuple[float, Context, int]]
) -> Solution | None:
    """Return a whole problem that the model gets wrong, made from one of the worst neighbourhoods."""
    wrong = [(context, case) for margin, context, case in lowest if not margin > 0]
    problems = _problems_with(trained_model, wrong)
    return next(
        (solution for solution in solve(trained_model, problems) if not solution.correct),
        None,
    )


def _double_copy(model: Transformer) -> Transformer:
    copy = Transformer(model.config, model.embedding.num_embeddings).double()
    copy.load_state_dict(model.state_dict())
    return copy.eval()


def _problems_with(
    trained_model: TrainedModel, neighbourhoods: list[tuple[Context, int]]
) -> Problems:
    """Return a problem in which each neighbourhood occurs, for every operation that it can belong to.

    Operations that share their work can still differ: a mistake may follow one operator only.
    """
    asked = [
        (context.operands(case), operation)
        for context, case in neighbourhoods
        for operation in context.operations or trained_model.task.operations
    ]
    return Problems.from_texts([row for row, _ in asked], [operation for _, operation in asked])
