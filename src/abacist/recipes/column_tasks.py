"""Column tasks: a function that reads one column of digits becomes a task, a recipe and a certificate.

@column_task("add-base-7", base=7)
def add_base_7(carry, digits):
    total = digits.sum(-1) + carry
    return total % 7, total // 7

$ abacist train --extension my_tasks.py add-base-7
"""

import math
from collections.abc import Callable
from typing import Literal, TypeVar

from abacist import recipes
from abacist.certificates.certificate import MAX_MINUTES
from abacist.data.config import SplitConfig
from abacist.errors import ConfigurationError
from abacist.extensions import check_name
from abacist.formats.columns import MOST_STATE_TOKENS
from abacist.formats.config import FORMATS, ColumnsFormatConfig
from abacist.models.config import ModelConfig, PositionScheme
from abacist.recipes.recipe import Recipe
from abacist.scoring.config import ScoringConfig
from abacist.tasks.column_machine import ColumnMachine, Oracle
from abacist.tasks.column_rule import ColumnRule, ColumnStep, LeftOver
from abacist.tasks.column_task import in_base
from abacist.tasks.config import COLUMN_TASKS, TASKS, ColumnTaskConfig
from abacist.training.config import TrainingConfig

Step = TypeVar("Step", bound=ColumnStep)

_MOST_PLAIN_CASES = 25_000
"""Largest number of contexts for which the plain notation is chosen. Checking them takes half a minute."""
_MANY_TRACED_CASES = 1_000
"""Number of pairs of a column and a state above which 1,500 steps missed one: sum-of-three, with 3,000."""
_CHECKED_A_MINUTE = 60_000
"""Combinations of columns and a state that are checked in a minute of one core, roughly."""
_FEWEST_SPLIT = 10_000
"""Numbers of a length with at most this many values are not split: some shapes would have no test problem."""


def column_task(
    name: str,
    *,
    base: int = 10,
    operands: int = 2,
    direction: Literal[
        "least-significant-first", "most-significant-first"
    ] = "least-significant-first",
    symbol: str = ",",
    left_over: LeftOver = "digits",
    answer: Oracle | None = None,
) -> Callable[[Step], Step]:
    """Register a task that a finite-state machine carries out, and a recipe of the same name.

    The decorated function is one step of the machine, for n cases at once. It receives the state,
    int64 (n,), and the digits of one column, int64 (n, operands), and returns the digit written and
    the next state, int64 (n,) each. The machine starts in state 0.

    Args:
        name: name of the task and of its recipe.
        base: base of the numbers, 2 to 36, with the digits 0–9 and a–z.
        operands: number of operands, 1 to 4.
        direction: the column that is read first. From the most significant one, shorter operands have
            zeros before them.
        symbol: character between the operands of a problem, as in `12,34`.
        left_over: what a final state other than 0 adds to the answer. `digits`: the machine reads columns
            of zeros until its state is 0. `sign`: the answer is negative, and its digits are the
            complement. `state`: `;` and the state, as in `18;4`. `nothing`: nothing.
        answer: an independent definition of the answer: a function of the operands, as Python integers,
            that returns the answer as text.

    Raises `ConfigurationError` if a setting is outside its range, a name is taken, the machine is not
    defined in every state that it can enter, or `answer` disagrees with it.
    """
    check_name("column task", name)
    if direction not in ("least-significant-first", "most-significant-first"):
        raise ConfigurationError(
            f"{name}: direction must be least-significant-first or most-significant-first, "
            f"got {direction!r}."
        )

    def register(step: Step) -> Step:
        rule = ColumnRule(step, left_over, base, direction == "most-significant-first")
        machine = ColumnMachine(name, rule, operands, symbol, answer)
        notation, reason = choose_notation(machine)
        COLUMN_TASKS.register(name, machine)
        task = ColumnTaskConfig(machine=name, max_digits=6 if base > 2 else 8)
        try:
            _check_oracle(machine, task)
        except ConfigurationError:
            del COLUMN_TASKS[name]
            raise

        def recipe() -> Recipe:
            return make_recipe(machine, task, notation)

        summary = " ".join((step.__doc__ or f"The column task {name}.").split())
        recipe.__doc__ = f"{summary}\n\nNotation: {notation}, because {reason}"
        TASKS.register(name, task)
        recipes.RECIPES.register(name, recipe)
        return step

    return register


def choose_notation(machine: ColumnMachine) -> tuple[str, str]:
    """Return the format in which a column task is certified, and the reason, as part of a sentence."""
    column = machine.rule.base**machine.num_operands
    if not machine.state_is_described:
        return (
            "column-trace",
            "the digits of a column and the digit written do not tell the next state.",
        )
    cases = column**2 * len(machine.states)
    if cases > _MOST_PLAIN_CASES and machine.num_states <= MOST_STATE_TOKENS:
        return (
            "column-trace",
            f"two columns of {machine.num_operands} operands and a state have {cases:,} combinations, "
            f"and one column has {column * len(machine.states):,}.",
        )
    return "columns", "the digits of a column and the digit written tell the next state."


def warning_about_proof(recipe: Recipe) -> str | None:
    """Return why a column task in the notation of a recipe has too many contexts to check, or None."""
    if not isinstance(recipe.task, ColumnTaskConfig):
        return None
    if not isinstance(recipe.format, ColumnsFormatConfig):
        return None
    machine = COLUMN_TASKS[recipe.task.machine]
    column = machine.rule.base**machine.num_operands
    traced = column * len(machine.states)
    cases = traced if recipe.format.states else traced * column
    minutes = cases / _CHECKED_A_MINUTE
    if minutes <= MAX_MINUTES:
        return None
    what = "one column" if recipe.format.states else "two columns"
    advice = "Try fewer operands or a smaller base."
    if not recipe.format.states and machine.num_states <= MOST_STATE_TOKENS:
        advice = f"Try --format column-trace, where one column and a state have {traced:,}."
    return (
        f"{machine.name} will hardly be certified: {what} of {machine.num_operands} operands and a "
        f"state have {cases:,} combinations, and checking them would take about {minutes / 60:,.0f} "
        f"hours; abacist prove gives up after {MAX_MINUTES:.0f} minutes. {advice}"
    )


def _check_oracle(machine: ColumnMachine, config: ColumnTaskConfig) -> None:
    if machine.oracle is None:
        return
    task = config.build()
    rows = [
        [in_base(number, machine.rule.base) for number in row] for row in machine.oracle_problems()
    ]
    task.check_oracle(task.parse([task.symbol.join(row) for row in rows]))


def make_recipe(machine: ColumnMachine, task: ColumnTaskConfig, notation: str) -> Recipe:
    """Return the recipe that trains a column task in a notation."""
    traced = notation == "column-trace"
    positions = (
        PositionScheme(
            encoding="relative", coordinate="place", window=(0, 0) if traced else (0, 1)
        ),
        PositionScheme(
            encoding="relative",
            coordinate="row",
            max_distance=machine.num_operands + 1,
            init_std=1.0,
        ),
    )
    cases = machine.rule.base**machine.num_operands * len(machine.states)
    num_steps = 2_500 if traced and cases > _MANY_TRACED_CASES else 1_500
    exempt = math.ceil(math.log(_FEWEST_SPLIT, machine.rule.base))
    return Recipe(
        name=machine.name,
        task=task,
        format=FORMATS[notation],
        split=SplitConfig(exempt_digits=exempt),
        model=ModelConfig(width=32, num_heads=4, mlp_width=128, positions=positions),
        training=TrainingConfig(num_steps=num_steps, batch_size=128, learning_rate=1e-2),
        scoring=ScoringConfig(),
    )
