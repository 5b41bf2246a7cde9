from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import place_window, random_model, random_problems, write
from torch import Tensor

from abacist.formats.config import FORMATS
from abacist.models import transformer
from abacist.models.config import POSITIONS, ModelConfig, PositionScheme
from abacist.models.coordinates import Coordinates, coordinates_by_scheme
from abacist.models.teacher_forcing import coordinates_of
from abacist.models.transformer import Transformer
from abacist.models.views import (
    KeyTable,
    dense_view,
    only_visible,
    visible_view,
    windowed_view,
)
from abacist.tasks.config import ArithmeticConfig

WINDOWS = [(0, 1), (-1, 1), (0, 2), (0, 0)]
RAGGED = [(1, 1), (3, 5), (7, 2), (1, 8)]
INDEX_WINDOW = PositionScheme(encoding="relative", coordinate="index", window=(-5, 0))
PLACE_WINDOW = PositionScheme(encoding="relative", coordinate="place", window=(0, 2))
SCHEMES = {
    **{f"place window {window}": place_window(*window) for window in WINDOWS},
    "place": POSITIONS["place-relative-soft"],
    "index": POSITIONS["index-relative"],
    "index window": (INDEX_WINDOW,),
    "place window and index": (*place_window(0, 1), *POSITIONS["index-relative"]),
    "place window and index window": (PLACE_WINDOW, INDEX_WINDOW),
    "index window and place window": (INDEX_WINDOW, PLACE_WINDOW),
    "none": (),
}
WINDOWED = {name: schemes for name, schemes in SCHEMES.items() if "window" in name}

each_scheme = pytest.mark.parametrize("schemes", SCHEMES.values(), ids=SCHEMES.keys())
each_windowed = pytest.mark.parametrize("schemes", WINDOWED.values(), ids=WINDOWED.keys())


def ragged_coordinates() -> Coordinates:
    return coordinates_of(write(random_problems(RAGGED)))


def values_of(scheme: PositionScheme, coordinates: Coordinates, line: int) -> list[int]:
    named = {"index": coordinates.index, "place": coordinates.place}
    return named[scheme.coordinate][line].tolist()


def sees(
    schemes: tuple[PositionScheme, ...], coordinates: Coordinates, line: int, query: int, key: int
) -> bool:
    """The rule of visibility, for one pair."""
    if coordinates.index[line, key] < 0 or coordinates.index[line, query] < key:
        return False
    for scheme in schemes:
        if scheme.window is None or query == key:
            continue
        values = values_of(scheme, coordinates, line)
        difference = values[key] - values[query]
        inside = scheme.window[0] <= difference <= scheme.window[1]
        if scheme.coordinate == "place":
            inside = inside and values[query] >= 0 and values[key] >= 0
            inside = inside or values[key] == Coordinates.EVERYWHERE
        if not inside:
            return False
    return True


def bucket(
    scheme: PositionScheme, coordinates: Coordinates, line: int, query: int, key: int
) -> int:
    """The bucket of one pair: differences count up from the smallest; pairs without a place come last."""
    low, high = scheme.window or (-scheme.max_distance, scheme.max_distance)
    values = values_of(scheme, coordinates, line)
    if scheme.coordinate == "place" and min(values[query], values[key]) < 0:
        return high - low + 1
    return min(max(values[key] - values[query], low), high) - low


@each_scheme
def test_dense_visibility_is_the_rule_for_every_pair(schemes: tuple[PositionScheme, ...]) -> None:
    coordinates = ragged_coordinates()
    visible = dense_view(
        schemes,
        coordinates_by_scheme(schemes, coordinates),
        coordinates_by_scheme(schemes, coordinates),
    ).visible
    lines, width = coordinates.index.shape
    expected = [
        [[sees(schemes, coordinates, line, q, k) for k in range(width)] for q in range(width)]
        for line in range(lines)
    ]
    assert visible.tolist() == expected


