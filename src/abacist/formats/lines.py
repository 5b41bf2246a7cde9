"""Putting lines together from pieces, and annotating each pattern of them once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from abacist.formats.annotated import AnnotatedTokens, Field
from abacist.tasks.problems import OPERATIONS


@dataclass(frozen=True)
class Piece:
    """A part of every line: a symbol, or a number of so many digits."""

    ids_BW: Tensor
    """uint8; numbers are least significant digit first."""
    widths_B: Tensor | None = None
    """int64, how many of the columns are written; None for all."""
    mirrored: bool = False
    """Write the columns last to first: numbers in the usual order."""

    def common_width(self) -> int | None:
        """The width of the piece where it is the same in all lines."""
        if self.widths_B is None:
            return self.ids_BW.shape[1]
        if not len(self.widths_B):
            return 0
        first = int(self.widths_B[0])
        return first if bool((self.widths_B == first).all()) else None


def constant(token: int, batch: int, device: torch.device) -> Piece:
    """The same token in every line."""
    return Piece(torch.full((batch, 1), token, dtype=torch.uint8, device=device))


def operators(operation_B: Tensor, token_of: Mapping[str, int]) -> Tensor:
    """The token of every problem's operation, uint8 (B, 1)."""
    tokens = [token_of.get(operation, 0) for operation in OPERATIONS]
    table = torch.tensor(tokens, dtype=torch.uint8, device=operation_B.device)
    return table[operation_B.long()].unsqueeze(1)


def join(pieces: list[Piece], padding: int, end: bool = False) -> Tensor:
    """Pieces side by side without gaps, uint8 (B, T), filled up with the padding token.

    With `end`, every line has at least one padding token, which is its end.
    """
    widths = [piece.common_width() for piece in pieces]
    if None not in widths[:-1] and not (widths[-1] is None and pieces[-1].mirrored):
        return _join_aligned(pieces, widths, padding, end)
    batch, device = pieces[0].ids_BW.shape[0], pieces[0].ids_BW.device
    starts = torch.zeros(batch, 1, dtype=torch.int64, device=device)
    ends = [
        piece.ids_BW.new_full((batch,), piece.ids_BW.shape[1], dtype=torch.int64)
        if piece.widths_B is None
        else piece.widths_B
        for piece in pieces
    ]
    total = int(torch.stack(ends).sum(dim=0).amax()) + end if batch else 0
    # Column `total` collects what is beyond a piece's width, and is cut off.
    line = torch.full((batch, total + 1), padding, dtype=torch.uint8, device=device)
    for piece, width in zip(pieces, ends, strict=True):
        columns = torch.arange(piece.ids_BW.shape[1], device=device)
        width = width.unsqueeze(1)
        offsets = width - 1 - columns if piece.mirrored else columns
        target = torch.where(columns < width, starts + offsets, total)
        line.scatter_(1, target, piece.ids_BW.to(torch.uint8))
        starts = starts + width
    return line[:, :total]


def _join_aligned(pieces: list[Piece], widths: list[int | None], padding: int, end: bool) -> Tensor:
    """The same where only the last piece may be of unequal width: then all columns line up."""
    columns = []
    for piece, width in zip(pieces, widths, strict=True):
        ids = piece.ids_BW.to(torch.uint8)
        if width is None:
            assert piece.widths_B is not None
            widest = int(piece.widths_B.max())
            columns_W = torch.arange(widest, dtype=torch.int32, device=ids.device)
            inside = columns_W < piece.widths_B.int().unsqueeze(1)
            ids = torch.where(inside, ids[:, :widest], padding)
        else:
            ids = ids[:, :width]
        columns.append(ids.flip(1) if piece.mirrored else ids)
    if end:
        columns.append(columns[0].new_full((len(columns[0]), 1), padding))
    return torch.cat(columns, dim=1)


def equals(ids_BT: Tensor, token: int) -> Tensor:
    """`ids == token`; bytes are compared to bytes, which is ten times as fast as to truth values."""
    if ids_BT.dtype != torch.uint8:
        return ids_BT == token
    return torch.eq(ids_BT, token, out=torch.empty_like(ids_BT)).view(torch.bool)


def without_targets(lines: AnnotatedTokens) -> AnnotatedTokens:
    """Prompts: whatever was annotated as to be predicted is padding."""
    return replace(
        lines,
        field=lines.field.masked_fill(lines.target, int(Field.PADDING)),
        target=torch.zeros_like(lines.target),
    )


def once_per_pattern(
    ids_BT: Tensor, annotate: Callable[[Tensor], AnnotatedTokens]
) -> AnnotatedTokens:
    """Annotate lines of which only the pattern matters: which tokens are digits, and what the others are.

    Lines of one pattern have the same annotations, so those are made once and copied: many times
    as fast, since a batch has thousands of lines and a few patterns.
    """
    ids = ids_BT.int()
    # All digits are made alike; an id beyond a byte is no digit either.
    pattern = ids_BT.clamp(min=9, max=255).to(torch.uint8)
    weights = torch.linspace(1, 2, ids.shape[1], dtype=torch.float32, device=ids.device).sqrt()
    _, group = torch.unique(pattern.float() @ weights, return_inverse=True)
    first = torch.zeros(int(group.max()) + 1 if len(group) else 0, dtype=torch.int64)
    first = first.to(ids.device)
    first[group] = torch.arange(len(group), device=ids.device)
    # Sums can agree by chance, so lines are compared with the one that stands for them.
    if len(first) * 2 > len(ids) or not torch.equal(
        pattern.index_select(0, first).index_select(0, group), pattern
    ):
        return annotate(ids)
    one = annotate(ids.index_select(0, first))
    shared = {
        field.name: _copied(tensor, group)
        for field in fields(one)
        if field.name != "ids" and (tensor := getattr(one, field.name)) is not None
    }
    return AnnotatedTokens(ids, **shared)


def _copied(tensor: Tensor, group: Tensor) -> Tensor:
    """For every line the row of its group; a view where all groups have the same."""
    if bool((tensor == tensor[:1]).all()):
        return tensor[:1].expand(len(group), -1)
    return tensor.index_select(0, group)
