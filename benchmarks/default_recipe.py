"""A recipe over several seeds: seconds, errors by length, certificate. The table of the README.

    python benchmarks/default_recipe.py --seeds 10 [--recipe add] [--out results/add.json]
    python benchmarks/default_recipe.py --readme

The second form puts the tables of all committed records into the README. The record is written
after every seed, and with --go-on the seeds that it has already are not trained again.

Each seed is trained from nothing with its own data and scored on its own test problems, one seed
after the other, in processes of their own, so that seconds and memory are a user's.
"""

import argparse
import json
import multiprocessing
import re
import resource
import tempfile
from pathlib import Path
from typing import Any

import abacist
from abacist import recipes

ROOT = Path(__file__).parents[1]


def measure(recipe: str, seed: int, threads: int | None) -> dict[str, Any]:
    """Train, prove and score one seed."""
    with tempfile.TemporaryDirectory() as directory:
        run = abacist.train(recipe, out=Path(directory) / "run", seed=seed, threads=threads)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        record = json.loads(run.directory.run_json.read_text())
        certificate = run.prove()
        card = run.score()
        probes = [probe(run.task.operations[0], digits) for digits in (10, 100, 1_000)]
        return {
            "seed": seed,
            "seconds": round(run.directory.read_metrics()[-1]["seconds"], 1),
            "steps": run.recipe.training.num_steps,
            "threads": record["threads"],
            "peak_memory_mib": memory,
            "parameters": run.model.num_parameters,
            "rows": [
                {"name": row.name, "errors": row.proportion.errors, "n": row.proportion.n}
                for row in card.rows
                if row.proportion is not None
            ],
            "probe": probe(run.task.operations[0], None),
            "nines_right": sum(solution.correct for solution in run.solve(probes)),
            "nines": len(probes),
            "certified": certificate.certified,
            "neighbourhoods": certificate.neighbourhoods,
            "wrong": certificate.wrong,
            "smallest_margin": round(certificate.smallest_margin or 0.0, 2),
            "prove_seconds": round(certificate.seconds, 1),
        } | {"circumstances": {k: record[k] for k in ("torch", "python", "machine", "cores")}}


def probe(operation: str, digits: int | None) -> str:
    """A problem in which every digit carries, or borrows; of no number of digits, how it is named."""
    if operation == "-":
        return "10…0-1" if digits is None else "1" + "0" * digits + "-1"
    return "99…9+1" if digits is None else "9" * digits + "+1"


COLUMNS = {
    "20": "20 digits",
    "50": "50 digits",
    "100": "100 digits",
    "100, unequal": "100 digits, unequal",
    "1,000": "1,000 digits",
    "10,000": "10,000 digits",
}
"""Heading of a column of errors: the row of the scorecard it shows."""


def table(record: dict[str, Any]) -> str:
    """The record as a Markdown table, one seed a row."""
    seeds = record["seeds"]
    counts = {row["name"]: row["n"] for row in seeds[0]["rows"]}
    first = seeds[0]["rows"][0]["name"]
    further = {heading: name for heading, name in COLUMNS.items() if name in counts}
    if "100" in further:
        further = {h: name for h, name in further.items() if h not in ("20", "50")}
    columns = {first.partition(",")[0]: first} | further
    headings = [
        "seed",
        "seconds",
        "steps",
        *(f"errors {heading} (n = {counts[name]:,})" for heading, name in columns.items()),
        f"{seeds[0].get('probe', '99…9+1')} at 10, 100, 1,000",
        "certified",
        "smallest margin",
    ]
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    for seed in seeds:
        errors = {row["name"]: row["errors"] for row in seed["rows"]}
        cells = [
            seed["seed"],
            seed["seconds"],
            f"{seed['steps']:,}",
            *(errors[name] for name in columns.values()),
            f"{seed['nines_right']} of {seed['nines']}",
            "yes" if seed["certified"] else "**no**",
            seed["smallest_margin"],
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    certified = sum(seed["certified"] for seed in seeds)
    where = seeds[0]["circumstances"]
    chosen = "" if record.get("threads") else " (chosen by timing)"
    memory = max(seed["peak_memory_mib"] for seed in seeds)
    lines += [
        "",
        f"`{record['recipe']}`: {seeds[0]['parameters']:,} parameters, certified in {certified} of "
        f"{len(seeds)} seeds by {seeds[0]['neighbourhoods']:,} neighbourhoods each, proved in at "
        f"most {max(seed['prove_seconds'] for seed in seeds)} s; peak memory of training "
        f"{memory} MiB. {where['machine']}, {where['cores']} cores, threads "
        f"{', '.join(sorted({str(seed['threads']) for seed in seeds}))}{chosen}, "
        f"torch {where['torch']}, Python {where['python']}.",
    ]
    return "\n".join(lines)


def with_tables(readme: str) -> str:
    """The README with every marked table made anew from its committed record."""

    def fill(match: re.Match[str]) -> str:
        record = json.loads((ROOT / match[1]).read_text())
        return f"<!-- {match[1]} -->\n{table(record)}\n<!-- end -->"

    return re.sub(r"<!-- (results/\S+\.json) -->\n.*?<!-- end -->", fill, readme, flags=re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipe", default="add", choices=list(recipes.RECIPES))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--threads", type=int, help="train on so many; by default timing chooses")
    parser.add_argument("--out", help="write the record here, as JSON")
    parser.add_argument("--go-on", action="store_true", help="keep the seeds that --out holds")
    parser.add_argument("--readme", action="store_true", help="only bring the README up to date")
    arguments = parser.parse_args()
    if arguments.readme:
        readme = ROOT / "README.md"
        readme.write_text(with_tables(readme.read_text()))
        return
    seeds: list[dict[str, Any]] = []
    if arguments.go_on and arguments.out and Path(arguments.out).exists():
        seeds = json.loads(Path(arguments.out).read_text())["seeds"]
    spawn = multiprocessing.get_context("spawn")
    for seed in range(len(seeds), arguments.seeds):
        with spawn.Pool(1) as pool:
            seeds.append(pool.apply(measure, (arguments.recipe, seed, arguments.threads)))
        print(
            f"seed {seed}: {seeds[-1]['seconds']} s, certified {seeds[-1]['certified']}, "
            f"{seeds[-1]['wrong']} wrong",
            flush=True,
        )
        record = {"recipe": arguments.recipe, "threads": arguments.threads, "seeds": seeds}
        if arguments.out:
            Path(arguments.out).write_text(json.dumps(record, indent=1) + "\n")
    print(table(record))


if __name__ == "__main__":
    main()
