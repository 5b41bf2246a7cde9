import pytest
import torch
from small_models import coordinates_of_places
from torch import Tensor

from abacist.errors import ProblemError
from abacist.models.config import PositionScheme
from abacist.models.coordinates import Coordinates, coordinates_by_scheme
from abacist.models.encodings import LearnedEncoding, RelativeBias, difference_range

# Places as in the line <start>21+43=64<end>.
PLACES = [-2, 1, 2, -1, 1, 2, 0, 1, 2, 3]


def learned(coordinate: str = "place", **settings: object) -> LearnedEncoding:
    """A learned encoding of width 1 whose vector for coordinate value v is v."""
    scheme = PositionScheme(encoding="learned", coordinate=coordinate, **settings)
    encoding = LearnedEncoding(scheme, width=1)
    with torch.no_grad():
        encoding.rows.weight.copy_(torch.arange(scheme.num_positions).unsqueeze(1))
    return encoding


def rows_read(
    encoding: LearnedEncoding, coordinates: Coordinates, batch: int, seed: int | None
) -> Tensor:
    """The row of the table that each token reads, (G, T)."""
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    (values,) = coordinates_by_scheme((encoding.scheme,), coordinates, batch, generator).values
    return encoding(values).squeeze(-1).long()


def test_tokens_without_a_place_share_row_0_of_a_learned_encoding() -> None:
    rows = rows_read(learned(), coordinates_of_places([PLACES]), 1, None)
    assert rows.tolist() == [[0, 1, 2, 0, 1, 2, 0, 1, 2, 3]]


def test_index_encoding_reads_the_index() -> None:
    rows = rows_read(learned("index"), coordinates_of_places([PLACES]), 1, None)
    assert rows.tolist() == [list(range(10))]


def test_offset_of_a_batch_is_one_number_for_all_its_lines() -> None:
    encoding = learned(offset="batch", max_offset=100)
    coordinates = coordinates_of_places([PLACES, [-2, 1, -1, 1, 2, 3, 0, 1, 2, 3]])
    moved = set()
    for seed in range(20):
        shift = rows_read(encoding, coordinates, 2, seed) - coordinates.of("place")
        moved.add(tuple(shift[coordinates.of("place") > 0].unique().tolist()))
    assert all(len(shift) == 1 for shift in moved)
    assert len(moved) > 10


def test_offset_of_a_sample_is_one_number_for_each_line() -> None:
    encoding = learned(offset="sample", max_offset=100)
    coordinates = coordinates_of_places([PLACES])
    shift = rows_read(encoding, coordinates, 50, 0) - coordinates.of("place")
    assert shift.shape == (50, 10)
    by_line = shift[:, [1, 2, 4, 5, 7, 8, 9]]
    assert (by_line == by_line[:, :1]).all()
    assert len(by_line[:, 0].unique()) > 20


@pytest.mark.parametrize("offset", ["batch", "sample"])
def test_offsets_shift_coordinates_above_0_only(offset: str) -> None:
    encoding = learned(offset=offset, max_offset=100)
    for seed in range(20):
        rows = rows_read(encoding, coordinates_of_places([PLACES]), 3, seed)
        assert (rows[:, [0, 3, 6]] == 0).all()


@pytest.mark.parametrize("offset", ["batch", "sample"])
def test_offsets_range_from_0_to_the_largest(offset: str) -> None:
    encoding = learned(offset=offset, max_offset=3)
    rows = [rows_read(encoding, coordinates_of_places([[1]]), 8, seed) for seed in range(40)]
    assert torch.cat([row.flatten() for row in rows]).unique().tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("offset", ["batch", "sample"])
def test_without_a_generator_no_coordinate_is_shifted(offset: str) -> None:
    rows = rows_read(
        learned(offset=offset, max_offset=100), coordinates_of_places([[1, 2]]), 3, None
    )
    assert rows.tolist() == [[1, 2]]


def test_an_offset_that_shifts_a_coordinate_beyond_the_table_is_refused() -> None:
    encoding = learned(num_positions=8, offset="batch", max_offset=6)
    places = coordinates_of_places([[1, 2, 3, 4, 5]])
    refused = 0
    for seed in range(30):
        try:
            assert rows_read(encoding, places, 1, seed).max() <= 7
        except ProblemError:
            refused += 1
    # Offsets of 3 and more, of 0 to 6, fall off.
    assert 5 < refused < 28


@pytest.mark.parametrize("coordinate", ["index", "place"])
def test_a_line_beyond_the_table_is_refused_with_both_numbers(coordinate: str) -> None:
    encoding = learned(coordinate, num_positions=4)
    assert rows_read(encoding, coordinates_of_places([[0, 1, 2, 3]]), 1, None).max() == 3
    with pytest.raises(ProblemError) as caught:
        rows_read(encoding, coordinates_of_places([[0, 1, 2, 3, 4]]), 1, None)
    message = str(caught.value)
    assert f"end at {coordinate} 3, but the line reaches 4" in message
    assert "--model.positions.0.num_positions" in message
    assert "\n" not in message


def test_a_relative_encoding_distinguishes_differences_of_its_window_or_distances() -> None:
    windowed = PositionScheme(encoding="relative", coordinate="place", window=(-1, 2))
    unbounded = PositionScheme(encoding="relative", coordinate="place", max_distance=5)
    assert difference_range(windowed) == (-1, 2)
    assert difference_range(unbounded) == (-5, 5)


def test_relative_bias_reads_its_table_for_every_head() -> None:
    scheme = PositionScheme(encoding="relative", coordinate="place", window=(0, 1))
    bias = RelativeBias(scheme, num_heads=3)
    assert bias.table.shape == (3, 3)
    with torch.no_grad():
        bias.table.copy_(torch.randn(3, 3))
    buckets = torch.tensor([[[0, 1, 2, 2, 0]]])
    assert torch.equal(bias(buckets), bias.table[buckets])


def test_relative_bias_starts_at_zero() -> None:
    scheme = PositionScheme(encoding="relative", coordinate="index")
    assert not RelativeBias(scheme, num_heads=2).table.any()


def test_an_init_std_makes_the_heads_of_a_relative_bias_differ() -> None:
    scheme = PositionScheme(encoding="relative", coordinate="index", init_std=2.0)
    table = RelativeBias(scheme, num_heads=200).table.detach()
    assert 1.9 < float(table.std()) < 2.1
    assert len(set(table[0].tolist())) == 200


def test_an_init_std_sets_the_scale_of_learned_vectors() -> None:
    for init_std, expected in ((0.0, 0.5), (1.0, 1.0)):
        torch.manual_seed(0)
        scheme = PositionScheme(
            encoding="learned", coordinate="index", num_positions=64, init_std=init_std
        )
        assert abs(float(LearnedEncoding(scheme, 64).rows.weight.detach().std()) - expected) < 0.03
