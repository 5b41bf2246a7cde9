import re
from typing import Any

import pytest

from abacist.configuration import override
from abacist.errors import ConfigurationError
from abacist.tasks.config import (
    TASKS,
    ArithmeticConfig,
    ModularAdditionConfig,
    SortingConfig,
    TaskConfig,
)

MILLION = "1 to 1,000,000"
REFUSALS: list[tuple[type[TaskConfig], dict[str, Any], str]] = [
    (
        ArithmeticConfig,
        {"operations": ()},
        "task.operations must name each operation once, got ''. Try --task.operations +,-.",
    ),
    (
        ArithmeticConfig,
        {"operations": ("+", "-", "+")},
        "task.operations must name each operation once, got '+,-,+'. Try --task.operations +,-.",
    ),
    (
        ArithmeticConfig,
        {"operations": ("+", "-"), "weights": (1.0,)},
        "task.weights must give one number for each of 2 operations, got 1. Try --task.weights 1,1.",
    ),
    (
        ArithmeticConfig,
        {"operations": ("+", "-"), "weights": (0.5, 2.0, 1.0)},
        "task.weights must give one number for each of 2 operations, got 0.5,2,1. "
        "Try --task.weights 1,1.",
    ),
    *(
        (
            ArithmeticConfig,
            {"operations": ("+", "-"), "weights": weights},
            f"task.weights must be numbers from 0 up, not all 0, got {shown}. "
            "Try --task.weights 1,1.",
        )
        for weights, shown in [
            ((0.0, 0.0), "0,0"),
            ((-1.0, 2.0), "-1,2"),
            ((float("inf"), 1.0), "inf,1"),
            ((float("nan"), 1.0), "nan,1"),
        ]
    ),
    *(
        (
            ArithmeticConfig,
            {"min_operands": count},
            f"task.min_operands must be 2 to 25, got {count}. Try --task.min_operands 2.",
        )
        for count in (-1, 0, 1, 26)
    ),
    *(
        (
            ArithmeticConfig,
            {"max_operands": count},
            f"task.max_operands must be 2 to 25, got {count}. Try --task.max_operands 2.",
        )
        for count in (1, 26)
    ),
    (
        ArithmeticConfig,
        {"min_operands": 4, "max_operands": 3},
        "task.max_operands must be 4 to 25, got 3. Try --task.max_operands 4.",
    ),
    *(
        (
            ArithmeticConfig,
            {"operations": operations, "max_operands": 3},
            f"task.max_operands above 2 is for sums only, got 3 with {','.join(operations)}. "
            "Try --task.max_operands 2.",
        )
        for operations in [("*",), ("+", "-")]
    ),
    *(
        (
            ArithmeticConfig,
            {"max_digits": digits},
            f"task.max_digits must be {MILLION}, got {digits}. Try --task.max_digits 10.",
        )
        for digits in (-5, 0, 1_000_001)
    ),
    (
        ArithmeticConfig,
        {"min_digits": 0},
        "task.min_digits must be 1 to 10, got 0. Try --task.min_digits 1.",
    ),
    (
        ArithmeticConfig,
        {"min_digits": 5, "max_digits": 4},
        "task.min_digits must be 1 to 4, got 5. Try --task.min_digits 1.",
    ),
    *(
        (
            ArithmeticConfig,
            {"operand_digits": digits},
            f"task.operand_digits must be {MILLION}, got {digits[-1]}. "
            "Try --task.operand_digits 10,10.",
        )
        for digits in [(5, 0), (5, 1_000_001)]
    ),
    (
        ArithmeticConfig,
        {"operand_digits": (20,)},
        "task.operand_digits must give one length for each of 2 operands, got 20. "
        "Try --task.operand_digits 10,10.",
    ),
    (
        ArithmeticConfig,
        {"operand_digits": (20, 10, 5)},
        "task.operand_digits must give one length for each of 2 operands, got 20,10,5. "
        "Try --task.operand_digits 10,10.",
    ),
    (
        ArithmeticConfig,
        {"operand_digits": (20, 10), "min_operands": 3, "max_operands": 3},
        "task.operand_digits must give one length for each of 3 operands, got 20,10. "
        "Try --task.operand_digits 10,10,10.",
    ),
    (
        ArithmeticConfig,
        {"operand_digits": (20, 10), "sampling": "values"},
        "task.operand_digits fixes the lengths that task.sampling values would draw. "
        "Try --task.sampling lengths.",
    ),
    (
        ArithmeticConfig,
        {"operations": ("-",), "sampling": "carry-chains"},
        "task.sampling carry-chains is for sums of 2 operands, got - of up to 2. "
        "Try --task.sampling lengths.",
    ),
    (
        ArithmeticConfig,
        {"max_operands": 3, "sampling": "carry-chains"},
        "task.sampling carry-chains is for sums of 2 operands, got + of up to 3. "
        "Try --task.sampling lengths.",
    ),
    *(
        (
            ArithmeticConfig,
            {"carry_chains": (1.0, 2.0), "sampling": sampling},
            f"task.carry_chains needs task.sampling carry-chains, got {sampling}. "
            "Try --task.sampling carry-chains.",
        )
        for sampling in ("lengths", "values")
    ),
    *(
        (
            ArithmeticConfig,
            {"carry_chains": chains, "sampling": "carry-chains"},
            f"task.carry_chains must be numbers from 0 up, not all 0, got {shown}. "
            f"Try --task.carry_chains {','.join('1' * len(chains))}.",
        )
        for chains, shown in [
            ((0.0,), "0"),
            ((1.0, -1.0), "1,-1"),
            ((float("nan"), 1.0, 1.0), "nan,1,1"),
        ]
    ),
    *(
        (
            SortingConfig,
            {"max_numbers": count},
            f"task.max_numbers must be 1 to 52, got {count}. Try --task.max_numbers 10.",
        )
        for count in (0, 53)
    ),
    (
        SortingConfig,
        {"min_numbers": 0},
        "task.min_numbers must be 1 to 10, got 0. Try --task.min_numbers 2.",
    ),
    (
        SortingConfig,
        {"min_numbers": 6, "max_numbers": 5},
        "task.min_numbers must be 1 to 5, got 6. Try --task.min_numbers 2.",
    ),
    *(
        (
            SortingConfig,
            {"max_digits": digits},
            f"task.max_digits must be {MILLION}, got {digits}. Try --task.max_digits 10.",
        )
        for digits in (0, 1_000_001)
    ),
    (
        SortingConfig,
        {"min_digits": 11},
        "task.min_digits must be 1 to 10, got 11. Try --task.min_digits 1.",
    ),
    *(
        (
            ModularAdditionConfig,
            {"modulus": modulus},
            f"task.modulus must be 2 to 100,000, got {modulus}. Try --task.modulus 113.",
        )
        for modulus in (-113, 0, 1, 100_001)
    ),
]
each_refusal = pytest.mark.parametrize(("config", "changes", "message"), REFUSALS)


