from collections.abc import Iterator
from itertools import product

import pytest
import torch

from abacist.tasks.config import TASKS, ArithmeticConfig, ModularAdditionConfig, TaskConfig
from abacist.tasks.problems import OPERATIONS
from abacist.tasks.space import Space
from abacist.tasks.task import Task

ALL = ("+", "-", "*", "//", "%")
DIVISIONS = ("//", "%")


def task_of(*operations: str, **settings: object) -> Task:
    return ArithmeticConfig(operations=operations, **settings).build()


def listed(task: Task, numbers: torch.Tensor | None = None) -> list[str]:
    """The problems of a task's space as a person would type them."""
    space = task.space()
    numbers = torch.arange(len(space)) if numbers is None else numbers
    return task.expressions(space.problems(numbers))


def loops(operations: tuple[str, ...], *ranges: range) -> Iterator[str]:
    """What nested loops would print; divisors leave out 0."""
    for operation in operations:
        first, *others = ranges
        if operation in DIVISIONS:
            others = [range(max(1, numbers.start), numbers.stop) for numbers in others]
        for operands in product(first, *others):
            yield operation.join(map(str, operands))


@pytest.mark.parametrize("operation", ALL)
@pytest.mark.parametrize(
    ("settings", "ranges"),
    [
        ({"max_digits": 1}, (range(10), range(10))),
        ({"max_digits": 2}, (range(100), range(100))),
        ({"min_digits": 2, "max_digits": 2}, (range(10, 100), range(10, 100))),
        ({"operand_digits": (2, 1)}, (range(10, 100), range(10))),
        ({"operand_digits": (1, 2)}, (range(10), range(10, 100))),
        ({"max_digits": 1, "sampling": "values"}, (range(10), range(10))),
    ],
    ids=str,
)
def test_problems_are_numbered_as_nested_loops_would_list_them(
    operation: str, settings: dict[str, object], ranges: tuple[range, ...]
) -> None:
    assert listed(task_of(operation, **settings)) == list(loops((operation,), *ranges))


@pytest.mark.parametrize("operations", [ALL, ("%", "+"), ("//", "*", "-")], ids="".join)
def test_several_operations_come_one_after_the_other_in_their_order(
    operations: tuple[str, ...],
) -> None:
    task = task_of(*operations, max_digits=1)
    assert listed(task) == list(loops(operations, range(10), range(10)))
    assert task.space().sizes == tuple(90 if o in DIVISIONS else 100 for o in operations)


def test_sums_of_three_are_numbered_too() -> None:
    task = task_of("+", min_operands=3, max_operands=3, max_digits=1)
    assert listed(task) == list(loops(("+",), *[range(10)] * 3))


def test_problems_of_the_space_have_the_shapes_and_operations_of_their_texts() -> None:
    task = task_of(*ALL, max_digits=2)
    numbers = torch.randperm(len(task.space()), generator=torch.Generator().manual_seed(0))[:500]
    problems = task.space().problems(numbers)
    again = task.parse(task.expressions(problems))
    assert torch.equal(problems.lengths_BN, again.lengths_BN)
    assert torch.equal(problems.operation_B, again.operation_B)
    assert torch.equal(problems.digits_BNW, again.digits_BNW)


def test_five_operations_of_three_digits_have_4_998_000_problems() -> None:
    task = TASKS["five-operations"].build()
    assert len(task.space()) == 4_998_000
    ends = torch.tensor([0, 123_045, 999_999, 1_000_000, 2_999_999, 3_000_000, 3_998_999])
    assert listed(task, ends) == [
        "0+0", "123+45", "999+999", "0-0", "999*999", "0//1", "999//999"
    ]  # fmt: skip
    assert listed(task, torch.tensor([3_999_000, 4_997_999])) == ["0%1", "999%999"]


@pytest.mark.parametrize("modulus", [2, 10, 11, 113])
def test_all_pairs_of_residues_are_numbered(modulus: int) -> None:
    task = ModularAdditionConfig(modulus=modulus).build()
    assert len(task.space()) == modulus**2
    pairs = product(range(modulus), repeat=2)
    assert listed(task) == [f"{a}+{b} mod {modulus}" for a, b in pairs]


