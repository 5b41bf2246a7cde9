"""Pieces of lines, how they are joined, and annotation once per pattern of lines.

A piece is one part of every line of a batch: a symbol, or a number that may have a different width in
each line. The lines of `12+34` and `5+678` in the reversed format join the pieces

    21  +  43   =             21+43=
    5   +  876  =      →      5+876=
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from abacist.formats.annotated import AnnotatedTokens, Field
from abacist.tasks.problems import OPERATIONS


@dataclass(frozen=True)
class Piece:
    """One part of every line: a symbol, a number, or the whole work."""

    ids_BW: Tensor
    """uint8 token ids; numbers are least significant digit first."""
    widths_B: Tensor | None = None
    """int64, the number of columns that belong to each line; None for all of them."""
    mirrored: bool = False
    """Write the columns from last to first, which puts a number into the usual order."""

    def common_width(self) -> int | None:
        """Return the width of the piece if it is the same in all lines, else None."""
        if self.widths_B is None:
            return self.ids_BW.shape[1]
        if not len(self.widths_B):
            return 0
        first = int(self.widths_B[0])
        return first if bool((self.widths_B == first).all()) else None

    def widths(self) -> Tensor:
        """Return the width of the piece in each line, int64 (B,)."""
        if self.widths_B is not None:
            return self.widths_B
        return self.ids_BW.new_full((len(self.ids_BW),), self.ids_BW.shape[1], dtype=torch.int64)


def constant(token: int, batch: int, device: torch.device) -> Piece:
    """Return a piece that is the same token in every line."""
    return Piece(torch.full((batch, 1), token, dtype=torch.uint8, device=device))


def operators(operation_B: Tensor, token_of: Mapping[str, int]) -> Tensor:
    """Return the token of each problem's operation, uint8 (B, 1)."""
    tokens = [token_of.get(operation, 0) for operation in OPERATIONS]
    table = torch.tensor(tokens, dtype=torch.uint8, device=operation_B.device)
    return table[operation_B.long()].unsqueeze(1)


def join(pieces: list[Piece], padding: int, end: bool = False) -> Tensor:
    """Join pieces without gaps into lines, uint8 (B, T), padded on the right.

    With `end`, every line gets at least one padding token, which serves as its end token.
    """
    common_widths = [piece.common_width() for piece in pieces]
    if None not in common_widths[:-1] and not (common_widths[-1] is None and pieces[-1].mirrored):
        return _join_aligned(pieces, common_widths, padding, end)
    batch, device = pieces[0].ids_BW.shape[0], pieces[0].ids_BW.device
    starts = torch.zeros(batch, 1, dtype=torch.int64, device=device)
    widths = [piece.widths() for piece in pieces]
    total = int(torch.stack(widths).sum(dim=0).amax()) + end if batch else 0
    # Column `total` collects the columns beyond a piece's width, and is cut off.
    line = torch.full((batch, total + 1), padding, dtype=torch.uint8, device=device)
    for piece, width in zip(pieces, widths, strict=True):
        columns = torch.arange(piece.ids_BW.shape[1], device=device)
        width = width.unsqueeze(1)
        offsets = width - 1 - columns if piece.mirrored else columns
        target = torch.where(columns < width, starts + offsets, total)
        line.scatter_(1, target, piece.ids_BW.to(torch.uint8))
        starts = starts + width
    return line[:, :total]


def _join_aligned(
    pieces: list[Piece], common_widths: list[int | None], padding: int, end: bool
) -> Tensor:
    """Join pieces of which only the last differs in width between lines, so that all columns line up."""
    columns = []
    for piece, width in zip(pieces, common_widths, strict=True):
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


def select(ids: Tensor, is_written: Tensor) -> Piece:
    """Return the piece of those tokens that are written, in order and without gaps.

    Both tensors have the batch first and one shape, (B, …); all other axes are flattened.
    """
    ids, is_written = ids.flatten(1), is_written.flatten(1)
    positions = is_written.cumsum(dim=1)
    widths_B = positions[:, -1] if positions.shape[1] else positions.sum(dim=1)
    widest = int(widths_B.max()) if len(widths_B) else 0
    # Column `widest` collects the tokens that are not written, and is cut off.
    columns = torch.where(is_written, positions - 1, widest)
    written = ids.new_zeros(len(ids), widest + 1)
    return Piece(written.scatter_(1, columns, ids)[:, :widest], widths_B)


