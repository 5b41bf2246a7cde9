"""The result of a function such as `gcd(1071,462)`, with every problem that the model solved for it.

>>> result = any_answer(shown_run, "gcd(1071,462)")
>>> result.answer, [step.problem for step in result.steps]
('21', ['1071%462', '462%147', '147%21'])
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from abacist.app.answers import Answer, answer, written_answer
from abacist.app.shown_runs import ShownRun, time_limit
from abacist.inspection.finding import Finding
from abacist.scoring.composed import Calculation, Call, read_call
from abacist.scoring.records import Solution


@dataclass(frozen=True)
class ComposedStep(Finding):
    """One problem that the model was asked."""

    problem: str
    answer: str | None
    """None if the generated tokens are no answer."""
    expected: str
    correct: bool


@dataclass(frozen=True)
class ComposedAnswer(Finding):
    """What a function gives if a model solves its steps."""

    run: str
    problem: str
    answer: str | None
    """None if a step is wrong; the last one is, then."""
    expected: str
    correct: bool
    off: list[str]
    """Labels of the components that were switched off."""
    steps: list[ComposedStep]
    num_tokens: int
    """Number of tokens that the model generated in all steps."""
    seconds: float
    """Time in seconds that the model took."""


def any_answer(
    shown_run: ShownRun, text: str, off: Sequence[str] = (), way: str = "zero"
) -> Answer | ComposedAnswer:
    """Let a run answer a typed problem, or take the steps of a function such as `gcd(1071,462)`.

    The arguments are those of `answers.answer`.

    Raises `ProblemError` for invalid problems, and for those that are too long or take too long.
    """
    shown_run.check_text(text)
    call = read_call(shown_run.trained_model.task, text)
    if call is None:
        return answer(shown_run, text, off, way)
    return _composed_answer(shown_run, call, off, way)


def _composed_answer(
    shown_run: ShownRun, call: Call, off: Sequence[str], way: str
) -> ComposedAnswer:
    hooks_for, task = shown_run.hooks(off, way), shown_run.trained_model.task
    calculation, num_tokens, on_step = Calculation(call), 0, time_limit()
    start = time.perf_counter()
    while calculation.solution is None:
        problem = shown_run.parse(calculation.question)
        generated = written_answer(shown_run, problem, hooks_for, on_step)
        num_tokens += len(generated.ids)
        expected = task.answer(problem).texts()[0]
        calculation.go_on(Solution(calculation.question, generated.answer, expected))
    return ComposedAnswer(
        shown_run.name,
        str(call),
        calculation.solution.answer,
        calculation.solution.expected,
        calculation.solution.correct,
        list(off),
        [
            ComposedStep(step.problem, step.answer, step.expected, step.correct)
            for step in calculation.answers
        ],
        num_tokens,
        time.perf_counter() - start,
    )
