"""The committed record of a recipe: every seed's cost, curve, errors and certificate.

    python benchmarks/records.py three-digit --seeds 5
    python benchmarks/records.py multiply --seeds 3 --runs runs --go-on
    python benchmarks/records.py --pages

The first two write `results/RECIPE.json`, after every seed. With `--runs DIR` the runs are kept, and
one that was stopped half-way is gone on with; with `--go-on` seeds that the record holds are not
trained again. The third makes docs/results.md and the tables of README.md and docs/systems/README.md
anew from all records.

Each seed is trained from nothing with its own data and scored on its own problems of the test
split, one seed after the other, in processes of their own, so that seconds and memory are a
user's. `EXAMINATIONS` says what is asked of whom. `seconds` are the clock's, of training alone;
`processor_seconds` tell what they would be on a machine with nothing else to do.
"""

import argparse
import json
import multiprocessing
import re
import resource
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch

import abacist
from abacist import generators, recipes
from abacist.data.split import draw_from_split
from abacist.intervals import Proportion, percent
from abacist.reports.figures import draw_training
from abacist.runs.run import Run, build_model
from abacist.runs.training import circumstances
from abacist.scoring.exact_match import exact_match
from abacist.scoring.samples import distinct
from abacist.tasks.config import ArithmeticConfig, SortingConfig
from abacist.tasks.problems import Shapes
from abacist.tasks.task import Task

ROOT = Path(__file__).parents[1]
POINTS = 60
"""So many points of a training curve are kept."""

Row = dict[str, Any]
"""One figure: `suite`, `name`, `measure`, `errors` of `n`, `smallest_margin`."""


@dataclass(frozen=True)
class Sample:
    """Test problems of lengths of their own, which no suite asks for."""

    operation: str
    digits: tuple[int, int]
    n: int = 10_000
    sampling: Literal["lengths", "nines"] = "lengths"

    @property
    def name(self) -> str:
        rich = ", half of them rich in nines" if self.sampling == "nines" else ""
        return f"{self.digits[0]} {self.operation} {self.digits[1]} digits{rich}"


@dataclass(frozen=True)
class Lists:
    """Test problems of sorting, with counts and lengths of their own."""

    numbers: tuple[int, int]
    """Fewest and most, each count equally likely."""
    digits: tuple[int, int]
    """Of the shortest and the longest number."""
    n: int = 10_000

    @property
    def name(self) -> str:
        counts, lengths = (
            f"{low:,}" if low == high else f"{low:,}–{high:,}"
            for low, high in (self.numbers, self.digits)
        )
        return f"{counts} numbers of {lengths} digits"


@dataclass(frozen=True)
class Examination:
    """What a recipe is asked."""

    suites: Mapping[str, Mapping[str, int]]
    """Suites of `abacist score`, each with its settings."""
    samples: tuple[Sample | Lists, ...] = ()
    proved: bool = False
    told: tuple[str, ...] = field(kw_only=True)
    """Names of the rows that stand for all in the README."""


LENGTHS = Examination(
    {"lengths": {}, "probes": {}},
    proved=True,
    told=("≤ 10 digits, all pairs", "100 digits", "1,000 digits, unequal", "10,000 digits"),
)
PUBLISHED_LOOPED = Examination(
    {
        "grid": {"grid_size": 40, "grid_problems": 100},
        "recurrences": {"num_problems": 1_000},
        "probes": {},
    },
    told=(
        *("both ≤ 10 digits", "both > 10 digits", "both ≤ 20 digits", "both > 20 digits"),
        "trained lengths, 1 recurrence",
        *(f"trained lengths, {count} recurrences" for count in (2, 16, 32)),
        "trained lengths, 8 recurrences (as in training)",
    ),
)

