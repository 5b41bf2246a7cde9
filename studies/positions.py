"""The record, the picture and the table of the study of positions, from the directory of its sweep.

    abacist sweep studies/positions.toml --out runs/positions
    python studies/positions.py runs/positions

The second command can run at any time. What the sweep has not finished is listed as missing.
"""

import json
import re
from pathlib import Path
from typing import Any

import study

from abacist.intervals import percent
from abacist.reports import matplotlib_figures, plots
from abacist.reports.plots import Curve, LineChart
from abacist.reports.tables import Table, markdown
from abacist.sweeps import plan as plans
from abacist.sweeps.plan import TABLE

RECORD = study.ROOT / "results" / "positions.json"
PICTURE = study.ROOT / "docs" / "positions.png"
PAGE = study.ROOT / "docs" / "positions.md"

PANELS = {
    "Absolute index": ("learned", "sinusoidal", "randomised", "nope"),
    "Distance": ("rotary", "alibi", "fire", "t5"),
    "Place": ("abacus", "coupling", "window"),
}
LENGTHS = (10, 11, 12, 15, 20, 30, 50, 100)
"""Lengths in digits that the table shows."""
_TRAINED_DIGITS = 10


def record_of(path: Path) -> dict[str, Any]:
    """Return an entry for every contender of the sweep in `path`, and what is missing in words."""
    plan, table = plans.read(path), json.loads((path / TABLE).read_text())
    groups = {group["contender"]: group for group in table["groups"]}
    tuning = [row for row in table["tuning"] if row["tuning_seeds"]]
    record: dict[str, Any] = {}
    missing = []
    for name in plan.contenders:
        group = groups[name]
        candidates = [row for row in tuning if row["contender"] == name]
        record[name] = group | {"tuning": candidates}
        if len(group["seeds"]) < len(plan.seeds):
            missing.append(
                f"{name}: {len(candidates)} of {len(plan.contenders[name])} learning rates tried, "
                f"{len(group['seeds'])} of {len(plan.seeds)} seeds trained"
            )
    training = plan.recipe.training
    record["study"] = {
        "num_steps": training.num_steps,
        "batch_size": training.batch_size,
        "stop_at": training.stop_at,
        "stop_after": training.stop_after,
        "missing": missing,
        **study.state_of(plan, table),
    }
    return record


def shares_by_length(entry: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """Return the rows of a contender whose operands have equal lengths, by that length."""
    rows = {}
    for row in entry["rows"]:
        if match := re.fullmatch(r"(\d+) \+ \1 digits", row["name"]):
            rows[int(match[1])] = row
    return rows


def charts(record: dict[str, Any]) -> list[LineChart]:
    """Return a panel for each kind of scheme: the median over seeds, from the worst to the best."""
    panels = []
    for title, names in PANELS.items():
        curves = []
        for name in names:
            rows = shares_by_length(record[name])
            if rows:
                seeds = [row["seeds"] for row in rows.values()]
                ranges = [(s["smallest"], s["largest"]) for s in seeds]
                curves.append(Curve(name, list(rows), [s["median"] for s in seeds], ranges))
        if curves:
            across = plots.logarithmic_axis("digits of both operands", [1, 100], room=1.15)
            up = plots.percent_axis("exact match")
            panels.append(LineChart(title, curves, across, up, shaded=_TRAINED_DIGITS * 1.05))
    return panels


def table(record: dict[str, Any]) -> str:
    """Return the table of the page: a line for each contender, in Markdown."""
    lines = []
    for name in (name for names in PANELS.values() for name in names):
        entry = record[name]
        rows, count = shares_by_length(entry), len(entry["seeds"])
        rate = entry["settings"]["training.learning_rate"] if count else "–"
        reached = f"{entry['reached_target']} of {count}" if count else "–"
        shares = [_median_and_interval(rows.get(length)) for length in LENGTHS]
        lines.append([f"`{name}`", f"{rate}", reached, *shares])
    columns = ("scheme", "learning rate", "seeds ≥ 99 %", *(f"{d} digits" for d in LENGTHS))
    return markdown(Table("", columns, [lines]))


def _median_and_interval(row: dict[str, Any] | None) -> str:
    """Return the median over seeds, and its interval unless all of it is the median."""
    if row is None:
        return "–"
    seeds = row["seeds"]
    text = percent(seeds["median"])
    if seeds["interval"] in (None, [seeds["median"]] * 2):
        return text
    low, high = seeds["interval"]
    return f"{text} ({percent(low)}–{percent(high)})"


def page(text: str, record: dict[str, Any]) -> str:
    """Return the page with its table, and what is missing, replaced."""
    is_begun = any(record[name]["seeds"] for names in PANELS.values() for name in names)
    return study.with_table(text, record["study"], table(record) if is_begun else "")


def main() -> None:
    record = record_of(study.sweep_directory(__doc__))
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
    panels = charts(record)
    if panels:
        matplotlib_figures.draw(panels, PICTURE, columns=len(panels))
    PAGE.write_text(page(PAGE.read_text(), record))
    for line in record["study"]["missing"]:
        print(f"missing: {line}")


if __name__ == "__main__":
    main()
