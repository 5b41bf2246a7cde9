"""One answer with everything the page shows of it: the digits as they were written, how sure the
model was of each, the right ones beside them, what every head looked at, and what would have been
written after each layer.

>>> told = answer(shown_run, "12+34")
>>> told.answer, told.expected, told.written[0].probability
('46', '46', 0.9999…)
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.app.shown_runs import ShownRun
from abacist.errors import ProblemError
from abacist.formats.annotated import Field
from abacist.inspection.finding import Finding
from abacist.inspection.generation import Trace, Written, logits_of, trace, write
from abacist.inspection.logit_lens import stages
from abacist.tasks.problems import Problems

LONGEST_SHOWN = 200
"""Tokens of the longest line that is shown token by token."""
_SECONDS = 10.0
"""After so long a model that is still writing is stopped."""
_MOST_KEYS = 8
"""Tokens that a head looks at most, before a digit is written, which are told."""
_MOST_LOOKS = 40_000
"""Told of all heads and all digits together."""
_SMALLEST_SHARE = 0.01

Looks = list[tuple[int, float]]
"""Tokens of the line by number, each with its share of a head's attention."""


@dataclass(frozen=True)
class WrittenToken(Finding):
    """One token that the model wrote."""

    text: str
    right: str | None
    """What stands there in the right line; None behind its end."""
    probability: float
    """How sure the model was of it."""
    rival: str
    """The likeliest other token."""
    rival_probability: float


@dataclass(frozen=True)
class Cell(Finding):
    """One token of the line, where it stands on paper."""

    text: str
    place: int | None
    """1 for units."""
    row: int | None
    """Numbers stand under each other: which of them; 1 for the first."""
    key: int | None
    """Its number where the model reads it, and heads can look at it."""
    written: int | None
    """Its number among the tokens written, where it is one of them."""


@dataclass(frozen=True)
class Inside(Finding):
    """What led to the tokens written."""

    heads: list[str]
    attention: list[list[Looks]]
    """By written token and head: what it looked at most."""
    stages: list[str]
    """`embedded`, then attention and MLP of each layer passed through."""
    likeliest: list[list[str]]
    """By stage and written token: what would be written if the model stopped there."""
    probability: list[list[float]]
    """By stage and written token: how sure it would be of what it wrote in the end."""


@dataclass(frozen=True)
class Answer(Finding):
    """What a model made of a problem."""

    run: str
    problem: str
    answer: str | None
    """None where the model wrote something that is no answer."""
    expected: str
    correct: bool
    off: list[str]
    """Parts that were switched off."""
    written: list[WrittenToken]
    cells: list[Cell]
    """The whole line; empty where it is too long."""
    inside: Inside | None
    """None where the line is too long."""
    seconds: float
    """That the model wrote for."""


def answer(shown_run: ShownRun, text: str, off: Sequence[str] = (), way: str = "zero") -> Answer:
    """Let a run answer what a person typed, with some parts switched off.

    Raises `ProblemError` for what is no problem, is too long, or takes too long.
    """
    trained_model, problem = shown_run.trained_model, shown_run.parse(text)
    hooks_for = shown_run.hooks(off, way)
    length = shown_run.check_length(problem)
    if hooks_for is not None and length > LONGEST_SHOWN:
        raise ProblemError(
            f"parts are switched off in lines of at most {LONGEST_SHOWN} tokens and this one has up to "
            f"{length:,}. Type fewer digits, or switch all parts on."
        )
    start = time.perf_counter()
    written = write(trained_model, problem, hooks_for, _until(start + _SECONDS))
    seconds = time.perf_counter() - start
    seen = None
    if length <= LONGEST_SHOWN:
        seen = trace(trained_model, written, hooks_for, _is_shown)
    logits = logits_of(trained_model, written) if seen is None else seen.logits
    expected = trained_model.task.answer(problem).texts()[0]
    return Answer(
        run=shown_run.name,
        problem=trained_model.task.expressions(problem)[0],
        answer=written.answer,
        expected=expected,
        correct=written.answer == expected,
        off=list(off),
        written=_written_tokens(shown_run, problem, written, logits),
        cells=[] if seen is None else _cells(shown_run, written),
        inside=None if seen is None else _inside(shown_run, written, seen),
        seconds=seconds,
    )


def _until(end: float) -> Callable[[int], None]:
    def check(count: int) -> None:
        if time.perf_counter() > end:
            raise ProblemError(
                f"the model has written {count:,} tokens in {_SECONDS:.0f} s and not finished. "
                "Type a shorter problem."
            )

    return check


