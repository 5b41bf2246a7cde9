"""One pass over whole lines: every answer token predicted from the correct tokens before it.

Greedy generation writes exactly the right answer if and only if every answer token is the
arg-max here, so one pass serves the loss, exact match and the margins alike.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.errors import ConfigurationError
from abacist.formats.annotated import AnnotatedTokens
from abacist.models.coordinates import Coordinates
from abacist.models.transformer import Path, Transformer

IGNORED = -100
"""Label of a token that is not to be predicted: what torch's cross entropy leaves out."""


@dataclass(frozen=True)
class Forced:
    """Predictions and what they should be; A is the number of tokens that predict."""

    logits: Tensor
    """(B, A, V)"""
    labels: Tensor
    """int64 (B, A): the right token, or IGNORED."""

    def cpu(self) -> "Forced":
        """The same on the CPU, where problems are."""
        return Forced(self.logits.cpu(), self.labels.cpu())

    def right_tokens(self) -> Tensor:
        """bool (B, A): predicted rightly, or nothing to predict. A tie is not right."""
        return self.margins() > 0

    def margins(self) -> Tensor:
        """(B, A): right logit minus the best wrong one; infinite where nothing is to predict.

        Positive exactly where the prediction is right.
        """
        ignored = self.labels == IGNORED
        label = self.labels.clamp(min=0).unsqueeze(-1)
        right = self.logits.gather(-1, label).squeeze(-1)
        best_wrong = self.logits.scatter(-1, label, -torch.inf).amax(dim=-1)
        return torch.where(ignored, torch.inf, right - best_wrong)


def teacher_forced(
    model: Transformer,
    lines: AnnotatedTokens,
    *,
    equal_lengths: bool = False,
    generator: torch.Generator | None = None,
    path: Path = "auto",
    recurrences: int | None = None,
    detached: int = 0,
) -> Forced:
    """Run `lines` through the model. With `equal_lengths`, all lines share their coordinates.

    A decoder predicts every target from the tokens before it; an encoder is given the prompt and
    writes the line's labels at its targets. The other arguments are those of the model.
    """
    first = int(lines.target.long().argmax(dim=1).min())
    lines = lines.to(model.device)
    if model.is_causal:
        first -= 1
        labels = torch.where(lines.target, lines.ids, IGNORED)[:, first + 1 :].long()
        lines = lines[:, :-1]
    elif lines.labels is None:
        raise ConfigurationError(
            "an encoder needs a format with parallel targets. Try --format parallel."
        )
    else:
        labels = torch.where(lines.target, lines.labels, IGNORED)[:, first:].long()
    logits = model(
        lines.ids,
        coordinates_of(lines, equal_lengths),
        first,
        generator=generator,
        path=path,
        recurrences=recurrences,
        detached=detached,
    )
    return Forced(logits, labels)


def coordinates_of(lines: AnnotatedTokens, equal_lengths: bool = False) -> Coordinates:
    """The coordinates of annotated lines; one row of them when all lines have equal lengths.

    Lines of equal operand lengths differ at most in padding at the very end, which a causal
    model never sees from the tokens that predict.
    """
    row, step = lines.row, lines.step
    if equal_lengths:
        index = torch.arange(lines.ids.shape[1], dtype=torch.int32, device=lines.ids.device)
        row = None if row is None else row[:1]
        step = None if step is None else step[:1]
        return Coordinates(index.unsqueeze(0), lines.place[:1], row, step)
    return Coordinates(lines.index, lines.place, row, step)