def test_the_largest_space_of_residues_is_numbered_to_its_end() -> None:
    task = ModularAdditionConfig(modulus=100_000).build()
    assert len(task.space()) == 10**10
    assert listed(task, torch.tensor([10**10 - 1])) == ["99999+99999 mod 100000"]


@pytest.mark.parametrize(
    ("config", "size"),
    [
        (ArithmeticConfig(max_digits=3), 1_000_000),
        (ArithmeticConfig(min_digits=3, max_digits=3), 810_000),
        (ArithmeticConfig(operations=("//",), max_digits=3), 999_000),
        (ArithmeticConfig(operations=("%",), operand_digits=(3, 1)), 8_100),
        (ArithmeticConfig(operations=("-",), operand_digits=(1, 1)), 100),
        (ArithmeticConfig(max_digits=9), 10**18),
        (ArithmeticConfig(min_operands=18, max_operands=18, max_digits=1), 10**18),
        (ArithmeticConfig(operations=("+", "-"), max_digits=9), 2 * 10**18),
    ],
)
def test_a_space_knows_its_size_without_enumerating_it(config: TaskConfig, size: int) -> None:
    assert len(config.build().space()) == size


@pytest.mark.parametrize(
    "numbers", [[5, 4, 3, 3, 3], [0], [279, 0, 140, 150], list(range(279, -1, -7)), []], ids=str
)
def test_any_numbers_give_the_problems_that_a_walk_through_all_of_them_gives(
    numbers: list[int],
) -> None:
    task = task_of("+", "//", "%", max_digits=1)
    every = listed(task)
    assert listed(task, torch.tensor(numbers, dtype=torch.int64)) == [every[n] for n in numbers]


def test_slices_of_the_space_join_to_the_whole() -> None:
    task = task_of("-", "%", max_digits=2)
    slices = torch.arange(len(task.space())).split(777)
    assert [text for part in slices for text in listed(task, part)] == listed(task)


def test_the_last_problems_of_a_huge_space_are_exact() -> None:
    task = task_of("+", max_digits=9)
    last = torch.tensor([10**18 - 1, 10**18 - 2, 10**18 - 10**9, 123_456_789_987_654_321])
    assert listed(task, last) == [
        "999999999+999999999",
        "999999999+999999998",
        "999999999+0",
        "123456789+987654321",
    ]


@pytest.mark.parametrize(
    "config",
    [
        ArithmeticConfig(max_digits=10),
        ArithmeticConfig(max_digits=18),
        ArithmeticConfig(max_digits=19),
        ArithmeticConfig(max_digits=1_000_000),
        ArithmeticConfig(operand_digits=(1, 19)),
        ArithmeticConfig(operations=ALL, max_digits=9),
        ArithmeticConfig(min_operands=19, max_operands=19, max_digits=1),
        ArithmeticConfig(max_operands=3, max_digits=1),
        TASKS["add-many"],
        TASKS["sort"],
    ],
    ids=lambda config: f"{config.kind} {config.max_digits}",
)
def test_what_is_too_much_or_has_varying_counts_is_not_numbered(config: TaskConfig) -> None:
    assert config.build().space() is None


def test_all_that_is_drawn_of_a_small_space_is_in_it() -> None:
    generator = torch.Generator().manual_seed(0)
    for settings in ({"max_digits": 1}, {"operand_digits": (2, 1)}, {"min_digits": 2}):
        task = task_of(*ALL, **{"max_digits": 2, **settings})
        drawn = task.expressions(task.draw(task.draw_shapes(2_000, generator), generator))
        assert set(drawn) <= set(listed(task))


def test_a_space_is_what_its_ranges_say() -> None:
    space = Space(("-", "*"), (((3, 5), (0, 1)), ((8, 12), (7, 9))))
    assert (len(space), space.sizes, space.is_countable) == (10, (2, 8), True)
    problems = space.problems(torch.arange(10))
    a, b = (problems.operand(i).texts() for i in range(2))
    assert [OPERATIONS[o] for o in problems.operation_B.tolist()] == ["-"] * 2 + ["*"] * 8
    assert list(zip(a, b, strict=True)) == [
        ("3", "0"), ("4", "0"), ("8", "7"), ("8", "8"), ("9", "7"),
        ("9", "8"), ("10", "7"), ("10", "8"), ("11", "7"), ("11", "8"),
    ]  # fmt: skip
