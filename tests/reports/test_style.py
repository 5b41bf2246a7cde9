"""The style sheet: text that everyone can read, in light, in dark and on paper."""

import itertools
import re

import pytest

from abacist.reports.html import CHARTS_STYLE

PALETTES = [
    dict(re.findall(r"--(\w+): (#\w+)", block))
    for block in re.findall(r":root \{(.+?)\}", CHARTS_STYLE.read_text(), flags=re.DOTALL)
]


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2."""
    digits = colour.removeprefix("#")
    digits = "".join(c * 2 for c in digits) if len(digits) == 3 else digits
    channels = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    low, high = sorted([luminance(first), luminance(second)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("palette", PALETTES, ids=["light", "dark", "print"])
def test_text_has_the_contrast_of_level_aa(palette):
    inks = ["ink", "muted", "good", "bad", *(f"c{number}" for number in range(5))]
    for ink, ground in itertools.product(inks, ("paper", "tint")):
        assert contrast(palette[ink], palette[ground]) >= 4.5, (ink, ground)


def test_there_is_a_palette_for_light_dark_and_paper():
    assert len(PALETTES) == 3
    assert len({frozenset(palette) for palette in PALETTES}) == 1
