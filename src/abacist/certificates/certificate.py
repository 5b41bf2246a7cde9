"""A proof that a trained model is right on all problems of every length.

The argument, in full in `docs/certificate.md`:

1. A logit depends on the tokens in its *reach* only: the tokens it sees in the last layer, those
   these see in the layer below, and so on. `reaches.reach` follows the model's own visibility masks.
2. Where attention is windowed, a reach holds a few columns (and rows), and how it looks depends
   only on which numbers have ended nearby, not on where in the number it stands. So short
   numbers show every *pattern* of reach there is.
3. What a reach can contain follows from how the answer is worked out: from column to column, which
   the task's column rule tells (`columns`), in rows of cells (`cells`), in rows that take a divisor
   away (`rows`), or by comparing digits (`insertions`). All of it is listed, and the model's next
   token is compared with the right one in each case.
4. If none is wrong, then every token to be written in every problem is predicted rightly after a
   right prefix; by induction from token to token the model writes every answer rightly.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from abacist.certificates.calculation_layout import find_layout
from abacist.certificates.column_addition import ColumnAdditionEnumeration
from abacist.certificates.insertion_sort import InsertionSortEnumeration
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
from abacist.formats.format import Format
from abacist.formats.insertion_sort import InsertionSortFormat
from abacist.formats.long_multiplication import LongMultiplicationFormat
from abacist.formats.non_restoring_division import NonRestoringDivisionFormat
from abacist.models.block import Block
from abacist.models.encodings import INVISIBLE
from abacist.models.receptive_field import obstacle_to_finite_receptive_field
from abacist.models.teacher_forcing import Forced, coordinates_of
from abacist.models.transformer import Transformer
from abacist.scoring.solving import Solution, solve
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.problems import Problems
from abacist.tasks.sorting import Sorting
from abacist.tasks.task import Task

_ROWS_PER_PASS = 50_000
MAX_MINUTES = 60.0
"""A longer check is given up, unless told otherwise."""
_MOST_PER_SECOND = 1_000_000
"""Cases that no model is checked faster than: beyond, a listing is refused before it begins."""
_SECONDS_TO_JUDGE_BY = 5.0
_MOST_COMPLETED = 10
"""Wrong neighbourhoods that are made into problems; where work is written down, an answer may be right all the same."""

OnProgress = Callable[[int, int], None]
"""Told how many of all cases have been checked."""


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
    step: int | None = None
    """The training step of the checkpoint it speaks of; None where the model is of no run."""

    def to_json(self) -> dict[str, object]:
        data = asdict(self)
        data["counterexample"] = self.counterexample and self.counterexample.to_json()
        return data


@torch.no_grad()
def prove(
    trained_model: TrainedModel,
    max_minutes: float = MAX_MINUTES,
    on_progress: OnProgress = lambda done, total: None,
) -> Certificate:
    """Check every neighbourhood of a trained model: a proof, a counterexample, or why neither.

    A check that would take more than `max_minutes` is given up as soon as that is known.
    """
    try:
        return _prove(trained_model, 60 * max_minutes, on_progress)
    except NotProvable as reason:
        return Certificate(False, str(reason))


def _prove(trained_model: TrainedModel, max_seconds: float, on_progress: OnProgress) -> Certificate:
    begin = time.perf_counter()
    model, task, format = trained_model.model, trained_model.task, trained_model.format
    _check_model(model)
    exact = _double_copy(model)
    _check_scores(exact)
    listing = _listing(exact, task, format, max_seconds * _MOST_PER_SECOND)
    total = listing.num_cases
    tally = _Tally(model, exact)
    done, first = 0, time.perf_counter()
    for part, num_cases in listing.parts():
        tally.check(part)
        done += num_cases
        on_progress(done, total)
        spent = time.perf_counter() - first
        if spent > _SECONDS_TO_JUDGE_BY and spent * total > max_seconds * done:
            raise too_many(total, hours=spent * total / done / 3600)
    locality = _locality_error(exact, listing)
    counterexample = _counterexample(trained_model, tally.lowest) if tally.wrong else None
    smallest, rounding = tally.smallest_margin, tally.rounding_error
    certified = tally.wrong == 0 and smallest > 2 * rounding and locality <= 1e-9
    if certified:
        reason = listing.claim
    elif tally.wrong:
        reason = f"{tally.wrong:,} of {tally.cases:,} neighbourhoods are followed by a wrong token."
        if counterexample is None:
            reason += " The answers of problems made from the worst of them are right all the same."
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
        patterns=len(listing.patterns),
        neighbourhoods=tally.cases,
        wrong=tally.wrong,
        smallest_margin=smallest,
        rounding_error=rounding,
        locality_error=locality,
        counterexample=counterexample,
        seconds=time.perf_counter() - begin,
    )


def _listing(exact: Transformer, task: Task, format: Format, most_cases: float) -> Enumeration:
    """Everything that can stand in a reach; raises where the task cannot be listed."""
    if isinstance(format, LongMultiplicationFormat):
        assert isinstance(task, Arithmetic)
        return LongMultiplicationEnumeration(exact, task, format)
    if isinstance(format, NonRestoringDivisionFormat):
        assert isinstance(task, Arithmetic)
        return NonRestoringDivisionEnumeration(exact, task, format)
    if isinstance(format, InsertionSortFormat):
        assert isinstance(task, Sorting)
        return InsertionSortEnumeration(exact, task, format)
    return ColumnAdditionEnumeration(exact, find_layout(task, format, exact.config), most_cases)


def _check_model(model: Transformer) -> None:
    """Raise where nothing can be proved, whatever the task."""
    if model.config.norm_order != "pre" or model.config.query_key_norm:
        raise NotProvable(
            "the size of attention scores is bounded for layers normalised before, without "
            "normalised queries, so far. Train with --model.norm_order pre."
        )
    if model.config.injection == "sublayers":
        raise NotProvable("what is added within layers is not bounded so far.")
    obstacle = obstacle_to_finite_receptive_field(model.config)
    if obstacle is not None:
        raise NotProvable(f"this model's reach is not finite: {obstacle}")
    if not all(bool(torch.isfinite(parameter).all()) for parameter in model.parameters()):
        raise NotProvable("some of the model's weights are not finite numbers.")


def _check_scores(exact: Transformer) -> None:
    """Raise where a masked token might weigh something."""
    largest_score = max(
        block.attention.largest_score(block.attention_norm)
        for block in exact.modules()
        if isinstance(block, Block)
    )
    if not largest_score <= -INVISIBLE / 10:
        raise NotProvable(
            f"attention scores may reach {largest_score:.0e}, so that masked tokens are not "
            "certain to weigh nothing."
        )


class _Tally:
    """What has been found so far."""

    def __init__(self, model: Transformer, exact: Transformer) -> None:
        self.model, self.exact = model, exact
        self.cases, self.wrong, self.rounding_error = 0, 0, 0.0
        self.lowest: list[tuple[float, Context, int]] = []
        """The smallest margins, in order: each with the contents and the case it was found at."""

    @property
    def smallest_margin(self) -> float:
        return self.lowest[0][0]

    def check(self, part: list[Context]) -> None:
        """Run a part of one pattern's listing through the model, each case once."""
        ids, target, origin = _distinct(part)
        if not len(ids):
            return
        pattern = part[0].pattern
        logits = _logits(self.exact, pattern, ids)
        margin = Forced(logits.unsqueeze(1), target.unsqueeze(1)).margins().squeeze(1)
        self.cases += len(ids)
        self.wrong += int((~(margin > 0)).sum())
        # The kernels that really run, in the model's own precision, against float64.
        for path in ("dense", "windowed"):
            difference = _logits(self.model, pattern, ids, path) - logits
            self.rounding_error = max(self.rounding_error, _largest(difference))
        margin = margin.nan_to_num(nan=-torch.inf)
        for case in margin.topk(min(_MOST_COMPLETED, len(margin)), largest=False).indices.tolist():
            self.lowest.append((float(margin[case]), *_locate(part, int(origin[case]))))
        self.lowest = sorted(self.lowest, key=lambda found: found[0])[:_MOST_COMPLETED]


