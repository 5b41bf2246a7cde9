"""What the queries of lines that are really written see, to compare with an enumeration.

It is described by ids and coordinates alone, which is all that the model gets.
"""

import numpy as np
import torch
from torch import Tensor

from abacist.certificates import certificate
from abacist.certificates.joint_enumeration import JointEnumeration
from abacist.certificates.receptive_fields import Context, Enumeration
from abacist.models.coordinates import Coordinates
from abacist.models.teacher_forcing import coordinates_of
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.problems import Problems, Shapes

SLOTS, FAR = 7, 9
"""Largest number of tokens that a query sees; a difference of coordinates that no window reaches."""

Seen = set[bytes]
"""Contexts with what follows, each row of `coded` as bytes: tuples need more memory."""


def coded(ids_NM: Tensor, coordinates: list[Tensor], following_N: Tensor) -> Tensor:
    """Return what N queries, the last of their M tokens, see, and what follows, (N, SLOTS + 1)."""
    code = ids_NM.long() + 1
    for values in coordinates:
        difference = torch.where(values >= 0, values - values[:, -1:], -FAR)
        code = 2 * FAR * code + difference.clamp(-FAR, FAR - 1) + FAR
    padded = torch.nn.functional.pad(code, (0, SLOTS - code.shape[1]))
    return torch.cat([padded, following_N.long().unsqueeze(1)], dim=1)


def each_once(rows: list[Tensor]) -> Seen:
    matrix = torch.cat(rows).contiguous().numpy()
    whole_rows = matrix.view(np.dtype((np.void, matrix.shape[1] * matrix.itemsize)))
    return set(whole_rows.ravel().tolist())


def axes(coordinates: Coordinates) -> list[Tensor]:
    assert coordinates.row is not None
    assert coordinates.step is not None
    return [coordinates.place.long(), coordinates.row.long(), coordinates.step.long()]


def seen_in(trained_model: TrainedModel, problems: Problems) -> Seen:
    """Return what every query of these problems sees, each once."""
    task, format = trained_model.task, trained_model.format
    lines = format.write(problems, task.answer(problems))
    visible = trained_model.model.visibility(coordinates_of(lines))[0]
    line, query = lines.target[:, 1:].nonzero().unbind(dim=1)
    rows = []
    counts = visible[line, query].sum(dim=1)
    for count in counts.unique().tolist():
        own = counts == count
        tokens = visible[line[own], query[own]].nonzero()[:, 1].view(-1, count)
        at = line[own].unsqueeze(1)
        whole = Coordinates(lines.index, lines.place, lines.row, lines.step)
        values = [axis[at, tokens] for axis in axes(whole)]
        rows.append(coded(lines.ids[at, tokens], values, lines.ids[line[own], query[own] + 1]))
    return each_once(rows)


def rows_of(context: Context) -> Tensor:
    count = len(context.target)
    values = [axis.expand(count, -1) for axis in axes(context.pattern.coordinates)]
    return coded(context.ids, values, context.target)


def looks(seen: Seen) -> Seen:
    """Return where tokens stand, whatever they are, each once."""
    codes = torch.frombuffer(bytearray(b"".join(seen)), dtype=torch.int64).view(-1, SLOTS + 1)
    return each_once([codes[:, :-1] % (2 * FAR) ** 3])


def enumeration_for(trained_model: TrainedModel) -> JointEnumeration:
    """Return the neighbourhoods of several notations."""
    task, format = trained_model.task, trained_model.format
    enumerated = certificate._enumeration(trained_model.model, task, format, 1e10)
    assert isinstance(enumerated, JointEnumeration)
    return enumerated


def listed_in(enumeration: Enumeration) -> Seen:
    """Return every neighbourhood of an enumeration, each once."""
    return each_once([rows_of(context) for part, _ in enumeration.parts() for context in part])


def counts_of(enumeration: JointEnumeration) -> dict[tuple[str, ...], int]:
    """Return the number of neighbourhoods of each notation, by its operations."""
    counts: dict[tuple[str, ...], int] = {}
    for part, _ in enumeration.parts():
        ids, _, _ = certificate._distinct(part)
        counts[part[0].operations] = counts.get(part[0].operations, 0) + len(ids)
    return counts


def drawn(
    task: Arithmetic, operation: str, lengths: tuple[int, int], count: int, seed: int
) -> Problems:
    """Draw problems of one operation and one pair of lengths."""
    shapes = Shapes.of(torch.tensor([lengths]).expand(count, 2), operation)
    return task.draw(shapes, torch.Generator().manual_seed(seed))
