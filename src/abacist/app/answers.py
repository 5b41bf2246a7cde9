"""One answer with everything that the page shows about it.

That is the generated tokens with their probabilities, the right tokens, the attention of every head,
and the prediction after every layer.

>>> result = answer(shown_run, "12+34")
>>> result.answer, result.expected, result.written[0].probability
('46', '46', 0.9999…)
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.app.explanations import explanations
from abacist.app.paper_layout import Position, legend, paper_layout
from abacist.app.shown_runs import ShownRun, time_limit
from abacist.certificates.receptive_fields import receptive_field, visibility_in
from abacist.errors import ProblemError
from abacist.formats.annotated import Field
from abacist.inspection.ablation import HooksFor
from abacist.inspection.finding import Finding
from abacist.inspection.generation import (
    GeneratedAnswer,
    GenerationTrace,
    generate_answer,
    generated_logits,
    trace_generation,
)
from abacist.inspection.logit_lens import stages
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.config import LABELS, SortingConfig
from abacist.tasks.problems import Problems

LONGEST_SHOWN = 200
"""Number of tokens of the longest line that is shown token by token."""
_TIMED_TOKENS = 20
"""Number of tokens of an answer from which the speed of a model is measured."""
_MOST_KEYS = 8
"""Maximum number of tokens reported per head and generated token: those with the most attention."""
_MOST_WEIGHTS = 40_000
"""Maximum number of attention weights reported for all heads and generated tokens together."""
_SMALLEST_WEIGHT = 0.01

Weights = list[tuple[int, float]]
"""Indices of tokens of the line, each with its share of a head's attention."""


@dataclass(frozen=True)
class WrittenToken(Finding):
    """One token that the model generated."""

    text: str
    right: str | None
    """The right token at this index; None after the end of the right line."""
    probability: float
    """Probability that the model gave to the token."""
    rival: str
    """The likeliest other token."""
    rival_probability: float
    explanation: str | None = None
    """How the right token follows from the problem, in plain words; None for tasks without columns."""


@dataclass(frozen=True)
class Cell(Finding):
    """One token of the line, and its position on paper."""

    text: str
    place: int | None
    """Place of the digit, 1 for units; None if it has none."""
    row: int | None
    """Row of the number, starting at 1; None if the format has no rows."""
    key: int | None
    """Index among the tokens that the model reads; None if it does not read this token."""
    written: int | None
    """Index among the generated tokens; None if the token belongs to the problem."""
    position: Position | None = None
    """Position on paper; None if the format has no such layout."""


@dataclass(frozen=True)
class Inside(Finding):
    """Attention and intermediate predictions for the generated tokens."""

    heads: list[str]
    attention: list[list[Weights]]
    """The tokens with the most attention, indexed `[generated token][head]`."""
    stages: list[str]
    """Names of the stages: `embedding`, then attention and MLP at each depth."""
    likeliest: list[list[str]]
    """The prediction of a model that stops there, indexed `[stage][generated token]`."""
    probability: list[list[float]]
    """Probability of the token that was generated, indexed `[stage][generated token]`."""
    receptive_fields: list[list[int]]
    """For each generated token the tokens that could influence it; empty if that is the whole line."""
    neighbourhoods: list[int | None]
    """For each generated token the number of its neighbourhood; empty without a certificate."""


@dataclass(frozen=True)
class Answer(Finding):
    """The answer of a model to one problem."""

    run: str
    problem: str
    answer: str | None
    """None if the generated tokens are no answer."""
    expected: str
    correct: bool
    off: list[str]
    """Labels of the components that were switched off."""
    written: list[WrittenToken]
    cells: list[Cell]
    """The whole line; empty if it is too long."""
    inside: Inside | None
    """None if the line is too long."""
    legend: list[tuple[str, str]]
    """Signs of the format, each with its meaning."""
    numbers: list[str] | None
    """For sorting: the numbers in the order of the answer; None for other tasks and invalid answers."""
    hints: dict[str, str]
    """For sorting: the number of each label, such as `a is 82`."""
    seconds: float
    """Time in seconds that the model took."""


