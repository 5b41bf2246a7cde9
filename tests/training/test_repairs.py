"""Rounds of repairs: what their batches hold, and that a training repairs what a check finds wrong."""

import json

import pytest
import torch
from safetensors.torch import load_file

import abacist
from abacist import recipes
from abacist.cli import main
from abacist.data.repairs import RepairBatches
from abacist.data.split import in_split
from abacist.data.stream import TrainingStream
from abacist.errors import ConfigurationError, RunError
from abacist.runs import repairs
from abacist.runs.run import build_problems
from abacist.training import checkpoint
from abacist.training.checkpoint import Progress
from abacist.training.config import TrainingConfig
from abacist.training.loop import Observer
from abacist.training.processes import Processes
from abacist.training.schedule import learning_rate

REPAIRED = {"training.repair_rounds": 2, "training.repair_steps": 6}
BATCH, BEGIN = 8, 4


def _batches(name: str, listed: list[str]) -> RepairBatches:
    recipe = recipes.find(name)
    task, format = build_problems(recipe)
    ordinary = TrainingStream(task, format, recipe.split, BATCH, seed=3)
    batches = RepairBatches(ordinary, task, format, recipe.split, BATCH, BEGIN, torch.device("cpu"))
    batches.add(listed)
    return batches


# Each list has two problems of the training split whose operands have different lengths.
LISTED = {
    "add": ["123+45", "7+86543"],
    "add-many": ["1+23+456", "78+9"],
    "subtract": ["123-45", "7-86543"],
    "multiply": ["123*45", "7*865"],
    "divide": ["123//45", "8654//7"],
    "modulo": ["123%45", "8654%7"],
    "sort": ["3,141,59", "26,5"],
}


@pytest.mark.parametrize("name", LISTED)
def test_every_second_batch_of_a_round_has_listed_problems(name):
    batches = _batches(name, LISTED[name])
    task, format = batches.task, batches.format
    parsed = task.parse(LISTED[name])
    right = format.write(parsed, task.answer(parsed))
    wanted = {
        tuple(line[:length])
        for line, length in zip(right.ids.tolist(), right.lengths.tolist(), strict=True)
    }
    for step in range(BEGIN + 12):
        batch = batches.batch(step)
        assert len(batch.ids) == BATCH
        lines = [
            tuple(line[:length])
            for line, length in zip(batch.ids.tolist(), batch.lengths.tolist(), strict=True)
        ]
        if step < BEGIN or (step - BEGIN) % 2 == 0:
            assert torch.equal(batch.ids, batches.ordinary.batch(step).ids)
        else:
            assert sum(line in wanted for line in lines) >= BATCH // 4
            assert torch.equal(batch.ids, batches.batch(step).ids)
        if batches.aligned:
            assert torch.equal(batch.place, batch.place[:1].expand_as(batch.place))


def test_rows_that_are_not_listed_are_drawn_from_the_training_split():
    batches = _batches("add", ["456+78"])
    batch = batches.batch(BEGIN + 1)
    vocabulary = batches.format.vocabulary
    texts = [vocabulary.decode(line) for line in batch.ids.tolist()]
    typed = [text.partition("=")[0].replace("<start>", "") for text in texts]
    # Operands are written least significant digit first.
    problems = ["+".join(operand[::-1] for operand in text.split("+")) for text in typed]
    assert problems.count("456+78") == BATCH // 4
    assert len(set(problems)) == 1 + BATCH - BATCH // 4
    assert all(len(problem) == len("456+78") for problem in problems)
    assert bool(in_split(batches.task.parse(problems), "train", batches.split).all())


def test_without_a_listed_problem_all_batches_are_ordinary():
    batches = _batches("add", [])
    for step in range(BEGIN + 4):
        assert torch.equal(batches.batch(step).ids, batches.ordinary.batch(step).ids)


