"""Tests of the plain format with its default settings: what its lines and annotations are."""

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from abacist.formats.annotated import ANCHOR, EVERYWHERE, NO_PLACE, AnnotatedTokens, Field
from abacist.formats.config import PlainFormatConfig
from abacist.formats.plain import PlainFormat
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.config import ArithmeticConfig
from abacist.tasks.problems import Problems

TASK = Arithmetic(ArithmeticConfig())
WITH_START = PlainFormat(PlainFormatConfig(), ArithmeticConfig())
WITHOUT_START = PlainFormat(PlainFormatConfig(start_token=False), ArithmeticConfig())
both_formats = pytest.mark.parametrize(
    "format", [WITH_START, WITHOUT_START], ids=["start", "no start"]
)

NATURALS = st.integers(0, 20) | st.integers(0, 10**30) | st.integers(1, 30).map(lambda n: 10**n - 1)
BATCHES = st.lists(st.tuples(NATURALS, NATURALS), min_size=1, max_size=5)


def write(format: PlainFormat, rows: list[tuple[int, int]]) -> AnnotatedTokens:
    problems = Problems.from_integers(list(rows))
    return format.write(problems, TASK.answer(problems))


def texts(format: PlainFormat, lines: AnnotatedTokens) -> list[str]:
    """Return the text of each line without its padding."""
    return [
        format.vocabulary.decode(ids[:length].tolist())
        for ids, length in zip(lines.ids, lines.lengths.tolist(), strict=True)
    ]


def ids_of(format: PlainFormat, text: str) -> Tensor:
    tokens = re.findall(r"<\w+>|.", text)
    return torch.tensor([[format.vocabulary.id(token) for token in tokens]])


def test_every_number_is_written_least_significant_digit_first() -> None:
    assert texts(WITH_START, write(WITH_START, [(12, 34)])) == ["<start>21+43=64<end>"]


def test_start_token_can_be_left_out() -> None:
    assert texts(WITHOUT_START, write(WITHOUT_START, [(12, 34)])) == ["21+43=64<end>"]
    assert len(WITHOUT_START.vocabulary) == len(WITH_START.vocabulary) - 1


def test_lines_of_unequal_lengths_are_written_without_gaps() -> None:
    rows = [(1, 2), (999, 1), (5, 123456), (0, 0), (123456, 5)]
    assert texts(WITH_START, write(WITH_START, rows)) == [
        "<start>1+2=3<end>",
        "<start>999+1=0001<end>",
        "<start>5+654321=164321<end>",
        "<start>0+0=0<end>",
        "<start>654321+5=164321<end>",
    ]


def test_lines_are_padded_on_the_right_with_end_tokens_in_the_padding_field() -> None:
    lines = write(WITH_START, [(1, 2), (12345, 6)])
    after = torch.arange(lines.ids.shape[1]) >= lines.lengths.unsqueeze(1)
    assert after.sum(dim=1).tolist() == [8, 0]
    assert (lines.ids[after] == WITH_START.end_id).all()
    assert (lines.field[after] == Field.PADDING).all()
    assert not lines.target[after].any()
    assert (lines.index[after] == -1).all()


def test_the_longest_line_has_no_padding_at_all() -> None:
    lines = write(WITH_START, [(1, 123456), (999, 999), (1, 2)])
    assert int(lines.lengths.max()) == lines.ids.shape[1]


def test_place_of_every_token_is_as_documented() -> None:
    lines = write(WITH_START, [(12, 34)])
    assert lines.place.tolist() == [[EVERYWHERE, 1, 2, NO_PLACE, 1, 2, ANCHOR, 1, 2, 3]]
    assert (EVERYWHERE, NO_PLACE, ANCHOR) == (-2, -1, 0)


def test_field_of_every_token_is_as_documented() -> None:
    lines = write(WITH_START, [(12, 34)])
    a, b = Field.OPERAND, Field.OPERAND + 1
    assert lines.field.tolist() == [
        [Field.START, a, a, Field.OPERATOR, b, b, Field.EQUALS, *[Field.ANSWER] * 3]
    ]


def test_the_answer_and_its_end_token_are_the_targets() -> None:
    lines = write(WITH_START, [(12, 34)])
    assert lines.target.tolist() == [[False] * 7 + [True] * 3]


def test_without_start_token_the_remaining_annotation_is_the_same() -> None:
    rows = [(12, 34), (999, 1), (5, 123456)]
    with_start, without = write(WITH_START, rows), write(WITHOUT_START, rows)
    for name in ("ids", "place", "field", "target"):
        assert torch.equal(getattr(with_start, name)[:, 1:], getattr(without, name)), name


def test_index_counts_the_tokens_of_each_line_from_zero() -> None:
    lines = write(WITH_START, [(1, 2), (12, 3)])
    assert lines.index.tolist() == [[0, 1, 2, 3, 4, 5, 6, -1, -1], list(range(9))]


