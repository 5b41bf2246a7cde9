"""The study of data efficiency: its sweep file is a plan, and its record, picture and table follow from a sweep."""

import pytest
from pretended import Pretended, outcome

from abacist.recipes import find
from abacist.sweeps import sweep, sweep_file

NEIGHBOURHOODS = 24_518


def proved(trial):
    """Return the outcome of a trial that is certified from 1,000 examples on."""
    examples = trial.group.settings["training.num_examples"]
    wrong = 0 if examples >= 1_000 else 1_000 - examples + trial.seed
    result = outcome(trial.seed)
    result.certificate.update(
        certified=wrong == 0, wrong=wrong, neighbourhoods=NEIGHBOURHOODS, smallest_margin=1.5
    )
    return result


@pytest.fixture(scope="module")
def data_efficiency(load_study):
    return load_study("data_efficiency")


@pytest.fixture(scope="module")
def plan(studies):
    return sweep_file.read(studies / "data_efficiency.toml")


def test_each_contender_is_trained_on_each_number_of_examples(plan):
    counts = {group.settings["training.num_examples"] for group in plan.groups}
    assert {300, 1_000} <= counts
    assert len(plan.groups) == len(plan.contenders) == 2 * len(counts)
    unchanged = next(group for group in plan.groups if group.name == "add,num_examples=300")
    assert plan.recipe_of(unchanged).model == find("add").model
    assert plan.recipe_of(unchanged).training.num_steps == find("add").training.num_steps
    assert max(plan.seeds) < 100, "settings were chosen with seeds from 100 on"


def test_the_record_and_the_table_follow_from_the_sweep(tmp_path, data_efficiency, plan):
    sweep.start(plan, tmp_path / "sweep", Pretended(proved))
    record = data_efficiency.record_of(tmp_path / "sweep")
    assert len(record["groups"]) == len(plan.groups)
    counts = [group["num_examples"] for group in record["groups"] if group["contender"] == "add"]
    assert counts == sorted(counts)
    few = next(group for group in record["groups"] if group["num_examples"] == 300)
    assert [seed["wrong"] for seed in few["seeds"]] == [700 + seed for seed in plan.seeds]
    assert few["certified"]["successes"] == 0
    certified, wrong = data_efficiency.charts(record)
    assert [curve.y[-1] for curve in certified.curves] == [1.0, 1.0]
    assert [curve.y[-1] for curve in wrong.curves] == [1, 1]
    page = data_efficiency.page("<!-- table -->\n<!-- end of table -->", record)
    assert "Every trial is finished." in page
    row = "| 300 | 0 of 5 (0–43 %) | 700, 701, 702, 703, 704 | 1.50 |"
    assert sum(line.endswith(row) for line in page.splitlines()) == 2


def test_groups_without_a_finished_trial_have_no_line(tmp_path, data_efficiency, plan):
    def interrupt(trial):
        if trial.group.settings["training.num_examples"] < 300:
            raise KeyboardInterrupt
        return proved(trial)

    with pytest.raises(KeyboardInterrupt):
        sweep.start(plan, tmp_path / "sweep", Pretended(interrupt))
    record = data_efficiency.record_of(tmp_path / "sweep")
    groups = data_efficiency.finished(record)
    assert 0 < len(groups) < len(plan.groups)
    assert len(data_efficiency.table(record).splitlines()) == 2 + len(groups)
    assert f"of the {plan.num_trials} trials are unfinished." in data_efficiency.page(
        "<!-- table -->\n<!-- end of table -->", record
    )