def test_the_learning_rate_falls_again_in_every_round():
    config = TrainingConfig(
        num_steps=100, learning_rate=0.01, repair_rounds=2, repair_steps=10, repair_rate=0.2
    )
    for first in (100, 110):
        rates = [learning_rate(config, step) for step in range(first, first + 10)]
        assert rates[0] == pytest.approx(0.002)
        assert rates == sorted(rates, reverse=True)
        assert rates[-1] < 0.0003
    without = TrainingConfig(num_steps=100, learning_rate=0.01)
    assert all(learning_rate(config, step) == learning_rate(without, step) for step in range(100))


class _Heard(Observer):
    """Keeps the checks, and stops after a step as a crash would, if it is given one."""

    def __init__(self, stop: int | None = None) -> None:
        self.stop, self.checks = stop, []

    def on_step(self, step, loss):
        if step == self.stop:
            raise ConnectionError("pulled the plug")

    def on_check(self, repair):
        self.checks.append((repair.step, repair.wrong, len(repair.problems)))


def _weights(path):
    return load_file(checkpoint.all_in(path / "checkpoints")[-1] / "model.safetensors")


@pytest.fixture
def quick_checks(monkeypatch):
    """Checks that find some neighbourhoods wrong, depending on the weights, without checking any."""

    def count_wrong(trained_model, on_mistake):
        number = int(next(trained_model.model.parameters()).sum().abs() * 1e4)
        for operand in range(100, 140):
            on_mistake(f"{operand}+{(operand + number) % 1_000}")
        return 40

    monkeypatch.setattr(repairs, "count_wrong", count_wrong)


def test_rounds_are_recorded_and_resumed_to_the_same_bits(tmp_path, quick_settings, quick_checks):
    settings = quick_settings | REPAIRED
    heard = _Heard()
    run = abacist.train("add", out=tmp_path / "whole", settings=settings, observer=heard)
    assert run.step == 24 + 2 * 6
    records = [json.loads(line) for line in run.directory.repairs.read_text().splitlines()]
    assert [record["step"] for record in records] == [24, 30]
    assert heard.checks == [(r["step"], r["wrong"], len(r["problems"])) for r in records]
    assert all(0 < len(record["problems"]) <= record["wrong"] for record in records)
    listed = run.task.parse(records[0]["problems"])
    assert bool(in_split(listed, "train", run.recipe.split).all())
    assert int(listed.lengths_BN.max()) <= 3
    whole = _weights(run.path)
    # Before the first check, directly after it, within a round, and directly after the second check.
    for stop in (23, 25, 28, 31):
        broken = tmp_path / f"broken-{stop}"
        with pytest.raises(ConnectionError):
            abacist.train("add", out=broken, settings=settings, observer=_Heard(stop))
        resumed = abacist.resume(broken)
        assert resumed.directory.repairs.read_text() == run.directory.repairs.read_text()
        assert all(torch.equal(whole[name], tensor) for name, tensor in _weights(broken).items())
    again = _Heard()
    assert abacist.resume(run.path, again).step == run.step
    assert again.checks == []


def test_other_processes_train_on_what_the_first_has_found(tmp_path, quick_settings, quick_checks):
    run = abacist.train("add", out=tmp_path / "run", settings=quick_settings | REPAIRED)
    heard, batches = _Heard(), TrainingStream(run.task, run.format, run.recipe.split, 8, run.seed)

    class Second(Processes):
        def agree(self, number=0):
            return number

    before = Progress(20, 1.0)
    second = repairs.Repairs(run, batches, before, heard, Second(1, 2))
    records = run.directory.repairs.read_text()
    assert second.are_needed(30)
    assert run.directory.repairs.read_text() == records
    assert heard.checks == [(30, 40, len(json.loads(records.splitlines()[-1])["problems"]))]
    assert not torch.equal(second.batches.batch(31).ids, batches.batch(31).ids)