def _distinct(part: list[Context]) -> tuple[Tensor, Tensor, Tensor]:
    """Distinct contents of one pattern: ids (n, R), right next tokens (n,), a row each stems from.

    Raises where the same contents are followed by different tokens: then no model of this reach
    can be right.
    """
    if not any(len(contents.target) for contents in part):
        empty = torch.empty(0, dtype=torch.int64)
        return empty, empty, empty
    ids = torch.cat([contents.ids for contents in part])
    target = torch.cat([contents.target for contents in part])
    first = _first_of_each(torch.cat([ids, target.unsqueeze(1)], dim=1))
    ids, target = ids[first], target[first]
    if len(_first_of_each(ids)) < len(ids):
        raise NotProvable(
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


def _locate(part: list[Context], row: int) -> tuple[Context, int]:
    for contents in part:
        if row < len(contents.target):
            return contents, row
        row -= len(contents.target)
    raise IndexError(row)


def _logits(model: Transformer, pattern: Pattern, ids: Tensor, path: str = "dense") -> Tensor:
    """Logits (n, V) after the tokens of a reach, and nothing else, float64."""
    last = pattern.coordinates.num_tokens - 1
    parts = [
        model(part, pattern.coordinates, last, path=path)[:, 0].double()
        for part in torch.split(ids, _ROWS_PER_PASS)
    ]
    return torch.cat(parts)


def _largest(difference: Tensor) -> float:
    """The largest size of any number; infinite where one is not a number, which max() would hide."""
    return float(difference.abs().nan_to_num(nan=torch.inf).max())


def _locality_error(model: Transformer, listing: Enumeration) -> float:
    """Largest difference between logits in long random lines and those of the listed reaches alone.

    Raises where a long line shows a reach that was not listed, which would be an error of ours.
    """
    by_key = {pattern.key: pattern for pattern in listing.patterns}
    error = 0.0
    for ids, skeletons in listing.long_lines():
        line = skeletons[0].line
        coordinates = coordinates_of(line, equal_lengths=True)
        visibility = visibility_in(model, line)
        first = min(skeleton.queries[0] for skeleton in skeletons)
        whole = [model(ids, coordinates, first, path="dense")]
        whole.append(model(ids, coordinates, first, path="windowed"))
        for skeleton in skeletons:
            for query in skeleton.queries:
                here = pattern_of(skeleton, visibility, query)
                listed = by_key.get(here.key)
                if listed is None:
                    raise NotProvable("a long line shows a reach that was not listed.")
                alone = _logits(model, listed, ids[:, here.tokens])
                for logits in whole:
                    error = max(error, _largest(logits[:, query - first] - alone))
    return error


def _counterexample(
    trained_model: TrainedModel, lowest: list[tuple[float, Context, int]]
) -> Solution | None:
    """A whole problem that the model gets wrong, made from one of the worst neighbourhoods."""
    rows = [contents.operands(case) for margin, contents, case in lowest if not margin > 0]
    # What is worked out alike may still be wrong behind one operator only.
    operations = [operation for _ in rows for operation in trained_model.task.operations]
    problems = Problems.from_texts(
        [row for row in rows for _ in trained_model.task.operations], operations
    )
    return next(
        (found for found in solve(trained_model, problems) if not found.correct),
        None,
    )


def _double_copy(model: Transformer) -> Transformer:
    copy = Transformer(model.config, model.embedding.num_embeddings).double()
    copy.load_state_dict(model.state_dict())
    return copy.eval()