@both_formats
@settings(deadline=None, max_examples=30)
@given(rows=BATCHES)
def test_written_answers_read_back_for_batches_of_mixed_lengths(
    format: PlainFormat, rows: list[tuple[int, int]]
) -> None:
    assert format.read(write(format, rows).ids) == [str(a + b) for a, b in rows]


@both_formats
def test_reversed_answer_round_trips_for_every_carry(format: PlainFormat) -> None:
    rows = [(a, b) for a in range(0, 100, 3) for b in range(100)]
    assert format.read(write(format, rows).ids) == [str(a + b) for a, b in rows]


def assert_prefixes_annotate_alike(format: PlainFormat, ids: Tensor) -> None:
    whole = format.annotate(ids)
    for length in range(1, ids.shape[1]):
        prefix = format.annotate(ids[:, :length])
        for name in ("ids", "place", "field", "target", "index"):
            assert torch.equal(getattr(prefix, name), getattr(whole, name)[:, :length]), name


@both_formats
@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_annotation_of_any_token_sequence_never_depends_on_later_tokens(
    format: PlainFormat, data: st.DataObject
) -> None:
    token = st.integers(0, len(format.vocabulary) - 1) | st.integers(10, 12)
    length = data.draw(st.integers(1, 15))
    row = st.lists(token, min_size=length, max_size=length)
    assert_prefixes_annotate_alike(format, torch.tensor(data.draw(st.lists(row, min_size=1))))


def test_a_prompt_has_nothing_to_predict() -> None:
    prompt = WITH_START.prompt(Problems.from_integers([(1, 2), (12345, 6)]))
    assert not prompt.target.any()
    assert prompt.lengths.tolist() == [5, 9]
    assert prompt.index.tolist()[0] == [0, 1, 2, 3, 4, -1, -1, -1, -1]


def test_annotation_of_a_prompt_agrees_with_the_whole_line() -> None:
    problems = Problems.from_integers([(12345, 6), (12345, 6)])
    prompt, lines = WITH_START.prompt(problems), write(WITH_START, [(12345, 6)] * 2)
    for name in ("ids", "place", "field"):
        whole = getattr(lines, name)[:, : prompt.ids.shape[1]]
        assert torch.equal(getattr(prompt, name), whole), name


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("<start>21+43=64<end>", "46"),
        ("<start>21+43=64<end><end><end>", "46"),
        ("<start>21+43=64<end>7+=<start>", "46"),
        ("<start>0+0=0<end>", "0"),
        ("<start>21+43=05<end>", "50"),
        ("<start>21+43=640123<end>", "321046"),
    ],
)
def test_a_well_formed_answer_is_read_in_the_usual_notation(line: str, answer: str) -> None:
    assert WITH_START.read(ids_of(WITH_START, line)) == [answer]


@pytest.mark.parametrize(
    "line",
    [
        "<start>21+43=64",
        "<start>21+43=",
        "<start>21+43=<end>",
        "<start>21+43=<end>64<end>",
        "<start>21+43=640<end>",
        "<start>21+43=00<end>",
        "<start>21+43<end>",
        "<start>2143<end>64",
        "<end>",
    ],
)
def test_a_malformed_answer_is_read_as_none(line: str) -> None:
    assert WITH_START.read(ids_of(WITH_START, line)) == [None]


@pytest.mark.parametrize("stray", ["+", "=", "<start>"])
@pytest.mark.parametrize("answer", ["6{}4<end>", "{}64<end>", "64{}<end>"])
def test_a_stray_token_in_an_answer_makes_it_malformed(stray: str, answer: str) -> None:
    line = "<start>21+43=" + answer.format(stray)
    assert WITH_START.read(ids_of(WITH_START, line)) == [None]


def test_each_line_of_a_batch_is_read_on_its_own() -> None:
    lines = ("<start>1+2=3<end>0", "<start>1+2=333", "<start>1+2=33<end>")
    ids = torch.cat([ids_of(WITH_START, line) for line in lines])
    assert WITH_START.read(ids) == ["3", None, "33"]


@both_formats
def test_a_digits_id_is_its_value(format: PlainFormat) -> None:
    assert [format.vocabulary.id(str(digit)) for digit in range(10)] == list(range(10))


@both_formats
def test_fields_of_one_token_name_its_id_and_fields_of_digits_name_none(
    format: PlainFormat,
) -> None:
    assert format.token_id(Field.OPERATOR) == format.vocabulary.id("+")
    assert format.token_id(Field.EQUALS) == format.vocabulary.id("=")
    assert format.token_id(Field.START) == format.start_id
    assert format.token_id(Field.ANSWER) is None
    assert format.token_id(Field.OPERAND + 1) is None


def test_the_operator_of_the_task_is_the_one_written() -> None:
    format = PlainFormat(PlainFormatConfig(), ArithmeticConfig(operations=("//",)))
    problems = Problems.from_integers([(12, 34)], "//")
    assert texts(format, format.prompt(problems)) == ["<start>21//43="]
