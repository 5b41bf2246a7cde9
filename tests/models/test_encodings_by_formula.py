"""Every encoding against its published formula, computed number by number in plain Python."""

import math

import pytest
import torch
from formulas import alibi_slopes, clipped, fire, fire_input, rotated, sinusoid, t5_bucket
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import coordinates_of_places, random_model
from torch import Tensor

from abacist.models.config import POSITIONS, PositionScheme
from abacist.models.encodings import (
    AlibiBias,
    FireBias,
    LearnedEncoding,
    QueryKeyEncoding,
    RelativeBias,
    SinusoidalEncoding,
    bias_input,
    buckets,
    rotation,
)

POSITIONS_TO_TRY = [0, 1, 2, 3, 17, 100, 1_000, 99_999]


def close(a: Tensor, b: object, tolerance: float = 1e-12) -> None:
    expected = b if isinstance(b, Tensor) else torch.tensor(b, dtype=torch.float64)
    torch.testing.assert_close(a, expected, rtol=tolerance, atol=tolerance)


# Sinusoidal ---------------------------------------------------------------------------------


def sinusoidal(width: int, base: float = 10_000.0) -> SinusoidalEncoding:
    scheme = PositionScheme(encoding="sinusoidal", coordinate="index", base=base)
    return SinusoidalEncoding(scheme, width)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 6, 32, 33])
@pytest.mark.parametrize("base", [10_000.0, 100.0])
def test_sinusoidal_vectors_are_those_of_the_paper(width: int, base: float) -> None:
    vectors = sinusoidal(width, base)(torch.tensor([POSITIONS_TO_TRY]))
    expected = [[sinusoid(position, width, base) for position in POSITIONS_TO_TRY]]
    # Angles of 100,000 are themselves rounded to 1e-11.
    close(vectors, expected, tolerance=1e-10)


def test_tokens_without_a_coordinate_get_the_sinusoid_of_0() -> None:
    vectors = sinusoidal(6)(torch.tensor([[-1, -2, 0]]))
    assert vectors.tolist() == [[[0, 1, 0, 1, 0, 1]] * 3]


def test_sinusoids_of_a_model_in_float64_are_not_rounded_to_float32() -> None:
    model = random_model("sinusoidal")
    coordinates = model.coordinates_by_scheme(coordinates_of_places([[7] * 5]))
    ids = torch.zeros(1, 5, dtype=torch.long)
    added = model.embed(ids, coordinates)[:, 0] - model.embedding.weight[0]
    close(added, [sinusoid(index, 12) for index in range(5)], tolerance=1e-12)


# Rotary -------------------------------------------------------------------------------------


def rotated_queries(x_TK: Tensor, *shares: tuple[PositionScheme, list[int]]) -> Tensor:
    """One head's queries, (T, K), rotated by schemes that share the head."""
    width = x_TK.shape[1] // len(shares)
    rotations = [
        rotation(scheme, torch.tensor([values]), width, torch.float64) for scheme, values in shares
    ]
    return QueryKeyEncoding(None, rotations).apply(x_TK[:, None, None])[:, 0, 0]


def rotary(base: float = 10_000.0, coordinate: str = "index") -> PositionScheme:
    return PositionScheme(encoding="rotary", coordinate=coordinate, base=base)


def random_vectors(count: int, width: int, seed: int = 0) -> Tensor:
    return torch.randn(count, width, generator=torch.Generator().manual_seed(seed)).double()


@pytest.mark.parametrize("base", [10_000.0, 10.0, 500_000.0])
@pytest.mark.parametrize("width", [2, 4, 10, 16])
def test_rotary_pairs_dimension_i_with_i_plus_half_by_the_formula_of_the_paper(
    width: int, base: float
) -> None:
    x = random_vectors(len(POSITIONS_TO_TRY), width)
    expected = [
        rotated(row, position, base)
        for row, position in zip(x.tolist(), POSITIONS_TO_TRY, strict=True)
    ]
    close(rotated_queries(x, (rotary(base), POSITIONS_TO_TRY)), expected, tolerance=1e-10)


@settings(deadline=None, max_examples=50)
@given(
    first=st.integers(0, 5_000),
    second=st.integers(0, 5_000),
    shift=st.integers(0, 5_000),
    base=st.sampled_from([2.0, 10_000.0]),
)
def test_rotary_products_depend_only_on_the_difference(
    first: int, second: int, shift: int, base: float
) -> None:
    query, key = random_vectors(1, 8, 1), random_vectors(1, 8, 2)

    def product(query_position: int, key_position: int) -> float:
        scheme = rotary(base)
        turned_query = rotated_queries(query, (scheme, [query_position]))[0]
        return float(turned_query @ rotated_queries(key, (scheme, [key_position]))[0])

    assert product(first, second) == pytest.approx(product(first + shift, second + shift), abs=1e-9)


def test_rotary_preserves_lengths() -> None:
    x = random_vectors(8, 6)
    close(rotated_queries(x, (rotary(), POSITIONS_TO_TRY)).norm(dim=1), x.norm(dim=1))


