"""The record, the picture and the table of the study of data efficiency, from the directory of its sweep.

    abacist sweep studies/data_efficiency.toml --out runs/data-efficiency
    python studies/data_efficiency.py runs/data-efficiency

The second command can run at any time. What the sweep has not finished is counted as unfinished.
"""

import json
import statistics
from pathlib import Path
from typing import Any

import study

from abacist.intervals import Proportion
from abacist.reports import matplotlib_figures, plots
from abacist.reports.plots import Curve, LineChart
from abacist.reports.tables import Table, markdown
from abacist.runs.outcome import Outcome
from abacist.sweeps import sweep
from abacist.sweeps.plan import TABLE

RECORD = study.ROOT / "results" / "data-efficiency.json"
PICTURE = study.ROOT / "docs" / "data-efficiency.png"
PAGE = study.ROOT / "docs" / "data-efficiency.md"

_NUM_EXAMPLES = "training.num_examples"


def record_of(path: Path) -> dict[str, Any]:
    """Return an entry for every contender and number of examples of the sweep in `path`."""
    results = sweep.read(path)
    table = json.loads((path / TABLE).read_text())
    entries = []
    for group in results.groups:
        settings = dict(group.group.settings)
        num_examples = settings.pop(_NUM_EXAMPLES)
        seeds = [seed_entry(outcome) for outcome in group.outcomes]
        entries.append(
            {
                "contender": group.group.contender.partition(",")[0],
                "num_examples": num_examples,
                "settings": settings,
                "certified": group.distribution.certified.to_json(),
                "seeds": seeds,
            }
        )
    names = list(dict.fromkeys(entry["contender"] for entry in entries))
    entries.sort(key=lambda entry: (names.index(entry["contender"]), entry["num_examples"]))
    return {"study": study.state_of(results.plan, table), "groups": entries}


def seed_entry(outcome: Outcome) -> dict[str, Any]:
    """Return what the record holds of one seed."""
    proof = outcome.certificate or {}
    return {
        "seed": outcome.seed,
        "certified": outcome.certified,
        "wrong": proof.get("wrong"),
        "neighbourhoods": proof.get("neighbourhoods"),
        "smallest_margin": proof.get("smallest_margin"),
        "validation": outcome.validation,
        "steps": outcome.steps,
        "processor_seconds": outcome.processor_seconds,
        "failure": outcome.failure,
    }


def finished(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the groups of which some seed has been proved or refused."""
    return [group for group in record["groups"] if group["seeds"]]


def charts(record: dict[str, Any]) -> list[LineChart]:
    """Return two panels: the share of certified seeds, and the number of wrong neighbourhoods."""
    groups = finished(record)
    if not groups:
        return []
    counts = [group["num_examples"] for group in groups]
    across = plots.logarithmic_axis("distinct training problems", counts, room=1.15)
    certified, wrong = [], []
    for name in dict.fromkeys(group["contender"] for group in groups):
        own = [group for group in groups if group["contender"] == name]
        x = [group["num_examples"] for group in own]
        shares = [Proportion.from_json(group["certified"]) for group in own]
        intervals = [share.interval or (0.0, 1.0) for share in shares]
        certified.append(Curve(name, x, [share.value or 0.0 for share in shares], intervals))
        numbers = [[1 + seed["wrong"] for seed in group["seeds"]] for group in own]
        ranges = [(min(n), max(n)) for n in numbers]
        wrong.append(Curve(name, x, [statistics.median(n) for n in numbers], ranges))
    most = max(high for curve in wrong for _, high in curve.intervals)
    up = plots.logarithmic_axis("1 + wrong neighbourhoods", [1, most], room=1.15)
    return [
        LineChart(
            "Certified seeds, with 95 % intervals",
            certified,
            across,
            plots.percent_axis("certified"),
        ),
        LineChart("Wrong neighbourhoods: median and range", wrong, across, up),
    ]


def table(record: dict[str, Any]) -> str:
    """Return the table of the page: a line for each contender and number of examples, in Markdown."""
    lines = []
    for group in finished(record):
        share = Proportion.from_json(group["certified"])
        assert share.interval is not None
        low, high = (f"{100 * bound:.0f}" for bound in share.interval)
        wrong = ", ".join(f"{seed['wrong']:,}" for seed in group["seeds"])
        margins = [seed["smallest_margin"] for seed in group["seeds"]]
        lines.append(
            [
                f"`{group['contender']}`",
                f"{group['num_examples']:,}",
                f"{share.successes} of {share.n} ({low}–{high} %)",
                wrong,
                f"{statistics.median(margins):.2f}",
            ]
        )
    columns = ("settings", "examples", "certified seeds", "wrong neighbourhoods", "median margin")
    return markdown(Table("", columns, [lines]))


def page(text: str, record: dict[str, Any]) -> str:
    """Return the page with its table, and what is missing, replaced."""
    return study.with_table(text, record["study"], table(record) if finished(record) else "")


def main() -> None:
    record = record_of(study.sweep_directory(__doc__))
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
    panels = charts(record)
    if panels:
        matplotlib_figures.draw(panels, PICTURE, columns=len(panels))
    PAGE.write_text(page(PAGE.read_text(), record))


if __name__ == "__main__":
    main()
