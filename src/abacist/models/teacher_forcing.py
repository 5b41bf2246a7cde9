"""Teacher forcing: predict every answer token from the correct tokens before it, in one pass.

Greedy generation writes the correct answer if and only if every answer token is the arg-max here,
so this pass serves the loss, exact match and margins.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.errors import ConfigurationError
from abacist.formats.annotated import AnnotatedTokens
from abacist.models.coordinates import Coordinates
from abacist.models.transformer import Path, Transformer

IGNORED = -100
"""Label of a position where nothing is to be predicted; torch's cross entropy ignores it."""


@dataclass(frozen=True)
class Predictions:
    """Logits and correct tokens at A positions, from the first answer token of the batch on."""

    logits: Tensor
    """(B, A, V)"""
    labels: Tensor
    """int64 (B, A): the correct token, or IGNORED."""

    def cpu(self) -> "Predictions":
        """Return the same predictions on the CPU."""
        return Predictions(self.logits.cpu(), self.labels.cpu())

    def correct_tokens(self) -> Tensor:
        """Return bool (B, A): whether the prediction is correct or ignored. A tie is not correct."""
        return self.margins() > 0

    def margins(self) -> Tensor:
        """Return the correct logit minus the largest other one, (B, A); infinite where ignored.

        A margin is positive exactly where the prediction is correct.
        """
        ignored = self.labels == IGNORED
        label = self.labels.clamp(min=0).unsqueeze(-1)
        correct = self.logits.gather(-1, label).squeeze(-1)
        largest_other = self.logits.scatter(-1, label, -torch.inf).amax(dim=-1)
        return torch.where(ignored, torch.inf, correct - largest_other)


def teacher_forced(
    model: Transformer,
    lines: AnnotatedTokens,
    *,
    equal_lengths: bool = False,
    generator: torch.Generator | None = None,
    path: Path = "auto",
    recurrences: int | None = None,
    num_detached: int = 0,
    only_targets: bool = False,
) -> Predictions:
    """Predict the target tokens of lines.

    A decoder predicts each target from the tokens before it. An encoder reads the prompt and
    predicts the line's labels at its targets.

    Args:
        model: a decoder or an encoder.
        lines: whole lines, (B, T), on any device.
        equal_lengths: whether all lines have the same coordinates, which is faster.
        generator: as for `Transformer.forward`, like the remaining arguments.
        path: see there.
        recurrences: see there.
        num_detached: see there.
        only_targets: whether the model may leave out tokens without a label, as it does where each
            line has coordinates of its own. The predictions are then those of N lines, (N, 1, V).

    Raises `ConfigurationError` for an encoder whose lines have no labels.
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
    coordinates = coordinates_of(lines, equal_lengths)
    is_plain = path == "auto" and recurrences in (None, 1)
    if only_targets and not equal_lengths and is_plain and model.reads_ids_alone:
        tokens = model.coordinates_by_scheme(coordinates, len(lines.ids), generator)
        is_target = labels != IGNORED
        logits = model.logits_by_id(lines.ids, tokens, first, is_target)
        return Predictions(logits, labels[is_target].unsqueeze(1))
    logits = model(
        lines.ids,
        coordinates,
        first,
        generator=generator,
        path=path,
        recurrences=recurrences,
        num_detached=num_detached,
    )
    return Predictions(logits, labels)


def coordinates_of(lines: AnnotatedTokens, equal_lengths: bool = False) -> Coordinates:
    """Return the coordinates of lines, (B, T), or (1, T) with `equal_lengths`.

    Lines of equal operand lengths differ at most in padding at the very end, which a causal
    model never sees from the tokens that predict.
    """
    if not equal_lengths:
        return Coordinates(lines.index, lines.place, lines.row, lines.step)
    index = torch.arange(lines.ids.shape[1], dtype=torch.int32, device=lines.ids.device)
    row, step = (None if v is None else v[:1] for v in (lines.row, lines.step))
    return Coordinates(index.unsqueeze(0), lines.place[:1], row, step)
