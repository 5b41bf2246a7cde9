"""The tables of docs/systems: filled in from recipes and records, with commands that exist."""

import re
import shlex
from pathlib import Path

import pytest
import typed_commands
from test_docs import benchmark
from test_published_recipes import HYPERPARAMETERS

from abacist.recipes import RECIPES
from abacist.recipes.examinations import EXAMINATIONS

ROOT = Path(__file__).parents[1]
document_tables = benchmark("document_tables")
NAMES = document_tables.names()
FACTS = {name: document_tables.read(name) for name in NAMES}


def commands(name: str) -> list[str]:
    facts = FACTS[name]
    rows = [fact for facts_of_section in facts.sections.values() for fact in facts_of_section]
    return sorted({document_tables.command(fact, facts.recipe) for fact in rows})


def test_the_tables_are_those_that_recipes_and_records_give():
    for path, text in document_tables.pages().items():
        assert text == path.read_text(), path


def test_every_document_has_a_table():
    pages = {path.stem for path in (ROOT / "docs" / "systems").glob("*.md")} - {"README"}
    assert set(NAMES) == pages
    for facts in FACTS.values():
        assert facts.recipe in RECIPES
        assert "Figures" in facts.sections


@pytest.mark.parametrize("name", NAMES)
def test_every_command_of_a_table_can_be_typed(name, monkeypatch):
    for command in commands(name):
        words = shlex.split(command)
        if words[0] == "abacist":
            typed_commands.check(command, monkeypatch)
        elif words[0] == "python":
            assert (ROOT / words[1]).is_file(), command
            if words[1] == "benchmarks/records.py":
                assert words[2] in EXAMINATIONS, command
        else:
            assert (ROOT / command).is_file(), command


@pytest.mark.parametrize("name", HYPERPARAMETERS)
def test_every_hyperparameter_of_a_document_has_its_row(name):
    (facts,) = [facts for facts in FACTS.values() if belongs(name, facts.recipe)]
    rows = [fact.ours for section in facts.sections.values() for fact in section]
    for path in HYPERPARAMETERS[name]:
        assert any(f" | {path}}}" in ours for ours in rows), path


def belongs(name: str, recipe: str) -> bool:
    family = r"(parallel-encoder|looped-abacus|spaced|five-operations|three-digit)"
    return re.match(family, name)[0] == re.match(family, recipe)[0]


def test_only_recipes_that_need_a_gpu_lack_a_record():
    for facts in FACTS.values():
        for fact in [fact for section in facts.sections.values() for fact in section]:
            if "no record" in fact.ours:
                assert fact.ours == "no record: it needs a GPU"
                recipe = fact.command.split()[2]
                assert not (ROOT / "results" / f"{recipe}.json").exists()


def test_braces_that_mean_nothing_are_refused():
    with pytest.raises(KeyError):
        document_tables.filled_in("{settign | model.width}", "add")
    assert document_tables.filled_in("{setting | model.width}", "add") == "32"
    assert document_tables.filled_in("{wrong | 100 digits}", "add") == "0 of 1,000"
