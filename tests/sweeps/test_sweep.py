"""Sweeps: what is planned, tuned, resumed and listed as failed, with an executor that trains nothing."""

import json
import re

import pytest
from pretended import Pretended, outcome

from abacist import files, recipes
from abacist.cli import main
from abacist.configuration import from_json, override
from abacist.errors import ConfigurationError, RunError
from abacist.recipes import examinations
from abacist.reports import sweep_report, sweep_views, terminal
from abacist.runs.examination import check_examination
from abacist.sweeps import plan as plans
from abacist.sweeps import sweep
from abacist.sweeps.choices import Choices, Range
from abacist.sweeps.plan import Score

ADD = recipes.find("add")


def choices(**changes):
    return Choices(recipe=ADD, **changes)


TUNED = {
    "contenders": {
        "rotary": {"model.positions": "rope"},
        "window": {"model.positions": "place-relative"},
    },
    "over": {"training.learning_rate": [1e-3, 3e-3]},
    "tuned": ["training.learning_rate"],
    "seeds": [0, 1],
}


def by_learning_rate(trial):
    """Rotary trains best at 0.001, the window at 0.003."""
    rate = trial.group.settings["training.learning_rate"]
    is_best = (rate == 1e-3) == (trial.group.contender == "rotary")
    return outcome(trial.seed, 1.0 if is_best else 0.5)


def test_all_combinations_of_values_are_groups_with_readable_names():
    plan = choices(over={"model.width": [16, 32], "training.learning_rate": ["3e-3"]}).plan()
    assert [group.name for group in plan.groups] == [
        "width=16,learning_rate=3e-3",
        "width=32,learning_rate=3e-3",
    ]
    recipe = plan.recipe_of(plan.groups[0])
    assert (recipe.model.width, recipe.training.learning_rate) == (16, 3e-3)


def test_names_keep_as_much_of_a_setting_as_distinguishes_it():
    over = {"model.positions.0.window": [[0, 1]], "model.positions.0.init_std": [1, 2]}
    over |= {"model.init_std": [0.02]}
    names = [group.name for group in choices(over=over).plan().groups]
    assert names[0] == "window=0_1,0.init_std=1,model.init_std=0.02"


def test_random_draws_lie_in_their_ranges_and_repeat():
    over = {
        "training.learning_rate": Range(1e-3, 1e-1, "log"),
        "model.mlp_width": Range(8, 64),
        "model.norm": ["layer", "rms"],
    }
    one, again = (choices(over=over, num_draws=30).plan().groups for _ in range(2))
    assert one == again
    assert len(one) == 30
    rates = [group.settings["training.learning_rate"] for group in one]
    assert all(1e-3 <= rate <= 1e-1 for rate in rates)
    assert sum(rate < 1e-2 for rate in rates) in range(8, 23)
    assert all(type(group.settings["model.mlp_width"]) is int for group in one)
    other_seed = choices(over=over, num_draws=30, seeds=[1]).plan().groups
    assert other_seed != one


def test_random_draws_differ_from_each_other():
    over = {"model.width": [16, 32], "model.norm": ["layer", "rms"]}
    groups = choices(over=over, num_draws=4).plan().groups
    assert len({group.name for group in groups}) == 4
    assert "width=16,norm=rms" in {group.name for group in groups}
    with pytest.raises(ConfigurationError, match=r"only about 4\. Try --random 4\."):
        choices(over=over, num_draws=5).plan()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"over": {"model.width": []}}, "model.width has no value, so the sweep has no trial"),
        ({"over": {"model.widht": [8]}}, "did you mean 'model.width'"),
        ({"over": {"model.width": ["wide"]}}, "model.width must be a whole number"),
        ({"over": {"model.width": Range(8, 64)}}, "Type --random 20 to draw from it"),
        ({"over": {"model.width": [8]}, "tuned": ["model.norm"]}, "choose.tune names 'model.norm'"),
        ({"over": {"model.norm": ["rms", "rms"]}}, "model.norm has the value rms twice"),
        (
            {"over": {"model.width": [8]}, "tuned": ["model.width"], "tuning_seeds": [0]},
            r"choose.seeds must differ from the seeds of the sweep, .* got 0 in both. Try",
        ),
        ({"device": "gpu"}, "device must be one of auto, cpu, cuda, mps, got 'gpu'"),
        ({"num_draws": 3}, "--random needs values to draw from"),
        ({"seeds": range(10**12)}, "1,000,000,000,000 seeds, which is more than 10,000 trials"),
        ({"over": {"training.learning_rate": [1e-3]}, "seeds": range(10_001)}, "Type --yes"),
        ({"score": Score(suites=("lenghts",))}, "did you mean 'lengths'"),
    ],
)
def test_a_sweep_that_cannot_be_is_refused(changes, message):
    with pytest.raises(ConfigurationError, match=message):
        choices(**changes).plan()


