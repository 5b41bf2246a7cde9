"""Tasks that extensions define: numbers in a base, and what is refused."""

from typing import ClassVar

import pytest
from extension_tasks import adds

import abacist
from abacist.data.check import check
from abacist.data.config import SplitConfig
from abacist.errors import ConfigurationError
from abacist.tasks.column_machine import ColumnMachine
from abacist.tasks.column_rule import ColumnRule
from abacist.tasks.column_task import ColumnTask
from abacist.tasks.config import COLUMN_TASKS, ColumnTaskConfig, OwnTaskConfig
from abacist.tasks.own_task import OwnTask


@pytest.mark.parametrize("base", [2, 7, 10, 16, 36])
def test_a_number_in_a_base_is_read_back_by_python(base):
    for number in (0, 1, base - 1, base, 12_345, -1, -base, -98_765):
        assert int(abacist.in_base(number, base), base) == number


@pytest.mark.parametrize("base", [-2, 0, 1, 37])
def test_a_base_without_enough_digits_is_refused(base):
    with pytest.raises(ConfigurationError, match=f"base must be .* 2 to 36, got {base}"):
        abacist.in_base(5, base)


NOTATIONS = [
    ({"base": 40}, "base must be a whole number from 2 to 36, got 40"),
    ({"base": 1}, "base must be a whole number from 2 to 36, got 1"),
    ({"base": None}, "base must be a whole number from 2 to 36, got None"),
    ({"num_operands": 0}, "operands must be a whole number from 1 to"),
    ({"num_operands": 26}, "operands must be a whole number from 1 to"),
    *(
        ({"symbol": symbol}, "symbol must be one character other than a letter, a digit, a space")
        for symbol in ("=", "3", "[", "]", "", ",,", "\n", None)
    ),
]


@pytest.mark.parametrize(("settings", "complaint"), NOTATIONS)
def test_a_task_that_cannot_be_written_is_refused_when_it_is_defined(settings, complaint):
    with pytest.raises(ConfigurationError, match=complaint) as refusal:
        type("WrongConfig", (OwnTaskConfig,), {"kind": "test-wrong", **settings})
    assert str(refusal.value).startswith("WrongConfig: ")
    assert "test-wrong" not in OwnTaskConfig.kinds


@pytest.mark.parametrize(("settings", "complaint"), NOTATIONS)
def test_a_machine_that_cannot_be_written_is_refused(settings, complaint):
    base, others = settings.get("base", 10), {k: v for k, v in settings.items() if k != "base"}
    with pytest.raises(ConfigurationError, match=complaint):
        ColumnMachine("wrong", ColumnRule(adds(base), base=base), **others)


@pytest.mark.usefixtures("registries_as_before")
@pytest.mark.parametrize(("characters", "count"), [(10, 1), (10, 4), (10, 7), (2, 5)])
def test_the_example_of_a_task_is_one_of_its_problems(characters, count):
    class CountedConfig(OwnTaskConfig):
        kind: ClassVar = "test-counted"
        base: ClassVar = characters
        num_operands: ClassVar = count

    task = OwnTask(CountedConfig())
    assert task.expressions(task.parse([task.example])) == [task.example]


@pytest.mark.usefixtures("registries_as_before")
def test_an_oracle_is_compared_where_python_converts_the_digits_and_only_there():
    machine = ColumnMachine("test-sum", ColumnRule(adds(10)), oracle=lambda a, b: str(a + b))
    COLUMN_TASKS["test-sum"] = machine
    task = ColumnTask(ColumnTaskConfig(machine="test-sum"))
    short, longest, longer = "12,34", f"{'9' * 1_000},1", f"{'9' * 5_000},1"
    assert task.check_oracle(task.parse([short, longer, longest, longer])) == 2
    assert task.check_oracle(task.parse([longer])) == 0
    outcome = check(
        ColumnTask(ColumnTaskConfig(machine="test-sum", min_digits=1_001, max_digits=1_001)),
        SplitConfig(),
        num_problems=3,
        seed=0,
        on_progress=lambda done, total: None,
    )
    assert outcome.compared == 0
    assert outcome.operations["own"]["train"] == 3
