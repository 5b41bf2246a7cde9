"""The committed record of a recipe: every seed's cost, curve, errors and certificate.

    python benchmarks/records.py three-digit --seeds 5
    python benchmarks/records.py multiply --seeds 3 --runs runs --add
    python benchmarks/records.py --pages

The first two write `results/RECIPE.json`, after every seed. With `--runs DIR` the runs are kept in
DIR/RECIPE, and an interrupted command can be repeated: it resumes where it stopped. With `--add` the
seeds that the record already holds are not trained again. The third generates docs/results.md and the
tables of README.md and docs/systems/README.md from all records.

Seeds are trained one after the other, each in a process of its own, so that seconds and memory are
those that a user sees. What a trained model is asked is in recipes/examinations.py. `seconds` is
clock time of training alone; `processor_seconds` is not lengthened by other programs.
"""

import argparse
import json
import re
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from abacist import recipes
from abacist.intervals import Proportion, percent
from abacist.recipes.examinations import EXAMINATIONS
from abacist.reports.figures import draw_training
from abacist.runs import seeds as many_seeds
from abacist.runs.directory import RunDirectory
from abacist.runs.examination import Row
from abacist.runs.outcome import Outcome
from abacist.runs.run import build_model

ROOT = Path(__file__).parents[1]

DOCUMENTS = {
    "encoder": ("parallel-encoder", "parallel-encoder-torch", "parallel", "multiply", "sort"),
    "looped": (
        "looped-abacus-1x16", "looped-abacus-8x2", "looped-abacus-16x1", "looped-abacus-post",
        "looped-abacus-small", "add",
    ),
    "five operations": ("five-operations-10m", "five-operations"),
    "spaces": ("spaced-gpt2", "spaced"),
    "grokking": ("three-digit-grokking", "three-digit"),
    "none": ("subtract", "add-many", "divide", "modulo"),
}  # fmt: skip
"""The published systems, each with its recipes, ours last; what none of them does, too."""

# Making a record ---------------------------------------------------------------------------------


def make_record(name: str, count: int, threads: int, folder: Path, is_added_to: bool) -> None:
    """Train and examine the seeds up to `count` in `folder`, and write the record after each."""
    out = ROOT / "results" / f"{name}.json"
    committed = json.loads(out.read_text())["seeds"] if is_added_to and out.exists() else []
    written = 0

    def write(steps: int, total: int, outcomes: list[Outcome]) -> None:
        nonlocal written
        if len(outcomes) == written:
            return
        written = len(outcomes)
        entries = committed + [outcome.to_json() for outcome in outcomes]
        record = {"recipe": name, "threads": threads, "seeds": entries}
        out.write_text(json.dumps(record, indent=1) + "\n")
        latest = outcomes[-1]
        verdict = "" if latest.certificate is None else f", certified: {latest.certified}"
        print(f"{name}, seed {latest.seed}: {latest.seconds} s{verdict}", flush=True)

    path = folder / name
    if (path / "seeds.json").is_file():
        many_seeds.resume(path, write)
    else:
        many_seeds.start(
            recipes.find(name),
            path,
            range(len(committed), count),
            jobs=1,
            threads=threads,
            on_progress=write,
            examination=name,
        )
    first = RunDirectory(path / "seed-0").read_metrics()
    if first:
        draw_training({name: first}, out.with_suffix(".png"))


# Pages made of records ---------------------------------------------------------------------------

HEAD = """\
# Results

Every recipe that has a committed record, with the command that makes it. This page is made from the
records by `python benchmarks/records.py --pages`. Seconds are those of the clock and, in brackets, of the
processor, on a machine of two cores that often had other work to do. All problems are of the test
split unless a row names every problem or probes; errors are counted on the last checkpoint. Where
seeds differ, the 95 % interval is that of the worst."""


def records() -> dict[str, dict[str, Any]]:
    """All that are committed, by recipe."""
    paths = {name: ROOT / "results" / f"{name}.json" for name in recipes.RECIPES}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}


def cost(seeds: list[dict[str, Any]]) -> str:
    """Median seconds of training, as `12 (11)`."""
    clock = f"{statistics.median(seed['seconds'] for seed in seeds):,.0f}"
    processor = [seed["processor_seconds"] for seed in seeds if seed["processor_seconds"]]
    return f"{clock} ({statistics.median(processor):,.0f})" if processor else clock


def certified(seeds: list[dict[str, Any]]) -> str:
    """How many seeds are, as `9 of 10`."""
    proofs = [seed["certificate"] for seed in seeds if seed["certificate"]]
    return f"{sum(proof['certified'] for proof in proofs)} of {len(proofs)}" if proofs else "–"


def interval(rows: list[Row]) -> str:
    """Of the rate of right answers, in the worst of the seeds."""
    worst = max(rows, key=lambda row: row["errors"] / max(1, row["n"]))
    bounds = Proportion(worst["n"] - worst["errors"], worst["n"]).interval
    return "–" if bounds is None else f"{percent(bounds[0])} – {percent(bounds[1])}"


def counted(rows: list[Row]) -> str:
    """Errors of all seeds, as `**0** (9 seeds), **2,324** (1 seed)`."""
    seeds = Counter(row["errors"] for row in rows)
    if len(seeds) == 1:
        return f"**{rows[0]['errors']:,}**"
    return ", ".join(
        f"**{errors:,}** ({times} seed{'s' * (times > 1)})"
        for errors, times in sorted(seeds.items())
    )


def same_rows(seeds: list[dict[str, Any]]) -> Iterator[list[Row]]:
    """Every row of the first seed with those of all others of its name."""
    for first in seeds[0]["rows"]:
        key = first["suite"], first["name"], first["measure"]
        yield [
            row
            for seed in seeds
            for row in seed["rows"]
            if (row["suite"], row["name"], row["measure"]) == key
        ]


