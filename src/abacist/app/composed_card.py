"""The result of a function as HTML, with the problems that the model solved for it.

Each problem is a button, which the page answers with `answer_card`.
"""

from collections.abc import Iterator

from abacist.app.answer_card import answer_card, card, compared, milliseconds, verdict
from abacist.app.answers import Answer
from abacist.app.composed_answers import ComposedAnswer, ComposedStep
from abacist.reports.html_builder import Markup, element

_MOST_STEPS = 40
"""Maximum number of steps that are shown: as many from the beginning as from the end."""


def any_card(result: Answer | ComposedAnswer) -> Markup:
    """Everything that is shown about one answer, or about the result of a function."""
    return answer_card(result) if isinstance(result, Answer) else composed_card(result)


def composed_card(result: ComposedAnswer) -> Markup:
    """Everything that is shown about the result of a function."""
    count = f"{len(result.steps):,} problems, " if len(result.steps) > 1 else ""
    taken = f"{count}{result.num_tokens:,} tokens in {milliseconds(result.seconds)}."
    return card(
        result.run,
        result.off,
        [
            compared(result.problem, result.answer, result.expected, answer_name="Result"),
            verdict(result.correct, taken, result.off),
            element("h4", "The problems that the model solved for it"),
            element(
                "p",
                "A short program asks for one after the other and calculates nothing itself. "
                "Click on a problem to see how the model writes its answer.",
                class_="muted",
            ),
            element("ol", *_steps(result.steps), class_="steps"),
        ],
    )


def _steps(steps: list[ComposedStep]) -> Iterator[Markup]:
    half = _MOST_STEPS // 2
    for number, step in enumerate(steps, start=1):
        if half < number <= len(steps) - half:
            if number == half + 1:
                yield element("li", f"… {len(steps) - 2 * half:,} more …", class_="muted")
        else:
            yield _step(number, step)


def _step(number: int, step: ComposedStep) -> Markup:
    parts: list[str] = [
        element("button", step.problem, type="button", data_problem=step.problem),
        " = ",
        "(no answer)" if step.answer is None else step.answer,
    ]
    if not step.correct:
        parts.append(element("span", f" ✗ right is {step.expected}", class_="wrong"))
    return element("li", *parts, value=number)
