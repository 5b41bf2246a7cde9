"""`abacist compare --html`: runs side by side on one page."""

from dataclasses import replace
from pathlib import Path

import pytest
from pages import Page

import abacist
from abacist.cli import main
from abacist.reports import comparison_report, run_records
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