def answer(shown_run: ShownRun, text: str, off: Sequence[str] = (), way: str = "zero") -> Answer:
    """Let a run answer a typed problem, optionally with some components switched off.

    Args:
        off: labels of the components to switch off, as in `ShownRun.parts`.
        way: `zero` or `mean`, the value that replaces their output.

    Raises `ProblemError` for invalid problems, and for those that are too long or take too long.
    """
    trained_model, problem = shown_run.trained_model, shown_run.parse(text)
    hooks_for = shown_run.hooks(off, way)
    start = time.perf_counter()
    generated = written_answer(shown_run, problem, hooks_for, time_limit())
    seconds = time.perf_counter() - start
    trace = None
    if shown_run.check_length(problem) <= LONGEST_SHOWN:
        trace = trace_generation(trained_model, generated, hooks_for, _is_shown)
    logits = generated_logits(trained_model, generated) if trace is None else trace.logits
    expected = trained_model.task.answer(problem).texts()[0]
    notation = trained_model.in_notation_of(problem)
    inside = None if trace is None else _inside(shown_run, generated, trace)
    labelled = _labelled_numbers(shown_run, problem)
    return Answer(
        run=shown_run.name,
        problem=trained_model.task.expressions(problem)[0],
        answer=generated.answer,
        expected=expected,
        correct=generated.answer == expected,
        off=list(off),
        written=_written_tokens(shown_run, problem, generated, logits),
        cells=[] if trace is None else _cells(notation, generated),
        legend=legend(notation.format, expected),
        numbers=_in_order(labelled, generated.answer),
        hints={label: f"{label} is {number}" for label, number in labelled.items()},
        inside=inside,
        seconds=seconds,
    )


def written_answer(
    shown_run: ShownRun,
    problem: Problems,
    hooks_for: HooksFor | None,
    on_step: Callable[[int], None],
) -> GeneratedAnswer:
    """Let a run write the answer to one problem, and note how fast it was.

    Args:
        hooks_for: hooks that switch components off; None for the whole model.
        on_step: called after each token, such as `time_limit()`.

    Raises `ProblemError` for problems that are too long or take too long.
    """
    length = shown_run.check_length(problem)
    if hooks_for is not None and length > LONGEST_SHOWN:
        raise ProblemError(
            f"parts can be switched off for short problems only: this one needs up to {length:,} tokens, "
            f"the limit is {LONGEST_SHOWN}. Type fewer digits, or switch all parts on."
        )
    shown_run.check_time(problem)
    start_of_work = time.thread_time()
    generated = generate_answer(shown_run.trained_model, problem, hooks_for, on_step)
    if len(generated.ids) >= _TIMED_TOKENS and hooks_for is None:
        # Processor time, so that a machine that was busy for a moment refuses nothing later.
        work = time.thread_time() - start_of_work
        fastest = shown_run.seconds_per_token or float("inf")
        shown_run.seconds_per_token = min(fastest, work / len(generated.ids))
    return generated


def _labelled_numbers(shown_run: ShownRun, problem: Problems) -> dict[str, str]:
    """Return the numbers to sort by label; empty for other tasks."""
    if not isinstance(shown_run.trained_model.task.config, SortingConfig):
        return {}
    numbers = [problem.operand(i).texts()[0] for i in range(problem.num_operands)]
    return dict(zip(LABELS, numbers, strict=False))


def _in_order(labelled: dict[str, str], answer: str | None) -> list[str] | None:
    if not labelled or answer is None or not all(label in labelled for label in answer):
        return None
    return [labelled[label] for label in answer]


def _is_shown(name: str) -> bool:
    return name.endswith(("hook_pattern", "hook_resid_pre", "hook_resid_mid", "hook_resid_post"))


def _written_tokens(
    shown_run: ShownRun, problem: Problems, generated: GeneratedAnswer, logits_AV: Tensor
) -> list[WrittenToken]:
    names = shown_run.trained_model.format.vocabulary.tokens
    shares = logits_AV.double().softmax(dim=-1)
    own = shares.gather(1, generated.ids.unsqueeze(1)).squeeze(1)
    others = shares.scatter(1, generated.ids.unsqueeze(1), -1.0)
    rivals = others.max(dim=1)
    right: list[int | None] = [*_right_ids(shown_run, problem)]
    right += [None] * (len(generated.ids) - len(right))
    return [
        WrittenToken(
            names[token],
            None if label is None else names[label],
            probability,
            names[rival],
            rival_probability,
            explanation,
        )
        for token, label, probability, rival, rival_probability, explanation in zip(
            generated.ids.tolist(),
            right[: len(generated.ids)],
            own.tolist(),
            rivals.indices.tolist(),
            rivals.values.tolist(),
            explanations(
                shown_run.trained_model.in_notation_of(problem), problem, len(generated.ids)
            ),
            strict=True,
        )
    ]


