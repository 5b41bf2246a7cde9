import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from abacist.intervals import Proportion, difference, percent

COUNTS = st.integers(1, 10**9).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(COUNTS)
def test_interval_is_where_the_sample_lies_two_standard_errors_from_the_truth(
    counts: tuple[int, int],
) -> None:
    """Wilson's interval by its definition: |p − p̂| = z √(p (1 − p) / n) at both ends."""
    successes, n = counts
    low, high = Proportion(successes, n).interval or (math.nan, math.nan)
    for end in (low, high):
        if 0 < end < 1:
            distance = abs(end - successes / n)
            error = 1.959963984540054 * math.sqrt(end * (1 - end) / n)
            assert distance == pytest.approx(error, rel=1e-3, abs=1e-12)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        (5, 10, 0.2366, 0.7634),
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (10, 10, 0.7225, 1.0),
        (1_000, 1_000, 0.9962, 1.0),
        (0, 1, 0.0, 0.7935),
        (1, 1, 0.2065, 1.0),
    ],
)
def test_interval_has_the_published_values(successes: int, n: int, low: float, high: float) -> None:
    assert Proportion(successes, n).interval == pytest.approx((low, high), abs=5e-5)


@given(COUNTS)
def test_interval_lies_within_0_and_1_and_holds_the_value(counts: tuple[int, int]) -> None:
    proportion = Proportion(*counts)
    assert proportion.interval is not None
    assert proportion.value is not None
    low, high = proportion.interval
    assert 0 <= low <= proportion.value <= high <= 1
    assert low < high


@pytest.mark.parametrize("n", [1, 2, 7, 1_000, 10**9])
def test_interval_touches_0_without_successes_and_1_without_errors_only(n: int) -> None:
    none, all_ = Proportion(0, n).interval, Proportion(n, n).interval
    assert none is not None
    assert all_ is not None
    assert none[0] == 0.0
    assert none[1] < 1
    assert all_[1] == 1.0
    assert all_[0] > 0


@given(COUNTS)
def test_interval_of_errors_mirrors_that_of_successes(counts: tuple[int, int]) -> None:
    successes, n = counts
    low, high = Proportion(successes, n).interval or (math.nan, math.nan)
    mirrored = Proportion(n - successes, n).interval
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-9)


def test_an_empty_sample_has_no_value_and_no_interval() -> None:
    empty = Proportion(0, 0)
    assert empty.value is None
    assert empty.interval is None
    assert str(empty) == "no problems"
    assert empty.to_json() == {"value": None, "successes": 0, "n": 0, "interval": None}


def test_samples_add_up() -> None:
    total = Proportion(3, 4) + Proportion(5, 6)
    assert (total.successes, total.n, total.errors) == (8, 10, 2)


def test_text_shows_value_interval_and_sample_size() -> None:
    assert str(Proportion(1_000, 1_000)) == "100% (95% interval 99.62–100%, n = 1,000)"
    assert str(Proportion(5, 10)) == "50% (95% interval 23.66–76.34%, n = 10)"


def test_json_holds_value_counts_and_interval() -> None:
    data = Proportion(5, 10).to_json()
    assert data["value"] == 0.5
    assert (data["successes"], data["n"]) == (5, 10)
    assert data["interval"] == pytest.approx([0.236593, 0.763407], abs=1e-6)


@given(st.floats(0, 1))
@example(math.nextafter(1, 0))
@example(math.nextafter(0, 1))
@example(0.99995)
@example(0.999949999)
@example(0.00005)
def test_percent_says_100_and_0_only_of_all_and_nothing(fraction: float) -> None:
    assert (percent(fraction) == "100%") == (fraction == 1)
    assert (percent(fraction) == "0%") == (fraction == 0)


@given(st.floats(0, 1))
def test_percent_is_within_a_hundredth_of_the_fraction(fraction: float) -> None:
    assert abs(float(percent(fraction).removesuffix("%")) - 100 * fraction) <= 0.01 + 1e-9


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (0.0, "0%"),
        (1.0, "100%"),
        (0.5, "50%"),
        (0.1234, "12.34%"),
        (0.999999, "99.99%"),
        (1e-9, "0.01%"),
    ],
)
def test_percent_has_at_most_two_decimals(fraction: float, text: str) -> None:
    assert percent(fraction) == text


@pytest.mark.parametrize(
    ("first", "second", "value", "low", "high"),
    [
        # Newcombe 1998, Statistics in Medicine 17:873, table II, method 10.
        ((56, 70), (48, 80), 0.2, 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.6, 0.1705, 0.8090),
        ((6, 7), (2, 7), 0.5714, 0.0582, 0.8062),
        ((5, 56), (0, 29), 0.0893, -0.0381, 0.1926),
        ((0, 10), (0, 20), 0.0, -0.1611, 0.2775),
        ((10, 10), (0, 20), 1.0, 0.6791, 1.0),
    ],
)
def test_differences_have_the_published_intervals(first, second, value, low, high):
    computed = difference(Proportion(*first), Proportion(*second))
    assert (round(computed.value, 4), *(round(end, 4) for end in computed.interval)) == (
        value,
        low,
        high,
    )
    turned = difference(Proportion(*second), Proportion(*first))
    assert turned.value == -computed.value
    assert turned.interval == pytest.approx((-computed.interval[1], -computed.interval[0]))


def test_a_difference_to_an_empty_sample_is_none():
    assert difference(Proportion(0, 0), Proportion(1, 2)) is None


def test_proportions_survive_json():
    assert Proportion.from_json(Proportion(3, 7).to_json()) == Proportion(3, 7)
