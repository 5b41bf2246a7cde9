"""Tests of lines from pieces, against plain lists; and of annotation once per pattern, against line by line."""

import pytest
import torch
from extension_tasks import LargerTextConfig, column_task
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from abacist.formats.annotated import AnnotatedTokens, Field
from abacist.formats.config import TextFormatConfig
from abacist.formats.pieces import (
    Piece,
    constant,
    join,
    merge,
    once_per_pattern,
    select,
    selected_tokens,
    without_targets,
)
from abacist.formats.text import TextFormat
from abacist.tasks.problems import OWN, Shapes

PADDING = 12


@st.composite
def piece_rows(draw: st.DrawFn) -> tuple[list[list[list[int]]], list[bool], list[bool]]:
    """Tokens of every piece of every line, which pieces are mirrored, and which have no widths."""
    batch, num_pieces = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    pieces, mirrored, whole = [], [], []
    for _ in range(num_pieces):
        is_whole = draw(st.booleans())
        width = draw(st.integers(1, 4))
        lengths = st.just(width) if is_whole or draw(st.booleans()) else st.integers(0, width)
        pieces.append(
            [
                draw(st.lists(st.integers(0, 9), min_size=length, max_size=length))
                for length in draw(st.lists(lengths, min_size=batch, max_size=batch))
            ]
        )
        mirrored.append(draw(st.booleans()))
        whole.append(is_whole)
    return pieces, mirrored, whole


def piece_of(rows: list[list[int]], mirrored: bool, whole: bool) -> Piece:
    """A piece whose columns beyond a row's length hold 11, which must not be written."""
    width = max(map(len, rows)) + (0 if whole else 1)
    ids = torch.tensor([row + [11] * (width - len(row)) for row in rows], dtype=torch.uint8)
    widths = None if whole else torch.tensor([len(row) for row in rows])
    return Piece(ids.view(len(rows), width), widths, mirrored)


@pytest.mark.parametrize("end", [False, True])
@settings(deadline=None, max_examples=60)
@given(drawn=piece_rows())
def test_pieces_stand_side_by_side_without_gaps(
    end: bool, drawn: tuple[list[list[list[int]]], list[bool], list[bool]]
) -> None:
    pieces, mirrored, whole = drawn
    lines = join(
        [piece_of(*piece) for piece in zip(pieces, mirrored, whole, strict=True)], PADDING, end
    )
    expected = []
    for row in zip(*pieces, strict=True):
        parts = (part[::-1] if m else part for part, m in zip(row, mirrored, strict=True))
        expected.append([token for part in parts for token in part])
    width = max(map(len, expected)) + end
    assert lines.tolist() == [line + [PADDING] * (width - len(line)) for line in expected]
    assert lines.dtype == torch.uint8


def test_a_constant_is_the_same_token_in_every_line() -> None:
    assert constant(7, 3, torch.device("cpu")).ids_BW.tolist() == [[7]] * 3


def test_no_lines_are_joined_from_empty_pieces() -> None:
    nothing = Piece(torch.zeros(0, 3, dtype=torch.uint8), torch.zeros(0, dtype=torch.int64), True)
    assert len(join([nothing, nothing], PADDING)) == 0
    assert len(join([nothing, nothing], PADDING, end=True)) == 0


def test_a_line_of_nothing_still_has_its_end() -> None:
    nothing = Piece(torch.zeros(2, 0, dtype=torch.uint8))
    assert join([nothing], PADDING, end=True).tolist() == [[PADDING]] * 2


def test_selected_tokens_keep_their_order_and_leave_no_gaps() -> None:
    ids = torch.tensor([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], dtype=torch.uint8)
    is_written = torch.tensor([[[1, 0], [1, 1]], [[0, 1], [0, 0]]], dtype=torch.bool)
    piece = select(ids, is_written)
    assert piece.widths_B is not None
    assert piece.widths_B.tolist() == [3, 1]
    assert join([piece], PADDING).tolist() == [[1, 3, 4], [6, PADDING, PADDING]]


