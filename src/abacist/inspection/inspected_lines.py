"""Lines as a model reads them, with what every token has to predict."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.errors import ProblemError
from abacist.formats.annotated import AnnotatedTokens, Field
from abacist.models.coordinates import Coordinates
from abacist.models.teacher_forcing import IGNORED, Predictions, coordinates_of
from abacist.scoring.exact_match import batches_by_length, line_lengths
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.problems import Problems

LONGEST_LINE = 512
"""Tokens of the longest line that is looked at: all activations of all pairs are kept."""

_LINES_AT_ONCE = 256


@dataclass(frozen=True)
class Lines:
    """Right lines up to the token before the last, as in training; an encoder's prompts."""

    tokens: AnnotatedTokens
    labels: Tensor
    """int64 (B, T): the right token that each one predicts, IGNORED where none is asked for."""
    predicted_place: Tensor
    """int64 (B, T): the place of the token that each one predicts."""
    predicted_field: Tensor
    """uint8 (B, T): the field of the token that each one predicts."""

    @property
    def predicts(self) -> Tensor:
        """bool (B, T)"""
        return self.labels != IGNORED

    @property
    def answers(self) -> Tensor:
        """bool (B, T): which tokens predict one of the answer, not of the work before it."""
        return self.predicts & (self.predicted_field != Field.SCRATCH)

    def forced(self, logits_BTV: Tensor) -> Predictions:
        """Predictions beside what they should be."""
        return Predictions(logits_BTV.cpu(), self.labels)

    @property
    def coordinates(self) -> Coordinates:
        return coordinates_of(self.tokens)


def write_lines(trained_model: TrainedModel, problems: Problems) -> Lines:
    """Problems with their right answers. Raises `ProblemError` for lines too long to look into."""
    longest = int(line_lengths(trained_model.format, problems).max())
    if longest > LONGEST_LINE:
        raise ProblemError(
            f"a line of {longest:,} tokens is too long to look into, at most {LONGEST_LINE}. "
            "Type a problem with fewer digits."
        )
    whole = trained_model.format.write(problems, trained_model.task.answer(problems))
    place = whole.place.long()
    if not trained_model.model.is_causal:
        assert whole.labels is not None
        labels = torch.where(whole.target, whole.labels, IGNORED).long()
        return Lines(whole, labels, place, whole.field)
    labels = torch.where(whole.target, whole.ids, IGNORED).long()
    return Lines(whole[:, :-1], labels[:, 1:], place[:, 1:], whole.field[:, 1:])


def batches(trained_model: TrainedModel, problems: Problems) -> Iterator[tuple[Tensor, Lines]]:
    """Row numbers and lines of all problems, of similar length and few enough at once."""
    sizes = line_lengths(trained_model.format, problems)
    for rows in batches_by_length(sizes, quadratic=True, largest=_LINES_AT_ONCE):
        yield rows, write_lines(trained_model, problems[rows])