def command(name: str, count: int) -> str:
    return f"python benchmarks/records.py {name} --seeds {count}"


def summary() -> str:
    """The README's table: one row for each recipe."""
    lines = [
        "| recipe | parameters | seeds | seconds (processor) | wrong, in each seed | certified |",
        "|---|---|---|---|---|---|",
    ]
    for name, record in records().items():
        found = record["seeds"]
        lines.append(
            f"| [`{name}`](docs/results.md#{name}) | {found[0]['parameters']:,} | {len(found)} | "
            f"{cost(found)} | {told(name, found)} | {certified(found)} |"
        )
    return "\n".join(lines)


def told(name: str, seeds: list[dict[str, Any]]) -> str:
    """The rows that stand for all, one below the other."""
    labels = EXAMINATIONS[name].headlines
    return "<br>".join(
        f"{rows[0]['name']}: {counted(rows)} of {rows[0]['n']:,}"
        for rows in same_rows(seeds)
        if rows[0]["name"] in labels or rows[0]["name"].split(":")[0] in labels
    )


def side_by_side() -> str:
    """The table of the published systems, each with ours below it."""
    lines = [
        "| document | recipe | parameters | seconds (processor) | wrong, in each seed | certified | command |",
        "|---|---|---|---|---|---|---|",
    ]
    kept = records()
    for document, names in DOCUMENTS.items():
        for name in names:
            if name not in kept:
                size = f"{parameters(name):,}"
                lines.append(f"| {document} | `{name}` | {size} | no record yet | | | |")
                continue
            found = kept[name]["seeds"]
            lines.append(
                f"| {document} | [`{name}`](../results.md#{name}) | {found[0]['parameters']:,} | "
                f"{cost(found)} | {told(name, found)} | {certified(found)} | "
                f"`{command(name, len(found))}` |"
            )
    return "\n".join(lines)


def parameters(name: str) -> int:
    """Trained numbers of a recipe's model."""
    with torch.device("meta"):
        return build_model(recipes.find(name)).num_parameters


def chapter(name: str, record: dict[str, Any]) -> str:
    """All there is to say of a recipe, one seed a column."""
    found = record["seeds"]
    lines = [
        f"## {name}",
        "",
        f"`{command(name, len(found))}` ([record](../results/{name}.json)): "
        f"{found[0]['parameters']:,} parameters, {found[0]['steps']:,} steps, {cost(found)} s, "
        f"peak memory {max(seed['peak_memory_mib'] or 0 for seed in found):,} MiB.",
        "",
        "| wrong | " + " | ".join(f"seed {seed['seed']}" for seed in found) + " | n | 95 % right |",
        "|---|" + "---|" * (len(found) + 2),
    ]
    for rows in same_rows(found):
        measure = "" if rows[0]["measure"] == "exact match" else f", {rows[0]['measure']}"
        errors = " | ".join(f"{row['errors']:,}" for row in rows)
        n = f"{rows[0]['n']:,}"
        lines.append(f"| {rows[0]['name']}{measure} | {errors} | {n} | {interval(rows)} |")
    lines += ["| seconds | " + " | ".join(f"{seed['seconds']:,}" for seed in found) + " | | |"]
    proofs = [seed["certificate"] for seed in found]
    if all(proofs):
        cells = [
            f"{'yes' if proof['certified'] else '**no**'}, margin {proof['smallest_margin']}"
            + ("" if proof["wrong"] is None else f", {proof['wrong']:,} wrong")
            for proof in proofs
        ]
        lines.append(
            f"| certified | {' | '.join(cells)} | {proofs[0]['neighbourhoods'] or 0:,} "
            f"neighbourhoods | {max(proof['seconds'] for proof in proofs)} s |"
        )
    where = found[0]["circumstances"]
    threads = ", ".join(sorted({str(seed["threads"]) for seed in found}))
    lines += [
        "",
        f"{where['machine']}, {where['cores']} cores, threads {threads}, torch {where['torch']}, "
        f"Python {where['python']}.",
    ]
    if (ROOT / "results" / f"{name}.png").exists():
        lines += ["", f"![Loss and exact match of seed 0 by step](../results/{name}.png)"]
    return "\n".join(lines)


def page() -> str:
    """docs/results.md."""
    return "\n\n".join([HEAD, *(chapter(*named) for named in records().items())]) + "\n"


def with_table(text: str, table: str) -> str:
    """A document with its table made anew."""
    marked = r"(<!-- records -->\n).*?(<!-- end of records -->)"
    return re.sub(marked, lambda m: f"{m[1]}{table}\n{m[2]}", text, flags=re.DOTALL)


def pages() -> dict[Path, str]:
    """All documents that are made of records, wholly or in part."""
    readme, systems = ROOT / "README.md", ROOT / "docs" / "systems" / "README.md"
    return {
        ROOT / "docs" / "results.md": page(),
        readme: with_table(readme.read_text(), summary()),
        systems: with_table(systems.read_text(), side_by_side()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recipe", nargs="?", choices=list(EXAMINATIONS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1, help="number of threads (default: 1)")
    parser.add_argument("--runs", type=Path, help="keep the runs in this directory")
    parser.add_argument("--add", action="store_true", help="keep the seeds of the record")
    parser.add_argument("--pages", action="store_true", help="only generate the pages")
    arguments = parser.parse_args()
    if arguments.pages:
        for path, text in pages().items():
            path.write_text(text)
        return
    if arguments.recipe is None:
        parser.error("type a recipe, or --pages")
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.runs or Path(temporary)
        make_record(arguments.recipe, arguments.seeds, arguments.threads, folder, arguments.add)


if __name__ == "__main__":
    main()
