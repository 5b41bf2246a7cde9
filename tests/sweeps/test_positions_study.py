"""The study of positions: its sweep file is a plan, and its record, picture and table follow from a sweep."""

import json

import pytest
from pretended import Pretended, outcome

from abacist.sweeps import sweep, sweep_file

CONTENDERS = (
    *("learned", "sinusoidal", "nope", "rotary", "alibi", "fire", "t5"),
    *("randomised", "abacus", "coupling", "window"),
)


@pytest.fixture(scope="module")
def positions(load_study):
    return load_study("positions")


@pytest.fixture(scope="module")
def plan(studies):
    return sweep_file.read(studies / "positions.toml")


def row(digits, right):
    row = {"suite": "sample", "name": f"{digits} + {digits} digits", "measure": "exact match"}
    return row | {"n": 10, "errors": 10 - right, "smallest_margin": 1.0}


def scored(trial):
    result = outcome(trial.seed)
    result.rows[:] = [row(10, 10), row(11, trial.seed)]
    return result


def test_eleven_schemes_with_ten_seeds_and_three_learning_rates_are_compared(plan):
    assert tuple(plan.contenders) == CONTENDERS
    assert (len(plan.seeds), plan.num_trials) == (10, 11 * 10 + 33)
    sizes = {plan.recipe_of(group).model.width for group in plan.groups}
    assert sizes == {64}
    assert all(not group.settings.keys() & {"task.max_digits"} for group in plan.groups)


def test_the_record_and_the_table_follow_from_the_sweep(tmp_path, positions, plan):
    sweep.start(plan, tmp_path / "sweep", Pretended(scored))
    record = positions.record_of(tmp_path / "sweep")
    assert set(record) == {*CONTENDERS, "study"}
    assert record["study"]["missing"] == []
    assert len(record["rotary"]["tuning"]) == 3
    lines = positions.table(record).splitlines()
    assert len(lines) == 2 + 11
    assert "| `rotary` | 0.001 | 10 of 10 | 100% | 45% (10%–80%) | – |" in lines[6]
    assert [len(chart.curves) for chart in positions.charts(record)] == [4, 4, 3]
    page = positions.page("<!-- table -->\n<!-- end of table -->", record)
    assert "Every trial is finished." in page
    assert lines[6] in page


def test_what_an_interrupted_study_lacks_is_said(tmp_path, positions, plan):
    def interrupt(trial):
        if trial.directory == "tuning/rotary,learning_rate=0.003/seed-10":
            raise KeyboardInterrupt
        return scored(trial)

    with pytest.raises(KeyboardInterrupt):
        sweep.start(plan, tmp_path / "sweep", Pretended(interrupt))
    record = positions.record_of(tmp_path / "sweep")
    missing = record["study"]["missing"]
    assert "rotary: 1 of 3 learning rates tried, 0 of 10 seeds trained" in missing
    assert len(missing) == 11
    assert positions.charts(record) == []
    text = positions.page("<!-- table -->\n<!-- end of table -->", record)
    assert "133 of the 143 trials are unfinished." in text
    assert "|" not in text


def test_the_sentences_of_the_page_hold_in_the_record(positions):
    record = json.loads(positions.RECORD.read_text())
    of = {name: positions.shares_by_length(record[name]) for name in CONTENDERS}

    def extremes(name, digits):
        seeds = of[name][digits]["seeds"]
        return seeds["smallest"], seeds["largest"]

    for name in ("learned", "sinusoidal", "rotary", "t5"):
        assert 0.965 < of[name][10]["seeds"]["median"] < 0.985
        assert extremes(name, 11)[1] == 0
    for name in ("alibi", "fire"):
        assert extremes(name, 11)[1] < 0.955
        assert extremes(name, 12)[1] < 0.065
    beyond = [
        extremes(name, 15)[1] for name in CONTENDERS if name not in ("coupling", "abacus", "window")
    ]
    assert max(beyond) == 0
    assert all(extremes("window", digits)[0] >= 0.998 for digits in of["window"])
    rotary = {digits: row["seeds"]["values"] for digits, row in of["rotary"].items()}
    assert [round(100 * rotary[digits][2]) for digits in (10, 5)] == [94, 3]
    assert [round(100 * rotary[digits][4], 1) for digits in (10, 9)] == [99.8, 12.6]
    reached = [
        number for number, value in enumerate(of["coupling"][10]["seeds"]["values"]) if value > 0.77
    ]
    for digits, low, high in ((10, 78, 98), (11, 73, 94), (15, 5, 24)):
        values = [100 * of["coupling"][digits]["seeds"]["values"][number] for number in reached]
        assert (len(values), round(min(values)), round(max(values))) == (5, low, high)
    steps = {name: record[name]["median_steps_to_target"] for name in CONTENDERS}
    learned = sorted((count, name) for name, count in steps.items() if count is not None)
    assert learned[:2] == [(600, "window"), (1_300, "t5")]
