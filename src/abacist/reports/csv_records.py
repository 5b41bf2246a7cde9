"""The numbers of printed tables as CSV: one header line, and one line for each row.

Proportions are split into right answers, n, share and 95 % interval, as fractions 0…1. What is unknown
is empty. A file of this kind is read by `pandas.read_csv` and by spreadsheets without options.
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from abacist import files
from abacist.configuration import Setting
from abacist.data.check import DataCheck
from abacist.intervals import Difference, Proportion
from abacist.scoring.comparison import ComparedGroup, ComparedRow
from abacist.scoring.records import Scorecard

Record = Mapping[str, Any]


def write(path: Path, records: Sequence[Record]) -> None:
    """Write records to a file, whole or not at all; their keys are the columns.

    Raises `RunError` if the file cannot be written.
    """
    columns = dict.fromkeys(name for record in records for name in record)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in record.items()} for record in records)
    files.write_bytes(path, text.getvalue().encode())


def of_scorecard(card: Scorecard) -> list[Record]:
    """Every row of every section."""
    return [
        {
            "suite": suite,
            "kind": row.kind,
            "problems": row.name,
            "digits": row.digits,
            "measure": row.measure,
            **_proportion(row.proportion),
            "smallest_margin": row.smallest_margin,
            "note": row.note,
        }
        for suite, section in card.sections.items()
        for row in section.rows
    ]


def of_comparison(names: Sequence[str], rows: Iterable[ComparedRow]) -> list[Record]:
    """Every shared row of every run, with the difference from the first run in points of 0…1."""
    return [
        {
            "suite": row.key.suite,
            "kind": row.key.kind,
            "problems": row.key.name,
            "digits": row.key.digits,
            "measure": row.key.measure,
            "run": name,
            **_proportion(proportion),
            **_difference(difference),
        }
        for row in rows
        for name, proportion, difference in zip(
            names, row.proportions, [None, *row.differences], strict=True
        )
    ]


def of_groups(groups: Sequence[ComparedGroup], rows: Iterable[ComparedRow]) -> list[Record]:
    """Every shared row of every group of runs, with the difference of means from the first group."""
    return [
        {
            "suite": row.key.suite,
            "problems": row.key.name,
            "measure": row.key.measure,
            "group": group.name,
            "runs": score.runs,
            "certified": group.certified.successes,
            "mean": score.mean,
            "low": score.interval[0],
            "high": score.interval[1],
            "smallest": score.smallest,
            "largest": score.largest,
            **_difference(difference),
        }
        for row in rows
        for group, score, difference in zip(
            groups, row.groups, [None, *row.differences], strict=True
        )
    ]


def of_check(outcome: DataCheck) -> list[Record]:
    """Every number of a check of problems, with the table, the row and the column it stands in."""

    def record(table: str, row: Any, column: str, value: Any) -> Record:
        return {"table": table, "row": row, "column": column, "value": value}

    records = [record("distinct", split, "problems", n) for split, n in outcome.distinct.items()]
    records += [record("overlap", pair, "problems", n) for pair, n in outcome.overlap.items()]
    for operation, by_split in outcome.operations.items():
        records += [record("operations", operation, split, n) for split, n in by_split.items()]
    for split, answers in outcome.answers.items():
        records += [record("answers", split, name, value) for name, value in vars(answers).items()]
    for name, counts in outcome.histograms.items():
        records += [record(name, value, "problems", n) for value, n in counts.items()]
    return records


def of_findings(findings: Mapping[str, Record]) -> list[Record]:
    """Every number of the findings of lenses, given as JSON by lens.

    A number of an array has the index on each axis in a column named like the axis. The lists beside
    an array, such as `tokens`, say what these indices stand for.
    """
    return [
        {"lens": lens, **record}
        for lens, finding in findings.items()
        for name, value in finding.items()
        for record in _entries(name, value)
    ]


def of_settings(rows: Iterable[Setting]) -> list[Record]:
    """Every single setting of a recipe, with its value as it is typed and its explanation."""
    return [
        {"setting": row.name, "value": row.typed, "explanation": row.explanation}
        for row in rows
        if not row.has_parts
    ]


def _entries(name: str, value: Any) -> list[Record]:
    """The lines of one entry of a finding."""
    if isinstance(value, list):
        return [line for i, item in enumerate(value) for line in _item(name, i, item)]
    if not isinstance(value, dict):
        return [{"entry": name, "value": value}]
    if "axes" in value:
        return [
            {"entry": name, **dict(zip(value["axes"], index, strict=True)), "value": number}
            for index, number in _indexed(value["values"])
        ]
    if "successes" in value:
        return [{"entry": name, **_proportion(Proportion.from_json(value))}]
    return [line for key, inner in value.items() for line in _entries(f"{name}.{key}", inner)]


def _item(name: str, index: int, item: Any) -> list[Record]:
    """The lines of one item of a list: a text or number, a list of them, or a record."""
    if not isinstance(item, dict):
        return [
            {"entry": name, "index": index, **({"rank": inner[0]} if inner else {}), "value": leaf}
            for inner, leaf in _indexed(item)
        ]
    labels = {key: leaf for key, leaf in item.items() if not isinstance(leaf, dict | list)}
    return [
        {**line, **labels}
        for key, inner in item.items()
        if key not in labels
        for line in _entries(f"{name}.{key}", inner)
    ]


def _indexed(values: Any) -> list[tuple[tuple[int, ...], Any]]:
    """The leaves of nested lists with their indices."""
    if not isinstance(values, list):
        return [((), values)]
    return [((i, *index), leaf) for i, item in enumerate(values) for index, leaf in _indexed(item)]


def _proportion(proportion: Proportion | None) -> Record:
    low, high = (proportion and proportion.interval) or (None, None)
    return {
        "right": proportion and proportion.successes,
        "n": 0 if proportion is None else proportion.n,
        "share": proportion and proportion.value,
        "low": low,
        "high": high,
    }


def _difference(difference: Difference | None) -> Record:
    low, high = (None, None) if difference is None else difference.interval
    return {
        "difference": difference and difference.value,
        "difference_low": low,
        "difference_high": high,
    }


def _cell(value: Any) -> Any:
    """Booleans as in JSON; None becomes an empty cell."""
    return str(value).lower() if isinstance(value, bool) else value