def test_the_end_of_a_training_moves_with_its_rounds():
    config = TrainingConfig(num_steps=100, repair_rounds=3, repair_steps=20, warmup_steps=0)
    ends = {step: config.end_after(step) for step in (0, 99, 100, 101, 120, 121, 160)}
    assert ends == {0: 100, 99: 100, 100: 100, 101: 120, 120: 120, 121: 140, 160: 160}


def test_the_command_says_what_a_check_found(tmp_path, quick_settings, monkeypatch, capsys):
    found = iter([2, 1, 0])

    def count_wrong(trained_model, on_mistake):
        number = next(found)
        for operand in range(number):
            on_mistake(f"14{operand}+5")
        return number

    monkeypatch.setattr(repairs, "count_wrong", count_wrong)
    settings = quick_settings | {"training.repair_rounds": 3, "training.repair_steps": 6}
    typed = [text for name, value in settings.items() for text in (f"--{name}", str(value))]
    assert main(["train", "add", *typed, "--out", str(tmp_path / "run"), "--train-only"]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("check")]
    assert said == [
        "check: 2 wrong neighbourhoods; round 1 of at most 3 lists 2 problems and takes 6 steps",
        "check: 1 wrong neighbourhood; round 2 of at most 3 lists 1 problem and takes 6 steps",
        "check: no wrong neighbourhoods",
    ]


def test_a_round_is_not_resumed_without_the_record_of_its_check(
    tmp_path, quick_settings, quick_checks
):
    settings = quick_settings | REPAIRED | {"training.checkpoint_every": 2}
    with pytest.raises(ConnectionError):
        abacist.train("add", out=tmp_path / "run", settings=settings, observer=_Heard(29))
    (tmp_path / "run" / "repairs.jsonl").write_text("")
    with pytest.raises(RunError, match="no record of the check after step 24"):
        abacist.resume(tmp_path / "run")


def test_a_model_with_few_wrong_neighbourhoods_is_certified_after_repairs(tmp_path):
    settings = {
        "training.num_steps": 500,
        "training.repair_rounds": 8,
        "training.repair_steps": 50,
    }
    heard = _Heard()
    run = abacist.train("add", out=tmp_path / "run", settings=settings, observer=heard)
    assert heard.checks[0][:1] == (500,)
    assert heard.checks[0][1] > 0, "the training is too long to show anything"
    assert heard.checks[-1] == (run.step, 0, 0)


def test_an_untrained_model_is_not_repaired(tmp_path, quick_settings):
    settings = {"training.num_steps": 0, "training.warmup_steps": 0, "training.repair_rounds": 2}
    heard = _Heard()
    run = abacist.train(
        "add", out=tmp_path / "run", settings=quick_settings | settings, observer=heard
    )
    assert (run.step, heard.checks) == (0, [])


def test_where_nothing_can_be_proved_drawn_problems_are_checked(
    tmp_path, quick_settings, monkeypatch
):
    monkeypatch.setattr(repairs, "_NUM_DRAWN", 300)
    settings = quick_settings | REPAIRED | {"model.positions": "coupling"}
    run = abacist.train("add", out=tmp_path / "run", settings=settings)
    assert run.step == 24 + 2 * 6
    for record in map(json.loads, run.directory.repairs.read_text().splitlines()):
        assert record["drawn"] == 300
        assert 0 < len(record["problems"]) <= record["wrong"] <= 300
        asked = run.task.parse(record["problems"])
        assert bool(in_split(asked, "train", run.recipe.split).all())
        assert int(asked.lengths_BN.max()) <= 3


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"training.stop_at": 1.0}, "repair_rounds begin after the last step"),
        ({"training.num_examples": 100}, "repair_rounds add problems to those of training"),
        ({"training.examples": ("12+34",)}, "repair_rounds add problems to those of training"),
    ],
)
def test_repairs_that_contradict_other_settings_are_refused(
    tmp_path, quick_settings, setting, message
):
    settings = quick_settings | REPAIRED | setting
    with pytest.raises(ConfigurationError, match=message):
        abacist.train("add", out=tmp_path / "run", settings=settings)
    assert not (tmp_path / "run").exists()
