"""Many seeds as one result: compare and report for groups of runs."""

import json
import re
import shutil
from pathlib import Path

import pytest

from abacist.cli import compare
from abacist.cli.compare import short_names
from abacist.errors import ConfigurationError, UserError
from abacist.intervals import Proportion, difference_of_means
from abacist.recipes import find
from abacist.reports.group_comparison import GroupComparison
from abacist.reports.tables import OTHER_TRAINING
from abacist.scoring import comparison
from abacist.scoring.comparison import ComparedGroup, ComparedRow, RowKey

JSON_PAGE = (Path(__file__).parents[2] / "docs/json.md").read_text()
ROW = RowKey("lengths", "5 digits", "exact match")


def group(name: str, *right: int, n: int = 100) -> ComparedGroup:
    shares = [Proportion(count, n) for count in right]
    return ComparedGroup(name, Proportion(0, len(shares)), {ROW: shares})


def common_rows(groups: list[ComparedGroup]) -> list[ComparedRow]:
    return comparison.common_rows([group.shares for group in groups])


def test_means_and_differences_of_groups():
    (row,) = common_rows([group("a", 50, 60, 55), group("b", 90, 95, 100), group("c", 70)])
    assert [score.mean for score in row.groups] == [0.55, 0.95, 0.7]
    better, single = row.differences
    assert better.value == pytest.approx(0.4)
    # Welch's interval of these six numbers, as scipy.stats.ttest_ind gives it.
    low, high = difference_of_means([0.9, 0.95, 1], [0.5, 0.6, 0.55]).interval
    assert (low, high) == pytest.approx((0.28665, 0.51335), abs=1e-5)
    assert better.interval[0] <= low
    assert better.interval[1] >= high
    # A single run says nothing about other seeds: its interval is that of the problems.
    assert single.value == pytest.approx(0.15)


def test_seeds_that_agree_leave_the_interval_of_the_problems():
    (row,) = common_rows([group("a", 100, 100), group("b", 100, 100)])
    low, high = row.differences[0].interval
    assert low < 0 < high
    assert row.differences[0].value == 0


def test_the_interval_of_a_mean_covers_the_seeds_and_the_problems():
    (row,) = common_rows([group("seeds", 50, 60, 55, n=100_000), group("problems", 55, 55, 55)])
    over_seeds, over_problems = (score.interval for score in row.groups)
    # Student's interval of 0.0005, 0.0006 and 0.00055, as scipy.stats.t.interval gives it.
    assert over_seeds == pytest.approx((0.000425793, 0.000674207), abs=1e-8)
    assert over_problems == Proportion(165, 300).interval


def test_the_picture_has_a_bar_for_every_group_and_length():
    groups = [group("a", 50, 60), group("b", 90)]
    chart = GroupComparison(groups, common_rows(groups), trained_alike=True).picture()
    assert chart.names == ["5 digits"]
    assert chart.series == {"a (n = 2)": [0.55], "b (n = 1)": [0.9]}
    assert chart.intervals["b (n = 1)"] == [Proportion(90, 100).interval]
    with pytest.raises(UserError, match="share no exact match to draw"):
        GroupComparison(groups, [], trained_alike=True).picture()


@pytest.fixture(scope="module")
def two_groups(tmp_path_factory, quick_settings):
    """Two directories of two seeds each, made by the command."""
    from abacist.cli import main

    path = tmp_path_factory.mktemp("groups")
    words = [word for name, value in quick_settings.items() for word in (f"--{name}", str(value))]
    for name, rate in (("slow", "0.001"), ("fast", "0.01")):
        options = ("--seeds", "2", "--jobs", "1", "--training.learning_rate", rate, *words)
        assert main(["train", *options, "--out", str(path / name), "--json"]) == 0
    return path


