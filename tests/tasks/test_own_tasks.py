"""Tasks that extensions define: numbers in a base, and what is refused."""

import pytest

import abacist
from abacist.errors import ConfigurationError


@pytest.mark.parametrize("base", [2, 7, 10, 16, 36])
def test_a_number_in_a_base_is_read_back_by_python(base):
    for number in (0, 1, base - 1, base, 12_345, -1, -base, -98_765):
        assert int(abacist.in_base(number, base), base) == number


@pytest.mark.parametrize("base", [-2, 0, 1, 37])
def test_a_base_without_enough_digits_is_refused(base):
    with pytest.raises(ConfigurationError, match=f"base must be .* 2 to 36, got {base}"):
        abacist.in_base(5, base)