@pytest.mark.parametrize("value", [-2, -1, 0])
def test_rotary_does_not_rotate_tokens_without_a_coordinate(value: int) -> None:
    x = random_vectors(1, 6)
    assert torch.equal(rotated_queries(x, (rotary(coordinate="place"), [value])), x)


def test_two_rotary_schemes_share_a_head() -> None:
    x = random_vectors(3, 8)
    index, place = [0, 1, 2], [5, -1, 7]
    actual = rotated_queries(x, (rotary(), index), (rotary(100.0, "place"), place))
    expected = [
        [*rotated(row[:4], i), *rotated(row[4:], max(p, 0), 100.0)]
        for row, i, p in zip(x.tolist(), index, place, strict=True)
    ]
    close(actual, expected)


# ALiBi --------------------------------------------------------------------------------------


def alibi_biases(distances: list[int], num_heads: int, slope: float = 0.0) -> Tensor:
    """Return ALiBi's biases of distances, (number of distances, H)."""
    scheme = PositionScheme(encoding="alibi", coordinate="index", slope=slope)
    query = torch.tensor([[[max(distances)]]])
    key = query - torch.tensor([[distances]])
    return AlibiBias(scheme, num_heads).double()(bias_input(scheme, query, key))[0, 0]


@pytest.mark.parametrize(
    ("num_heads", "slopes"),
    [
        (1, [2**-8]),
        (2, [2**-4, 2**-8]),
        (3, [2**-4, 2**-8, 2**-2]),
        (4, [2**-2, 2**-4, 2**-6, 2**-8]),
        (6, [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3]),
        (8, [2**-exponent for exponent in range(1, 9)]),
        (12, [2**-e for e in (1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5)]),
        (20, None),
    ],
)
def test_alibi_slopes_are_those_of_the_published_code(
    num_heads: int, slopes: list[float] | None
) -> None:
    published = alibi_slopes(num_heads)
    if slopes is not None:
        assert published == pytest.approx(slopes, rel=1e-12)
    distances = [0, 1, 2, 7, 1_000]
    expected = [[-distance * slope for slope in published] for distance in distances]
    close(alibi_biases(distances, num_heads), expected, tolerance=1e-6)


@pytest.mark.parametrize("num_heads", [1, 3, 4])
def test_a_configured_slope_is_that_of_every_head(num_heads: int) -> None:
    biases = alibi_biases([0, 1, 5], num_heads, slope=0.25)
    assert biases.tolist() == [[0.0] * num_heads, [-0.25] * num_heads, [-1.25] * num_heads]


@pytest.mark.parametrize("encoding", ["alibi", "fire"])
def test_pairs_in_which_a_token_has_no_coordinate_have_distance_0(encoding: str) -> None:
    scheme = PositionScheme(encoding=encoding, coordinate="place")
    query = torch.tensor([[[-1], [-2], [4], [0]]])
    key = torch.tensor([[[3, -2, -1]]])
    actual = bias_input(scheme, query, key)
    distance = actual if encoding == "alibi" else actual[..., 0]
    assert distance.tolist() == [[[0, 0, 0], [0, 0, 0], [1, 0, 0], [3, 0, 0]]]


# T5 -----------------------------------------------------------------------------------------


def t5(num_buckets: int, max_distance: int, coordinate: str = "index") -> PositionScheme:
    return PositionScheme(
        encoding="relative",
        coordinate=coordinate,
        num_buckets=num_buckets,
        max_distance=max_distance,
    )


T5_SIZES = [(32, 128), (32, 32), (16, 64), (8, 128), (4, 4), (12, 100), (64, 256), (20, 400)]
each_t5_size = pytest.mark.parametrize(("num_buckets", "max_distance"), T5_SIZES)


@each_t5_size
def test_t5_buckets_of_a_decoder_are_those_of_the_published_code(
    num_buckets: int, max_distance: int
) -> None:
    differences = range(-2 * max_distance, 1)
    actual = buckets(
        t5(num_buckets, max_distance), torch.tensor(0), torch.tensor(differences), True
    )
    assert actual.tolist() == [t5_bucket(d, False, num_buckets, max_distance) for d in differences]


@each_t5_size
@pytest.mark.parametrize(("coordinate", "causal"), [("index", False), ("place", True)])
def test_t5_buckets_are_halved_where_keys_can_be_on_either_side(
    num_buckets: int, max_distance: int, coordinate: str, causal: bool
) -> None:
    scheme, query = t5(num_buckets, max_distance, coordinate), 2 * max_distance
    keys = range(2 * query + 1)
    actual = buckets(scheme, torch.tensor(query), torch.tensor(keys), causal)
    assert actual.tolist() == [t5_bucket(k - query, True, num_buckets, max_distance) for k in keys]


