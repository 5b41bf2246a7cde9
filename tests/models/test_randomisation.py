"""Coordinates that training randomises: subsets of a larger range, and offsets."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import coordinates_of_places, ids_of, random_model, random_problems, write
from torch import Tensor

from abacist.errors import ConfigurationError
from abacist.models.config import POSITIONS, PositionScheme
from abacist.models.coordinates import Coordinates, coordinates_by_scheme
from abacist.models.teacher_forcing import coordinates_of

# Places as in the lines <start>21+43=64<end> and <start>1+432=334<end>.
PLACES = [[-2, 1, 2, -1, 1, 2, 0, 1, 2, 3], [-2, 1, -1, 1, 2, 3, 0, 1, 2, 3]]


def subset_scheme(
    subset_of: int, coordinate: str = "place", encoding: str = "fire", **settings: object
) -> PositionScheme:
    return PositionScheme(encoding=encoding, coordinate=coordinate, subset_of=subset_of, **settings)


def drawn(
    scheme: PositionScheme, coordinates: Coordinates, seed: int | None = 0, batch: int = 2
) -> Tensor:
    """The coordinates that the scheme encodes."""
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    (values,) = coordinates_by_scheme((scheme,), coordinates, batch, generator).values
    return values


def renumbering(before: Tensor, after: Tensor) -> dict[int, int]:
    """The number that each coordinate was mapped to, which must be the same for all its tokens."""
    pairs = set(zip(before.flatten().tolist(), after.flatten().tolist(), strict=True))
    mapping = dict(sorted(pairs))
    assert len(mapping) == len(pairs)
    return mapping


LINES_WITH_PLACES = st.lists(
    st.lists(st.integers(-2, 9), min_size=6, max_size=6), min_size=1, max_size=4
)


@settings(deadline=None, max_examples=100)
@given(places=LINES_WITH_PLACES, spare=st.integers(0, 30), seed=st.integers(0, 1_000))
def test_a_subset_of_places_is_sorted_distinct_and_within_its_range(
    places: list[list[int]], spare: int, seed: int
) -> None:
    places[0][0] = 1
    subset_of = max(map(max, places)) + spare
    coordinates = coordinates_of_places(places)
    after = drawn(subset_scheme(subset_of), coordinates, seed, len(places))
    mapping = renumbering(coordinates.place, after)
    moved = [after for before, after in mapping.items() if before >= 1]
    assert moved == sorted(set(moved))
    assert all(1 <= number <= subset_of for number in moved)
    assert all(after >= before for before, after in mapping.items())
    assert all(mapping[before] == before for before in mapping if before < 1)


@settings(deadline=None, max_examples=50)
@given(
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=4),
    spare=st.integers(0, 30),
    seed=st.integers(0, 1_000),
)
def test_a_subset_of_indices_is_sorted_distinct_and_within_its_range(
    lengths: list[int], spare: int, seed: int
) -> None:
    columns = torch.arange(12).expand(len(lengths), -1)
    index = torch.where(columns < torch.tensor(lengths)[:, None], columns, -1)
    subset_of = max(lengths) + spare
    scheme = subset_scheme(subset_of, "index")
    after = drawn(scheme, Coordinates(index, index), seed, len(lengths))
    mapping = renumbering(index, after)
    assert mapping.pop(-1, -1) == -1
    moved = list(mapping.values())
    assert moved == sorted(set(moved))
    assert all(0 <= number < subset_of for number in moved)


def test_a_subset_is_drawn_once_for_all_lines_of_a_batch() -> None:
    coordinates = coordinates_of_places(PLACES * 20)
    after = drawn(subset_scheme(100), coordinates, batch=40)
    assert (after[0::2] == after[0]).all()
    assert (after[1::2] == after[1]).all()
    renumbering(coordinates.place, after)


def test_a_subset_keeps_one_row_of_shared_coordinates() -> None:
    shared = coordinates_of_places(PLACES[:1])
    assert drawn(subset_scheme(100), shared, batch=40).shape == (1, 10)


def test_places_below_1_are_not_renumbered() -> None:
    for seed in range(20):
        after = drawn(subset_scheme(50), coordinates_of_places(PLACES), seed)
        assert after[0, [0, 3, 6]].tolist() == [-2, -1, 0]
        assert after[1, [0, 2, 6]].tolist() == [-2, -1, 0]


def test_index_0_is_a_position_like_any_other() -> None:
    coordinates = coordinates_of_places(PLACES)
    first = {
        drawn(subset_scheme(100, "index"), coordinates, seed)[0, 0].item() for seed in range(60)
    }
    assert 0 in first
    assert len(first) > 5


def test_every_number_of_the_range_is_drawn_sometimes() -> None:
    coordinates = coordinates_of_places([[1, 2, 3]])
    draws = [drawn(subset_scheme(7), coordinates, seed, 1).flatten() for seed in range(80)]
    assert torch.cat(draws).unique().tolist() == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("coordinate", "count", "expected"),
    [("index", 10, list(range(10))), ("place", 3, PLACES[0])],
)
def test_a_range_that_is_just_large_enough_changes_no_coordinate(
    coordinate: str, count: int, expected: list[int]
) -> None:
    after = drawn(subset_scheme(count, coordinate), coordinates_of_places(PLACES[:1]), 5)
    assert after.tolist() == [expected]


@pytest.mark.parametrize(("coordinate", "count"), [("index", 10), ("place", 3)])
def test_a_line_longer_than_the_range_is_refused_with_both_numbers(
    coordinate: str, count: int
) -> None:
    scheme = subset_scheme(count - 1, coordinate)
    with pytest.raises(ConfigurationError) as caught:
        drawn(scheme, coordinates_of_places(PLACES))
    assert str(caught.value) == (
        f"subset_of must be at least the {count} positions of a line, got {count - 1}. "
        f"Try --model.positions.0.subset_of {4 * count}."
    )


def test_lines_without_any_place_above_0_do_not_change() -> None:
    places = [[-2, -1, 0]]
    assert drawn(subset_scheme(8), coordinates_of_places(places), batch=1).tolist() == places


def test_a_table_that_is_accepted_for_a_subset_holds_all_of_it() -> None:
    with pytest.raises(ConfigurationError, match="needs 17 rows"):
        subset_scheme(16, encoding="learned", num_positions=16)
    scheme = subset_scheme(16, encoding="learned", num_positions=17)
    model = random_model((scheme,))
    lines = write(random_problems([(2, 3)]))
    for seed in range(30):
        model(lines.ids, coordinates_of(lines), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("coordinate", ["row", "step"])
def test_rows_and_steps_are_renumbered_like_places(coordinate: str) -> None:
    values = torch.tensor([[-2, 1, 2, 3, 0, -1]])
    index = torch.arange(6).unsqueeze(0)
    coordinates = Coordinates(index, torch.ones_like(index), row=values, step=values)
    after = drawn(subset_scheme(40, coordinate), coordinates, 1)
    assert after[0, [0, 4, 5]].tolist() == [-2, 0, -1]
    assert after[0, 1:4].tolist() != [1, 2, 3]


def test_schemes_are_randomised_independently() -> None:
    schemes = (subset_scheme(1_000, "index"), subset_scheme(1_000, "index"))
    generator = torch.Generator().manual_seed(0)
    first, second = coordinates_by_scheme(
        schemes, coordinates_of_places(PLACES), 2, generator
    ).values
    assert not torch.equal(first, second)


# In the model -------------------------------------------------------------------------------

RANDOMISED = {
    "subset of indices": (subset_scheme(40, "index"),),
    "subset of places": (subset_scheme(40),),
    "subset, sinusoidal": (subset_scheme(40, encoding="sinusoidal"),),
    "subset, rotary": (subset_scheme(40, "index", encoding="rotary"),),
    "subset, relative": (subset_scheme(40, encoding="relative", max_distance=30),),
    "subset, learned": (subset_scheme(40, encoding="learned"),),
    "randomised-fire": POSITIONS["randomised-fire"],
    "abacus": POSITIONS["abacus"],
    "coupling": POSITIONS["coupling"],
}
each_randomised = pytest.mark.parametrize("schemes", RANDOMISED.values(), ids=RANDOMISED.keys())
IDS = ids_of("<start>21+43=64<end>")


@each_randomised
def test_without_a_generator_coordinates_do_not_change(schemes: tuple[PositionScheme, ...]) -> None:
    coordinates = coordinates_of_places(PLACES)
    values = coordinates_by_scheme(schemes, coordinates).values
    for scheme, seen in zip(schemes, values, strict=True):
        assert torch.equal(seen, coordinates.of(scheme.coordinate))


@each_randomised
def test_logits_with_a_generator_are_those_of_the_drawn_coordinates(
    schemes: tuple[PositionScheme, ...],
) -> None:
    model = random_model(schemes)
    coordinates = coordinates_of_places(PLACES[:1])
    (values,) = coordinates_by_scheme(
        schemes, coordinates, 1, torch.Generator().manual_seed(3)
    ).values
    moved = {"index": coordinates.index, "place": coordinates.place, schemes[0].coordinate: values}
    seeded = model(IDS, coordinates, generator=torch.Generator().manual_seed(3))
    assert torch.equal(seeded, model(IDS, Coordinates(**moved)))
    assert not torch.allclose(seeded, model(IDS, coordinates))


@each_randomised
def test_the_same_seed_draws_the_same_coordinates(schemes: tuple[PositionScheme, ...]) -> None:
    def values(seed: int) -> list[int]:
        generator = torch.Generator().manual_seed(seed)
        return (
            coordinates_by_scheme(schemes, coordinates_of_places(PLACES), 2, generator)
            .values[0]
            .tolist()
        )

    assert values(1) == values(1)
    assert values(1) != values(2)


# Offsets ------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=50)
@given(places=LINES_WITH_PLACES, max_offset=st.integers(1, 20), seed=st.integers(0, 1_000))
def test_an_offset_adds_one_number_per_line_to_coordinates_above_0(
    places: list[list[int]], max_offset: int, seed: int
) -> None:
    coordinates = coordinates_of_places(places)
    for kind in ("batch", "sample"):
        scheme = PositionScheme(
            encoding="sinusoidal", coordinate="place", offset=kind, max_offset=max_offset
        )
        shift = drawn(scheme, coordinates, seed, len(places)) - coordinates.place
        above = coordinates.place > 0
        assert not shift[~above].any()
        offsets = [line[moved].unique().tolist() for line, moved in zip(shift, above, strict=True)]
        assert all(len(distinct) <= 1 for distinct in offsets)
        assert all(0 <= distinct[0] <= max_offset for distinct in offsets if distinct)
        if kind == "batch":
            assert len({distinct[0] for distinct in offsets if distinct}) <= 1


def test_offsets_per_line_give_every_line_coordinates_of_its_own() -> None:
    scheme = PositionScheme(encoding="learned", coordinate="place", offset="sample", max_offset=100)
    after = drawn(scheme, coordinates_of_places(PLACES[:1]), batch=12)
    assert after.shape == (12, 10)
    assert len(after[:, 1].unique()) > 6


def test_an_index_with_an_offset_does_not_shift_index_0() -> None:
    scheme = PositionScheme(encoding="learned", coordinate="index", offset="batch", max_offset=100)
    after = drawn(scheme, coordinates_of_places(PLACES), seed=1)
    assert (after[:, 0] == 0).all()
    assert (after[:, 1] > 1).all()