EXAMINATIONS: dict[str, Examination] = {
    "add": replace(
        LENGTHS,
        suites={**LENGTHS.suites, "grid": {"grid_size": 40}},
        told=(*LENGTHS.told, "all cells"),
    ),
    "add-tiny": replace(LENGTHS, told=("≤ 5 digits, all pairs", *LENGTHS.told[1:])),
    "add-many": replace(LENGTHS, told=("≤ 5 digits, all pairs", "20 digits")),
    "subtract": LENGTHS,
    "multiply": Examination(
        {"lengths": {"longest": 7}, "probes": {}},
        (
            Sample("*", (7, 7)),
            Sample("*", (20, 20)),
            Sample("*", (20, 3)),
            Sample("*", (3, 20)),
            Sample("*", (20, 20), 1_000, "nines"),
            Sample("*", (50, 50), 100),
            Sample("*", (100, 100), 4),
        ),
        proved=True,
        told=("7 * 7 digits", "20 * 20 digits", "50 * 50 digits"),
    ),
    "divide": Examination(
        {"lengths": {"longest": 12}, "probes": {}},
        (
            Sample("//", (12, 6), 2_000),
            Sample("%", (12, 6), 2_000),
            # An even number of steps; those above have an odd one.
            Sample("//", (13, 6), 1_000),
            Sample("%", (13, 6), 1_000),
            Sample("//", (12, 1), 1_000),
            Sample("//", (20, 10), 500),
            Sample("%", (20, 10), 500),
            Sample("//", (20, 10), 500, "nines"),
            Sample("//", (40, 20), 100),
            Sample("//", (100, 50), 4),
        ),
        proved=True,
        told=("12 // 6 digits", "12 % 6 digits", "20 // 10 digits", "40 // 20 digits"),
    ),
    "modulo": Examination(
        {"lengths": {"longest": 12}, "probes": {}},
        (
            Sample("%", (12, 6), 2_000),
            Sample("%", (13, 6), 1_000),
            Sample("%", (20, 10), 500),
            Sample("%", (20, 10), 500, "nines"),
            Sample("%", (40, 20), 100),
            Sample("%", (100, 50), 4),
        ),
        proved=True,
        told=("12 % 6 digits", "20 % 10 digits", "40 % 20 digits"),
    ),
    "sort": Examination(
        {"strata": {"num_problems": 100}, "probes": {}},
        (
            Lists((2, 10), (1, 10)),
            Lists((10, 10), (10, 10), 1_000),
            Lists((30, 30), (30, 30), 1_000),
            Lists((52, 52), (1, 3), 200),
            Lists((52, 52), (52, 52), 100),
            Lists((10, 10), (1_000, 1_000), 100),
        ),
        proved=True,
        told=(
            "2–10 numbers of 1–10 digits",
            "30 numbers of 30 digits",
            "52 numbers of 1–3 digits",
            "10 numbers of 1,000 digits",
        ),
    ),
    "three-digit": Examination({"exhaustive": {}, "probes": {}}, told=("all problems",)),
    "three-digit-grokking": Examination({"exhaustive": {}, "probes": {}}, told=("all problems",)),
    "spaced": Examination(
        {"notation": {"num_problems": 10_000}, "probes": {}},
        told=("around", "none", "thousands", "random"),
    ),
    "spaced-gpt2": Examination(
        {"notation": {"num_problems": 10_000}, "splits": {}, "probes": {}},
        told=("around", "none", "thousands", "random"),
    ),
    "parallel": Examination(
        {"strata": {}, "lengths": {"longest": 20}, "probes": {}},
        (Sample("+", (20, 20)), Sample("+", (30, 30))),
        told=(
            "20 + 20 digits", "30 + 30 digits", "single digits, 0+0 to 9+9",
            "a+b and b+a answered alike",
        ),
    ),
    "parallel-encoder": Examination(
        {"strata": {}, "lengths": {"longest": 20}, "probes": {}},
        told=("as in training", "all answer tokens", "single digits, 0+0 to 9+9", "21–30 digits, random"),
    ),
    "parallel-encoder-torch": Examination(
        {"strata": {}, "lengths": {"longest": 20}, "probes": {}},
        told=("as in training", "all answer tokens", "single digits, 0+0 to 9+9", "21–30 digits, random"),
    ),
    "five-operations": Examination(
        {"exhaustive": {}},
        told=("all problems", "operation +", "operation -", "operation *", "operation //",
              "operation %"),
    ),
    "five-operations-10m": Examination({"exhaustive": {}}, told=("all problems",)),
    "looped-abacus-small": PUBLISHED_LOOPED,
    "looped-abacus-post": PUBLISHED_LOOPED,
    "looped-abacus-1x16": PUBLISHED_LOOPED,
    "looped-abacus-8x2": PUBLISHED_LOOPED,
    "looped-abacus-16x1": PUBLISHED_LOOPED,
}  # fmt: skip


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