def test_pieces_of_parts_of_a_batch_are_merged_in_the_order_of_its_lines() -> None:
    wide = Piece(torch.tensor([[1, 2, 3]], dtype=torch.uint8))
    narrow = Piece(torch.tensor([[4, 9], [5, 6]], dtype=torch.uint8), torch.tensor([1, 2]))
    parts = [(torch.tensor([1]), wide), (torch.tensor([2, 0]), narrow)]
    merged = merge(parts, 3, torch.device("cpu"))
    assert join([merged], PADDING).tolist() == [[5, 6, PADDING], [1, 2, 3], [4, PADDING, PADDING]]


def annotate(ids: Tensor) -> AnnotatedTokens:
    """Annotations that depend on which tokens are digits and what the others are."""
    kinds = ids.clamp(min=9)
    place = (kinds - 9).cumsum(dim=1).int()
    field = (kinds == 10).to(torch.uint8) * Field.OPERATOR
    return AnnotatedTokens(ids, place, field, place > 5, row=place * 2)


@pytest.mark.parametrize("repeats", [1, 2, 5])
@pytest.mark.parametrize(("num_patterns", "width"), [(1, 9), (7, 5), (20_000, 24)])
def test_patterns_are_annotated_as_each_line_alone(
    num_patterns: int, width: int, repeats: int
) -> None:
    """Among 20,000 patterns there are some whose weighted sums happen to be equal."""
    generator = torch.Generator().manual_seed(0)
    patterns = torch.randint(9, 14, (num_patterns, width), generator=generator)
    ids = patterns.repeat(repeats, 1)
    digits = torch.randint(0, 10, ids.shape, generator=generator)
    ids = torch.where(ids == 9, digits, ids)
    lines, expected = once_per_pattern(ids, annotate), annotate(ids.int())
    for name in ("ids", "place", "field", "target", "row"):
        assert torch.equal(getattr(lines, name), getattr(expected, name)), name
    assert lines.step is None


def test_lines_of_few_patterns_are_annotated_once_a_pattern() -> None:
    seen = []

    def counting(ids: Tensor) -> AnnotatedTokens:
        seen.append(len(ids))
        return annotate(ids)

    ids = torch.randint(0, 10, (1_000, 6), generator=torch.Generator().manual_seed(0))
    ids[::2, 3] = 10
    once_per_pattern(ids, counting)
    assert seen == [2]


@pytest.mark.parametrize("name", ["test-add", "test-add-hexadecimal", "test-larger-text"])
def test_letters_are_digits_of_a_pattern_in_bases_above_10(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = LargerTextConfig() if name == "test-larger-text" else column_task(name)
    format, task = TextFormat(TextFormatConfig(), config), config.build()
    problems = task.draw(Shapes.of(torch.full((500, 2), 5), OWN), torch.Generator().manual_seed(0))
    ids = format.prompt(problems).ids
    seen = []
    annotate_lines = format._annotate

    def counting(ids: Tensor) -> AnnotatedTokens:
        seen.append(len(ids))
        return annotate_lines(ids)

    monkeypatch.setattr(format, "_annotate", counting)
    lines = format.annotate(ids)
    assert seen == [1]
    for tensor in ("place", "field", "target", "row"):
        assert torch.equal(getattr(lines, tensor), getattr(annotate_lines(ids.int()), tensor))


def test_no_lines_are_annotated() -> None:
    assert once_per_pattern(torch.zeros(0, 5, dtype=torch.int64), annotate).place.shape == (0, 5)


def test_without_targets_the_tokens_to_predict_are_padding() -> None:
    lines = annotate(torch.tensor([[10, 1, 12, 12, 10]]))
    assert lines.target.tolist() == [[False, False, False, True, True]]
    prompt = without_targets(lines)
    operator = int(Field.OPERATOR)
    assert prompt.field.tolist() == [[operator, 0, 0, 0, 0]]
    assert not prompt.target.any()
    assert prompt.ids.tolist() == lines.ids.tolist()
    assert prompt.place.tolist() == lines.place.tolist()


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_selected_tokens_are_those_of_each_line_in_order(data: st.DataObject) -> None:
    batch, width = data.draw(st.integers(0, 5)), data.draw(st.integers(0, 6))
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 99)))
    ids = torch.randint(0, 20, (batch, width), generator=generator)
    is_selected = torch.rand(batch, width, generator=generator) < 0.5
    assert selected_tokens(ids, is_selected) == [
        line[inside].tolist() for line, inside in zip(ids, is_selected, strict=True)
    ]