def test_whoever_insists_may_have_more_than_ten_thousand_trials():
    plan = choices(over={"model.norm": ["layer", "rms"]}, seeds=range(5_001)).plan(True)
    assert plan.num_trials == 10_002


def test_every_contender_is_compared_with_its_best_setting_and_other_seeds_choose_it(tmp_path):
    executor = Pretended(by_learning_rate)
    results = sweep.start(choices(**TUNED).plan(), tmp_path / "sweep", executor)
    assert [group.group.name for group in results.groups] == [
        "rotary,learning_rate=0.001",
        "window,learning_rate=0.003",
    ]
    tuning = [path for path in executor.carried_out if path.startswith("tuning/")]
    assert {path.rpartition("/")[2] for path in tuning} == {"seed-2"}
    assert len(tuning) == 4
    assert len(executor.carried_out) == 8
    assert [candidate.chosen for candidate in results.candidates] == [True, False, False, True]
    record = json.loads((tmp_path / "sweep" / "sweep.json").read_text())
    assert [row["chosen"] for row in record["tuning"]] == [True, False, False, True]


def test_of_two_equal_settings_the_one_with_the_smaller_validation_loss_is_chosen(tmp_path):
    def result(trial):
        rate = trial.group.settings["training.learning_rate"]
        return outcome(trial.seed, loss=0.2 if rate == 1e-3 else 0.1)

    results = sweep.start(choices(**TUNED).plan(), tmp_path / "sweep", Pretended(result))
    assert {g.group.settings["training.learning_rate"] for g in results.groups} == {3e-3}


def test_a_loss_of_exactly_0_counts_as_the_smallest(tmp_path):
    def result(trial):
        rate = trial.group.settings["training.learning_rate"]
        return outcome(trial.seed, loss=0.1 if rate == 1e-3 else 0.0)

    results = sweep.start(choices(**TUNED).plan(), tmp_path / "sweep", Pretended(result))
    assert {g.group.settings["training.learning_rate"] for g in results.groups} == {3e-3}
    assert [candidate.loss for candidate in results.candidates] == [0.1, 0.0, 0.1, 0.0]


def test_contenders_whose_names_are_too_long_or_alike_stay_apart():
    long = {name * 101: {"model.width": width} for name, width in (("a", 16), ("b", 32))}
    alike = {"a b": {"model.width": 48}, "a_b": {"model.width": 64}}
    over = {"training.learning_rate": [1e-3, 3e-3]}
    plan = choices(contenders=long | alike, over=over, tuned=list(over)).plan()
    assert len(plan.contenders) == 4
    assert all(
        len({group.settings["model.width"] for group in groups}) == 1
        for groups in plan.contenders.values()
    )


def test_a_failed_trial_is_listed_stops_nothing_and_is_tried_again(tmp_path):
    plan = choices(over={"model.norm": ["layer", "rms"]}, seeds=[0, 1]).plan()
    failing = Pretended(
        lambda t: "no memory" if t.directory == "norm=rms/seed-0" else outcome(t.seed)
    )
    results = sweep.start(plan, tmp_path / "sweep", failing)
    assert results.failures == {"norm=rms/seed-0": "no memory"}
    assert len(failing.carried_out) == 4
    assert results.unfinished == 0
    again = Pretended(lambda trial: outcome(trial.seed))
    results = sweep.resume(tmp_path / "sweep", again)
    assert again.carried_out == ["norm=rms/seed-0"]
    assert results.failures == {}
    assert [len(group.outcomes) for group in results.groups] == [2, 2]


