"""The cost and the promise in a recipe's docstring are those of its committed record.

recipes/__init__.py describes the fixed words in which they are stated.
"""

import json
import re
from pathlib import Path
from runpy import run_path

import pytest

from abacist.recipes import RECIPES, find, promise
from abacist.runs.run import build_model

RESULTS = Path(__file__).parents[1] / "results"
RECORDED = [name for name in RECIPES if (RESULTS / f"{name}.json").exists()]
NUMBER = r"\d{1,3}(?:,\d{3})+|\d+"
COUNTS = re.compile(rf"((?:(?:{NUMBER}), )*(?:{NUMBER}) and (?:{NUMBER})|{NUMBER}) of ({NUMBER})\b")


def number(text: str) -> int:
    return int(text.replace(",", ""))


def seeds_of(name: str) -> list[dict]:
    return json.loads((RESULTS / f"{name}.json").read_text())["seeds"]


def stated(name: str, label: str) -> str:
    """Return the paragraph part that begins with `Cost:` or `Promise:`, on one line."""
    paragraph = promise(name)[1].partition("\n\n")[0]
    parts = dict(re.findall(r"(Cost|Promise): (.+?)(?=\n[A-Z][a-z]+: |\Z)", paragraph, re.DOTALL))
    return " ".join(parts[label].split())


def training_time(seeds: list[dict]) -> str:
    """Return the training time that the pages state of a record, as a docstring states it."""
    seconds = run_path(str(RESULTS.parent / "benchmarks/records.py"))["training_seconds"](seeds)
    is_clock_time = all(seed["processor_seconds"] is None for seed in seeds)
    rounded = f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:.0f} minutes"
    return f"about {rounded}{' (clock time)' * is_clock_time} of training on one core"


@pytest.mark.parametrize("name", RECIPES)
def test_the_stated_parameters_are_those_of_the_model(name):
    parameters = build_model(find(name)).num_parameters
    assert stated(name, "Cost").startswith(f"{parameters:,} parameters")


@pytest.mark.parametrize("name", RECORDED)
def test_the_stated_training_time_is_that_of_the_record(name):
    seeds = seeds_of(name)
    assert {seed["threads"] for seed in seeds} == {1}
    assert stated(name, "Cost") == f"{seeds[0]['parameters']:,} parameters, {training_time(seeds)}."


@pytest.mark.parametrize("name", RECORDED)
def test_the_promise_is_what_the_record_holds(name):
    text, seeds = stated(name, "Promise"), seeds_of(name)
    assert f"results/{name}.json" in text
    counts = {1 if n == "one" else int(n) for n in re.findall(r"(\d+|one) seeds?\b", text)}
    assert counts == {len(seeds)}
    certificates = [seed["certificate"] for seed in seeds]
    if all(certificates):
        certified = sum(certificate["certified"] for certificate in certificates)
        assert f"certified in {certified} of {len(seeds)} seed" in text
        for neighbourhoods in re.findall(rf"all ({NUMBER}) neighbourhoods right", text):
            expected = [(number(neighbourhoods), 0)] * len(seeds)
            assert [(c["neighbourhoods"], c["wrong"]) for c in certificates] == expected
    else:
        assert "certified" not in text
        assert COUNTS.search(text)
    for errors, n in COUNTS.findall(re.sub(r"certified in \d+ of \d+", "", text)):
        listed = [number(count) for count in re.findall(NUMBER, errors)]
        assert is_recorded(listed, number(n), seeds), f"{errors} of {n}"


def is_recorded(errors: list[int], n: int, seeds: list[dict]) -> bool:
    """Whether a row has these errors of `n` problems, one per seed or the same for all seeds.

    With a single seed, several numbers belong to several rows of `n` problems.
    """
    by_seed = [
        {(row["name"], row["measure"], row["n"]): row["errors"] for row in seed["rows"]}
        for seed in seeds
    ]
    rows = [[errors_of.get(row) for errors_of in by_seed] for row in by_seed[0] if row[2] == n]
    if len(seeds) == 1:
        return all([count] in rows for count in errors)
    return (errors if len(errors) > 1 else errors * len(seeds)) in rows


@pytest.mark.parametrize("name", RECORDED)
def test_the_stated_token_accuracy_is_that_of_the_record(name):
    text, seeds = stated(name, "Promise"), seeds_of(name)
    for shares in re.findall(r"((?:\d+, )*\d+ and \d+) % of the answer tokens right", text):
        rows = [row for seed in seeds for row in seed["rows"] if row["name"] == "all answer tokens"]
        expected = [round(100 * (1 - row["errors"] / row["n"])) for row in rows]
        assert [number(share) for share in re.findall(NUMBER, shares)] == expected


@pytest.mark.parametrize("name", RECORDED)
def test_the_stated_steps_and_losses_are_those_of_the_record(name):
    text, seeds = stated(name, "Promise"), seeds_of(name)
    for step in re.findall(rf"right by step ({NUMBER})", text):
        assert [seed["steps_to_target"] for seed in seeds] == [number(step)] * len(seeds)
    for loss, step in re.findall(rf"loss of ([\d.]+) at step ({NUMBER})", text):
        curve = {point["step"]: point["loss"] for point in seeds[0]["curve"]}
        assert f"{curve[number(step)]:.2f}" == loss


@pytest.mark.parametrize("name", [name for name in RECIPES if name not in RECORDED])
def test_a_recipe_without_a_record_promises_nothing(name):
    assert stated(name, "Promise").startswith("none yet")
    assert "about" not in stated(name, "Cost")


def test_every_record_was_made_with_the_settings_of_its_recipe():
    for name in RECORDED:
        recipe = find(name)
        for seed in seeds_of(name):
            assert seed["batch_size"] in (None, recipe.training.batch_size), name
            repairs = seed["steps"] - recipe.training.num_steps
            rounds = range(0, recipe.training.most_steps, recipe.training.repair_steps)
            is_whole = repairs in rounds[: recipe.training.repair_rounds + 1]
            assert recipe.training.stop_at or is_whole, name
