"""The page on extensions and the files of `examples/`: what is printed is what runs."""

import importlib.util
import json
import re
import shlex
from pathlib import Path

import pytest

from abacist import extensions
from abacist.cli import main
from abacist.recipes import RECIPES, find
from abacist.tasks.column_task import ColumnTask

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text()
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
RECORD = json.loads((ROOT / "results" / "column-tasks.json").read_text())


@pytest.fixture(autouse=True)
def in_root(registries_as_before, monkeypatch):
    """Commands of the page are typed in the root of the repository."""
    monkeypatch.chdir(ROOT)


def test_the_files_printed_are_the_examples():
    printed = re.findall(r"```python\n# (examples/\w+\.py)\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(printed) == 7
    for path, text in printed:
        assert text == (ROOT / path).read_text(), path


@pytest.mark.parametrize(
    ("command", "output"), re.findall(r"```console\n\$ (.*?)\n(.*?)```", PAGE, flags=re.DOTALL)
)
def test_a_command_of_the_page_prints_what_is_shown(command, output, capsys):
    program, *arguments = shlex.split(command)
    assert program == "abacist"
    assert main(arguments) == 0
    assert capsys.readouterr().out.rstrip() == output.rstrip()


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_is_short_and_its_recipe_can_write_its_problems(file):
    assert len(file.read_text().splitlines()) <= 35
    before = set(RECIPES)
    extensions.load(str(file))
    for name in set(RECIPES) - before:
        recipe = find(name)
        task = recipe.task.build()
        format = recipe.format.build(recipe.task)
        problems = task.parse([task.example])
        answer = task.answer(problems)
        assert format.read(format.write(problems, answer).ids) == answer.texts()
        if isinstance(task, ColumnTask):
            assert task.machine.oracle is not None, "an example states its answers a second time"


@pytest.fixture(scope="module")
def benchmark():
    specification = importlib.util.spec_from_file_location("b", ROOT / "benchmarks/column_tasks.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_table_of_column_tasks_is_that_of_the_record(benchmark):
    assert benchmark.with_table(PAGE, RECORD) == PAGE
    assert "| [add-base-7](../examples/add_base_7.py) | 10 |" in PAGE
    assert all(example["seeds"] for example in RECORD["tasks"].values())


def test_the_record_is_that_of_the_examples_with_their_present_settings(benchmark):
    for name, example in RECORD["tasks"].items():
        file = ROOT / example["file"]
        extensions.load(str(file))
        assert {**example, "seeds": []} == {**benchmark.entry(file, find(name)), "seeds": []}
