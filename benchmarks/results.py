"""docs/results.md, made anew from the committed records.

    python benchmarks/results.py

A row for every recipe that has a record under `results/`: what it costs, what it gets wrong in its
worst seed, how many seeds are certified, and the command that makes the record.
"""

import json
import statistics
from pathlib import Path
from typing import Any

from abacist import recipes
from abacist.intervals import Proportion, percent

ROOT = Path(__file__).parents[1]
HEAD = """\
# Results

Every recipe that has a committed record, with the command that makes it. This page is made from the
records by `python benchmarks/results.py`. Seconds are the median over the seeds, on a machine of two
cores that often had other work to do. "Wrong" is that of the worst seed, with the 95 % interval of
its rate of right answers; every other row of a record is in its file.

| recipe | parameters | seeds | seconds | wrong in the worst seed | certified | made by |
|---|---|---|---|---|---|---|
"""


def rows_of(seed: dict[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = seed.get("rows") or seed["suites"]
    return rows


def command(name: str, seed: dict[str, Any], count: int) -> str:
    """Which benchmark made a record, told by what it holds."""
    out = f"--seeds {count} --out results/{name}.json"
    if "suites" in seed:
        return f"python benchmarks/recipes.py {name} {out}"
    script = "default_recipe" if "nines" in seed else "long_recipes"
    return f"python benchmarks/{script}.py --recipe {name} {out}"


def row(name: str, record: dict[str, Any]) -> str:
    seeds = record["seeds"]
    told = []
    for number, first in enumerate(rows_of(seeds[0])):
        worst = max((rows_of(seed)[number] for seed in seeds), key=lambda found: found["errors"])
        right = Proportion(worst["n"] - worst["errors"], worst["n"])
        # Single probes tell little in a table.
        if right.interval is None or worst["n"] < 4:
            continue
        low, high = map(percent, right.interval)
        told.append(f"{first['name']}: **{worst['errors']:,}** of {worst['n']:,} ({low} – {high})")
    seconds = statistics.median(seed["seconds"] for seed in seeds)
    proofs = [seed.get("certificate", seed) for seed in seeds]
    known = [proof["certified"] for proof in proofs if "certified" in proof]
    certified = f"{sum(known)} of {len(known)}" if known else "–"
    shown = [told[0], *told[-3:]] if len(told) > 6 else told
    return (
        f"| `{name}` | {seeds[0]['parameters']:,} | {len(seeds)} | {seconds:.0f} | "
        f"{'<br>'.join(shown)} | {certified} | `{command(name, seeds[0], len(seeds))}` |"
    )


def page() -> str:
    found = [
        (name, ROOT / "results" / f"{name}.json")
        for name in recipes.RECIPES
        if (ROOT / "results" / f"{name}.json").exists()
    ]
    rows = [row(name, json.loads(path.read_text())) for name, path in found]
    return HEAD + "\n".join(rows) + "\n"


def main() -> None:
    (ROOT / "docs" / "results.md").write_text(page())


if __name__ == "__main__":
    main()
