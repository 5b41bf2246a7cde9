"""The numbers of tables as CSV."""

import csv
import json

import pytest

import abacist
from abacist.cli import main
from abacist.data.check import AnswerStatistics, DataCheck
from abacist.intervals import Proportion
from abacist.recipes import RECIPES
from abacist.reports import csv_records
from abacist.scoring.comparison import common_rows, shares_of
from abacist.scoring.records import Row, Scorecard, Section

CARD = Scorecard(
    {
        "lengths": Section(
            "by length",
            [
                Row("3 digits", "trained", 3, Proportion(9, 10), 0.5),
                Row("30 digits, say", "beyond", 30, None, note='too "long"'),
            ],
        )
    }
)


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_every_row_of_a_scorecard_is_a_line(tmp_path):
    csv_records.write(tmp_path / "card.csv", csv_records.of_scorecard(CARD))
    scored, unscored = rows_of(tmp_path / "card.csv")
    low, high = Proportion(9, 10).interval
    assert scored == {
        "suite": "lengths", "kind": "trained", "problems": "3 digits", "digits": "3",
        "measure": "exact match", "right": "9", "n": "10", "share": "0.9", "low": str(low),
        "high": str(high), "smallest_margin": "0.5", "note": "",
    }  # fmt: skip
    assert (unscored["right"], unscored["n"], unscored["note"]) == ("", "0", 'too "long"')


def test_a_comparison_has_a_line_for_each_run_and_row(tmp_path):
    other = Scorecard({"lengths": Section("x", [Row("3 digits", "trained", 3, Proportion(5, 10))])})
    rows = common_rows([shares_of(CARD), shares_of(other)])
    csv_records.write(tmp_path / "c.csv", csv_records.of_comparison(["one", "two"], rows))
    first, second = rows_of(tmp_path / "c.csv")
    assert (first["run"], first["share"], first["difference"]) == ("one", "0.9", "")
    assert (second["run"], second["share"]) == ("two", "0.5")
    assert float(second["difference"]) == pytest.approx(-0.4)


def test_a_check_of_problems_has_a_line_for_each_number(tmp_path):
    outcome = DataCheck(
        5, {"train": 5}, {"train & test": 0}, {"digits": {1: 2, 2: 3}}, {"+": {"train": 5}},
        {"train": AnswerStatistics(-1, 8, 2.5, 1.5)},
    )  # fmt: skip
    csv_records.write(tmp_path / "c.csv", csv_records.of_check(outcome))
    numbers = {(r["table"], r["row"], r["column"]): r["value"] for r in rows_of(tmp_path / "c.csv")}
    assert numbers["answers", "train", "standard_deviation"] == "1.5"
    assert numbers["operations", "+", "train"] == "5"
    assert numbers["digits", "2", "problems"] == "3"
    assert len(numbers) == 1 + 1 + 2 + 1 + 4


FINDINGS = {
    "attention": {
        "tokens": ["1", "+"],
        "likeliest": [["1", "2"], ["3", "4"]],
        "pattern": {"axes": ["query", "key"], "values": [[1.0, 0.0], [0.25, 0.75]]},
    },
    "ablation": {
        "whole": Proportion(9, 10).to_json(),
        "without": [{"component": "head 0", "zero": Proportion(1, 10).to_json()}],
    },
}


def test_every_number_of_a_lens_is_a_line_with_its_indices(tmp_path):
    csv_records.write(tmp_path / "l.csv", csv_records.of_findings(FINDINGS))
    lines = [{k: v for k, v in row.items() if v} for row in rows_of(tmp_path / "l.csv")]
    by_entry = {entry: [x for x in lines if x["entry"] == entry] for entry in ("pattern", "tokens")}
    assert by_entry["tokens"][1] == {
        "lens": "attention", "entry": "tokens", "index": "1", "value": "+",
    }  # fmt: skip
    assert by_entry["pattern"][2] == {
        "lens": "attention", "entry": "pattern", "query": "1", "key": "0", "value": "0.25",
    }  # fmt: skip
    assert len(by_entry["pattern"]) == 4
    likeliest = [x for x in lines if x["entry"] == "likeliest"]
    assert [(x["index"], x["rank"], x["value"]) for x in likeliest] == [
        ("0", "0", "1"), ("0", "1", "2"), ("1", "0", "3"), ("1", "1", "4"),
    ]  # fmt: skip
    whole, without = (x for x in lines if x["lens"] == "ablation")
    assert (whole["entry"], whole["right"], whole["n"]) == ("whole", "9", "10")
    assert (without["entry"], without["component"]) == ("without.zero", "head 0")
    assert (without["right"], without["n"], without["share"]) == ("1", "10", "0.1")


def test_commands_write_csv_beside_what_they_print(tmp_path, quick_settings, capsys):
    run = abacist.train("add", out=tmp_path / "run", settings=quick_settings)
    asked = ["solve", str(run.path), "1+1", "12+34", "--json", "--csv", str(tmp_path / "s.csv")]
    main(asked)
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    solved = rows_of(tmp_path / "s.csv")
    assert [row["text"] for row in solved] == [solution["text"] for solution in printed]
    assert [row["correct"] for row in solved] == [str(s["correct"]).lower() for s in printed]
    assert main(["model", "add", "--csv", str(tmp_path / "m.csv")]) == 0
    assert sum(int(row["parameters"]) for row in rows_of(tmp_path / "m.csv")) == 13_676
    looked = [
        "look",
        str(run.path),
        "1+1",
        "--lens",
        "attribution",
        "--csv",
        str(tmp_path / "l.csv"),
    ]
    capsys.readouterr()
    assert main([*looked, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)["lenses"]["attribution"]
    leads = [float(row["value"]) for row in rows_of(tmp_path / "l.csv") if row["entry"] == "lead"]
    assert leads == record["lead"]["values"]
    assert main(["recipes", "--csv", str(tmp_path / "r.csv")]) == 0
    assert [row["name"] for row in rows_of(tmp_path / "r.csv")] == list(RECIPES)
    assert main(["recipes", "add", "--csv", str(tmp_path / "a.csv")]) == 0
    values = {row["setting"]: row["value"] for row in rows_of(tmp_path / "a.csv")}
    assert (values["model.width"], values["task.operations"]) == ("32", "+")
    capsys.readouterr()
    assert main(["model", "add", "--csv", "table.txt"]) == 2
    assert "must be a file ending in .csv, got 'table.txt'" in capsys.readouterr().err
