"""`abacist score` and `abacist compare`: what is kept, what is printed, one line for every mistake."""

import json
import shutil

import pytest

import abacist
from abacist.configuration import settings
from abacist.errors import ConfigurationError, RunError
from abacist.scoring import grid
from abacist.scoring.config import ScoringConfig
from abacist.scoring.scorecard import SUITES


@pytest.fixture(scope="module")
def once(tmp_path_factory, quick_settings):
    """Hardly trained runs, by name: two seeds, longer operands, another operation."""
    settings = {
        "one": (0, {}),
        "two": (1, {}),
        "longer": (0, {"task.max_digits": 5}),
        "other": (0, {"task": "subtract", "task.max_digits": 3}),
    }
    folder = tmp_path_factory.mktemp("once")
    return {
        name: abacist.train(
            "add", out=folder / name, seed=seed, settings=quick_settings | changes, threads=1
        )
        for name, (seed, changes) in settings.items()
    }


@pytest.fixture
def copies(once, tmp_path):
    """Copies of them that a test may change."""
    for name, trained in once.items():
        shutil.copytree(trained.path, tmp_path / name)
    return {name: abacist.load(tmp_path / name) for name in once}


@pytest.fixture
def untrained(copies):
    return copies["one"]


def stored(trained):
    return json.loads(trained.directory.scorecard.read_text())


def test_suites_scored_at_different_times_stand_side_by_side(run, untrained):
    path = str(untrained.path)
    assert run("score", path, "--suite", "lengths", "--longest", "3")[0] == 0
    first = stored(untrained)
    assert run("score", path, "--suite", "splits,probes")[0] == 0
    both = stored(untrained)
    assert both["step"] == 24
    assert list(both["sections"]) == ["lengths", "splits", "probes"]
    assert both["sections"]["lengths"] == first["sections"]["lengths"]
    assert both["errors"] == sum(section["errors"] for section in both["sections"].values())
    suites = {
        json.loads(line)["suite"] for line in untrained.directory.failures.read_text().splitlines()
    }
    assert suites == {"lengths", "splits", "probes"}


def problems_in(section):
    rows = section["rows"]
    return sum(row["proportion"]["n"] for row in rows if row["measure"] == "exact match")


def test_a_section_of_more_problems_is_kept_and_the_command_says_so(run, untrained):
    path, lines = str(untrained.path), untrained.directory.failures
    run("score", path, "--suite", "splits,probes", "--num-problems", "20")
    before, failures = stored(untrained), lines.read_bytes()
    size = problems_in(before["sections"]["splits"])
    code, out, err = run("score", path, "--suite", "splits", "--num-problems", "3", "--json")
    fewer = json.loads(out)["sections"]["splits"]
    assert code == 0
    assert fewer != before["sections"]["splits"]
    assert err == (
        f"abacist: warning: {untrained.directory.scorecard} keeps the section splits of {size:,} "
        f"problems; the one of {problems_in(fewer):,} is not stored.\n"
    )
    assert stored(untrained) == before
    assert lines.read_bytes() == failures
    _, _, err = run("score", path, "--suite", "splits", "--num-problems", "30")
    assert err == ""
    assert stored(untrained)["sections"]["splits"] != before["sections"]["splits"]
    assert stored(untrained)["sections"]["probes"] == before["sections"]["probes"]


@pytest.mark.parametrize(
    "content",
    ["{", "[]", "3", '{"rows": []}', '{"sections": {"lengths": {}}, "step": 24}'],
)
def test_a_damaged_or_older_scorecard_is_replaced_with_a_warning(run, untrained, content):
    untrained.directory.scorecard.write_text(content)
    code, _, err = run("score", str(untrained.path), "--suite", "splits")
    assert code == 0
    assert "is damaged or out of date and is replaced" in err
    assert list(stored(untrained)["sections"]) == ["splits"]


def test_a_scorecard_of_other_weights_is_replaced(run, untrained):
    run("score", str(untrained.path), "--suite", "splits")
    old = stored(untrained)
    untrained.directory.scorecard.write_text(json.dumps(old | {"weights_sha256": "0" * 64}))
    _, _, err = run("score", str(untrained.path), "--suite", "probes")
    assert "it speaks of other weights" in err
    assert list(stored(untrained)["sections"]) == ["probes"]


def test_all_means_what_has_a_use(run, untrained):
    code, out, _ = run(
        *("score", str(untrained.path), "--suite", "all", "--json", "--largest-space", "1000"),
        *("--budget", "10", "--longest", "3", "--grid-size", "2", "--grid-problems", "3"),
    )
    assert code == 0
    assert list(json.loads(out)["sections"]) == [
        "lengths",
        "strata",
        "splits",
        "probes",
        "grid",
        "counterexamples",
    ]


