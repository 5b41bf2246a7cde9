"""The suite `notation`: the same test problems with other spaces than in training.

The model of a published notebook was trained on `1234 + 5678 =`. It answers nearly all problems
written like this correctly, and none that are written `1234+5678=`. As in the notebook, a second
measure ignores spaces in the answer.
"""

from dataclasses import replace
from typing import Literal

import torch

from abacist.errors import ProblemError
from abacist.formats.continuation import continue_lines
from abacist.formats.pieces import selected_tokens
from abacist.formats.plain import PlainFormat
from abacist.intervals import Proportion
from abacist.models.decoding import generate
from abacist.scoring.exact_match import batches_by_length, line_lengths
from abacist.scoring.judge import Judge
from abacist.scoring.records import Row, Section
from abacist.scoring.samples import as_in_training
from abacist.scoring.suite import Progress, Suite
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
"""A prompt in each spacing."""


def by_notation(trained_model: TrainedModel, on_progress: Progress) -> Section:
    """Score each spacing, by exact match and by a match that ignores spaces."""
    assert isinstance(trained_model.format, PlainFormat)
    trained, vocabulary = trained_model.format.config.spaces, trained_model.format.vocabulary
    spacings = _spacings(trained_model.format)
    problems = as_in_training(trained_model, trained_model.scoring.num_problems, "notation")
    judge = Judge(trained_model, on_progress, total=len(spacings) * len(problems))
    exact: list[Row] = []
    ignoring: list[Row] = []
    for spaces, example in spacings.items():
        name = f"{spaces}: {example}" + " (as trained)" * (spaces == trained)
        format = with_spaces(trained_model.format, trained_model.task.config, spaces)
        respaced = replace(trained_model, format=format)
        try:
            verdicts = judge.verdicts(problems, name, trained_model=respaced)
        except ProblemError as error:
            exact.append(Row(name, "spaces", 0, None, note=str(error)))
            continue
        exact.append(judge.row(name, "spaces", 0, verdicts))
        # A correct answer also matches without spaces, so only the others must be written out.
        wrong = (~verdicts.correct).nonzero().squeeze(1)
        right = len(problems) - len(wrong)
        right += _num_right_without_spaces(respaced, vocabulary, problems[wrong])
        proportion = Proportion(right, len(problems))
        label = f"{spaces}, spaces ignored"
        ignoring.append(Row(label, "spaces", 0, proportion, measure="match without spaces"))
    rows = exact + ignoring
    return judge.section("Notation: other spaces than in training", rows, trained_spaces=trained)


def with_spaces(format: PlainFormat, task: TaskConfig, spaces: Spaces) -> PlainFormat:
    """Return the same notation with other spaces.

    The ids of tokens stay the same, because the space is the last token of the vocabulary.
    """
    return PlainFormat(replace(format.config, spaces=spaces), task)


def _obstacle(trained_model: TrainedModel) -> str | None:
    if not isinstance(trained_model.format, PlainFormat):
        return (
            "it changes the spaces of plain notations only, and this model reads another format. "
            "Try --suite strata."
        )
    if trained_model.format.space_id is None:
        return (
            "the vocabulary of this model has no space, so its problems have one notation only. "
            "Train with --format spaced, or --format.spaces random."
        )
    return None


NOTATION = Suite(
    "the same problems with other spaces than in training",
    _obstacle,
    by_notation,
    settings=("num_problems",),
)


def _spacings(format: PlainFormat) -> dict[Spaces, str]:
    """Return the spacings that a notation allows: lines of unequal lengths need an end token."""
    if format.config.end != "none":
        return EXAMPLES
    return {spaces: example for spaces, example in EXAMPLES.items() if spaces != "random"}


@torch.no_grad()
def _num_right_without_spaces(
    trained_model: TrainedModel, vocabulary: Vocabulary, problems: Problems
) -> int:
    """Return the number of problems answered correctly if spaces in the answer are ignored.

    `vocabulary` must be that of training, which has the space.
    """
    model, format = trained_model.model, trained_model.format
    right = 0
    for indices in batches_by_length(line_lengths(format, problems), not model.is_windowed):
        batch = problems[indices]
        prompt = format.prompt(batch)
        longest = int(format.target_lengths(batch).max())
        # There must be room for an answer with a space after every digit.
        room = longest if format.end_id is None else 2 * longest
        generated = generate(
            model,
            prompt,
            continue_lines(format, prompt, room),
            max_new_tokens=room,
            end_id=format.end_id,
        )
        written = format.annotate(generated.ids.cpu())
        expected = format.write(batch, trained_model.task.answer(batch))
        targets = [selected_tokens(lines.ids, lines.target) for lines in (written, expected)]
        right += sum(
            vocabulary.decode(ids).replace(" ", "") == vocabulary.decode(correct).replace(" ", "")
            for ids, correct in zip(*targets, strict=True)
        )
    return right