def test_an_interrupted_sweep_leaves_its_table_and_goes_on_with_what_is_unfinished(tmp_path):
    def interrupt(trial):
        if trial.directory == "tuning/window,learning_rate=0.003/seed-2":
            raise KeyboardInterrupt
        return by_learning_rate(trial)

    plan = choices(**TUNED).plan()
    with pytest.raises(KeyboardInterrupt):
        sweep.start(plan, tmp_path / "sweep", Pretended(interrupt))
    assert json.loads((tmp_path / "sweep" / "sweep.json").read_text())["unfinished"] == 5
    again = Pretended(by_learning_rate)
    results = sweep.resume(tmp_path / "sweep", again)
    assert len(again.carried_out) == 5
    straight = sweep.start(plan, tmp_path / "other", Pretended(by_learning_rate))
    assert results.to_json() == straight.to_json()


def test_a_sweep_that_another_process_starts_keeps_the_plan_of_that_process(tmp_path):
    path = tmp_path / "sweep"
    path.mkdir()
    with files.locked(path), pytest.raises(RunError, match="is being written by another process"):
        sweep.start(choices().plan(), path, Pretended(lambda trial: outcome(trial.seed)))
    assert list(path.iterdir()) == []


def test_a_sweep_that_was_started_while_this_one_was_checked_is_kept(tmp_path, monkeypatch):
    path = tmp_path / "sweep"
    first, second = (choices(seeds=[seed]).plan() for seed in (0, 1))

    def check_while_another_starts(recipe, examination):
        path.mkdir()
        first.write(path)

    monkeypatch.setattr(sweep, "check_examination", check_while_another_starts)
    with pytest.raises(RunError, match=r"exists\. Type --resume"):
        sweep.start(second, path, Pretended(lambda trial: outcome(trial.seed)))
    assert plans.read(path) == first


def test_intervals_are_over_problems_and_over_seeds(tmp_path):
    plan = choices(seeds=range(6)).plan()
    results = sweep.start(
        plan, tmp_path / "sweep", Pretended(lambda t: outcome(t.seed, right=4 + t.seed))
    )
    (row,) = results.to_json()["groups"][0]["rows"]
    assert (row["pooled"]["successes"], row["pooled"]["n"]) == (39, 60)
    assert row["seeds"] == {
        "n": 6,
        "median": pytest.approx(0.65),
        "interval": [0.4, 0.9],
        "smallest": 0.4,
        "largest": 0.9,
        "values": [0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
    }


def test_a_plan_is_read_back_as_it_was_written(tmp_path):
    plan = choices(**TUNED, score=Score(suites=(), digits=(3, 20), proved=False)).plan()
    plan.write(tmp_path)
    assert plans.read(tmp_path) == plan


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("groups", []),
        ("groups", [{"name": "../../outside", "contender": "x", "settings": {}}]),
        ("groups", [{"name": "a", "contender": "x", "settings": {"model.nothing": 1}}]),
        ("seeds", [-1]),
        ("seeds", 3),
        ("seeds", [4, 4]),
        ("threads", 0),
        ("examination", "none"),
        ("score", {"digits": ["x"]}),
        ("extensions", 3),
        ("extensions", [3]),
        ("extensions", [{"name": "own", "source": 4, "sha256": None}]),
        ("extensions", [{"name": "own", "source": "own.py"}]),
    ],
)
def test_a_damaged_plan_is_refused_in_one_line(tmp_path, key, value):
    choices(seeds=[0]).plan().write(tmp_path)
    record = json.loads((tmp_path / "plan.json").read_text())
    (tmp_path / "plan.json").write_text(json.dumps(record | {key: value}))
    with pytest.raises(RunError, match=r"plan\.json is damaged") as error:
        plans.read(tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("seconds", "fast"),
        ("rows", 3),
        ("rows.0", "a row"),
        ("rows.0.errors", "none"),
        ("rows.0.errors", 11),
        ("rows.0.suite", None),
        ("curve.0", {}),
        ("curve.0.exact_match", "all"),
        ("curve.0.step", 1.5),
        ("certificate", []),
        ("certificate", {"certified": "yes", "smallest_margin": 1}),
        ("certificate.smallest_margin", "large"),
        ("steps_to_target", [1]),
        ("unknown", 1),
    ],
)
def test_a_damaged_outcome_counts_as_unfinished(tmp_path, path, value, capsys):
    plan = choices(seeds=[0, 1]).plan()
    sweep.start(plan, tmp_path / "sweep", Pretended(lambda trial: outcome(trial.seed)))
    file = tmp_path / "sweep" / "seed-1" / "outcome.json"
    *parents, last = [int(key) if key.isdecimal() else key for key in path.split(".")]
    inner = record = json.loads(file.read_text())
    for key in parents:
        inner = inner[key]
    inner[last] = value
    file.write_text(json.dumps(record))
    results = sweep.read(tmp_path / "sweep")
    assert results.unfinished == 1
    assert [outcome.seed for outcome in results.groups[0].outcomes] == [0]
    assert main(["report", str(tmp_path / "sweep"), "--out", str(tmp_path / "page.html")]) == 0