def test_t5_buckets_of_the_named_scheme_are_known_numbers() -> None:
    """The buckets of T5's own function for 32 buckets and a largest distance of 128."""
    (scheme,) = POSITIONS["t5"]
    behind = [0, 1, 15, 16, 18, 19, 20, 21, 31, 32, 63, 64, 112, 113, 128, 10_000]
    actual = buckets(scheme, torch.tensor(0), -torch.tensor(behind), True)
    assert actual.tolist() == [0, 1, 15, 16, 16, 17, 17, 18, 21, 21, 26, 26, 30, 31, 31, 31]
    ahead = [1, 7, 8, 11, 12, 127, 128]
    actual = buckets(scheme, torch.tensor(0), torch.tensor(ahead), False)
    assert actual.tolist() == [17, 23, 24, 24, 25, 31, 31]


def test_t5_buckets_leave_the_last_row_to_tokens_without_a_place() -> None:
    scheme = t5(16, 64, "place")
    actual = buckets(scheme, torch.tensor(100), torch.arange(201))
    # Bucket 8 would be distance 0 ahead, which is bucket 0.
    assert sorted(actual.unique().tolist()) == [*range(8), *range(9, 16)]
    assert buckets(scheme, torch.tensor(-1), torch.tensor(3)).item() == 16
    assert len(RelativeBias(scheme, num_heads=1).table) == 17


# FIRE ---------------------------------------------------------------------------------------


def random_fire(num_heads: int, c: float, threshold: float) -> FireBias:
    torch.manual_seed(0)
    scheme = PositionScheme(encoding="fire", coordinate="index")
    bias = FireBias(scheme, num_heads).double()
    with torch.no_grad():
        for parameter in bias.parameters():
            parameter.copy_(torch.randn_like(parameter))
        bias.scale.fill_(c)
        bias.threshold.fill_(threshold)
    return bias


@pytest.mark.parametrize(
    ("c", "threshold"), [(0.1, 512.0), (2.0, 5.5), (-2.0, 5.5), (2.0, -5.5), (0.3, 0.0)]
)
def test_fire_is_the_formula_of_the_paper(c: float, threshold: float) -> None:
    module = random_fire(3, c, threshold)
    pairs = [(query - key, query) for query in (1, 3, 7, 40, 2_000) for key in (0, 1, query)]
    actual = module(torch.tensor(pairs))
    hidden = (module.hidden.weight[:, 0].tolist(), module.hidden.bias.tolist())
    output = (module.output.weight.tolist(), module.output.bias.tolist())
    expected = [
        fire(distance, query, abs(c), abs(threshold), hidden, output) for distance, query in pairs
    ]
    close(actual, expected, tolerance=1e-10)


def test_fire_takes_distances_relative_to_the_position_of_the_query() -> None:
    assert fire_input(0, 40, 2.0, 5.0) == 0.0
    assert fire_input(40, 40, 2.0, 5.0) == 1.0
    assert fire_input(3, 3, 2.0, 5.0) == math.log(7) / math.log(11)


def test_fire_starts_with_the_constants_of_the_paper() -> None:
    bias = FireBias(PositionScheme(encoding="fire", coordinate="index"), num_heads=2)
    assert bias.scale.item() == pytest.approx(0.1)
    assert bias.threshold.item() == 512.0
    assert bias.hidden.weight.shape == (32, 1)


# Clipped differences, learned vectors -------------------------------------------------------


@pytest.mark.parametrize("coordinate", ["index", "place"])
@pytest.mark.parametrize(
    ("settings", "low", "high"),
    [
        ({"max_distance": 3}, -3, 3),
        ({"window": (0, 1)}, 0, 1),
        ({"window": (-2, 4)}, -2, 4),
        ({"window": (-2, 4), "max_distance": 1}, -2, 4),
    ],
)
def test_relative_biases_are_rows_of_the_clipped_difference(
    settings: dict[str, object], low: int, high: int, coordinate: str
) -> None:
    scheme = PositionScheme(encoding="relative", coordinate=coordinate, **settings)
    bias = RelativeBias(scheme, num_heads=2).double()
    with torch.no_grad():
        bias.table.copy_(torch.randn_like(bias.table))
    values = range(12)
    actual = bias(bias_input(scheme, torch.tensor(values)[:, None], torch.tensor(values)[None]))
    for query in values:
        for key in values:
            assert torch.equal(actual[query, key], bias.table[clipped(key - query, low, high)])


def test_pairs_in_which_a_token_has_no_place_share_the_last_row() -> None:
    scheme = PositionScheme(encoding="relative", coordinate="place", window=(-1, 1))
    values = torch.tensor([-2, -1, 0, 1])
    actual = buckets(scheme, values[:, None], values[None])
    assert actual.tolist() == [[3, 3, 3, 3], [3, 3, 3, 3], [3, 3, 1, 2], [3, 3, 0, 1]]


def test_learned_vectors_are_rows_of_a_table() -> None:
    scheme = PositionScheme(encoding="learned", coordinate="place", num_positions=9)
    encoding = LearnedEncoding(scheme, width=4)
    values = [[-2, -1, 0, 1, 8]]
    rows = encoding(torch.tensor(values))
    for value, row in zip(values[0], rows[0], strict=True):
        assert torch.equal(row, encoding.rows.weight[max(value, 0)])
