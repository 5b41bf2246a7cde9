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
from abacist.data.check import DataCheck
from abacist.intervals import Proportion
from abacist.scoring.comparison import ComparedRow
from abacist.scoring.records import Scorecard
from abacist.sweeps.comparison import ComparedGroup, GroupRow

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
    records: list[Record] = []
    for row in rows:
        differences = [None, *row.differences]
        for name, proportion, difference in zip(names, row.proportions, differences, strict=True):
            low, high = difference.interval if difference else (None, None)
            records.append(
                {
                    "suite": row.suite,
                    "kind": row.kind,
                    "problems": row.name,
                    "digits": row.digits,
                    "measure": row.measure,
                    "run": name,
                    **_proportion(proportion),
                    "difference": difference and difference.value,
                    "difference_low": low,
                    "difference_high": high,
                }
            )
    return records


def of_groups(groups: Sequence[ComparedGroup], rows: Iterable[GroupRow]) -> list[Record]:
    """Every shared row of every group of runs, with the difference of means from the first group."""
    records: list[Record] = []
    for row in rows:
        suite, problems, measure = row.key
        differences = [None, *row.differences]
        for group, runs, mean, difference in zip(
            groups, row.shares, row.means, differences, strict=True
        ):
            shares = [run.successes / run.n for run in runs]
            low, high = difference.interval if difference else (None, None)
            records.append(
                {
                    "suite": suite,
                    "problems": problems,
                    "measure": measure,
                    "group": group.name,
                    "runs": len(runs),
                    "certified": group.certified.successes,
                    "mean": mean,
                    "smallest": min(shares),
                    "largest": max(shares),
                    "difference": difference and difference.value,
                    "difference_low": low,
                    "difference_high": high,
                }
            )
    return records


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


def _proportion(proportion: Proportion | None) -> Record:
    low, high = (proportion and proportion.interval) or (None, None)
    return {
        "right": proportion and proportion.successes,
        "n": 0 if proportion is None else proportion.n,
        "share": proportion and proportion.value,
        "low": low,
        "high": high,
    }


def _cell(value: Any) -> Any:
    """Booleans as in JSON; None becomes an empty cell."""
    return str(value).lower() if isinstance(value, bool) else value
