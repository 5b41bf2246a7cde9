"""The suite `notation`: the same test problems with other spaces than in training.

A published notebook trains on `1234 + 5678 =` and asks `1234+5678=`: its model is right on nearly
all of the first and on none of the second. Its second measure does not mind spaces in the answer.
"""

from dataclasses import replace
from typing import Literal

import torch

from abacist.errors import ProblemError
from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.plain import PlainFormat
from abacist.intervals import Proportion
from abacist.models.decoding import generate
from abacist.models.teacher_forcing import coordinates_of
from abacist.scoring.exact_match import batches_by_length, line_lengths
from abacist.scoring.judge import Judge
from abacist.scoring.samples import as_in_training
from abacist.scoring.suite import Progress, Row, Section, Suite
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.config import TaskConfig
from abacist.tasks.problems import Problems
from abacist.vocabulary import Vocabulary

Spaces = Literal["none", "around", "thousands", "random"]

EXAMPLES: dict[Spaces, str] = {
    "none": "12345+678=",
    "around": "12345 + 678 =",
    "thousands": "12 345 + 678=",
    "random": "1 23 45+6 7 8=",
}
"""Every spacing, and a prompt written so."""


def by_notation(trained_model: TrainedModel, on_progress: Progress) -> Section:
    """Exact match, and match without regard to spaces, for every spacing."""
    assert isinstance(trained_model.format, PlainFormat)
    trained, vocabulary = trained_model.format.config.spaces, trained_model.format.vocabulary
    spacings = _spacings(trained_model.format)
    problems = as_in_training(trained_model, trained_model.scoring.num_problems, "notation")
    judge = Judge(trained_model)
    exact: list[Row] = []
    ignoring: list[Row] = []
    for number, (spaces, example) in enumerate(spacings.items()):
        name = f"{spaces}: {example}" + " (as trained)" * (spaces == trained)
        respaced = replace(
            trained_model,
            format=with_spaces(trained_model.format, trained_model.task.config, spaces),
        )
        before = number * len(problems)

        def report(done: int, name: str = name, before: int = before) -> None:
            on_progress(name, before + done, len(spacings) * len(problems))

        try:
            verdicts = judge.verdicts(problems, report, trained_model=respaced, row=name)
        except ProblemError as error:
            exact.append(Row(name, "spaces", 0, None, note=str(error)))
            continue
        exact.append(judge.row(name, "spaces", 0, verdicts))
        # What is right is right without spaces too; only the others have to be written out.
        wrong = (~verdicts.correct).nonzero().squeeze(1)
        right = len(problems) - len(wrong)
        right += _right_but_for_spaces(respaced, vocabulary, problems[wrong])
        proportion = Proportion(right, len(problems))
        label = f"{spaces}, spaces ignored"
        ignoring.append(Row(label, "spaces", 0, proportion, measure="match without spaces"))
    rows = exact + ignoring
    return judge.section("Notation: other spaces than in training", rows, trained_spaces=trained)


def with_spaces(format: PlainFormat, task: TaskConfig, spaces: Spaces) -> PlainFormat:
    """The same notation with other spaces; ids mean the same, as the space is the last of them."""
    return PlainFormat(replace(format.config, spaces=spaces), task)


def _obstacle(trained_model: TrainedModel) -> str | None:
    if not isinstance(trained_model.format, PlainFormat):
        return (
            "it rewrites plain notations only, and this model reads another one. "
            "Try --suite strata."
        )
    if trained_model.format.space_id is None:
        return (
            "this model knows no space, so its problems can be written in one way only. "
            "Train with --format spaced, or --format.spaces random."
        )
    return None


NOTATION = Suite("the same problems with other spaces than in training", _obstacle, by_notation)


def _spacings(format: PlainFormat) -> dict[Spaces, str]:
    """Those that the notation allows: lines of unequal lengths need an end token."""
    if format.config.end != "none":
        return EXAMPLES
    return {spaces: example for spaces, example in EXAMPLES.items() if spaces != "random"}


@torch.no_grad()
def _right_but_for_spaces(
    trained_model: TrainedModel, vocabulary: Vocabulary, problems: Problems
) -> int:
    """How many problems are answered rightly if spaces in the answer do not count.

    `vocabulary` is the one trained with, which has the space.
    """
    model, format = trained_model.model, trained_model.format
    right = 0
    for rows in batches_by_length(line_lengths(format, problems), not model.is_windowed):
        batch = problems[rows]
        prompt = format.prompt(batch)
        longest = int(format.target_lengths(batch).max())
        generated = generate(
            model,
            prompt.ids,
            prompt.lengths,
            # An answer with a space behind every digit shall still fit.
            max_new_tokens=longest if format.end_id is None else 2 * longest,
            end_id=format.end_id,
            coordinates_of=lambda ids: coordinates_of(format.annotate(ids.cpu())),
        )
        expected = format.write(batch, trained_model.task.answer(batch))
        right += sum(
            vocabulary.text(written).replace(" ", "") == vocabulary.text(wanted).replace(" ", "")
            for written, wanted in zip(
                _targets(format.annotate(generated.ids.cpu())), _targets(expected), strict=True
            )
        )
    return right


def _targets(lines: AnnotatedTokens) -> list[list[int]]:
    """The ids behind `=` of every line, end token included."""
    return [ids[target].tolist() for ids, target in zip(lines.ids, lines.target, strict=True)]
