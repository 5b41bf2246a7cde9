"""Column tasks: a function that reads one column of digits becomes a task, a recipe and a certificate.

@column_task("add-base-7", base=7)
def add_base_7(carry, digits):
    total = digits.sum(-1) + carry
    return total % 7, total // 7

$ abacist train --extension my_tasks.py add-base-7
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, TypeVar

from abacist import recipes
from abacist.certificates.certificate import MAX_MINUTES
from abacist.data.config import SplitConfig
from abacist.errors import ConfigurationError
from abacist.extensions import check_name
from abacist.formats.columns import MOST_STATE_TOKENS
from abacist.formats.config import FORMATS, ColumnsFormatConfig, ColumnTraceDigitsFormatConfig
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
_MOST_COLUMNS = 20
"""Number of columns up to which problems are made long enough for a machine that enters some states late."""
_FEWEST_SPLIT = 10_000
"""Numbers of a length with at most this many values are not split: some shapes would have no test problem."""

_WINDOWS = {
    "columns": (PositionScheme(encoding="relative", coordinate="place", window=(0, 1)),),
    "column-trace": (PositionScheme(encoding="relative", coordinate="place", window=(0, 0)),),
    "column-trace-digits": (
        PositionScheme(encoding="relative", coordinate="step", window=(-3, 0), init_std=1.0),
        PositionScheme(encoding="relative", coordinate="place", window=(-1, 0)),
    ),
}
"""Position schemes with which tokens see the columns that they depend on, by notation."""


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
        # Half of the columns of the longest problems can be entered in any state.
        most_digits = max(6 if base > 2 else 8, min(2 * machine.depth + 2, _MOST_COLUMNS))
        task = ColumnTaskConfig(machine=name, max_digits=most_digits)
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
    column, states = machine.rule.base**machine.num_operands, len(machine.states)
    cases = column**2 * states
    if not machine.state_is_described:
        reason = "the digits of a column and the digit written do not tell the next state"
    elif cases > _MOST_PLAIN_CASES:
        reason = (
            f"two columns of {machine.num_operands} operands and a state have {cases:,} combinations, "
            f"and one column has {column * states:,}"
        )
    elif machine.rule.base == 2 and machine.num_operands > 1 and states > 1:
        # With the plain notation, add-binary stayed at chance for 1,000 steps in one of two seeds.
        reason = (
            "in base 2 a model is slow to learn how the digits of several operands tell the state"
        )
    elif machine.rule.left_over == "state" and machine.num_states > MOST_STATE_TOKENS:
        reason = "a state can be left over"
    else:
        return "columns", "the digits of a column and the digit written tell the next state."
    if machine.num_states <= MOST_STATE_TOKENS:
        return "column-trace", f"{reason}."
    return (
        "column-trace-digits",
        f"{reason}, and {machine.num_states:,} states are more than the {MOST_STATE_TOKENS} that can "
        "have a token each.",
    )


def warning_about_proof(recipe: Recipe) -> str | None:
    """Return why a column task in the notation of a recipe will hardly be certified, or None."""
    if not isinstance(recipe.task, ColumnTaskConfig):
        return None
    if not isinstance(recipe.format, ColumnsFormatConfig | ColumnTraceDigitsFormatConfig):
        return None
    machine = COLUMN_TASKS[recipe.task.machine]
    doubt = _too_many_contexts(machine, recipe) or _unreached_states(machine, recipe.task)
    return None if doubt is None else f"{machine.name} will hardly be certified: {doubt}"


def _too_many_contexts(machine: ColumnMachine, recipe: Recipe) -> str | None:
    column = machine.rule.base**machine.num_operands
    traced = column * len(machine.states)
    what, cases = f"one column of {machine.num_operands} operands and a state", traced
    advice = "Try fewer operands or a smaller base."
    if isinstance(recipe.format, ColumnTraceDigitsFormatConfig):
        what = f"{what}, before each of the tokens that follow from them,"
        cases = traced * tokens_that_follow(machine)
        advice = "Try fewer states, fewer operands or a smaller base."
    elif isinstance(recipe.format, ColumnsFormatConfig) and not recipe.format.states:
        what, cases = f"two columns of {machine.num_operands} operands and a state", traced * column
        if machine.num_states <= MOST_STATE_TOKENS:
            advice = f"Try --format column-trace, where one column and a state have {traced:,}."
    minutes = cases / _CHECKED_A_MINUTE
    if minutes <= MAX_MINUTES:
        return None
    return (
        f"{what} have {cases:,} combinations, and checking them would take about "
        f"{minutes / 60:,.0f} hours; abacist prove gives up after {MAX_MINUTES:.0f} minutes. {advice}"
    )


def _unreached_states(machine: ColumnMachine, task: ColumnTaskConfig) -> str | None:
    if machine.depth < task.max_digits:
        return None
    return (
        f"it has states that are entered after {machine.depth} columns at the earliest, and training "
        f"problems have at most {task.max_digits} columns. Try --task.max_digits {2 * machine.depth + 2}."
    )


def tokens_that_follow(machine: ColumnMachine) -> int:
    """Return the number of tokens for each column that follow from its digits and the state, as digits.

    They are the digit written, every digit of the next state, and the bracket after them.
    """
    return len(str(machine.num_states - 1)) + 2


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
    cases = machine.rule.base**machine.num_operands * len(machine.states)
    exempt = math.ceil(math.log(_FEWEST_SPLIT, machine.rule.base))
    training = TrainingConfig(num_steps=1_500, batch_size=128, learning_rate=1e-2)
    if notation == "column-trace" and cases > _MANY_TRACED_CASES:
        training = replace(training, num_steps=2_500)
    with_digits = notation == "column-trace-digits"
    if with_digits:
        # Lines are several times as long. Of five seeds, 1,500 or 3,000 steps certified two.
        training = replace(training, num_steps=4_500, batch_size=32)
        training = replace(training, validation_problems=200, sample_problems=50)
    return Recipe(
        name=machine.name,
        task=task,
        format=FORMATS[notation],
        split=SplitConfig(exempt_digits=exempt),
        model=ModelConfig(
            width=32,
            num_heads=4,
            mlp_width=128,
            positions=(
                *_WINDOWS[notation],
                PositionScheme(
                    encoding="relative",
                    coordinate="row",
                    window=(-1 - machine.num_operands, 0) if with_digits else None,
                    max_distance=machine.num_operands + 1,
                    init_std=1.0,
                ),
            ),
        ),
        training=training,
        scoring=ScoringConfig(),
    )
