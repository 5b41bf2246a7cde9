"""Plots and tables: positions of values, ticks of axes, and every renderer."""

import itertools
import re
from dataclasses import replace

import pytest
from rich.console import Console

from abacist.intervals import Proportion
from abacist.reports import matplotlib_figures, plots, svg
from abacist.reports.html_builder import Markup, element, prose, table
from abacist.reports.plots import Axis, Bars, Curve, HeatMap, LineChart, Points
from abacist.reports.score_plots import length_grid
from abacist.reports.tables import Cell, Table, markdown, number, shortened, telling_rows
from abacist.reports.terminal import Shown
from abacist.scoring.records import Row, Section

GRID = length_grid({"right": [[1, 0], [0, 2]], "count": [[2, 0], [4, 2]]})


def printed(view, width: int = 80) -> str:
    """A view as text, without colours."""
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(Shown([view]))
    return capture.get()


def test_text_is_escaped_and_elements_are_not():
    inner = element("b", "1 < 2", title='"')
    assert inner == '<b title="&quot;">1 &lt; 2</b>'
    assert element("p", "a & ", inner) == f"<p>a &amp; {inner}</p>"
    assert prose("type `<x>` twice") == "type <code>&lt;x&gt;</code> twice"
    assert isinstance(table(Table("c", ("a", "b"), [[["<", ">"]]])), Markup)


@pytest.mark.parametrize("last", [1, 7, 24, 300, 1_500, 12_000, 123_456])
def test_steps_have_a_few_round_ticks(last):
    axis = plots.linear_axis("step", last)
    values = [value for value, _ in axis.ticks]
    assert values[0] == 0
    assert 2 <= len(values) <= 8
    assert values[-1] <= last
    assert len({text for _, text in axis.ticks}) == len(values)


@pytest.mark.parametrize("low", [1e-9, 1e-3, 0.4, 2.3, 1.0])
@pytest.mark.parametrize("ratio", [1.0, 1.2, 3.0, 50.0, 1e6])
def test_logarithmic_axes_hold_all_values_and_have_ticks(low, ratio):
    axis = plots.logarithmic_axis("loss", [low, low * ratio])
    assert axis.low <= low
    assert axis.high >= low * ratio
    assert 1 <= len(axis.ticks) <= 9
    assert all(axis.low * 0.99 <= value <= axis.high * 1.01 for value, _ in axis.ticks)


def test_values_have_their_position_on_a_logarithmic_axis():
    axis = Axis("x", 1.0, 100.0, [], logarithmic=True)
    assert [axis.fraction(value) for value in (1, 10, 100)] == pytest.approx([0, 0.5, 1])


def test_curves_are_thinned_but_keep_their_ends():
    curve = Curve("c", range(10_000), [1.0] * 10_000, [(0.5, 1.0)] * 10_000)
    across, up = plots.linear_axis("step", 9_999), plots.percent_axis("y")
    picture = svg.draw(LineChart("p", [curve], across, up, band=True))
    assert len(picture) < 40_000
    xs = [float(x) for x in re.findall(r"[ML]([\d.]+),", picture.split("curve c0")[0])]
    assert max(xs) == pytest.approx(436.0)


def test_squares_that_were_not_scored_stay_empty():
    picture = svg.draw(GRID)
    assert len(re.findall("<title>", picture)) == 3
    assert "2 and 1 digits: 0 of 4" in picture
    assert "#fde725" in picture


def test_a_grid_on_a_terminal_has_a_character_for_each_square():
    lines = [line.rstrip() for line in printed(GRID).splitlines()]
    top = lines.index("2  █")
    assert lines[top + 1] == "1 ▓·"


def test_plots_in_a_notebook_are_one_small_picture():
    one, two = (matplotlib_figures.Inline([GRID] * n, columns=1)._repr_png_() for n in (1, 2))
    assert one.startswith(b"\x89PNG")
    heights = [int.from_bytes(png[20:24], "big") for png in (one, two)]
    assert abs(heights[1] - 2 * heights[0]) <= 1
    assert len(two) < 30_000