def test_two_groups_are_compared_with_intervals_and_certificates(run, two_groups, tmp_path):
    names, page = [str(two_groups / name) for name in ("slow", "fast")], tmp_path / "groups.html"
    table = tmp_path / "groups.csv"
    picture = tmp_path / "groups.png"
    options = ("--html", str(page), "--csv", str(table), "--out", str(picture))
    code, out, err = run("compare", *names, *options)
    assert (code, err) == (0, "")
    assert f"Drawn: {picture}" in " ".join(out.split())
    assert picture.read_bytes().startswith(b"\x89PNG")
    first, *lines = table.read_text().splitlines()
    assert first.startswith("suite,problems,measure,group,runs,certified,mean")
    assert lines[0].startswith('lengths,"≤ 3 digits, all pairs",exact match,slow,2,0,')
    assert "slow" in out
    assert "0 of 2" in out
    assert "difference, points" in out
    assert "covers the chance of the problems" in page.read_text()
    data = json.loads(run("compare", *names, "--json")[1])
    assert [(g["name"], g["runs"]) for g in data["groups"]] == [("slow", 2), ("fast", 2)]
    row = data["rows"][0]
    of_row = row.keys() | row["groups"][0].keys() | row["differences"][0].keys()
    printed = data.keys() | data["groups"][0].keys() | of_row
    section = JSON_PAGE.partition("\n## compare groups\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"`(\w+)`", section)) == printed
    assert [g["runs"] for g in row["groups"]] == [2, 2]
    assert len(row["differences"][0]["interval"]) == 2
    for summary in row["groups"]:
        assert summary["interval"][0] <= summary["mean"] <= summary["interval"][1]


def test_a_run_is_compared_with_a_group(run, two_groups):
    code, out, _ = run("compare", str(two_groups / "slow/seed-0"), str(two_groups / "fast"))
    assert code == 0
    assert "seed-0" in out


def test_groups_that_were_trained_on_different_problems_say_so():
    groups = [group("a", 50, 60), group("b", 90)]
    comparison = GroupComparison(groups, common_rows(groups), trained_alike=False)
    assert OTHER_TRAINING in comparison.notes
    assert OTHER_TRAINING in comparison.page()
    assert comparison.to_json()["trained_alike"] is False
    alike = GroupComparison(groups, common_rows(groups), trained_alike=True)
    assert OTHER_TRAINING not in alike.page()


def test_a_group_has_a_report(run, two_groups, tmp_path):
    page = tmp_path / "page.html"
    code, out, _ = run("report", str(two_groups / "slow"), "--out", str(page))
    assert code == 0
    assert f"Report: {page}" in out
    assert "certified" in out
    assert "2 trials of add" in page.read_text()
    data = json.loads(run("report", str(two_groups / "slow"), "--json")[1])
    assert data["sweep"]["groups"][0]["certified"]["n"] == 2


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["compare", "GROUP"], "needs two runs or groups of runs"),
        (["compare", "GROUP", "GROUP", "--out", "x.pdf"], "--out draws a PNG"),
        (["compare", "GROUP", "nowhere"], "there is no run nowhere"),
        (["report", "GROUP", "--checkpoint", "best"], "--checkpoint is for one run"),
        (["report", "GROUP", "--out", "x.pdf"], "--out writes HTML"),
        (["solve", "GROUP", "1+1"], "holds 2 runs, and one is needed"),
        (["prove", "GROUP"], "holds 2 runs, and one is needed"),
        (["play", "GROUP"], "holds 2 runs, and one is needed"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_with_groups_get_one_line(run, two_groups, arguments, complaint):
    words = [str(two_groups / "slow") if word == "GROUP" else word for word in arguments]
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert complaint in err


def test_a_group_without_a_finished_run_says_how_to_finish(run, two_groups, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    shutil.copy(two_groups / "slow/plan.json", empty)
    _, _, err = run("compare", str(empty), str(two_groups / "fast"))
    assert f"abacist sweep --resume --out {empty}" in err
    code, out, _ = run("report", str(empty))
    assert code == 0
    assert "2 trials are unfinished." in out


def test_problems_with_signs_are_another_task():
    recipes = [find(name) for name in ("calculator", "signed-calculator")]
    with pytest.raises(ConfigurationError, match="of 2 operands with signs"):
        compare._trained_alike(["a", "b"], recipes)


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["runs/a", "runs/b"], ["a", "b"]),
        (["x/seed-0", "y/seed-0"], ["x/seed-0", "y/seed-0"]),
        (
            [f"runs/a-very-long-name-of-an-experiment-{n}/seed-0" for n in (1, 2)],
            ["…periment-1/seed-0", "…periment-2/seed-0"],
        ),
        (
            ["runs/1-a-name-that-differs-at-its-begin", "runs/2-a-name-that-differs-at-its-begin"],
            ["1-a-name-that-differs-at-its-begin", "2-a-name-that-differs-at-its-begin"],
        ),
        (["a", "a"], ["a", "a"]),
    ],
)
def test_names_are_cut_from_the_left_and_stay_different(paths, names):
    assert short_names(paths) == names


def test_the_current_directory_is_called_by_its_name(tmp_path, monkeypatch):
    (tmp_path / "sweep" / "seed-0").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "sweep")
    assert short_names(["."]) == ["sweep"]
    assert short_names([".", "./seed-0/.."]) == ["sweep", "sweep"]
    assert short_names([".", "seed-0"]) == ["sweep", "seed-0"]


def test_four_seeds_fit_a_terminal_of_80_columns(run, two_groups, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("slow", "fast"):
        for seed in (0, 1):
            path = str(two_groups / f"{name}/seed-{seed}")
            run("score", path, "--num-problems", "4", "--longest", "10")
    paths = [
        str(two_groups / f"{name}/seed-{seed}") for name in ("slow", "fast") for seed in (0, 1)
    ]
    code, out, _ = run("compare", *paths)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    for name in ("slow/seed-0", "slow/seed-1", "fast/seed-0", "fast/seed-1"):
        assert name in out