def test_the_default_adds_strata_to_what_training_shows(run, untrained):
    out = run("score", str(untrained.path), "--json", "--longest", "3")[1]
    assert list(json.loads(out)["sections"]) == ["lengths", "strata"]


def test_tables_say_what_failures_share_and_where_they_are_kept(run, untrained):
    code, out, _ = run("score", str(untrained.path), "--suite", "strata", "--num-problems", "50")
    assert code == 0
    assert "failures have in common" in out
    assert "Perplexity of the right answer" in out
    assert str(untrained.directory.failures) in out.replace("\n", "")


def test_the_stored_scorecard_is_printed_without_scoring_again(run, untrained):
    assert run("score", str(untrained.path), "--stored")[0] == 2
    out = run("score", str(untrained.path), "--suite", "splits")[1]
    before = untrained.directory.scorecard.read_bytes()
    code, again, _ = run("score", str(untrained.path), "--stored")
    assert (code, untrained.directory.scorecard.read_bytes()) == (0, before)
    assert out.startswith(again.rstrip())
    code, _, error = run("score", str(untrained.path), "--stored", "--num-problems", "50")
    assert (code, "--stored scores nothing, so --num-problems does not apply" in error) == (2, True)


def test_a_grid_is_drawn_and_shown(run, untrained):
    code, out, _ = run(
        *("score", str(untrained.path), "--suite", "grid"),
        *("--grid-size", "4", "--grid-problems", "5"),
    )
    assert code == 0
    assert "Grid of operand lengths, 1…4 by 1…4 digits" in out
    assert "1 … 4 digits of the second operand" in out
    assert untrained.directory.grid_picture.read_bytes().startswith(b"\x89PNG")


def test_ctrl_c_keeps_the_squares_that_are_done(run, untrained, monkeypatch):
    draw, squares = grid.draw_of_lengths, []

    def interrupted(trained_model, lengths, generator):
        squares.append(int(lengths.max()))
        if squares[-1] == 4:
            raise KeyboardInterrupt
        return draw(trained_model, lengths, generator)

    monkeypatch.setattr(grid, "draw_of_lengths", interrupted)
    code, out, _ = run("score", str(untrained.path), "--suite", "grid,splits")
    assert code == 130
    assert "interrupted in square 4" in out
    section = stored(untrained)["sections"]["grid"]
    assert section["complete"] is False
    assert section["details"]["count"][2][2] > 0
    assert section["details"]["count"][3][3] == 0
    assert "splits" not in stored(untrained)["sections"]
    assert untrained.directory.grid_picture.exists()