@each_refusal
def test_a_refusal_names_the_value_the_range_and_the_remedy(
    config: type[TaskConfig], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        config(**changes)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("config", "changes", "message"),
    REFUSALS,
)
def test_doing_what_a_refusal_says_helps(
    config: type[TaskConfig], changes: dict[str, Any], message: str
) -> None:
    name, typed = re.search(r"Try --task\.(\w+) (\S+)\.$", message).groups()
    followed = override(config(), {**changes, name: typed})
    value = getattr(followed, name)
    values = value if isinstance(value, tuple) else (value,)
    assert ",".join(f"{v:g}" if isinstance(v, float) else str(v) for v in values) == typed


@pytest.mark.parametrize("value", [True, False])
def test_truth_values_are_no_numbers(value: bool) -> None:
    with pytest.raises(ConfigurationError, match=f"got {value}"):
        ArithmeticConfig(max_digits=value)


@pytest.mark.parametrize(
    ("config", "changes"),
    [
        (ArithmeticConfig, {"max_digits": 1_000_000, "min_digits": 1_000_000}),
        (ArithmeticConfig, {"min_operands": 25, "max_operands": 25}),
        (ArithmeticConfig, {"max_operands": 3, "operand_digits": ()}),
        (ArithmeticConfig, {"operand_digits": (1_000_000, 1)}),
        (ArithmeticConfig, {"operations": ("+", "-"), "weights": (0.0, 5.0)}),
        (ArithmeticConfig, {"sampling": "carry-chains", "operand_digits": (5, 5)}),
        (ArithmeticConfig, {"sampling": "carry-chains", "carry_chains": (0.0, 1.0)}),
        (SortingConfig, {"min_numbers": 52, "max_numbers": 52}),
        (ModularAdditionConfig, {"modulus": 2}),
        (ModularAdditionConfig, {"modulus": 100_000}),
    ],
)
def test_settings_at_the_ends_of_their_ranges_are_accepted(
    config: type[TaskConfig], changes: dict[str, Any]
) -> None:
    constructed = config(**changes)
    assert {name: getattr(constructed, name) for name in changes} == changes


@pytest.mark.parametrize(
    ("changes", "longest"),
    [({}, 10), ({"max_digits": 3}, 3), ({"operand_digits": (20, 5)}, 20)],
    ids=str,
)
def test_the_longest_operand_is_the_longest_that_is_drawn(
    changes: dict[str, Any], longest: int
) -> None:
    assert ArithmeticConfig(**changes).longest_operand == longest


def test_a_name_stands_for_each_operation() -> None:
    assert {name: task.operations for name, task in TASKS.items() if task.kind == "arithmetic"} == {
        "add": ("+",),
        "add-many": ("+",),
        "subtract": ("-",),
        "multiply": ("*",),
        "divide": ("//",),
        "modulo": ("%",),
        "five-operations": ("+", "-", "*", "//", "%"),
    }
    assert sum(TASKS["five-operations"].weights) == pytest.approx(1)
