"""The lines in the docstrings of formats are those that the formats write."""

import importlib
import pkgutil
import re

import pytest
from extension_tasks import GreatestCommonDivisorConfig, column_task
from written_lines import Pair

import abacist.formats
from abacist.formats.config import FORMATS
from abacist.tasks.config import TASKS, ArithmeticConfig

EXAMPLE = re.compile(r">>> format\.text\(problem\)  # (\S+?),?(?: .*)?\n(.*)\n")
NAME_OF_MODULE = {"plain": "reversed", "__init__": "reversed", "signed_addition": "calculator"}
TASK_OF_MODULE = {
    "running_sums": TASKS["add-many"],
    "residues": TASKS["add-modulo"],
    "signed_addition": ArithmeticConfig(operations=("+", "-"), signed=True, max_digits=3),
    "labels": TASKS["sort"],
    "insertion_sort": TASKS["sort"],
    "columns": column_task("test-add"),
    "column_trace_digits": column_task("test-add"),
    "text": GreatestCommonDivisorConfig(),
}

EXAMPLES = [
    (module, problem, line)
    for module in [
        "__init__",
        *(info.name for info in pkgutil.iter_modules(abacist.formats.__path__)),
    ]
    for problem, line in EXAMPLE.findall(
        importlib.import_module(f"abacist.formats.{module}".removesuffix(".__init__")).__doc__ or ""
    )
]


@pytest.mark.parametrize(("module", "problem", "line"), EXAMPLES)
def test_an_example_in_a_docstring_is_what_the_format_writes(
    module: str, problem: str, line: str
) -> None:
    config = FORMATS[NAME_OF_MODULE.get(module, module.replace("_", "-"))]
    operation = re.search(r"//|[-+*%]", problem)
    task = TASK_OF_MODULE.get(module)
    if task is None and operation:
        task = ArithmeticConfig(operations=(operation[0],), max_digits=3)
    assert Pair(module, task, config).typed(problem) == [line.strip("'\"")]


def test_every_format_has_an_example() -> None:
    assert len({module for module, _, _ in EXAMPLES}) == 18