def measure(recipe: str, seed: int, threads: int | None, kept: str | None) -> dict[str, Any]:
    """Train, score and prove one seed."""
    asked = EXAMINATIONS[recipe]
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(kept or temporary) / f"{recipe}-{seed}"
        begin = time.process_time()
        if (path / "run.json").exists():
            run = abacist.resume(path)
        else:
            run = abacist.train(recipe, out=path, seed=seed, threads=threads)
        processor_seconds = time.process_time() - begin
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        begun = json.loads(run.directory.run_json.read_text())
        curve = run.directory.read_metrics()
        if seed == 0:
            draw_training({recipe: curve}, ROOT / "results" / f"{recipe}.png")
        perfect = next((at for at in curve if at["exact_match"]["value"] == 1), None)
        return {
            "seed": seed,
            "seconds": round(curve[-1]["seconds"], 1),
            "processor_seconds": round(processor_seconds, 1),
            "steps": curve[-1]["step"],
            "batch_size": run.recipe.training.batch_size,
            "threads": begun["threads"],
            "peak_memory_mib": memory,
            "parameters": run.model.num_parameters,
            "steps_to_perfect_validation": perfect and perfect["step"],
            "curve": [
                {key: at[key] for key in ("step", "loss", "seconds")}
                | {"exact_match": at["exact_match"]["value"]}
                for at in curve[:: max(1, len(curve) // POINTS)]
            ],
            "rows": [*suite_rows(run, asked), *sample_rows(run, asked)],
            "certificate": proof(run) if asked.proved else None,
            "circumstances": circumstances(),
        }


def suite_rows(run: Run, asked: Examination) -> Iterator[Row]:
    """Every row of the scorecard that counts something."""
    for suite, settings in asked.suites.items():
        begin = time.perf_counter()
        section = run.score((suite,), None, **settings).sections[suite]
        print(f"{suite}: {section.errors} wrong, {time.perf_counter() - begin:.0f} s", flush=True)
        for row in section.rows:
            if row.proportion is not None:
                yield {
                    "suite": suite,
                    "name": row.name,
                    "measure": row.measure,
                    "errors": row.proportion.errors,
                    "n": row.proportion.n,
                    "smallest_margin": row.smallest_margin and round(row.smallest_margin, 2),
                }


def sample_rows(run: Run, asked: Examination) -> Iterator[Row]:
    """Exact match on the examination's own samples of the test split."""
    for sample in asked.samples:
        generator = generators.generator(run.seed, "record", sample.name)
        task, shapes = asked_for(sample, run, generator)
        drawn = draw_from_split(task, shapes, "test", run.recipe.split, generator)
        verdicts = exact_match(run.trained_model(), distinct(drawn, sample.n))
        print(f"{sample.name}: {verdicts.proportion.errors} wrong", flush=True)
        yield {
            "suite": "sample",
            "name": sample.name,
            "measure": "exact match",
            "errors": verdicts.proportion.errors,
            "n": verdicts.proportion.n,
            "smallest_margin": round(float(verdicts.margins.min()), 2),
        }


def asked_for(sample: Sample | Lists, run: Run, generator: torch.Generator) -> tuple[Task, Shapes]:
    """What draws a sample, and shapes for more problems than it has, of which some are alike."""
    trained, count = run.recipe.task, sample.n + sample.n // 4
    if isinstance(sample, Lists):
        (fewest, most), (shortest, longest) = sample.numbers, sample.digits
        sorting = SortingConfig(
            min_numbers=fewest, max_numbers=most, min_digits=shortest, max_digits=longest
        ).build()
        return sorting, sorting.draw_shapes(count, generator)
    assert isinstance(trained, ArithmeticConfig)
    digits = torch.tensor([sample.digits]).expand(count, 2)
    task = replace(trained, sampling=sample.sampling).build()
    return task, Shapes.of(digits, sample.operation)


def proof(run: Run) -> dict[str, Any]:
    """What checking every neighbourhood gave."""
    outcome = run.prove()
    return {
        "certified": outcome.certified,
        "reason": outcome.reason,
        "neighbourhoods": outcome.neighbourhoods,
        "wrong": outcome.wrong,
        "smallest_margin": outcome.smallest_margin and round(outcome.smallest_margin, 2),
        "seconds": round(outcome.seconds, 1),
    }


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
    labels = EXAMINATIONS[name].told
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipe", nargs="?", choices=list(EXAMINATIONS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, help="train on so many; by default timing chooses")
    parser.add_argument("--runs", help="keep the runs here")
    parser.add_argument(
        "--go-on", action="store_true", help="keep the seeds of the record there is"
    )
    parser.add_argument("--pages", action="store_true", help="only make the pages anew")
    arguments = parser.parse_args()
    if arguments.pages:
        for path, text in pages().items():
            path.write_text(text)
        return
    if arguments.recipe is None:
        parser.error("type a recipe, or --pages")
    out = ROOT / "results" / f"{arguments.recipe}.json"
    found = json.loads(out.read_text())["seeds"] if arguments.go_on and out.exists() else []
    spawn = multiprocessing.get_context("spawn")
    for seed in range(len(found), arguments.seeds):
        with spawn.Pool(1) as pool:
            asked = (arguments.recipe, seed, arguments.threads, arguments.runs)
            found.append(pool.apply(measure, asked))
        proved = found[-1]["certificate"]
        print(
            f"{arguments.recipe}, seed {seed}: {found[-1]['seconds']} s"
            + (f", certified {proved['certified']}, {proved['wrong']} wrong" if proved else ""),
            flush=True,
        )
        record = {"recipe": arguments.recipe, "threads": arguments.threads, "seeds": found}
        out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
