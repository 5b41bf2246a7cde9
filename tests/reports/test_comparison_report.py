"""`abacist compare --html`: runs side by side on one page."""

from dataclasses import replace
from pathlib import Path

import pytest
from pages import Page

import abacist
from abacist.cli import main
from abacist.reports import (
    comparison_report,
    matplotlib_figures,
    run_records,
    score_plots,
    svg,
    training_plots,
)
from abacist.runs.directory import RunDirectory


@pytest.fixture(scope="module")
def two(tmp_path_factory, quick_settings):
    folder = tmp_path_factory.mktemp("compared")
    runs = [
        abacist.train(
            "add", out=folder / name, seed=seed, settings=quick_settings | more, threads=1
        )
        for name, seed, more in (("one", 0, {}), ("two<i>", 1, {"model.width": 16}))
    ]
    for run in runs:
        run.score(["lengths", "strata"])
    return [str(run.path) for run in runs]


def test_two_runs_on_one_page(two, tmp_path, capsys):
    out = tmp_path / "both.html"
    assert main(["compare", *two, "--html", str(out)]) == 0
    assert f"Report: {out}" in capsys.readouterr().out
    page = Page(out.read_text())
    titles = [title for _, title in page.headings]
    assert titles[0] == "abacist comparison: one and two<i>"
    assert not page.all("i")
    for title in ("Differences in settings", "Training", "Suite lengths", "Suite strata"):
        assert title in titles
    assert "model.width816" in page.text
    assert "difference, points" in page.text
    assert page.text.count("abacist train add") == 2
    curves = [a["class"] for a in page.all("path") if a.get("class", "").startswith("curve")]
    assert {"curve c0", "curve c1"} <= set(curves)


def test_a_chart_by_length_shades_the_lengths_that_all_runs_were_trained_on(two):
    first, second = (run_records.read(RunDirectory(Path(path))) for path in two)
    sections = {"one": first.sections["lengths"], "two": second.sections["lengths"]}
    chart = comparison_report._by_length(sections)
    most = sections["one"].trained_digits
    assert f"Shaded: training lengths, up to {most:,} digits." in chart.caption
    figure = matplotlib_figures._figure([chart], None)
    names = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert f"training lengths, up to {most:,} digits" in names
    series = {name: score_plots.length_series(s)["equal lengths"] for name, s in sections.items()}
    chart = score_plots.by_length(series, {"one": 10, "two": 6})
    assert chart.shaded == pytest.approx(6 * 1.12)
    assert chart.caption.endswith(
        "Shaded: training lengths, up to 6 digits, of all runs. The longest operand in training has "
        "a different number of digits: 10 in one, 6 in two."
    )


def test_a_single_training_curve_is_named_if_other_runs_have_none(two):
    first = run_records.read(RunDirectory(Path(two[0])))
    charts = training_plots.of_runs({"one": first.metrics, "two": []})
    assert charts
    for chart in charts:
        assert chart.caption.endswith("Only one recorded a training.")
        assert ">one</text>" in svg.draw(chart)


def test_the_caption_of_the_loss_says_when_each_curve_is_measured(two):
    metrics = run_records.read(RunDirectory(Path(two[0]))).metrics
    assert (
        "is a mean over all steps since the last point" in training_plots.of_run(metrics)[0].caption
    )


def test_what_no_browser_opens_or_one_run_twice_is_refused(two, capsys):
    assert main(["compare", *two, "--html", "both.png"]) == 2
    assert "--html writes HTML, got 'both.png'" in capsys.readouterr().err
    for option in (["--html", "both.html"], ["--out", "both.png"]):
        assert main(["compare", two[0], two[0], *option]) == 2
        assert "Type each run once" in capsys.readouterr().err


def test_an_unknown_commit_is_a_dash(two):
    first, second = (run_records.read(RunDirectory(Path(path))) for path in two)
    runs = {
        "one": replace(first, run=first.run | {"commit": None}),
        "two": replace(second, run=second.run | {"commit": "abc"}),
    }
    table = comparison_report._changes(runs)
    assert "<td>–</td><td>abc</td>" in table
    assert "None" not in table