def test_help_names_every_suite_and_every_setting(run):
    code, out, _ = run("score", "--help")
    assert code == 0
    for name, suite in SUITES.items():
        assert f"  {name}" in out
        assert suite.summary in out
    for setting in settings(ScoringConfig()):
        assert f"--{setting.name.replace('_', '-')} N" in out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--suite", "legths"], "unknown suite 'legths': did you mean 'lengths'?"),
        (["--suite", ""], "unknown suite ''"),
        (["--suite", "lengths,,grid"], "unknown suite ''"),
        (["--suite"], "expected one argument"),
        (["--suite", "recurrences"], "Train with --model.recurrences 8"),
        (["--suite", "notation"], "Train with --format spaced"),
        (["--suite", "exhaustive", "--largest-space", "1000"], "or --largest-space 1000000"),
        (["--num-problems", "99999999999"], "--num-problems: must be a whole number from 1 to 10,"),
        (["--num-problems", "ten"], "got 'ten'"),
        (["--longest", "0"], "--longest: must be a whole number from 1 to 1,000,000, got '0'"),
        (["--grid-size", "0"], "--grid-size: must be a whole number from 1 to 10,000, got '0'"),
        (["--grid-problems", "1e9"], "--grid-problems: must be a whole number from 1 to 100,000"),
        (["--budget", "-5"], "--budget"),
        (["--largest-space", "0"], "--largest-space: must be a whole number from 1 to 10,000,000"),
        (
            ["--suite", "strata,lengths", "--grid-size", "5"],
            "--grid-size 5 does not apply to --suite strata,lengths. Type --suite grid, or",
        ),
        (["--exhaustive-digits", "2"], "Type --suite exhaustive, or leave it out."),
        (["--suite", "grid", "--recurrences", "2,4", "--budget", "3"], "--budget 3 does not apply"),
        (["--bugdet", "5"], "did you mean '--budget'?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_get_one_line_and_exit_2(run, once, arguments, complaint):
    code, out, err = run("score", str(once["one"].path), *arguments)
    assert (code, out) == (2, "")
    assert complaint in err
    assert err.count("\n") == 1
    assert not once["one"].directory.scorecard.exists()


def test_settings_of_a_recipe_are_named_in_full():
    for setting in settings(ScoringConfig()):
        assert setting.range is not None
        with pytest.raises(ConfigurationError, match=f"scoring.{setting.name} must be"):
            ScoringConfig(**{setting.name: setting.range.high + 1})


def test_python_takes_the_same_settings(untrained):
    card = untrained.score(["strata"], num_problems=2)
    assert card.rows[0].proportion.n <= 20
    with pytest.raises(ConfigurationError, match="did you mean 'num_problems'"):
        untrained.score(["strata"], num_problem=2)


# Comparing ------------------------------------------------------------------------------------


@pytest.fixture
def two(copies):
    """Two runs of one recipe, both scored by length."""
    for name in ("one", "two"):
        copies[name].score(["lengths", "splits"], longest=20)
    return [copies["one"], copies["two"]]


def test_compare_shows_every_common_row_with_its_difference(run, two, tmp_path):
    paths = [str(trained.path) for trained in two]
    two[1].score(["probes"])
    code, out, _ = run("compare", *paths, "--json")
    data = json.loads(out)
    assert code == 0
    assert data["runs"] == paths
    assert {row["suite"] for row in data["rows"]} == {"lengths", "splits"}
    cards = [stored(trained)["sections"] for trained in two]
    by_name = [
        {row["name"]: row["proportion"] for row in card["lengths"]["rows"]} for card in cards
    ]
    for row in data["rows"]:
        if row["suite"] == "lengths":
            assert row["proportions"] == [names[row["name"]] for names in by_name]
        (gap,) = row["differences"]
        first, second = (proportion["value"] for proportion in row["proportions"])
        assert gap["value"] == pytest.approx(second - first)
        assert gap["interval"][0] <= gap["value"] <= gap["interval"][1]
    picture = tmp_path / "both.png"
    code, out, _ = run("compare", *paths, "--out", str(picture))
    assert code == 0
    assert " one " in out
    assert "difference" in out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_runs_trained_on_other_lengths_share_rows_of_stated_length_only(run, two, copies):
    longer = copies["longer"]
    longer.score(["lengths", "splits"], longest=20)
    code, out, _ = run("compare", str(two[0].path), str(longer.path), "--json")
    data = json.loads(out)
    assert code == 0
    assert data["trained_alike"] is False
    names = [row["name"] for row in data["rows"]]
    assert "3 digits" in names
    assert "20 digits" in names
    assert not any("all pairs" in name or "problems" in name for name in names)


def test_runs_that_cannot_be_compared_get_one_line(run, two, copies):
    first, other = str(two[0].path), copies["other"]
    mistakes = [
        ([first], "needs two runs or more"),
        ([first, str(other.path)], "runs of different tasks cannot be compared"),
        ([first, "nowhere"], "there is no run nowhere"),
        ([first, str(two[1].path), "--out", "x.svg"], "--out draws a PNG, got 'x.svg'"),
        ([first, str(two[1].path), "--oot", "x.png"], "did you mean '--out'?"),
        ([], "required: RUN"),
    ]
    for arguments, complaint in mistakes:
        code, out, err = run("compare", *arguments)
        assert (code, out) == (2, "")
        assert complaint in err
        assert err.count("\n") == 1
    two[1].directory.scorecard.unlink()
    err = run("compare", first, str(two[1].path))[2]
    assert f"was never scored. Type abacist score {two[1].path}." in err
    two[1].directory.scorecard.write_text("{")
    assert "is damaged and left out" in run("compare", first, str(two[1].path))[2]


def test_runs_without_a_common_row_say_what_to_type(run, two):
    two[0].directory.scorecard.unlink()
    two[0].score(["probes"])
    code, _, err = run("compare", str(two[0].path), str(two[1].path))
    assert code == 2
    assert "share no row" in err
    two[1].score(["probes"])
    err = run("compare", str(two[0].path), str(two[1].path), "--out", "x.png")[2]
    assert "--suite lengths" in err


def test_a_scorecard_that_is_missing_is_a_run_error(untrained):
    from abacist.reports.run_records import read_scorecard

    with pytest.raises(RunError, match="was never scored"):
        read_scorecard(untrained.directory)