def merge(parts: list[tuple[Tensor, Piece]], batch: int, device: torch.device) -> Piece:
    """Return one piece for a batch from the pieces of its parts, each with the indices of its lines."""
    widest = max((piece.ids_BW.shape[1] for _, piece in parts), default=0)
    ids_BW = torch.zeros(batch, widest, dtype=torch.uint8, device=device)
    widths_B = torch.zeros(batch, dtype=torch.int64, device=device)
    for lines, piece in parts:
        ids_BW[lines, : piece.ids_BW.shape[1]] = piece.ids_BW
        widths_B[lines] = piece.widths()
    return Piece(ids_BW, widths_B)


def without_targets(lines: AnnotatedTokens) -> AnnotatedTokens:
    """Return the prompts of lines: every token that was to be predicted becomes padding."""
    return replace(
        lines,
        field=lines.field.masked_fill(lines.target, int(Field.PADDING)),
        target=torch.zeros_like(lines.target),
    )


def selected_tokens(ids_BT: Tensor, is_selected_BT: Tensor) -> list[list[int]]:
    """Return the ids at which `is_selected_BT` is true, in order, as one list for each line."""
    ends = is_selected_BT.sum(dim=1).cumsum(0).tolist()
    # One conversion of all lines takes a tenth of the time of one for each line.
    ids = ids_BT[is_selected_BT].tolist()
    return [ids[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def once_per_pattern(
    ids_BT: Tensor,
    annotate: Callable[[Tensor], AnnotatedTokens],
    alike_from: int = 255,
    num_digits: int = 10,
) -> AnnotatedTokens:
    """Annotate lines whose annotation does not depend on which digits they hold.

    Lines that differ only in their digits, the first `num_digits` ids, and in tokens with ids of
    `alike_from` or more, have one pattern and are annotated once. That is many times faster than
    annotating each line, since a batch has thousands of lines and a few patterns.
    """
    ids = ids_BT.int()
    pattern = ids_BT.clamp(min=num_digits - 1, max=alike_from).to(torch.uint8)
    weights = torch.linspace(1, 2, ids.shape[1], dtype=torch.float32, device=ids.device).sqrt()
    _, group = torch.unique(pattern.float() @ weights, return_inverse=True)
    first = torch.zeros(int(group.max()) + 1 if len(group) else 0, dtype=torch.int64)
    first = first.to(ids.device)
    first[group] = torch.arange(len(group), device=ids.device)
    # The weighted sums of two patterns can be equal, so each line is compared with its representative.
    if len(first) * 2 > len(ids) or not torch.equal(
        pattern.index_select(0, first).index_select(0, group), pattern
    ):
        return annotate(ids)
    representatives = annotate(ids.index_select(0, first))
    shared = {
        field.name: _copied(tensor, group)
        for field in fields(representatives)
        if field.name != "ids" and (tensor := getattr(representatives, field.name)) is not None
    }
    return AnnotatedTokens(ids, **shared)


def places_from_the_right(
    place_BT: Tensor, num_counted_BT: Tensor, ends_number_BT: Tensor
) -> Tensor:
    """Return the place of each digit of numbers in the usual order, whose units come last.

    Args:
        place_BT: int32, the place of each digit counted from the left, starting at 1. It is kept for
            tokens that no token of `ends_number_BT` follows.
        num_counted_BT: int32, how many digits of the line come up to each token, itself included.
        ends_number_BT: bool, the tokens that follow a number; they are not counted.
    """
    largest = torch.iinfo(torch.int32).max
    end = torch.where(ends_number_BT, num_counted_BT, largest).flip(1).cummin(dim=1).values.flip(1)
    return torch.where(end < largest, end - num_counted_BT + 1, place_BT)


def _copied(tensor: Tensor, group: Tensor) -> Tensor:
    """Return the row of its group for each line; a view if all groups have the same row."""
    if bool((tensor == tensor[:1]).all()):
        return tensor[:1].expand(len(group), -1)
    return tensor.index_select(0, group)
