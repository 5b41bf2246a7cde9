"""Solving problems for real: the model writes the answer token by token."""

from collections.abc import Callable
from dataclasses import dataclass

from abacist.evaluation.exact_match import batches_by_length, line_lengths
from abacist.formats.format import Format
from abacist.models.decoding import generate
from abacist.models.teacher_forcing import coordinates_of
from abacist.models.transformer import Transformer
from abacist.tasks.problems import Problems
from abacist.tasks.task import Task


@dataclass(frozen=True)
class Solution:
    """A problem, what the model wrote, and what is right."""

    problem: str
    answer: str | None
    """None where the model wrote something that is no answer."""
    expected: str
    margin: float
    """The smallest margin between the token written and the runner-up, in logits."""

    @property
    def correct(self) -> bool:
        return self.answer == self.expected

    def __str__(self) -> str:
        answer = "(no answer)" if self.answer is None else self.answer
        if self.correct:
            return f"{self.problem}={answer} ✓"
        return f"{self.problem}={answer} ✗ expected {self.expected}"

    def to_json(self) -> dict[str, object]:
        """`{"problem": "12+34", "answer": "46", "expected": "46", "correct": true}`"""
        return {
            "problem": self.problem,
            "answer": self.answer,
            "expected": self.expected,
            "correct": self.correct,
        }


def solve(
    model: Transformer,
    task: Task,
    format: Format,
    problems: Problems,
    on_step: Callable[[int, int], None] | None = None,
) -> list[Solution]:
    """Generate the answers of all problems, batched by length, with a key-value cache.

    `on_step` is told the number of problems finished before this batch and the number of tokens
    written in it.
    """
    solutions: list[Solution | None] = [None] * len(problems)
    done = 0

    def report(written: int) -> None:
        if on_step is not None:
            on_step(done, written)

    sizes = line_lengths(format, problems)
    for rows in batches_by_length(sizes, quadratic=not model.is_windowed):
        batch = problems[rows]
        prompt = format.prompt(batch)
        generated = generate(
            model,
            prompt.ids,
            prompt.lengths,
            max_new_tokens=int(format.target_lengths(batch).max()),
            end_id=format.end_id,
            coordinates_of=lambda ids: coordinates_of(format.annotate(ids)),
            on_step=report,
        )
        for row, problem, answer, ended, expected, margin in zip(
            rows.tolist(),
            task.expressions(batch),
            format.read(generated.ids),
            generated.ended.tolist(),
            task.answer(batch).texts(),
            generated.margins.amin(dim=1).tolist(),
            strict=True,
        ):
            solutions[row] = Solution(problem, answer if ended else None, expected, margin)
        done += len(rows)
    return [solution for solution in solutions if solution is not None]