@each_scheme
def test_dense_buckets_are_the_rule_for_every_visible_pair(
    schemes: tuple[PositionScheme, ...],
) -> None:
    coordinates = ragged_coordinates()
    view = dense_view(
        schemes,
        coordinates_by_scheme(schemes, coordinates),
        coordinates_by_scheme(schemes, coordinates),
    )
    assert len(view.bias_inputs) == len(schemes)
    for scheme, buckets in zip(schemes, view.bias_inputs, strict=True):
        for line, q, k in view.visible.nonzero().tolist():
            assert int(buckets[line, q, k]) == bucket(scheme, coordinates, line, q, k)


@each_scheme
@pytest.mark.parametrize("first", [0, 6])
def test_pairing_visible_keys_alone_gives_the_visible_pairs_of_the_dense_view(
    schemes: tuple[PositionScheme, ...], first: int
) -> None:
    positions = coordinates_by_scheme(schemes, ragged_coordinates())
    expected = only_visible(dense_view(schemes, positions[first:], positions))
    view = visible_view(schemes, positions[first:], positions)
    assert view.keys is not None
    assert expected.keys is not None
    assert torch.equal(view.keys, expected.keys)
    assert torch.equal(view.visible, expected.visible)
    for found, inputs in zip(view.bias_inputs, expected.bias_inputs, strict=True):
        assert torch.equal(found, inputs)


@each_windowed
@pytest.mark.parametrize("first", [0, 6])
def test_windowed_view_holds_every_visible_key_once_and_with_its_bucket(
    schemes: tuple[PositionScheme, ...], first: int
) -> None:
    coordinates = ragged_coordinates()
    positions = coordinates_by_scheme(schemes, coordinates)
    dense = dense_view(schemes, positions[first:], positions)
    values = values_tensor(schemes, coordinates)
    table = KeyTable(values, coordinates.index >= 0)
    view = windowed_view(schemes, positions[first:], positions, table)
    assert view.keys is not None
    lines, queries, _ = view.visible.shape
    for line in range(lines):
        for query in range(queries):
            seen = view.visible[line, query]
            indices = view.keys[line, query][seen].tolist()
            assert Counter(indices) == Counter(dense.visible[line, query].nonzero()[:, 0].tolist())
            for windowed, paired in zip(view.bias_inputs, dense.bias_inputs, strict=True):
                expected = paired[line, query, indices].tolist()
                assert windowed[line, query][seen].tolist() == expected


def values_tensor(schemes: tuple[PositionScheme, ...], coordinates: Coordinates) -> Tensor:
    """The coordinate of the first windowed scheme, (B, T)."""
    scheme = next(scheme for scheme in schemes if scheme.window is not None)
    return coordinates.index if scheme.coordinate == "index" else coordinates.place


def test_windowed_view_without_a_window_is_refused() -> None:
    coordinates = ragged_coordinates()
    table = KeyTable(coordinates.place, coordinates.index >= 0)
    schemes = POSITIONS["index-relative"]
    with pytest.raises(ValueError, match="needs a scheme with a window"):
        windowed_view(
            schemes,
            coordinates_by_scheme(schemes, coordinates),
            coordinates_by_scheme(schemes, coordinates),
            table,
        )


def find_by_hand(values: list[int], valid: list[bool], query: int, low: int, high: int) -> list:
    """Columns a query of this value finds, smallest difference first, and everywhere ones last."""
    listed = [
        column
        for difference in range(low, high + 1)
        for column, value in enumerate(values)
        if valid[column] and query >= 0 and query + difference >= 0 and value == query + difference
    ]
    everywhere = [
        column
        for column, value in enumerate(values)
        if valid[column] and value == Coordinates.EVERYWHERE
    ]
    return listed + everywhere


def find_in(table: KeyTable, queries: list[list[int]], low: int, high: int) -> list[list[list]]:
    results = table.find(torch.tensor(queries), low, high)
    return [[[c for c in indices if c >= 0] for indices in line] for line in results.tolist()]


@st.composite
def ragged_values(draw: st.DrawFn) -> tuple[list[list[int]], list[list[bool]]]:
    """Lines of place-like values, each valid up to a length of its own."""
    width = draw(st.integers(1, 12))
    line = st.lists(st.integers(-2, 6), min_size=width, max_size=width)
    values = draw(st.lists(line, min_size=1, max_size=4))
    lengths = [draw(st.integers(1, width)) for _ in values]
    return values, [[column < length for column in range(width)] for length in lengths]


