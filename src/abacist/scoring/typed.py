"""Problems with the spaces that a person typed, for notations in which spaces are tokens.

A model that was trained on `1234 + 5678 =` can be asked `1 234 + 5 678`, which no training line looks
like: a notebook about spaces calls this out of distribution.

* Without spaces, `1234+5678`, a problem is written in the notation of training.
* With spaces, `1 234 + 5 678`, it is written as typed, followed by `=`.
* With `=` at the end, `1234+5678=`, it is written exactly as typed.
* Typed as in training but for the end, `1234 + 5678`, it is written as in training.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from abacist.errors import ProblemError
from abacist.formats.config import Layout, PlainFormatConfig
from abacist.formats.format import Format
from abacist.formats.pieces import Piece
from abacist.formats.plain import PlainFormat
from abacist.scoring.records import Solution
from abacist.scoring.solving import solve
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.config import TaskConfig
from abacist.tasks.problems import Problems
from abacist.tasks.task import Task


@dataclass(frozen=True)
class TypedProblems:
    """Problems as they were typed."""

    problems: Problems
    prompts: list[str | None]
    """What the model is asked, `=` included, where that is not the notation of training."""


def read_typed(task: Task, format: Format, expressions: list[str]) -> TypedProblems:
    """Read problems that a person typed, with their spaces if the format can write them.

    Raises `ProblemError` where an expression is no problem of the task.
    """
    if not _writes_any_spaces(format):
        return TypedProblems(task.parse(expressions), [None] * len(expressions))
    problems = task.parse([text.replace(" ", "") for text in expressions])
    prompt = format.prompt(problems)
    prompts: list[str | None] = []
    for text, ids, length in zip(
        expressions, prompt.ids.tolist(), prompt.lengths.tolist(), strict=True
    ):
        typed = text.strip()
        trained = format.vocabulary.decode(ids[:length])
        as_trained = typed in (typed.replace(" ", ""), trained.removesuffix("=").strip())
        ends_with_equals = typed.endswith("=")
        is_usual = typed == trained if ends_with_equals else as_trained
        prompts.append(None if is_usual else typed if ends_with_equals else f"{typed}=")
    return TypedProblems(problems, prompts)


def solve_typed(
    trained_model: TrainedModel,
    expressions: list[str],
    on_step: Callable[[int, int], None] | None = None,
) -> list[Solution]:
    """Let the model write the answers to problems as they were typed; see `solve`.

    Raises `ProblemError` where an expression is no problem of the task, or too long for the model.
    """
    typed = read_typed(trained_model.task, trained_model.format, expressions)
    if not any(typed.prompts):
        return solve(trained_model, typed.problems, on_step)
    solutions: dict[int, Solution] = {}
    rows = list(range(len(expressions)))
    while rows:
        # A problem that was typed twice may have two notations, so it is asked twice.
        keys = _keys(typed.problems[torch.tensor(rows)])
        prompts = {key: typed.prompts[row] for key, row in zip(keys, rows, strict=True)}
        now = [r for k, r in zip(keys, rows, strict=True) if typed.prompts[r] == prompts[k]]
        format = _TypedFormat(trained_model.format, trained_model.task.config, prompts)
        answers = solve(
            replace(trained_model, format=format), typed.problems[torch.tensor(now)], on_step
        )
        for row, solution in zip(now, answers, strict=True):
            shown = expressions[row].strip().removesuffix("=").strip()
            solutions[row] = replace(solution, problem=shown) if typed.prompts[row] else solution
        rows = [row for row in rows if row not in solutions]
    return [solutions[row] for row in range(len(expressions))]


def _writes_any_spaces(format: Format) -> bool:
    """Whether a format has a token for spaces, and writes numbers as people do."""
    return (
        isinstance(format, PlainFormat)
        and format.space_id is not None
        and format.config.operand_order == "usual"
        and format.config.operand_padding == "none"
    )


class _TypedFormat(PlainFormat):
    """A plain notation that writes prompts as they were typed."""

    layout: Layout = "free"

    def __init__(
        self,
        format: Format,
        task: TaskConfig,
        prompts: dict[tuple[str, ...], str | None],
    ) -> None:
        """Write the prompt of each problem in `prompts` as typed, and the others as `format` does."""
        assert isinstance(format, PlainFormat)
        config: PlainFormatConfig = format.config
        super().__init__(config, task)
        self._prompts, self._usual = prompts, PlainFormat(config, task)

    def _prompt_pieces(self, problems: Problems, generator: torch.Generator | None) -> list[Piece]:
        usual = self._usual_prompts(problems, generator)
        start = [] if self.start_id is None else [self.start_id]
        lines = []
        for key, line in zip(_keys(problems), usual, strict=True):
            typed = self._prompts[key]
            lines.append(line if typed is None else [*start, *self._encoded(typed)])
        width = max(map(len, lines), default=0)
        ids = torch.zeros(len(lines), width, dtype=torch.uint8)
        for row, line in enumerate(lines):
            ids[row, : len(line)] = torch.tensor(line, dtype=torch.uint8)
        return [Piece(ids, torch.tensor([len(line) for line in lines]))]

    def _usual_prompts(
        self, problems: Problems, generator: torch.Generator | None
    ) -> list[list[int]]:
        """Return the ids of the prompts in the notation of training."""
        prompt = self._usual.prompt(problems, generator)
        return [
            ids[:length]
            for ids, length in zip(prompt.ids.tolist(), prompt.lengths.tolist(), strict=True)
        ]

    def _encoded(self, typed: str) -> list[int]:
        """Return the ids of a typed prompt; raise `ProblemError` for two `=` or other symbols."""
        if typed.count("=") != 1:
            raise ProblemError(f"a problem has one =, at its end, got {typed!r}.")
        return self.vocabulary.encode(typed)


def _keys(problems: Problems) -> list[tuple[str, ...]]:
    """Return each problem as its operation's code and its operands."""
    operands = [problems.operand(number).texts() for number in range(problems.num_operands)]
    codes = [str(code) for code in problems.operation_B.tolist()]
    return list(zip(codes, *operands, strict=True))