def test_a_large_grid_is_merged_into_blocks():
    size = 100
    grid = length_grid({"right": [[9] * size] * size, "count": [[10] * size] * size})
    assert (len(grid.rows), grid.rows[0], grid.columns[0]) == (34, "100", "1–3")
    assert grid.hints[-1][0] == "1–3 and 1–3 digits: 81 of 90 right, 90%"


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_wide_table_is_broken_into_blocks_that_fit(width):
    columns = ["problems", *(f"column {i}" for i in range(12))]
    rows = [
        [f"a name that is rather long {row}", *("1234567.9" for _ in range(12))] for row in "ab"
    ]
    text = printed(Table("caption", columns, [rows]), width=width)
    assert max(map(len, text.splitlines())) <= width
    assert text.count("1234567.9") == 24
    assert all(f"column {i}" in text for i in range(12))


def test_a_long_note_wraps_so_that_the_numbers_stay_readable():
    note = "the lengths of two operands cannot be written by this format " * 4
    text = printed(Table("t", ("problems", "right"), [[[note, Cell("12.5%", "bad")]]]), width=80)
    assert max(map(len, text.splitlines())) <= 80
    assert "12.5%" in text


def test_a_table_in_markdown():
    table = Table("caption", ("seed", "right\n(95%)"), [[["0", Cell("1", "good")]], [["1", "2"]]])
    assert markdown(table) == ("| seed | right<br>(95%) |\n|---|---:|\n| 0 | 1 |\n| 1 | 2 |")


@pytest.mark.parametrize("operator", ["+", "-", "*", "//", "%", ",", "="])
def test_every_long_number_of_a_problem_is_shortened(operator):
    number = "1" * 70
    text = shortened(f"{number}{operator}{number}")
    assert text.count("(70 digits)") == 2
    assert operator in text
    assert len(text) < 150


def test_short_problems_are_shown_as_they_are():
    assert shortened("12+34=46 ✓") == "12+34=46 ✓"


def test_five_rows_say_most_about_a_run():
    def row(name, kind, successes=10):
        return Row(name, kind, 0, Proportion(successes, 10))

    trained = [
        row("≤ 10 digits, all pairs", "trained"),
        *(row(f"{n} digits", "trained") for n in "123"),
    ]
    beyond = [row(f"{name} digits", "beyond") for name in ("20", "50", "100", "1,000", "10,000")]
    unequal = [row(f"{n} digits, unequal", "beyond") for n in ("100", "1,000", "10,000")]
    probes = [row(f"99…9+1, {n} digits", "probe") for n in ("10", "10,000")]
    rows = telling_rows(Section("t", [*trained, *beyond, *unequal, *probes]))
    assert [row.name for row in rows] == [
        "≤ 10 digits, all pairs",
        "100 digits",
        "10,000 digits",
        "1,000 digits, unequal",
        "99…9+1, 10,000 digits",
    ]
    worst = row("4 digits", "trained", 3)
    assert worst in telling_rows(Section("t", [*trained, worst]), most=2)


def test_the_legend_stands_below_the_chart_where_it_covers_no_curve():
    across, up = plots.linear_axis("step", 10), plots.percent_axis("exact match")
    curves = [Curve(name, [0, 10], [share, share], []) for name, share in (("a", 0.0), ("b", 1.0))]
    picture = svg.draw(LineChart("two", curves, across, up))
    label = re.search(r'y="([\d.]+)"[^>]*>step<', picture)
    legend = [float(y) for y in re.findall(r'y="([\d.]+)" class="legend"', picture)]
    assert len(legend) == 2
    assert min(legend) > float(label[1])