@settings(deadline=None, max_examples=150)
@given(lines=ragged_values(), low=st.integers(-3, 0), high=st.integers(0, 3))
def test_key_table_finds_what_a_search_of_the_line_finds(
    lines: tuple[list[list[int]], list[list[bool]]], low: int, high: int
) -> None:
    values, valid = lines
    table = KeyTable(torch.tensor(values), torch.tensor(valid))
    queries = list(range(-2, 10))
    results = find_in(table, [queries] * len(values), low, high)
    for line, (row, is_valid) in enumerate(zip(values, valid, strict=True)):
        expected = [find_by_hand(row, is_valid, query, low, high) for query in queries]
        assert results[line] == expected


LENGTHS = {
    "one short line": [(1, 1)],
    "one long line": [(30, 28)],
    "ragged": [(1, 1), (3, 5), (7, 2), (1, 12)],
    "ragged and long": [(2, 30), (1, 1), (25, 26)],
}


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS.keys())
@pytest.mark.parametrize("num_layers", [1, 2])
@each_windowed
def test_windowed_path_equals_dense_path_in_logits_and_gradients(
    schemes: tuple[PositionScheme, ...], num_layers: int, lengths: list[tuple[int, int]]
) -> None:
    model = random_model(schemes, num_layers=num_layers)
    lines = write(random_problems(lengths))
    real = lines.lengths.unsqueeze(1) > torch.arange(lines.ids.shape[1])
    logits, gradients = [], []
    for path in ("dense", "windowed"):
        out = model(lines.ids, coordinates_of(lines), path=path)[real]
        weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).double()
        gradients.append(torch.autograd.grad((out * weights).sum(), list(model.parameters())))
        logits.append(out)
    torch.testing.assert_close(logits[0], logits[1], rtol=1e-9, atol=1e-9)
    for dense, windowed in zip(*gradients, strict=True):
        assert dense.abs().max() > 0
        torch.testing.assert_close(dense, windowed, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize("window", WINDOWS)
def test_windowed_path_equals_dense_path_for_shared_coordinates_and_a_tail_of_queries(
    window: tuple[int, int], num_layers: int
) -> None:
    model = random_model(place_window(*window), num_layers=num_layers)
    lines = write(random_problems([(6, 4)] * 5))
    shared = coordinates_of(lines, equal_lengths=True)
    assert shared.place.shape[0] == 1
    dense = model(lines.ids, shared, first=9, path="dense")
    windowed = model(lines.ids, shared, first=9, path="windowed")
    torch.testing.assert_close(dense, windowed, rtol=1e-9, atol=1e-9)


def test_auto_path_gives_the_same_logits_on_either_side_of_its_threshold() -> None:
    model = random_model()
    for length in (15, 40):
        lines = write(random_problems([(length, length), (length, 2)]))
        real = lines.lengths.unsqueeze(1) > torch.arange(lines.ids.shape[1])
        automatic = model(lines.ids, coordinates_of(lines))[real]
        dense = model(lines.ids, coordinates_of(lines), path="dense")[real]
        torch.testing.assert_close(automatic, dense, rtol=1e-9, atol=1e-9)


def test_a_window_that_contains_most_of_a_line_is_not_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Long division: signs and counts stand in every column, so a column is half of the line."""
    config = ArithmeticConfig(operations=("//",), max_digits=3)
    task, format = config.build(), FORMATS["long-division"].build(config)
    problems = task.parse(["987//2", "45//6", "8//321"])
    lines = format.write(problems, task.answer(problems))
    torch.manual_seed(0)
    model = Transformer(ModelConfig(width=8, num_heads=2), len(format.vocabulary)).double()
    real = lines.lengths.unsqueeze(1) > torch.arange(lines.ids.shape[1])
    searched = model(lines.ids, coordinates_of(lines), path="windowed")[real]

    def refuse_windowed_view(*_: object) -> None:
        raise AssertionError("searched")

    monkeypatch.setattr(transformer, "windowed_view", refuse_windowed_view)
    assert lines.ids.shape[1] > 64
    automatic = model(lines.ids, coordinates_of(lines))[real]
    torch.testing.assert_close(automatic, searched, rtol=1e-9, atol=1e-9)
