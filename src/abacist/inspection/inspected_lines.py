"""Batches of lines as a model reads them, with the token that each token has to predict."""

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
"""Number of tokens of the longest line that lenses accept, since they keep activations of all pairs of tokens."""

_LINES_PER_BATCH = 256


@dataclass(frozen=True)
class InspectedLines:
    """Lines with right answers, as in training: a decoder's without their last token, an encoder's prompts."""

    tokens: AnnotatedTokens
    labels: Tensor
    """int64 (B, T): the right token that each token predicts; IGNORED if nothing is predicted there."""
    predicted_place: Tensor
    """int64 (B, T): the place of the token that each token predicts."""
    predicted_field: Tensor
    """uint8 (B, T): the field of the token that each token predicts."""

    @property
    def predicts(self) -> Tensor:
        """bool (B, T): whether a token predicts anything."""
        return self.labels != IGNORED

    @property
    def answers(self) -> Tensor:
        """bool (B, T): whether a token predicts one of the answer, not of the scratch work before it."""
        return self.predicts & (self.predicted_field != Field.SCRATCH)

    def forced(self, logits_BTV: Tensor) -> Predictions:
        """Return the predictions for these lines together with the right tokens."""
        return Predictions(logits_BTV.cpu(), self.labels)

    @property
    def coordinates(self) -> Coordinates:
        """The coordinates of all tokens, as the model takes them."""
        return coordinates_of(self.tokens)


def write_lines(trained_model: TrainedModel, problems: Problems) -> InspectedLines:
    """Write problems with their right answers. Raises `ProblemError` if a line is too long for lenses."""
    longest = int(line_lengths(trained_model.format, problems).max())
    if longest > LONGEST_LINE:
        raise ProblemError(
            f"this line has {longest:,} tokens, and lenses accept at most {LONGEST_LINE}. "
            "Type a problem with fewer digits."
        )
    whole = trained_model.format.write(problems, trained_model.task.answer(problems))
    place = whole.place.long()
    if not trained_model.model.is_causal:
        assert whole.labels is not None
        labels = torch.where(whole.target, whole.labels, IGNORED).long()
        return InspectedLines(whole, labels, place, whole.field)
    labels = torch.where(whole.target, whole.ids, IGNORED).long()
    return InspectedLines(whole[:, :-1], labels[:, 1:], place[:, 1:], whole.field[:, 1:])


def batches(
    trained_model: TrainedModel, problems: Problems
) -> Iterator[tuple[Tensor, InspectedLines]]:
    """Yield row numbers and lines of all problems in batches of lines of similar length."""
    sizes = line_lengths(trained_model.format, problems)
    for rows in batches_by_length(sizes, quadratic=True, largest=_LINES_PER_BATCH):
        yield rows, write_lines(trained_model, problems[rows])
