"""The search for visible tokens equals the definition of visibility, and forgets in time."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from abacist.formats.config import FORMATS, FormatConfig
from abacist.formats.continuation import continue_lines
from abacist.models.config import POSITIONS, ModelConfig, PositionScheme
from abacist.models.coordinates import Coordinates, SchemeCoordinates
from abacist.models.key_value_cache import WindowedCache
from abacist.models.teacher_forcing import coordinates_of
from abacist.models.transformer import Transformer
from abacist.models.views import dense_view
from abacist.models.visible_tokens import VisibleTokens
from abacist.tasks.config import ArithmeticConfig

SCHEMES = (
    PositionScheme(encoding="relative", coordinate="row", window=(-1, 0)),
    PositionScheme(encoding="relative", coordinate="index"),
    PositionScheme(encoding="relative", coordinate="place", window=(0, 2)),
)
VALUE = st.integers(Coordinates.EVERYWHERE, 4)


@st.composite
def lines(draw: st.DrawFn, fall: int) -> list[tuple[int, int, int]]:
    """Rows that fall by at most `fall` below an earlier one, or are special; indices; and places."""
    line, largest = [], 0
    for index in range(draw(st.integers(1, 25))):
        row = draw(st.sampled_from([-2, -1, *range(max(0, largest - fall), largest + 3)]))
        largest = max(largest, row)
        line.append((row, index, draw(VALUE)))
    return line


def assert_finds_what_dense_attention_sees(
    line: list[tuple[int, int, int]], falls: dict[str, int]
) -> None:
    tokens, free = VisibleTokens(SCHEMES, falls), set[int]()
    for index, token in enumerate(line):
        free |= set(tokens.forget(token))
        found = [slot for _, slots in tokens.find(token) for slot in slots]
        so_far = torch.tensor(line[: index + 1]).t().unsqueeze(1)
        key = SchemeCoordinates(torch.arange(index + 1).unsqueeze(0), list(so_far))
        visible = dense_view(SCHEMES, key[index:], key).visible[0, 0]
        assert sorted([*found, index]) == visible.nonzero().squeeze(1).tolist()
        assert not free & set(found)
        tokens.add(index, token)


@settings(deadline=None, max_examples=100)
@given(line=lines(fall=0))
def test_tokens_found_are_those_of_dense_attention_where_rows_never_fall(
    line: list[tuple[int, int, int]],
) -> None:
    assert_finds_what_dense_attention_sees(line, {"row": 0})


@settings(deadline=None, max_examples=100)
@given(line=lines(fall=1))
def test_tokens_found_are_those_of_dense_attention_where_rows_fall_by_one(
    line: list[tuple[int, int, int]],
) -> None:
    assert_finds_what_dense_attention_sees(line, {"row": 1})


@settings(deadline=None, max_examples=100)
@given(line=lines(fall=10))
def test_tokens_found_are_those_of_dense_attention_where_nothing_is_forgotten(
    line: list[tuple[int, int, int]],
) -> None:
    assert_finds_what_dense_attention_sees(line, {})


def test_a_token_is_forgotten_as_soon_as_its_row_can_no_longer_be_seen() -> None:
    tokens = VisibleTokens(SCHEMES, {"row": 0})
    for slot, row in enumerate([1, 1, 2, -2]):
        tokens.add(slot, (row, slot, 1))
    assert tokens.forget((2, 4, 1)) == []
    assert tokens.forget((3, 5, 1)) == [0, 1]
    assert len(tokens) == 2


def slots_and_length(
    config: FormatConfig, operation: str, schemes: tuple[PositionScheme, ...], problem: str
) -> tuple[int, int]:
    """The number of slots after a right line has been written, and the length of the line."""
    task_config = ArithmeticConfig(operations=(operation,), max_digits=40)
    task, format = task_config.build(), config.build(task_config)
    problems = task.parse([problem])
    prompt, line = format.prompt(problems), format.write(problems, task.answer(problems))
    model = Transformer(
        ModelConfig(width=8, num_heads=2, mlp_width=8, positions=schemes), len(format.vocabulary)
    )
    first, length = prompt.ids.shape[1], line.ids.shape[1]
    continuation = continue_lines(format, prompt, length - first)
    coordinates = model.coordinates_by_scheme(coordinates_of(prompt))
    cache = WindowedCache(model, coordinates, continuation.falls)
    with torch.no_grad():
        cache.prefill(prompt.ids, prompt.lengths)
        for index in range(first, length):
            token = line.ids[:, index].long().numpy()
            new = continuation.append(token)
            by_name = {"place": new.place, "row": new.row, "step": new.step}
            values = [by_name[scheme.coordinate] for scheme in schemes]
            cache.step(token, [np.array([index]), *values], np.array([True]))
    return cache.keys.shape[1], length


def test_a_sum_needs_no_more_slots_than_its_prompt_has_tokens() -> None:
    problem = f"{'9' * 40}+{'8' * 40}"
    slots, length = slots_and_length(FORMATS["reversed"], "+", POSITIONS["place-relative"], problem)
    assert slots == len(["<start>"]) + 40 + len("+") + 40 + len("=")
    assert length > slots


def test_a_product_keeps_two_rows_of_its_work() -> None:
    problem = f"{'9' * 20}*{'8' * 20}"
    slots, length = slots_and_length(
        FORMATS["long-multiplication"], "*", POSITIONS["cell-relative"], problem
    )
    assert length > 20 * 3 * 20
    assert slots < 5 * 3 * 20


def test_a_division_keeps_three_rows_of_its_work() -> None:
    slots, length = slots_and_length(
        FORMATS["non-restoring-division"],
        "//",
        POSITIONS["row-place-step-relative"],
        f"{'9' * 30}//123",
    )
    assert length > 500
    assert slots < 100