def _right_ids(shown_run: ShownRun, problem: Problems) -> list[int]:
    """Return the right tokens, up to the end token."""
    format = shown_run.trained_model.format
    whole = format.write(problem, shown_run.trained_model.task.answer(problem))
    if shown_run.trained_model.model.is_causal:
        first = format.prompt(problem).ids.shape[1]
        ids: list[int] = whole.ids[0, first : int(whole.lengths[0])].tolist()
        return ids
    assert whole.labels is not None
    labels: list[int] = whole.labels[whole.target].tolist()
    return labels[: labels.index(format.end_id) + 1] if format.end_id in labels else labels


def _cells(trained_model: TrainedModel, generated: GeneratedAnswer) -> list[Cell]:
    names, line = trained_model.format.vocabulary.tokens, generated.whole
    is_causal = trained_model.model.is_causal
    generated_at: list[int] = (
        generated.predicting + 1 if is_causal else generated.predicting
    ).tolist()
    # Some encoders answer in slots of their own, others at the tokens of the problem.
    in_line = is_causal or bool((line.field[0, generated.predicting] == Field.ANSWER).all())
    number = {index: count for count, index in enumerate(generated_at)} if in_line else {}
    rows: list[int] = [-1] * line.ids.shape[1] if line.row is None else line.row[0].tolist()
    texts = [names[token] for token in generated.ids.tolist()]
    num_keys = generated.lines.tokens.ids.shape[1]
    positions = paper_layout(trained_model.format, line) if in_line else None
    cells = [
        Cell(
            texts[number[index]] if index in number else names[token],
            _place(place) if positions is None else positions[index].place,
            row if row >= 1 else None,
            index if index < num_keys else None,
            number.get(index),
            None if positions is None else positions[index],
        )
        for index, (token, place, row) in enumerate(
            zip(line.ids[0].tolist(), line.place[0].tolist(), rows, strict=True)
        )
    ]
    if not in_line:
        cells += [Cell(text, None, None, None, count) for count, text in enumerate(texts)]
    return cells


def _place(coordinate: int) -> int | None:
    return coordinate if coordinate >= 1 else None


@torch.no_grad()
def _inside(shown_run: ShownRun, generated: GeneratedAnswer, trace: GenerationTrace) -> Inside:
    model, names = shown_run.trained_model.model, shown_run.trained_model.format.vocabulary.tokens
    pattern = trace.cache.stack("pattern")[:, 0].cpu()
    # (depth, head, query, key) to (generated token, head at any depth, key)
    weights = pattern[:, :, generated.predicting].flatten(0, 1).transpose(0, 1)
    most = max(1, min(_MOST_KEYS, weights.shape[2], _MOST_WEIGHTS // (weights[..., 0].numel())))
    top = weights.topk(most, dim=-1)
    stage_activations = stages(trace.cache)
    likeliest, probability = [], []
    for name in stage_activations.values():
        resid_TBD = trace.cache[name].transpose(0, 1)
        shares = model.unembed(resid_TBD)[0].cpu()[generated.predicting].softmax(dim=-1)
        likeliest.append([names[token] for token in shares.argmax(dim=-1).tolist()])
        own = shares.gather(1, generated.ids.unsqueeze(1)).squeeze(1)
        probability.append([round(share, 4) for share in own.tolist()])
    return Inside(
        shown_run.heads,
        [
            [
                [(k, round(s, 3)) for k, s in zip(*pair, strict=True) if s >= _SMALLEST_WEIGHT]
                for pair in zip(keys, shares, strict=True)
            ]
            for keys, shares in zip(top.indices.tolist(), top.values.tolist(), strict=True)
        ],
        list(stage_activations),
        likeliest,
        probability,
        _receptive_fields(shown_run, generated),
        _neighbourhoods(shown_run, generated),
    )


def _receptive_fields(shown_run: ShownRun, generated: GeneratedAnswer) -> list[list[int]]:
    """Return the tokens that could influence each generated token, if these are few."""
    model = shown_run.trained_model.model
    if not model.is_windowed:
        return []
    visibility = visibility_in(model, generated.lines.tokens)
    return [receptive_field(visibility, query) for query in generated.predicting.tolist()]


def _neighbourhoods(shown_run: ShownRun, generated: GeneratedAnswer) -> list[int | None]:
    """Return the number of the neighbourhood that each token was generated from."""
    table = shown_run.neighbourhoods
    if table is None:
        return []
    numbers = table.numbers_in(shown_run.trained_model.model, generated.whole)
    return [*numbers, *[None] * len(generated.ids)][: len(generated.ids)]