def _is_shown(name: str) -> bool:
    return name.endswith(("hook_pattern", "hook_resid_pre", "hook_resid_mid", "hook_resid_post"))


def _written_tokens(
    shown_run: ShownRun, problem: Problems, written: Written, logits_AV: Tensor
) -> list[WrittenToken]:
    names = shown_run.trained_model.format.vocabulary.tokens
    shares = logits_AV.double().softmax(dim=-1)
    own = shares.gather(1, written.ids.unsqueeze(1)).squeeze(1)
    others = shares.scatter(1, written.ids.unsqueeze(1), -1.0)
    rivals = others.max(dim=1)
    right: list[int | None] = [*_right_ids(shown_run, problem)]
    right += [None] * (len(written.ids) - len(right))
    return [
        WrittenToken(
            names[token],
            None if label is None else names[label],
            probability,
            names[rival],
            rival_probability,
        )
        for token, label, probability, rival, rival_probability in zip(
            written.ids.tolist(),
            right[: len(written.ids)],
            own.tolist(),
            rivals.indices.tolist(),
            rivals.values.tolist(),
            strict=True,
        )
    ]


def _right_ids(shown_run: ShownRun, problem: Problems) -> list[int]:
    """The tokens that are to be written, up to the end token."""
    format = shown_run.trained_model.format
    whole = format.write(problem, shown_run.trained_model.task.answer(problem))
    if shown_run.trained_model.model.is_causal:
        first = format.prompt(problem).ids.shape[1]
        ids: list[int] = whole.ids[0, first : int(whole.lengths[0])].tolist()
        return ids
    assert whole.labels is not None
    labels: list[int] = whole.labels[whole.target].tolist()
    return labels[: labels.index(format.end_id) + 1] if format.end_id in labels else labels


def _cells(shown_run: ShownRun, written: Written) -> list[Cell]:
    names, line = shown_run.trained_model.format.vocabulary.tokens, written.whole
    is_causal = shown_run.trained_model.model.is_causal
    at: list[int] = (written.at + 1 if is_causal else written.at).tolist()
    # Some encoders write over slots of their own, others over whatever stands there.
    in_line = is_causal or bool((line.field[0, written.at] == Field.ANSWER).all())
    number = {index: count for count, index in enumerate(at)} if in_line else {}
    rows: list[int] = [-1] * line.ids.shape[1] if line.row is None else line.row[0].tolist()
    texts = [names[token] for token in written.ids.tolist()]
    num_keys = written.lines.tokens.ids.shape[1]
    cells = [
        Cell(
            texts[number[index]] if index in number else names[token],
            place if place >= 1 else None,
            row if row >= 1 else None,
            index if index < num_keys else None,
            number.get(index),
        )
        for index, (token, place, row) in enumerate(
            zip(line.ids[0].tolist(), line.place[0].tolist(), rows, strict=True)
        )
    ]
    if not in_line:
        cells += [Cell(text, None, None, None, count) for count, text in enumerate(texts)]
    return cells


@torch.no_grad()
def _inside(shown_run: ShownRun, written: Written, seen: Trace) -> Inside:
    model, names = shown_run.trained_model.model, shown_run.trained_model.format.vocabulary.tokens
    pattern = seen.cache.stack("pattern")[:, 0].cpu()
    # (depth, head, query, key) to (written token, head of any layer, key)
    looked = pattern[:, :, written.at].flatten(0, 1).transpose(0, 1)
    most = max(1, min(_MOST_KEYS, looked.shape[2], _MOST_LOOKS // (looked[..., 0].numel())))
    top = looked.topk(most, dim=-1)
    places = stages(seen.cache)
    likeliest, probability = [], []
    for name in places.values():
        resid_TBD = seen.cache[name].transpose(0, 1)
        shares = model.unembed(resid_TBD)[0].cpu()[written.at].softmax(dim=-1)
        likeliest.append([names[token] for token in shares.argmax(dim=-1).tolist()])
        own = shares.gather(1, written.ids.unsqueeze(1)).squeeze(1)
        probability.append([round(share, 4) for share in own.tolist()])
    return Inside(
        shown_run.heads,
        [
            [
                [(k, round(s, 3)) for k, s in zip(*pair, strict=True) if s >= _SMALLEST_SHARE]
                for pair in zip(keys, shares, strict=True)
            ]
            for keys, shares in zip(top.indices.tolist(), top.values.tolist(), strict=True)
        ],
        list(places),
        likeliest,
        probability,
    )