@pytest.mark.parametrize("num_columns", [5, 33, 60])
def test_texts_of_cells_never_overlap(num_columns):
    texts = [["+0.25"] * num_columns] * 3
    plot = HeatMap(
        "t", [[0.25] * num_columns] * 3, ["a", "b", "c"], ["1"] * num_columns, texts=texts
    )
    figure = matplotlib_figures._figure([plot], None)
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert len(boxes) == (3 * num_columns if num_columns < 60 else 0)
    for left, right in itertools.pairwise(boxes[:num_columns]):
        assert left.x1 < right.x0
    assert figure.get_figwidth() < 30


def test_numbers_that_are_rounded_to_0_have_no_sign():
    texts = [number(value, "+.2f") for value in (-0.001, 0.0, 0.001, -0.25, None)]
    assert texts == ["0.00", "0.00", "0.00", "−0.25", "–"]


def test_four_heat_maps_are_two_by_two_and_no_place_is_empty_among_other_panels():
    heat_map = HeatMap("t", [[0.5] * 11] * 4, ["a"] * 4, ["1"] * 11)
    figure = matplotlib_figures._figure([heat_map] * 4, None)
    panels = [axes.get_subplotspec() for axes in figure.axes if axes.get_title(loc="left")]
    assert {(place.rowspan.start, place.colspan.start) for place in panels} == {
        (0, 0), (0, 1), (1, 0), (1, 1),
    }  # fmt: skip
    points = Points("p", ["a", "b"], {"last": [(0.0, 0.0), (1.0, 1.0)]}, is_ordered=False)
    figure = matplotlib_figures._figure([points] * 7, None)
    assert [axes.get_subplotspec().rowspan.start for axes in figure.axes] == [0, 0, 0, 1, 1, 2, 2]
    assert figure.axes[-1].get_subplotspec().colspan.stop == 6
    assert [line.get_linestyle() for line in figure.axes[0].lines] == ["None"]
    assert figure.axes[0].get_xlim()[1] > 1


def test_points_in_three_dimensions_are_drawn_from_two_sides():
    axes = ("component 1", "component 2", "component 3")
    points = plots.Points("digits", ["0", "1"], {"last": [(0, 1, 2), (3, 4, 5)]}, axes)
    front, above = matplotlib_figures._panels(points)
    assert front.axes == ["component 1", "component 2"]
    assert above.axes == ["component 1", "component 3"]
    assert above.frames == {"last": [(0, 2), (3, 5)]}
    assert len(matplotlib_figures._figure([points], None).axes) == 2


@pytest.mark.parametrize("kind", ["grid", "curves", "points"])
def test_long_titles_stay_above_their_own_panel(kind):
    title = "Exact match for every pair of lengths: 1 and 3 digits (0 of 48), " * 3
    size, across, up = 5, plots.linear_axis("step", 10), plots.percent_axis("share")
    cells = {"right": [[1] * size] * size, "count": [[2] * size] * size}
    plot = {
        "grid": length_grid(cells),
        "curves": LineChart("", [Curve("a", [0, 10], [0.1, 1.0], [])], across, up),
        "points": plots.Points("", ["0", "1"], {"last": [(0, 1), (3, 4)]}, ("one", "two")),
    }[kind]
    figure = matplotlib_figures._figure([replace(plot, title=title)] * 2, columns=2)
    figure.set_dpi(matplotlib_figures._INLINE_DPI)
    figure.draw_without_rendering()
    left, right = (axes._left_title.get_window_extent() for axes in figure.axes[:2])
    assert left.x1 < right.x0
    assert right.x1 < figure.bbox.x1


def test_long_names_in_the_legend_of_bars_stand_below_each_other():
    names = [f"a group with a long name (n = {number})" for number in range(3)]
    bars = Bars("bars", ["row"], {name: [0.5] for name in names}, "share", percent=True)
    drawn = svg.draw(bars)
    places = re.findall(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*class="legend"', drawn)
    assert len(places) == len({y for _, y in places}) == 3
