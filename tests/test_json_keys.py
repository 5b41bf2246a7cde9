"""Keys of JSON that docs/json.md promises to scripts are printed, with the promised types."""

import json
import re
from pathlib import Path

import pytest

from abacist.cli import main

PAGE = (Path(__file__).parents[1] / "docs" / "json.md").read_text()
TYPES = {
    "boolean": bool, "integer": int, "number": float, "string": str, "array": list, "null": type(None),
}  # fmt: skip


def promised(section: str) -> dict[str, tuple[type, ...]]:
    """Return the types of every key that a section of the page promises."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| ([a-z ]+) \| .+ \|$", text, flags=re.MULTILINE)
    return {key: tuple(TYPES[name] for name in types.split(" or ")) for key, types in rows}


def assert_holds(printed: dict[str, object], section: str) -> None:
    keys = promised(section)
    assert keys.keys() <= printed.keys()
    for key, types in keys.items():
        assert type(printed[key]) in types, f"{key} is {printed[key]!r}"


@pytest.mark.parametrize(
    ("section", "keys"),
    [
        (
            "prove",
            {"certified", "neighbourhoods", "wrong", "smallest_margin"}
            | {"weights_sha256", "configuration_sha256"},
        ),
        (
            "solve",
            {"problem", "answer", "expected", "correct", "text", "expected_text", "perplexity"},
        ),
        ("compare", {"runs", "trained_alike", "rows"}),
        ("compare groups", {"groups", "trained_alike", "rows"}),
        ("model", {"parameters"}),
        ("data export", {"problem", "answer"}),
    ],
)
def test_the_page_promises_the_keys_that_scripts_read(section, keys):
    assert promised(section).keys() == keys


def test_prove_prints_the_promised_keys(untrained, capsys):
    assert main(["prove", str(untrained.path), "--json"]) == 1
    assert_holds(json.loads(capsys.readouterr().out), "prove")


def test_a_proof_that_cannot_begin_prints_them_as_well(quick_settings, tmp_path, capsys):
    import abacist

    settings = quick_settings | {"model.positions": "gpt2"}
    run = abacist.train("add", out=tmp_path / "run", settings=settings, threads=1)
    assert main(["prove", str(run.path), "--json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert_holds(printed, "prove")
    assert (printed["neighbourhoods"], printed["smallest_margin"]) == (0, None)


def test_solve_prints_the_promised_keys(untrained, capsys):
    main(["solve", str(untrained.path), "12+34", "5+6", "--json"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["problem"] for line in lines] == ["12+34", "5+6"]
    for line in lines:
        assert_holds(line, "solve")


def test_model_prints_the_promised_keys(capsys):
    assert main(["model", "add", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert_holds(printed, "model")
    assert printed["parameters"] == 13_676


def test_compare_prints_the_promised_keys(untrained, capsys):
    names = [str(untrained.path)] * 2
    assert main(["score", names[0], "--num-problems", "4", "--longest", "10"]) == 0
    capsys.readouterr()
    assert main(["compare", *names, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert_holds(printed, "compare")
    row = printed["rows"][0]
    assert {"suite", "name", "measure", "proportions", "differences"} <= row.keys()
    assert row["differences"][0].keys() == {"value", "interval"}


def test_data_export_writes_the_promised_keys(tmp_path):
    path = tmp_path / "sums.jsonl"
    assert main(["data", "export", "add", "--num-problems", "3", "--out", str(path)]) == 0
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == 3
    for line in lines:
        assert_holds(line, "data export")
        assert str(eval(line["problem"])) == line["answer"]


def test_solutions_in_python_have_the_promised_attributes(untrained):
    (solution,) = untrained.solve(["12+34"])
    assert solution.answer is None or isinstance(solution.answer, str)
    assert solution.correct is (solution.answer == "46")