def test_a_trial_is_asked_what_its_table_of_scores_says():
    score = Score(suites=("probes",), digits=(3, 20), carry_chains=(10,), num_problems=7)
    examination = plans.examination_of(ADD, None, score)
    assert list(examination.suites) == ["probes"]
    assert [(s.digits, s.n, s.sampling) for s in examination.samples] == [
        ((3, 3), 7, "lengths"),
        ((20, 20), 7, "lengths"),
        ((10, 10), 7, "carry-chains"),
    ]
    several = override(ADD, {"task.operations": "+,-"})
    with pytest.raises(ConfigurationError, match="tasks with one operation, got"):
        plans.examination_of(several, None, score)


@pytest.mark.parametrize(
    ("recipe", "score", "message"),
    [
        ("add", {"suites": ["exhaustive"]}, "the suite exhaustive does not apply: "),
        (
            "subtract",
            {"suites": [], "carry_chains": [5]},
            "cannot be asked 5 - 5 digits, a carry through every digit: ",
        ),
        ("three-digit", {"suites": [], "digits": [3, 20]}, "cannot be asked 20 + 20 digits: "),
        ("looped-abacus-small", {"suites": [], "digits": [200]}, "learned positions end at place"),
    ],
)
def test_a_mistake_in_the_examination_is_reported_before_anything_is_trained(
    recipe, score, message, tmp_path
):
    plan = Choices(recipe=recipes.find(recipe), score=from_json(Score, score)).plan()
    executor = Pretended(lambda trial: outcome(trial.seed))
    with pytest.raises(ConfigurationError, match=re.escape(message)) as error:
        sweep.start(plan, tmp_path / "sweep", executor)
    assert "\n" not in str(error.value)
    assert executor.carried_out == []
    assert not (tmp_path / "sweep").exists()


def test_an_examination_of_another_task_is_refused():
    for recipe, name in (("sort", "multiply"), ("add", "sort"), ("add", "multiply")):
        with pytest.raises(ConfigurationError, match=r"cannot be asked .*Leave"):
            check_examination(recipes.find(recipe), examinations.find(name))


@pytest.mark.parametrize("name", ["add", "calculator", "divide", "parallel", "sort", "spaced"])
def test_a_recipe_can_be_examined_as_its_record_is(name):
    check_examination(recipes.find(name), examinations.find(name))


def test_the_page_shows_a_line_for_each_group_and_the_table_fits_a_terminal(tmp_path, capsys):
    results = sweep.start(choices(**TUNED).plan(), tmp_path / "sweep", Pretended(by_learning_rate))
    page = sweep_report.sweep_report(results, tmp_path)
    assert page.count("<title>rotary,learning_rate=0.001: 100%</title>") == 1
    assert "as parallel coordinates" in page
    assert "Exact match on validation problems by training step" in page
    assert "http" not in page.partition("<main>")[2]
    console = terminal.console()
    console.width = 100
    console.print(terminal.Shown(sweep_views.tables(results)))
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("rotary,learning_rate=0.001") for line in lines) == 1
    assert sum("Tuned on validation problems" in line for line in lines) == 1
