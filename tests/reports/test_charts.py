"""Charts: where a value lands, and which ticks are told."""

import re

import pytest

from abacist.reports import charts
from abacist.reports.charts import Axis, Curve
from abacist.reports.html_builder import Markup, element, prose, table


def test_text_is_escaped_and_elements_are_not():
    inner = element("b", "1 < 2", title='"')
    assert inner == '<b title="&quot;">1 &lt; 2</b>'
    assert element("p", "a & ", inner) == f"<p>a &amp; {inner}</p>"
    assert prose("type `<x>` twice") == "type <code>&lt;x&gt;</code> twice"
    assert isinstance(table("c", ("a", "b"), [[["<", ">"]]]), Markup)


@pytest.mark.parametrize("last", [1, 7, 24, 300, 1_500, 12_000, 123_456])
def test_steps_have_a_few_round_ticks(last):
    axis = charts.steps_axis(last)
    values = [value for value, _ in axis.ticks]
    assert values[0] == 0
    assert 2 <= len(values) <= 8
    assert values[-1] <= last
    assert len({text for _, text in axis.ticks}) == len(values)


@pytest.mark.parametrize("low", [1e-9, 1e-3, 0.4, 2.3, 1.0])
@pytest.mark.parametrize("ratio", [1.0, 1.2, 3.0, 50.0, 1e6])
def test_logarithmic_axes_hold_all_values_and_have_ticks(low, ratio):
    axis = charts.logarithmic_axis("loss", [low, low * ratio])
    assert axis.low <= low
    assert axis.high >= low * ratio
    assert 1 <= len(axis.ticks) <= 9
    assert all(axis.low * 0.99 <= value <= axis.high * 1.01 for value, _ in axis.ticks)


def test_values_land_where_they_belong():
    axis = Axis("x", 1.0, 100.0, [], logarithmic=True)
    assert [axis.share(value) for value in (1, 10, 100)] == pytest.approx([0, 0.5, 1])


def test_curves_are_thinned_but_keep_their_ends():
    curve = Curve("c", range(10_000), [1.0] * 10_000, [(0.5, 1.0)] * 10_000)
    picture = charts.lines("p", [curve], charts.steps_axis(9_999), charts.percent_axis("y"), True)
    assert len(picture) < 40_000
    xs = [float(x) for x in re.findall(r"[ML]([\d.]+),", picture.split("curve c0")[0])]
    assert max(xs) == pytest.approx(436.0)


def test_squares_that_were_not_scored_stay_empty():
    picture = charts.heat_map("m", [[1, 0], [0, 2]], [[2, 0], [4, 2]], ("a", "b"))
    assert len(re.findall("<title>", picture)) == 3
    assert "2 and 1 digits: 0 of 4" in picture
    assert "#fde725" in picture
